//! Rows of elements, without a look-up in the map for each.
//!
//! Here: [`Order`], the order of the elements at an earlier call; and [`Guess`], which predicts rows where the order is
//! another now. Not here: what follows from a match ([`super::revalidate`]). Both compare only addresses.

use super::{ARRAY, STRING, Tables};
use crate::ruby::heap::{self, Raw};
use ikra_core::memory::room;

/// The most classes that either knows.
const CLASSES: usize = 8;

/// The classes of elements whose objects are, class by class, in the order of their rows, from each class's first row
/// on.
#[derive(Default)]
pub struct Order {
    /// Index of each element's class.
    classes: Vec<u8>,
    /// By piece: the next row of each class.
    next: Vec<[u32; CLASSES]>,
}

/// The classes of the elements of one piece.
#[derive(Default)]
pub(super) struct PieceOrder {
    classes: Vec<u8>,
    count: [u32; CLASSES],
}

impl PieceOrder {
    /// The class of unknown elements.
    const UNKNOWN: u8 = u8::MAX;

    pub fn of(len: usize) -> Self {
        Self { classes: room::filled(Self::UNKNOWN, len), ..Self::default() }
    }
    /// Whether no classes are recorded, because the order is not needed.
    pub fn is_none(&self) -> bool {
        self.classes.is_empty()
    }
    /// Notes an element.
    #[inline]
    pub fn add(&mut self, at: usize, entry: u64) {
        // Arrays have a bit that no class index has.
        let class = (entry >> 32).wrapping_sub(1) as usize;
        if let (Some(place), Some(count)) = (self.classes.get_mut(at), self.count.get_mut(class)) {
            *place = class as u8;
            *count += 1;
        }
    }
}

impl Order {
    /// The order of all pieces, if their classes are known. Whether rows follow each other is checked when the order is
    /// used.
    pub(super) fn of(pieces: &[PieceOrder], elements: usize) -> Option<Self> {
        let mut order = Self::default();
        let mut next = [0; CLASSES];
        for piece in pieces {
            room::push(&mut order.next, next);
            room::extend(&mut order.classes, piece.classes.iter().copied());
            next.iter_mut().zip(piece.count).for_each(|(next, count)| *next += count);
        }
        let known = order.classes.len() == elements && next.iter().sum::<u32>() as usize == elements;
        known.then_some(order)
    }

    /// Whether the elements of a piece, which begins at `from`, are in this order. `each` gets class and row of every
    /// one up to the first that is not.
    pub(super) fn holds(
        &self,
        tables: &Tables,
        piece: usize,
        from: usize,
        values: &[Raw],
        mut each: impl FnMut(usize, usize, usize),
    ) -> bool {
        let (Some(next), Some(classes)) = (self.next.get(piece), self.classes.get(from..from + values.len())) else {
            return false;
        };
        let (mut next, mut objects) = (*next, [&[][..]; CLASSES]);
        objects.iter_mut().zip(&tables.classes).for_each(|(objects, rows)| *objects = &rows.objects);
        values.iter().zip(classes).enumerate().all(|(i, (value, class))| {
            let class = usize::from(*class) % CLASSES;
            let row = next[class] as usize;
            next[class] += 1;
            let is_there = objects[class].get(row) == Some(value);
            if is_there {
                each(i, class, row);
            }
            is_there
        })
    }
}

/// Predicts elements that mostly did not move: after each object of a class comes the one in the next row, in the order
/// of a walk.
pub(super) struct Guess<'a> {
    tables: &'a Tables,
    /// The predicted next object of some classes, or NOBODY for unknown and finished classes. They are in an array of
    /// their own, because each element is compared with all of them: its class is not predictable.
    next: [Raw; CLASSES],
    /// Their entries, and the objects after them.
    behind: [(u64, &'a [Raw]); CLASSES],
    count: usize,
    /// The row of the predicted next String.
    text: usize,
}

impl<'a> Guess<'a> {
    /// No element has this word.
    const NOBODY: Raw = heap::UNDEF;

    pub fn of(tables: &'a Tables) -> Self {
        Self { tables, next: [Self::NOBODY; CLASSES], behind: [(0, &[]); CLASSES], count: 0, text: 0 }
    }
    /// The entry of an element that was predicted for its class.
    #[inline]
    pub fn entry(&mut self, value: Raw) -> Option<u64> {
        let mut at = CLASSES;
        for (class, next) in self.next.iter().enumerate() {
            at = if *next == value { class } else { at };
        }
        let (entry, behind) = self.behind.get_mut(at)?;
        let found = *entry;
        *entry += 1;
        match behind.split_first() {
            Some((next, rest)) => (self.next[at], *behind) = (*next, rest),
            None => self.next[at] = Self::NOBODY,
        }
        Some(found)
    }
    /// The entry of an element that was predicted as the next String.
    #[inline]
    pub fn text(&mut self, value: Raw) -> Option<u64> {
        let row = self.text;
        self.tables.strings.strings.get(row).filter(|string| **string == value)?;
        self.text += 1;
        Some(STRING | row as u64)
    }
    /// Notes an element that was not predicted.
    pub fn learn(&mut self, entry: u64) {
        if entry & STRING != 0 {
            self.text = entry as u32 as usize + 1;
            return;
        }
        if entry & ARRAY != 0 {
            return;
        }
        // Entries have their class in the upper half.
        let known = self.behind[..self.count].iter().position(|(known, _)| known >> 32 == entry >> 32);
        let Some(at) = known.or_else(|| Some(self.count).filter(|count| *count < CLASSES)) else { return };
        self.count = self.count.max(at + 1);
        let objects = &self.tables.classes[(entry >> 32) as usize - 1].objects;
        let behind = objects.get(entry as u32 as usize + 1..).unwrap_or_default();
        (self.next[at], self.behind[at]) = match behind.split_first() {
            Some((next, rest)) => (*next, (entry + 1, rest)),
            None => (Self::NOBODY, (entry, behind)),
        };
    }
}
