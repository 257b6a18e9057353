//! A column's rows: an aligned, zero-filled run of bytes of the host's, seen as one of several element types, or memory of
//! a device.
//!
//! Rows are the column's own, or a version of a [`super::buffer::Buffer`]'s contents that others read too: then they are
//! not written.
//!
//! Invariant: the host's memory is a whole number of 8-byte words, so every view is aligned, and all views are of
//! plain numbers, for which every bit pattern is a value.
#![allow(unsafe_code, reason = "typed views of one buffer of plain words")]

use super::buffer::DeviceMemory;
use super::pool::Locked;
use super::words::HostWords;
use crate::ir::Storage;
use std::sync::Arc;

/// Rows of one column.
#[derive(Clone, Debug)]
pub struct HostColumn {
    words: Words,
    storage: Storage,
    len: usize,
}

#[derive(Clone, Debug)]
enum Words {
    Own(HostWords),
    Shared(Arc<HostWords>),
    Device(Arc<dyn DeviceMemory>),
}

/// A number type that a column's bytes may be viewed as.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    const BYTES: usize;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! element {
    ($($t:ty),*) => { $(impl sealed::Sealed for $t {} impl Element for $t { const BYTES: usize = std::mem::size_of::<$t>(); })* };
}
element!(u8, u32, i32, i64, u64, f32, f64);

impl HostColumn {
    /// `len` rows of zeroes. Unwinds if there is no memory for them, as all do that make or copy rows of the host's ([`super::room`]).
    #[inline]
    pub fn zeroed(storage: Storage, len: usize) -> Self {
        Self { words: Words::Own(HostWords::zeroed(words(storage, len))), storage, len }
    }
    /// Rows that are all to be written, and mean nothing yet: in such words, if some are lent.
    ///
    /// # Panics
    /// If there are fewer words.
    pub fn to_fill(storage: Storage, len: usize, lent: Option<HostWords>) -> Self {
        let rows = lent.unwrap_or_else(|| HostWords::unset(words(storage, len)));
        assert!(rows.len() >= words(storage, len), "the words hold the rows");
        Self { words: Words::Own(rows), storage, len }
    }
    /// The words that so many rows take.
    pub fn words_for(storage: Storage, len: usize) -> usize {
        words(storage, len)
    }
    /// Rows that others read too.
    ///
    /// # Panics
    /// If there are fewer words.
    pub fn shared(storage: Storage, len: usize, rows: Arc<HostWords>) -> Self {
        assert!(rows.len() >= words(storage, len), "the words hold the rows");
        Self { words: Words::Shared(rows), storage, len }
    }
    /// Rows in a device's memory, which the host does not see.
    ///
    /// # Panics
    /// If there is less memory.
    #[inline]
    pub fn on_device(storage: Storage, len: usize, rows: Arc<dyn DeviceMemory>) -> Self {
        assert!(rows.bytes() >= len * storage.bytes(), "the memory holds the rows");
        Self { words: Words::Device(rows), storage, len }
    }
    /// The device's memory that the rows are in.
    #[inline]
    pub fn device(&self) -> Option<&Arc<dyn DeviceMemory>> {
        match &self.words {
            Words::Device(memory) => Some(memory),
            _ => None,
        }
    }
    /// The host's words, still shared where others read them too; none of rows on a device.
    #[inline]
    pub fn into_words(self) -> Option<Arc<HostWords>> {
        match self.words {
            Words::Own(words) => Some(Arc::new(words)),
            Words::Shared(words) => Some(words),
            Words::Device(_) => None,
        }
    }
    #[inline]
    pub fn storage(&self) -> Storage {
        self.storage
    }
    /// Rows.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    pub fn byte_len(&self) -> usize {
        self.len * self.storage.bytes()
    }
    /// Grows or shrinks to `len` rows; new ones are zero.
    pub fn resize(&mut self, len: usize) {
        let wanted = words(self.storage, len);
        self.own().resize(wanted);
        self.len = len;
    }
    fn words(&self) -> &[u64] {
        match &self.words {
            Words::Own(words) => words,
            Words::Shared(words) => words,
            Words::Device(_) => panic!("the host looks at rows on a device"),
        }
    }
    /// The words, the column's own from now on.
    fn own(&mut self) -> &mut HostWords {
        match &mut self.words {
            Words::Own(words) => words,
            Words::Shared(words) => Arc::make_mut(words),
            Words::Device(_) => panic!("the host writes to rows on a device"),
        }
    }
    /// The rows as numbers.
    ///
    /// # Panics
    /// If `T` is not of the storage's width, or the rows are on a device.
    pub fn view<T: Element>(&self) -> &[T] {
        assert_eq!(T::BYTES, self.storage.bytes(), "a {:?} column viewed at another width", self.storage);
        // SAFETY: the words are initialised and 8-aligned, hold at least `len * T::BYTES` bytes, and T is a plain
        // number of that width; the slice borrows `self`, and shared words are written by nobody.
        unsafe { std::slice::from_raw_parts(self.words().as_ptr().cast(), self.len) }
    }
    /// As [`HostColumn::view`], to write.
    pub fn view_mut<T: Element>(&mut self) -> &mut [T] {
        assert_eq!(T::BYTES, self.storage.bytes(), "a {:?} column viewed at another width", self.storage);
        let len = self.len;
        // SAFETY: as in `view`; the words are the column's own, and `self` is borrowed mutably for as long as the slice lives.
        unsafe { std::slice::from_raw_parts_mut(self.own().as_mut_ptr().cast(), len) }
    }
    /// The rows as bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the words hold at least `byte_len` initialised bytes; the slice borrows `self`.
        unsafe { std::slice::from_raw_parts(self.words().as_ptr().cast(), self.byte_len()) }
    }
    /// As [`HostColumn::bytes`], to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        let len = self.byte_len();
        // SAFETY: as in `bytes`; the words are the column's own, and `self` is borrowed mutably for as long as the slice
        // lives.
        unsafe { std::slice::from_raw_parts_mut(self.own().as_mut_ptr().cast(), len) }
    }
    /// The rows as bytes, if they are page-locked, and stay so.
    pub fn locked(&self) -> Option<(Locked<'_>, &[u8])> {
        let locked = match &self.words {
            Words::Own(words) => words.locked(),
            Words::Shared(words) => words.locked(),
            Words::Device(_) => None,
        };
        locked.map(|locked| (locked, self.bytes()))
    }
    /// As [`HostColumn::locked`], of the column's own rows, to write.
    pub fn locked_mut(&mut self) -> Option<(Locked<'_>, &mut [u8])> {
        let len = self.byte_len();
        let Words::Own(words) = &mut self.words else { return None };
        let (locked, words) = words.locked_mut()?;
        // SAFETY: as in `bytes_mut`.
        Some((locked, unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) }))
    }
    /// The start of the rows, for kernels that run on the host: `written` ones become the column's own, others are only
    /// read. Valid until the column is resized or dropped.
    pub fn as_kernel_ptr(&mut self, written: bool) -> *mut u8 {
        if written { self.own().as_mut_ptr().cast() } else { self.words().as_ptr().cast_mut().cast() }
    }
}

impl PartialEq for HostColumn {
    /// The same rows of the same storage.
    fn eq(&self, other: &Self) -> bool {
        self.storage == other.storage && self.len == other.len && self.bytes() == other.bytes()
    }
}

fn words(storage: Storage, len: usize) -> usize {
    len.saturating_mul(storage.bytes()).div_ceil(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_share_the_same_rows() {
        let mut column = HostColumn::zeroed(Storage::U32, 3);
        column.view_mut::<u32>()[2] = 7;
        assert_eq!(column.view::<u32>(), [0, 0, 7]);
        assert_eq!(column.bytes()[8], 7);
    }

    #[test]
    fn rows_that_others_read_are_copied_before_they_are_written() {
        let words = Arc::new(HostWords::from(vec![1, 2]));
        let mut column = HostColumn::shared(Storage::I64, 2, words.clone());
        assert_eq!(column.as_kernel_ptr(false).cast_const().cast(), words.as_ptr());
        column.view_mut::<i64>()[0] = 9;
        assert_eq!((column.view::<i64>(), &words[..]), (&[9, 2][..], &[1, 2][..]));
    }

    #[test]
    #[should_panic(expected = "viewed at another width")]
    fn a_view_of_another_width_panics() {
        HostColumn::zeroed(Storage::U8, 3).view::<i64>();
    }
}
