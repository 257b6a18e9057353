//! What Arrays held when somebody went over them.
//!
//! Here: [`Listed`], a list of the elements of Arrays that have few, where what is in it stays alive as long as the list does: a number that is no object, or what tables
//! hold. Not here: all other Arrays, and when anybody asks whether they still hold that (`engine/resident/arrays.rs`).

use super::CHUNK;
use crate::heap::{self, Raw, Seen};
use ikra_core::types::Repr;

/// Elements of an Array that are listed.
const FEW: usize = 32;

/// Arrays with few elements.
#[derive(Default)]
pub struct Listed {
    arrays: Vec<Raw>,
    /// Where each one's elements end.
    ends: Vec<u32>,
    elements: Vec<Raw>,
    /// Those that are not listed.
    others: Vec<Raw>,
}

/// Whether what a slot holds is either no object, or in the tables, or nobody's concern.
pub fn is_held(slot: Option<Repr>) -> bool {
    // without a slot, lengths are all that anybody looks at
    matches!(slot, None | Some(Repr::Ref(_) | Repr::Array(_) | Repr::Str))
}

impl Listed {
    /// Room for so many Arrays, with so many elements.
    pub fn with_room(arrays: usize, elements: usize) -> Self {
        Self {
            arrays: Vec::with_capacity(arrays),
            ends: Vec::with_capacity(arrays),
            elements: Vec::with_capacity(elements),
            others: Vec::new(),
        }
    }

    /// Those of these that are Arrays. `held`: the tables hold their elements.
    pub fn now(arrays: &[Raw], held: bool) -> Self {
        let mut listed = Self::with_room(arrays.len(), 0);
        for some in arrays.chunks(CHUNK) {
            heap::prefetch_all(some.iter().copied());
            for array in some.iter().filter(|array| heap::see(**array) == Seen::Array) {
                listed.add(*array, heap::elements(*array), held);
            }
        }
        listed
    }

    /// One more, with all its elements.
    #[inline]
    pub fn add(&mut self, array: Raw, elements: &[Raw], held: bool) {
        if elements.len() > FEW || !held && !elements.iter().all(|element| heap::is_immediate(*element)) {
            self.others.push(array);
            return;
        }
        self.arrays.push(array);
        self.elements.extend_from_slice(elements);
        self.ends.push(self.elements.len() as u32);
    }

    /// How many are listed.
    pub fn count(&self) -> usize {
        self.arrays.len()
    }

    /// Those that are not listed.
    pub fn others(&self) -> &[Raw] {
        &self.others
    }

    /// Whether each one that is listed holds what it did.
    pub fn holds(&self) -> bool {
        let mut from = 0;
        self.arrays.chunks(CHUNK).zip(self.ends.chunks(CHUNK)).all(|(arrays, ends)| {
            heap::prefetch_all(arrays.iter().copied());
            arrays.iter().zip(ends).all(|(array, end)| {
                let known = &self.elements[from..*end as usize];
                from = *end as usize;
                heap::elements(*array) == known
            })
        })
    }
}
