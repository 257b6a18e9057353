//! Tables that grow at their end.
//!
//! Here: [`Table`], a `Vec` whose memory comes from [`HostWords`]. Ikra makes such tables for each graph of objects.
//! Most of the time of filling a large table is the first touch of fresh pages. So its memory is reused memory where
//! there is some, else large pages where whole ones fit. Not here: which tables there are.
#![allow(unsafe_code, reason = "typed views of plain words")]

use super::words::HostWords;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU32};

/// A row of a table: a plain number of at most eight bytes.
///
/// # Safety
/// Every bit pattern is a value, and the alignment is at most that of a `u64`.
pub unsafe trait Row: Send + Sync + 'static {}

macro_rules! row {
    ($($t:ty),*) => {
        $(
            // SAFETY: an integer of at most eight bytes, or an atomic one, which has the same layout.
            unsafe impl Row for $t {}
        )*
    };
}
row!(u8, u16, u32, u64, AtomicU8, AtomicU32);

/// A growable table; see the module.
pub struct Table<T> {
    /// Points into the words.
    start: NonNull<T>,
    len: usize,
    /// Rows for which the words have room.
    room: usize,
    /// Owns the memory. All accesses go through `start`.
    words: HostWords,
}

const _: fn() = || {
    fn may_be_sent_and_shared<T: Send + Sync>() {}
    may_be_sent_and_shared::<HostWords>();
};
// SAFETY: the table owns its words, as a `Vec<T>` does. Words may be sent and shared, as seen above, and so may rows.
unsafe impl<T: Row> Send for Table<T> {}
// SAFETY: as above.
unsafe impl<T: Row> Sync for Table<T> {}

impl<T: Row> Table<T> {
    /// So many rows with unspecified contents, all of which the caller writes. Unwinds if memory does not suffice
    /// ([`super::room`]), as does each function that makes room for rows.
    pub fn unset(len: usize) -> Self {
        let mut table = Self::of(len, HostWords::unset);
        table.len = len;
        table
    }
    /// Makes room for at least so many more rows, and for at least twice the rows that there are. Perhaps only the
    /// first are ever used.
    pub fn reserve(&mut self, more: usize) {
        if self.room - self.len < more {
            self.grow(more);
        }
    }
    #[cold]
    fn grow(&mut self, more: usize) {
        // doubling: on average a row is copied once or twice
        let mut grown = Self::of(self.len.saturating_add(more).max(2 * self.len), HostWords::reserved);
        grown.len = self.len;
        // SAFETY: there are `len` rows, the new words have room for more, and the two do not overlap.
        unsafe { grown.start.copy_from_nonoverlapping(self.start, self.len) };
        *self = grown;
    }
    /// An empty table with room for so many rows.
    fn of(room: usize, words: impl FnOnce(usize) -> HostWords) -> Self {
        // so many bytes, rounded up to words; where the product saturates, the request exceeds all memory and unwinds
        let mut words = words(room.saturating_mul(size_of::<T>()).div_ceil(8));
        Self { start: NonNull::from(&mut words[..]).cast(), len: 0, room, words }
    }
    /// Appends so many rows with unspecified contents.
    #[inline]
    pub fn add(&mut self, count: usize) -> &mut [T] {
        self.reserve(count);
        let from = self.len;
        self.len += count;
        &mut self[from..]
    }
    /// The memory, in which the rows begin at the first word.
    pub fn into_words(self) -> HostWords {
        self.words
    }
    /// Rows for which there is room.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.room
    }
}

impl<T: Row> Default for Table<T> {
    fn default() -> Self {
        Self { start: NonNull::dangling(), len: 0, room: 0, words: HostWords::default() }
    }
}

impl<T: Row> Deref for Table<T> {
    type Target = [T];
    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: `start` points at the words, which do not move when their owner does: they are an allocation or a
        // mapping. They hold at least `len` rows, are aligned for them, and every bit pattern is a row. If there are
        // none, `start` dangles. The table owns them, and the slice borrows it.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Row> DerefMut for Table<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the slice borrows `self` mutably.
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
        // no other test uses this length
        let len = MIN_BYTES / 4 * 3 + 12_345;
        let again = || {
            let mut table = Table::<u32>::unset(len);
            table.fill(7);
            let place = table.as_ptr();
            drop(table);
            Table::<AtomicU32>::unset(len).as_ptr().cast::<u32>() == place
        };
        // other tests request more than there is, which empties the pool now and then
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
