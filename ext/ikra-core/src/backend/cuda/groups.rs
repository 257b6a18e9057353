//! Groups of the pairs that a kernel emits, on a device: see `groups.cuh`.
//!
//! Here: where the table lies in memory ([`Room`]), and the words of a launch that tell the kernel. Not here: the
//! allocation of that memory, and the launch, which runs again with more room where there was too little.

use crate::backend::collective::cells::CELLS;
use crate::backend::collective::emitted::{Combine, Emitted, Records};
use crate::backend::collective::float_totals::{FIRST_EXPONENT, MAX_SHIFT};
use crate::backend::collective::groups::seed;
use std::ops::Range;

/// What kernels with pairs need before the program.
pub const TEMPLATES: &str = include_str!("groups.cuh");
/// Words of `struct GroupTable`.
pub const WORDS: usize = 16;
/// Words for keys of several parts, for each record.
const WORDS_OF_RECORD: usize = 4;
/// Bytes before the slots.
const HEAD: usize = 256;
/// The fewest records at first, and the most.
const RECORDS: Range<u64> = 1 << 12..1 << 22;

/// How many records there are at first, for so many jobs.
pub fn first_records(jobs: u64) -> u64 {
    jobs.next_power_of_two().clamp(RECORDS.start, RECORDS.end)
}

/// Room for a table.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    records: usize,
    /// Whether keys have parts.
    has_parts: bool,
    /// Whether totals are sums of Floats, which have one more word.
    has_sums: bool,
}

/// What a kernel asked of its table: the first words of the memory.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub records: u64,
    pub words: u64,
    /// Whether a key had too many parts, or a Float is not for tables.
    pub refused: bool,
    pub negative_zero: bool,
}

impl Asked {
    pub const WORDS: usize = 4;

    pub fn of([records, words, refused, negative_zero]: [u64; Self::WORDS]) -> Self {
        Self { records, words, refused: refused != 0, negative_zero: negative_zero != 0 }
    }

    /// How many records would have been enough.
    pub fn needed(self) -> u64 {
        self.records.max(self.words.div_ceil(WORDS_OF_RECORD as u64))
    }
}

impl Room {
    pub fn of(groups: &Emitted) -> Self {
        Self { records: groups.records as usize, has_parts: groups.has_parts, has_sums: groups.how.has_sums() }
    }

    /// Slots are at least twice as many as records.
    fn slots(self) -> usize {
        2 * self.records.next_power_of_two()
    }

    /// The bytes that are 0 before the launch. The memory begins with them.
    pub fn zeroes(self) -> usize {
        HEAD + self.slots() * 8
    }

    pub fn bytes(self) -> usize {
        self.tops(if self.has_sums { self.records } else { 0 }).end
    }

    /// Where the first `count` words of the last column are: the third words of sums of Floats.
    pub fn tops(self, count: usize) -> Range<usize> {
        let words = if self.has_parts { WORDS_OF_RECORD * self.records } else { 0 };
        let from = self.words_of_keys(words).end;
        from..from + count * 8
    }

    /// Where the first `count` words of keys of several parts are.
    pub fn words_of_keys(self, count: usize) -> Range<usize> {
        let from = self.highs(self.records).end;
        from..from + count * 8
    }

    /// Where the first `count` records are: `struct Record`.
    pub fn records(self, count: usize) -> Range<usize> {
        let from = self.zeroes();
        from..from + count * Records::WORDS * 8
    }

    /// Where their states are: `struct State`.
    pub fn states(self, count: usize) -> Range<usize> {
        let from = self.records(self.records).end;
        from..from + count * Records::WORDS * 8
    }

    /// Where the second words of the first `count` sums are.
    pub fn highs(self, count: usize) -> Range<usize> {
        let from = self.states(self.records).end;
        from..from + count * 8
    }

    /// The words of `struct GroupTable`, for memory at this address.
    pub fn words(self, address: u64, groups: &Emitted) -> [u64; WORDS] {
        let combine = match groups.how.combine {
            Combine::Sum if groups.how.floats => 5,
            Combine::Sum => 0,
            Combine::Min => 1,
            Combine::Max => 2,
            Combine::And => 3,
            Combine::Or => 4,
        };
        let at = |range: Range<usize>| address + range.start as u64;
        let (slots, cell) = (address + HEAD as u64, groups.how.cell());
        [
            slots,
            self.slots() as u64 - 1,
            at(self.records(0)),
            at(self.states(0)),
            at(self.highs(0)),
            self.records as u64,
            address,
            combine,
            seed().hash(0),
            at(self.words_of_keys(0)),
            at(self.tops(0)),
            groups.how.floats.into(),
            FIRST_EXPONENT as u64,
            MAX_SHIFT as u64,
            cell.unwrap_or(0) as u64,
            cell.map_or(0, |_| CELLS as u64),
        ]
    }
}
