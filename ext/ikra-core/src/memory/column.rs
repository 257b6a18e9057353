//! A column's rows on the host: an aligned, zero-filled run of bytes seen as one of four element types.
//!
//! Invariant: the buffer's capacity is a whole number of 8-byte words, so every view is aligned, and all views are of
//! plain numbers, for which every bit pattern is a value.
#![allow(unsafe_code, reason = "typed views of one buffer of plain words")]

use crate::ir::Storage;

/// Rows of one column.
#[derive(Clone, Debug, PartialEq)]
pub struct HostColumn {
    words: Vec<u64>,
    storage: Storage,
    len: usize,
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
element!(u8, u32, i64, u64, f64);

impl HostColumn {
    /// `len` rows of zeroes.
    pub fn zeroed(storage: Storage, len: usize) -> Self {
        Self { words: vec![0; (len * storage.bytes()).div_ceil(8)], storage, len }
    }
    pub fn storage(&self) -> Storage {
        self.storage
    }
    /// Rows.
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
        self.words.resize((len * self.storage.bytes()).div_ceil(8), 0);
        self.len = len;
    }
    /// The rows as numbers.
    ///
    /// # Panics
    /// If `T` is not of the storage's width.
    pub fn view<T: Element>(&self) -> &[T] {
        assert_eq!(T::BYTES, self.storage.bytes(), "a {:?} column viewed at another width", self.storage);
        // SAFETY: `words` is owned, initialised and 8-aligned, holds at least `len * T::BYTES` bytes, and T is a plain
        // number of that width; the slice borrows `self`.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.len) }
    }
    /// As [`HostColumn::view`], to write.
    pub fn view_mut<T: Element>(&mut self) -> &mut [T] {
        assert_eq!(T::BYTES, self.storage.bytes(), "a {:?} column viewed at another width", self.storage);
        // SAFETY: as in `view`, and `self` is borrowed mutably for as long as the slice lives.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.len) }
    }
    /// The rows as bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `words` holds at least `byte_len` initialised bytes; the slice borrows `self`.
        unsafe { std::slice::from_raw_parts(self.words.as_ptr().cast(), self.byte_len()) }
    }
    /// As [`HostColumn::bytes`], to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`; `self` is borrowed mutably for as long as the slice lives.
        unsafe { std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.byte_len()) }
    }
    /// The start of the rows, for kernels that run on the host. Valid until the column is resized or dropped.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.words.as_mut_ptr().cast()
    }
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
    #[should_panic(expected = "viewed at another width")]
    fn a_view_of_another_width_panics() {
        HostColumn::zeroed(Storage::U8, 3).view::<i64>();
    }
}
