//! The ends of Ruby's Ranges.

use crate::ruby::heap::{self, Raw, Seen};
use ikra_core::types::Prims;
use magnus::Ruby;
use magnus::rb_sys::AsRawValue;

/// The ends of a Range.
pub struct Bounds {
    pub from: Raw,
    pub to: Raw,
    pub exclusive: bool,
}

impl Bounds {
    /// The kind of a Range that registers can hold.
    pub fn in_registers(&self) -> Option<Prims> {
        match (heap::see(self.from), heap::see(self.to)) {
            (Seen::Int(_), Seen::Int(_)) => Some(Prims::INT_RANGE),
            (Seen::Float(_), Seen::Float(_)) => Some(Prims::FLOAT_RANGE),
            _ => None,
        }
    }

    /// The ends of a value. None where it is no Range.
    pub fn of(ruby: &Ruby, value: Raw) -> Option<Self> {
        if heap::is_immediate(value) || heap::class_word(value) != ruby.class_range().as_raw() {
            return None;
        }
        let (mut from, mut to, mut exclusive) = (heap::NIL, heap::NIL, 0);
        // SAFETY: `value` is a Range of Ruby's own class, for which the function only reads.
        #[allow(unsafe_code)]
        let found = unsafe { rb_sys::rb_range_values(value, &mut from, &mut to, &mut exclusive) };
        (found != 0).then_some(Self { from, to, exclusive: exclusive != 0 })
    }
}
