//! Cells of Integers in a small range: what an engine calls `:direct`.
//!
//! Here: [`Cells`], one for each word of such a range, in front of a thread's table. Generated code adds to them
//! without a call ([`crate::backend::cpu`]). A block of threads on a GPU has its own (`groups.cuh`). Not here: other
//! words ([`super::emitted`]).
//! Invariant: what cells and tables have of a word are parts of its group. They are merged in the end.
//!
//! Source: M. Mokhtari and others, *Soren: Adaptive MapReduce for Programmable GPUs* (2011), for programs with few
//! keys.

use super::emitted::EMPTY;

/// How many words have cells.
pub const CELLS: usize = 1 << 10;

/// What the pairs of a word add up to.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Cell {
    pub total: i64,
    /// The order of the first pair. [`EMPTY`]: there is none.
    pub first: u64,
}

/// The cells of a thread. Generated code knows where the fields are.
#[repr(C)]
pub struct Cells {
    /// The word of the first cell, and how many cells there are.
    pub base: u64,
    pub count: u64,
    /// How many pairs they have taken.
    pub pairs: u64,
    pub rows: [Cell; CELLS],
}

impl Cells {
    /// `base`: the word of the first cell. None: no word has a cell.
    pub fn new(base: Option<i64>) -> Self {
        let count = base.map_or(0, |_| CELLS as u64);
        Self { base: base.unwrap_or(0) as u64, count, pairs: 0, rows: [Cell { total: 0, first: EMPTY }; CELLS] }
    }

    /// Adds a pair. False: its word has no cell, or the total no room.
    #[inline]
    pub fn add(&mut self, key: u64, value: i64, order: u64) -> bool {
        let at = key.wrapping_sub(self.base);
        if at >= self.count {
            return false;
        }
        let cell = &mut self.rows[at as usize];
        let Some(total) = cell.total.checked_add(value) else { return false };
        *cell = Cell { total, first: cell.first.min(order) };
        self.pairs += 1;
        true
    }

    /// The words that have pairs, with their cells.
    pub fn used(&self) -> impl Iterator<Item = (u64, Cell)> {
        let words = self.rows.iter().zip(0..).map(|(cell, at)| (self.base.wrapping_add(at), *cell));
        words.filter(|(_, cell)| cell.first != EMPTY)
    }
}

/// The first word with a cell in the next launch of a program: at first 0, then as the last launch would have needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstCell(Option<i64>);

impl Default for FirstCell {
    fn default() -> Self {
        Self(Some(0))
    }
}

impl FirstCell {
    /// None: no word has a cell.
    pub fn get(self) -> Option<i64> {
        self.0
    }

    /// What takes all these keys, which a launch had. If none were there, nothing is learned.
    pub fn after(self, keys: &[u64]) -> Self {
        let words = || keys.iter().map(|key| *key as i64);
        let (Some(least), Some(greatest)) = (words().min(), words().max()) else { return self };
        let reaches = |first: i64| least >= first && (greatest.wrapping_sub(first) as u64) < CELLS as u64;
        let fits = reaches(least);
        // one that does for these keys stays as it is
        let known = self.0.filter(|first| reaches(*first));
        Self(known.or(fits.then_some(least)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_take_the_words_of_their_range_and_no_total_beyond_64_bits() {
        let mut cells = Cells::new(Some(-3));
        assert!(cells.add(-3i64 as u64, 5, 9) && cells.add(-3i64 as u64, -7, 4) && cells.add(1020, 1, 7));
        assert!(!cells.add(1021, 1, 0) && !cells.add(-4i64 as u64, 1, 0));
        assert!(cells.add(0, i64::MAX, 1) && !cells.add(0, 1, 0) && cells.add(0, -1, 2));
        let used: Vec<_> = cells.used().map(|(word, cell)| (word as i64, cell.total, cell.first)).collect();
        assert_eq!(used, [(-3, -2, 4), (0, i64::MAX - 1, 1), (1020, 1, 7)]);
        assert_eq!(cells.pairs, 5);
        assert!(!Cells::new(None).add(0, 1, 0));
    }

    #[test]
    fn the_first_cell_is_such_that_all_keys_have_one() {
        let after = |first: Option<i64>, keys: &[i64]| {
            FirstCell(first).after(&keys.iter().map(|key| *key as u64).collect::<Vec<_>>()).get()
        };
        assert_eq!(after(Some(0), &[5, -2, 1021]), Some(-2));
        assert_eq!(after(Some(-5), &[5, -2, 1018]), Some(-5));
        assert_eq!(after(Some(-5), &[5, -2, 1019]), Some(-2));
        assert_eq!(after(Some(0), &[5, -2, 1022]), None);
        assert_eq!(after(None, &[i64::MIN, i64::MAX]), None);
        assert_eq!(after(None, &[i64::MAX, i64::MAX - 9]), Some(i64::MAX - 9));
        assert_eq!(after(Some(i64::MIN), &[i64::MAX]), Some(i64::MAX));
        assert_eq!(after(Some(7), &[]), Some(7));
        assert_eq!(FirstCell::default().get(), Some(0));
    }
}
