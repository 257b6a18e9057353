//! The rows of a column: an aligned range of host memory, viewed as one of several element types, or memory of a
//! device.
//!
//! A column either owns its rows, or shares them with a version of a [`super::buffer::Buffer`]. Shared rows are not
//! written.
//!
//! Invariant: host memory of a column is a whole number of 8-byte words, so every view is aligned. Views are of plain
//! numbers, for which every bit pattern is a value.
#![allow(unsafe_code, reason = "typed views of one buffer of plain words")]

use super::buffer::DeviceMemory;
use super::pool::Locked;
use super::words::HostWords;
use crate::ir::Storage;
use std::sync::Arc;

/// The rows of one column.
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

/// A number type as which the bytes of a column can be viewed.
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
    /// `len` rows of zeroes. Unwinds if memory does not suffice, as does every function that makes or copies rows on
    /// the host ([`super::room`]).
    #[inline]
    pub fn zeroed(storage: Storage, len: usize) -> Self {
        Self { words: Words::Own(HostWords::zeroed(words(storage, len))), storage, len }
    }
    /// Rows with unspecified contents, all of which the caller writes. They use the words of `lent`, if there are some.
    ///
    /// # Panics
    /// If `lent` has too few words.
    pub fn to_fill(storage: Storage, len: usize, lent: Option<HostWords>) -> Self {
        let rows = lent.unwrap_or_else(|| HostWords::unset(words(storage, len)));
        assert!(rows.len() >= words(storage, len), "the words hold the rows");
        Self { words: Words::Own(rows), storage, len }
    }
    /// How many words so many rows take.
    pub fn words_for(storage: Storage, len: usize) -> usize {
        words(storage, len)
    }
    /// Rows that are shared with other readers.
    ///
    /// # Panics
    /// If there are too few words.
    pub fn shared(storage: Storage, len: usize, rows: Arc<HostWords>) -> Self {
        assert!(rows.len() >= words(storage, len), "the words hold the rows");
        Self { words: Words::Shared(rows), storage, len }
    }
    /// Rows in a device's memory, which the host cannot access.
    ///
    /// # Panics
    /// If the memory is too small.
    #[inline]
    pub fn on_device(storage: Storage, len: usize, rows: Arc<dyn DeviceMemory>) -> Self {
        assert!(rows.bytes() >= len * storage.bytes(), "the memory holds the rows");
        Self { words: Words::Device(rows), storage, len }
    }
    /// The device memory that holds the rows.
    #[inline]
    pub fn device(&self) -> Option<&Arc<dyn DeviceMemory>> {
        match &self.words {
            Words::Device(memory) => Some(memory),
            _ => None,
        }
    }
    /// The host words that hold the rows, which may still be shared; None for rows on a device.
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
    /// The number of rows.
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
    /// Grows or shrinks to `len` rows. New rows are zero.
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
    /// The words, after a copy if they were shared.
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
    /// If `T` does not have the storage's width, or the rows are on a device.
    pub fn view<T: Element>(&self) -> &[T] {
        assert_eq!(T::BYTES, self.storage.bytes(), "a {:?} column viewed at another width", self.storage);
        // SAFETY: the words are initialised and 8-aligned, and hold at least `len * T::BYTES` bytes. T is a plain
        // number of that width. The slice borrows `self`, and shared words are never written.
        unsafe { std::slice::from_raw_parts(self.words().as_ptr().cast(), self.len) }
    }
    /// As [`HostColumn::view`], to write.
    pub fn view_mut<T: Element>(&mut self) -> &mut [T] {
        assert_eq!(T::BYTES, self.storage.bytes(), "a {:?} column viewed at another width", self.storage);
        let len = self.len;
        // SAFETY: as in `view`. The words are not shared, and the slice borrows `self` mutably.
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
        // SAFETY: as in `bytes`. The words are not shared, and the slice borrows `self` mutably.
        unsafe { std::slice::from_raw_parts_mut(self.own().as_mut_ptr().cast(), len) }
    }
    /// The rows as bytes, if they are page-locked. They stay so while the guard lives.
    pub fn locked(&self) -> Option<(Locked<'_>, &[u8])> {
        let locked = match &self.words {
            Words::Own(words) => words.locked(),
            Words::Shared(words) => words.locked(),
            Words::Device(_) => None,
        };
        locked.map(|locked| (locked, self.bytes()))
    }
    /// As [`HostColumn::locked`], to write. Copies shared rows first.
    pub fn locked_mut(&mut self) -> Option<(Locked<'_>, &mut [u8])> {
        let len = self.byte_len();
        let Words::Own(words) = &mut self.words else { return None };
        let (locked, words) = words.locked_mut()?;
        // SAFETY: as in `bytes_mut`.
        Some((locked, unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) }))
    }
    /// The address of the rows, for kernels on the host. `written`: the kernel writes them, so shared rows are copied
    /// first. Valid until the column is resized or dropped.
    pub fn as_kernel_ptr(&mut self, written: bool) -> *mut u8 {
        if written { self.own().as_mut_ptr().cast() } else { self.words().as_ptr().cast_mut().cast() }
    }
}

impl PartialEq for HostColumn {
    /// Whether both have the same storage and the same rows.
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
