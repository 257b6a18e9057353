//! Tables that grow at their end.
//!
//! Here: [`Table`], which is to [`HostWords`] what a `Vec` is to the allocator: what programs have many of, and need anew for each graph of objects. Fresh pages are the larger part of
//! what it takes to fill a large table, so its memory is such as was used before, where there is some, and else of large pages, where whole ones lie in it. Not here: what tables there are.
#![allow(unsafe_code, reason = "typed views of plain words")]

use super::words::HostWords;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32};

/// What tables may have rows of: plain numbers of at most eight bytes.
///
/// # Safety
/// All bits are a value, and it needs no alignment beyond that of a `u64`.
pub unsafe trait Row: Send + Sync + 'static {}

macro_rules! row {
    ($($t:ty),*) => {
        $(
            // SAFETY: an integer, or an atomic one, which has its layout, of at most eight bytes.
            unsafe impl Row for $t {}
        )*
    };
}
row!(u8, u16, u32, u64, AtomicU8, AtomicU32);

/// See the module.
pub struct Table<T> {
    /// Of the words.
    start: NonNull<T>,
    len: usize,
    /// Rows that the words have room for.
    room: usize,
    /// What is in them is looked at by `start` alone.
    _words: HostWords,
}

const _: fn() = || {
    fn may_be_sent_and_shared<T: Send + Sync>() {}
    may_be_sent_and_shared::<HostWords>();
};
// SAFETY: it has its words alone, as a `Vec<T>` does; these, as seen above, and rows are such as may be sent and shared.
unsafe impl<T: Row> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Row> Sync for Table<T> {}

impl<T: Row> Table<T> {
    /// So many rows, whose contents mean nothing, and are all to be written. Unwinds if there is no memory for them ([`super::room`]), as all do that make room for rows.
    pub fn unset(len: usize) -> Self {
        let mut table = Self::of(len, HostWords::unset);
        table.len = len;
        table
    }
    /// Makes room for so many more rows at least, and for twice as many as there are, of which perhaps only the first are ever added.
    pub fn reserve(&mut self, more: usize) {
        if self.room - self.len < more {
            self.grow(more);
        }
    }
    #[cold]
    fn grow(&mut self, more: usize) {
        // as often as a table doubles, so that each row is copied but once or twice
        let mut grown = Self::of(self.len.saturating_add(more).max(2 * self.len), HostWords::reserved);
        grown.len = self.len;
        // SAFETY: there are so many rows, and room for more in the new words, which are others.
        unsafe { grown.start.copy_from_nonoverlapping(self.start, self.len) };
        *self = grown;
    }
    /// None, with room for so many.
    fn of(room: usize, words: impl FnOnce(usize) -> HostWords) -> Self {
        // so many bytes or a few more; or, where these are more than can be told, as many words as nobody has
        let mut words = words(room.saturating_mul(size_of::<T>()).div_ceil(8));
        Self { start: NonNull::from(&mut words[..]).cast(), len: 0, room, _words: words }
    }
    /// So many more rows, whose contents mean nothing.
    #[inline]
    pub fn add(&mut self, count: usize) -> &mut [T] {
        self.reserve(count);
        let from = self.len;
        self.len += count;
        &mut self[from..]
    }
    /// Rows that there is room for.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.room
    }
}

impl<T: Row> Default for Table<T> {
    fn default() -> Self {
        Self { start: NonNull::dangling(), len: 0, room: 0, _words: HostWords::default() }
    }
}

impl<T: Row> Deref for Table<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `start` is that of the words, wherever these are held: neither an allocation nor a mapping moves with who has it. They are as many rows at least, aligned for words and so for
        // these, and all bits are a row; or there are none, and `start` dangles. Nobody else has them, and this borrows them.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Row> DerefMut for Table<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pool::MIN_BYTES;
    use super::*;

    #[test]
    fn a_table_has_the_rows_that_were_added_however_it_grows() {
        let mut table = Table::<u16>::default();
        assert!(table.is_empty() && table.capacity() == 0);
        let mut expected = Vec::new();
        for count in [1, 0, 7, 1000, 3, MIN_BYTES, 5] {
            let rows: Vec<u16> = (0..count).map(|i| (i * 7 + count) as u16).collect();
            table.add(count).copy_from_slice(&rows);
            table.add(1)[0] = count as u16;
            expected.extend(rows);
            expected.push(count as u16);
            assert!(table[..] == expected[..] && table.capacity() >= table.len());
        }
        table.reserve(1000);
        let (place, room) = (table.as_ptr(), table.capacity());
        table.add(1000).fill(9);
        assert_eq!((table.as_ptr(), table.capacity(), table.len()), (place, room, expected.len() + 1000));
        table[3] = 77;
        assert_eq!(std::thread::spawn(move || (table[3], table[expected.len()])).join().ok(), Some((77, 9)));
    }

    #[test]
    fn what_a_table_had_another_has_next() {
        // of a length that no other test has
        let len = MIN_BYTES / 4 * 3 + 12_345;
        let again = || {
            let mut table = Table::<u32>::unset(len);
            table.fill(7);
            let place = table.as_ptr();
            drop(table);
            Table::<AtomicU32>::unset(len).as_ptr().cast::<u32>() == place
        };
        // others, who ask for more than there is, have the pool emptied now and then
        assert!((0..10).any(|_| again()));
    }

    #[test]
    fn rows_that_no_machine_has_are_refused_and_none_is_lost() {
        let mut table = Table::<u64>::default();
        table.add(1)[0] = 5;
        for more in [usize::MAX / 16, usize::MAX - 1, usize::MAX] {
            assert!(super::super::room::caught(|| table.reserve(more)).is_err());
        }
        assert_eq!(table[..], [5]);
    }
}
