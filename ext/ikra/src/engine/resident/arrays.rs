//! Arrays as they were, which nobody can watch.
//!
//! Here: [`Arrays`], which tells whether any of them was changed since. Not here: when that is asked ([`super`]).
//!
//! Of few elements there is a list, where what is in it stays alive as long as the list does: a number that is no object, or what the tables hold of a scope's state. Of all
//! others there is a copy that Ruby shares until one of the two is written, so that its address tells. A copy is an object of Ruby's, which takes longer to make, and
//! for the GC to mark, than to read a few elements.

use crate::crew::{self, PIECE};
use crate::heap::{self, Raw, Seen};
use crate::holder::LazyHolder;
use crate::reflect;
use crate::trace::CHUNK;
use ikra_core::types::Repr;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, Ruby, Value};
use std::sync::atomic::{AtomicBool, Ordering};

/// Elements of an Array that are listed.
const FEW: usize = 32;

pub(super) struct Arrays {
    listed: Vec<Listed>,
    copied: Vec<Copied>,
    count: usize,
}

/// Arrays with few elements.
#[derive(Default)]
struct Listed {
    arrays: Vec<Raw>,
    /// Where each one's elements end.
    ends: Vec<u32>,
    elements: Vec<Raw>,
}

struct Copied {
    array: Raw,
    copy: Raw,
    /// Where the copy's elements are: where the Array's are, too, if the two still share them.
    elements: usize,
    len: usize,
}

/// Whether what a slot holds is either no object, or in the tables, or nobody's concern.
pub(super) fn is_held(slot: Option<Repr>) -> bool {
    // without a slot, lengths are all that anybody looks at
    matches!(slot, None | Some(Repr::Ref(_) | Repr::Array(_) | Repr::Str))
}

impl Arrays {
    /// `arrays`: in lists (what else is there is left out), whose elements the tables hold or do not. All are alive for as long as these are, and so is what `holder` has.
    ///
    /// # Errors
    /// What Ruby raises when memory ends.
    pub fn now(ruby: &Ruby, holder: &LazyHolder, arrays: &[(&[Raw], bool)]) -> Result<Self, Error> {
        let count = arrays.iter().map(|(list, _)| list.len()).sum();
        let pieces = arrays.iter().flat_map(|(list, held)| list.chunks(PIECE).map(|some| (some, *held))).collect();
        let (mut listed, mut copied) = (Vec::new(), Vec::new());
        for (few, many) in crew::map(count, pieces, |(some, held)| Listed::now(some, held)) {
            listed.push(few);
            copied.extend(many);
        }
        let copied = copied.into_iter().map(|array| Copied::now(ruby, holder, array)).collect::<Result<_, _>>()?;
        Ok(Self { listed, copied, count })
    }

    /// Whether no Array was changed.
    pub fn hold(&self) -> bool {
        if !self.copied.iter().all(Copied::holds) {
            return false;
        }
        let changed = AtomicBool::new(false);
        crew::map(self.count, self.listed.iter().collect(), |listed| {
            if !changed.load(Ordering::Relaxed) && !listed.holds() {
                changed.store(true, Ordering::Relaxed);
            }
        });
        !changed.into_inner()
    }
}

impl Listed {
    /// Those that are listed, and the others.
    fn now(arrays: &[Raw], held: bool) -> (Self, Vec<Raw>) {
        let (mut listed, mut others) = (Self::default(), Vec::new());
        listed.arrays.reserve_exact(arrays.len());
        listed.ends.reserve_exact(arrays.len());
        for some in arrays.chunks(CHUNK) {
            heap::prefetch_all(some.iter().copied());
            for array in some {
                if heap::see(*array) != Seen::Array {
                    continue;
                }
                let elements = heap::elements(*array);
                if elements.len() > FEW || !held && !elements.iter().all(|element| heap::is_immediate(*element)) {
                    others.push(*array);
                    continue;
                }
                listed.arrays.push(*array);
                listed.elements.extend_from_slice(elements);
                listed.ends.push(listed.elements.len() as u32);
            }
        }
        (listed, others)
    }

    fn holds(&self) -> bool {
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

impl Copied {
    fn now(ruby: &Ruby, holder: &LazyHolder, array: Raw) -> Result<Self, Error> {
        let copy: Value = RArray::from_value(reflect::value(array)).expect("an array").as_value().funcall("dup", ())?;
        holder.add(ruby, copy.as_raw());
        let elements = heap::elements(copy.as_raw());
        Ok(Self { array, copy: copy.as_raw(), elements: elements.as_ptr() as usize, len: elements.len() })
    }
    fn holds(&self) -> bool {
        let now = heap::elements(self.array);
        now.len() == self.len && (now.as_ptr() as usize == self.elements || now == heap::elements(self.copy))
    }
}
