//! Arrays as they were, which nobody can watch.
//!
//! Here: [`Arrays`], which tells whether any of them was changed since. Not here: when that is asked ([`super`]), and lists of the elements of those that have few
//! ([`Listed`]).
//!
//! Of all others there is a copy that Ruby shares until one of the two is written, so that its address tells. A copy is an object of Ruby's, which takes longer to make, and
//! for the GC to mark, than to read a few elements.

use crate::crew::{self, PIECE};
use crate::heap::{self, Raw};
use crate::holder::LazyHolder;
use crate::reflect;
use crate::trace::Listed;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RArray, Ruby, Value};
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct Arrays {
    listed: Vec<Listed>,
    copied: Vec<Copied>,
    count: usize,
}

struct Copied {
    array: Raw,
    copy: Raw,
    /// Where the copy's elements are: where the Array's are, too, if the two still share them.
    elements: usize,
    len: usize,
}

impl Arrays {
    /// `arrays`: in lists (what else is there is left out), whose elements the tables hold or do not. All are alive for as long as these are, and so is what `holder` has.
    /// `listed`: others, which somebody went over.
    ///
    /// # Errors
    /// What Ruby raises when memory ends.
    pub fn now(
        ruby: &Ruby,
        holder: &LazyHolder,
        arrays: &[(&[Raw], bool)],
        mut listed: Vec<Listed>,
    ) -> Result<Self, Error> {
        let more = arrays.iter().map(|(list, _)| list.len()).sum();
        let pieces = arrays.iter().flat_map(|(list, held)| list.chunks(PIECE).map(|some| (some, *held))).collect();
        listed.extend(crew::map(more, pieces, |(some, held)| Listed::now(some, held)));
        let others = listed.iter().flat_map(Listed::others);
        let copied = others.map(|array| Copied::now(ruby, holder, *array)).collect::<Result<_, _>>()?;
        let count = listed.iter().map(Listed::count).sum();
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
