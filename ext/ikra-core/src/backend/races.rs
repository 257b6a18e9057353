//! The log of slot accesses of a tick, by which the interpreter finds data races (`check: :races`).
//!
//! Here: the log, and which accesses are a race. Not here: which lines a program names ([`crate::ir::Stmt::Place`]),
//! and the message.
//!
//! The interpreter runs elements one after the other, so the result does not depend on timing. A race is two elements
//! of one tick that access the same slot, at least one of which writes it, unless both only add to it. The slot belongs
//! to an object or array that existed before the section. If one object occurs several times among the elements, those
//! are one job, and no race.

use crate::ir::{ColumnId, Heap, Program, SiteId, Space, Trap};
use crate::memory::room;
use std::collections::HashMap;
use std::ops::Range;

/// A kind of access to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    Read,
    Write,
    /// `+=` and the like, where the new value is not used.
    Add,
}

/// The job and the place of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    pub job: u64,
    pub index: u64,
    pub place: SiteId,
}

#[derive(Default)]
struct Slot {
    tick: u64,
    written: Option<Seen>,
    added: Option<Seen>,
    /// Two readers of different jobs. Whichever job writes then, at least one of them is another job.
    read: [Option<Seen>; 2],
}

/// The log of one launch.
pub struct Races {
    slots: HashMap<(ColumnId, u64), Slot>,
    /// For each column, whether to log it: columns of objects and arrays that are written.
    watched: Vec<bool>,
    /// For each column, the rows of objects that the section makes. Other elements cannot reach those when they are
    /// first written.
    made: Vec<Vec<Range<u64>>>,
}

impl Races {
    /// None: the program does not ask for a log.
    pub fn of(program: &Program, params: &[u64], slots: u64) -> Option<Self> {
        program.sites.iter().any(|s| s.trap == Trap::Race).then(|| {
            let shared = |space: Space| matches!(space, Space::Class { .. } | Space::Array(_));
            let watched = program.columns.iter().map(|c| c.written && shared(c.space)).collect();
            let rows = |space: Space| {
                let heaps = program.heaps.iter().filter(|heap| match (heap.space, space) {
                    (Space::Class { hierarchy: a, .. }, Space::Class { hierarchy: b, .. }) => a == b,
                    (a, b) => a == b,
                });
                let region = |heap: &Heap| {
                    let [start, capacity] = [heap.start, heap.capacity].map(|p| params[p.index()]);
                    start..start + capacity * if heap.scratch { slots } else { 1 }
                };
                heaps.map(region).collect()
            };
            let made = program.columns.iter().map(|c| rows(c.space)).collect();
            Self { slots: HashMap::new(), watched, made }
        })
    }

    /// Records an access. If it is a race, returns the earlier access to the slot, and the kinds of both.
    pub fn touch(&mut self, column: ColumnId, row: u64, tick: u64, touch: Touch, now: Seen) -> Option<(Seen, i64)> {
        if !self.watched[column.index()] || self.made[column.index()].iter().any(|rows| rows.contains(&row)) {
            return None;
        }
        room::reserve_entry(&mut self.slots);
        let slot = self.slots.entry((column, row)).or_default();
        if slot.tick != tick {
            *slot = Slot { tick, ..Slot::default() };
        }
        let other = |seen: &Option<Seen>| seen.filter(|s| s.job != now.job);
        let written = other(&slot.written).map(|s| (s, Touch::Write));
        let added = other(&slot.added).map(|s| (s, Touch::Add));
        let read = slot.read.iter().find_map(other).map(|s| (s, Touch::Read));
        let race = match touch {
            Touch::Read => written.or(added),
            Touch::Write => written.or(read).or(added),
            Touch::Add => written.or(read),
        };
        match touch {
            Touch::Write => slot.written = Some(now),
            Touch::Add => slot.added = Some(now),
            Touch::Read if slot.read[0].is_none_or(|s| s.job == now.job) => slot.read[0] = Some(now),
            Touch::Read => slot.read[1] = Some(now),
        }
        race.map(|(seen, before)| (seen, before as i64 * 4 + touch as i64))
    }

    /// Words for the kinds of the first and the second access.
    pub fn words(how: i64) -> [&'static str; 2] {
        [how / 4, how % 4].map(|touch| match touch {
            0 => "read",
            1 => "written",
            _ => "added to",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log() -> Races {
        Races { slots: HashMap::new(), watched: vec![true], made: vec![vec![]] }
    }

    fn by(job: u64) -> Seen {
        Seen { job, index: job, place: SiteId::new(job as usize) }
    }

    #[test]
    fn two_elements_race_where_one_of_them_writes() {
        for (first, second, race) in [
            (Touch::Read, Touch::Read, false),
            (Touch::Add, Touch::Add, false),
            (Touch::Read, Touch::Write, true),
            (Touch::Write, Touch::Read, true),
            (Touch::Write, Touch::Write, true),
            (Touch::Add, Touch::Read, true),
            (Touch::Read, Touch::Add, true),
            (Touch::Add, Touch::Write, true),
        ] {
            let mut races = log();
            assert_eq!(races.touch(ColumnId::new(0), 7, 0, first, by(1)), None);
            assert_eq!(races.touch(ColumnId::new(0), 7, 0, second, by(2)).is_some(), race, "{first:?}, {second:?}");
        }
    }

    #[test]
    fn one_element_alone_other_ticks_and_other_slots_are_no_race() {
        let mut races = log();
        for (row, tick, job) in [(1, 0, 1), (1, 0, 1), (2, 0, 2), (1, 1, 2)] {
            assert_eq!(races.touch(ColumnId::new(0), row, tick, Touch::Write, by(job)), None);
        }
    }

    #[test]
    fn a_reader_is_remembered_when_others_read_after_it() {
        let mut races = log();
        for job in [1, 2, 3, 1] {
            assert_eq!(races.touch(ColumnId::new(0), 0, 0, Touch::Read, by(job)), None);
        }
        assert!(races.touch(ColumnId::new(0), 0, 0, Touch::Write, by(1)).is_some());
    }
}
