//! Numbers for the Procs and Method objects that objects and arrays hold.
//!
//! Here: the table, behind a lock that is not held while Ruby runs. Not here: their code and their captured variables,
//! which are roots like those of captured Procs ([`crate::world::live_world`]).
//!
//! Invariant: a number belongs to one instruction sequence for good, so code compiled for it stays right. It belongs to
//! one object for as long as a section that met the object is running. Objects in the table are registered with the GC.

use crate::ruby::heap::Raw;
use crate::ruby::identity::RawMap;
use crate::ruby::reflect;
use crate::ruby::registry::Kept;
use ikra_core::id::ProcId;
use magnus::block::Proc;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, Ruby};
use parking_lot::Mutex;

/// The most objects of one instruction sequence that have numbers. A further object takes the number of one that no
/// running section has met, because a program may make Procs all the time.
const MAX_OF_ONE_CODE: usize = 64;
/// The most numbers in all.
const MAX_NUMBERED: usize = 1 << 20;

struct Entry {
    code: Kept,
    /// The serial number of the last section that met the object.
    met: u64,
}

#[derive(Default)]
struct Table {
    by_value: RawMap<u32>,
    entries: Vec<Entry>,
    /// The numbers of each instruction sequence. The first is the next to be reused.
    by_iseq: RawMap<std::collections::VecDeque<u32>>,
    /// How many sections have begun.
    serial: u64,
    /// How many sections are running.
    under_way: usize,
}

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

fn with<T>(work: impl FnOnce(&mut Table) -> T) -> T {
    work(TABLE.lock().get_or_insert_with(Table::default))
}

/// A running section. Objects that it meets keep their numbers.
pub struct UnderWay(());

impl UnderWay {
    pub fn begin() -> Self {
        with(|table| {
            table.serial += 1;
            table.under_way += 1;
        });
        Self(())
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        with(|table| table.under_way -= 1);
    }
}

impl Table {
    fn meet(&mut self, value: Raw) -> Option<u32> {
        let number = *self.by_value.get(&value)?;
        self.entries[number as usize].met = self.serial;
        Some(number)
    }

    /// Numbers an object that has no number. Gives the object that had the number before, which the caller drops after
    /// it has released the lock.
    ///
    /// `columns_stay`: a scope is open, whose columns hold numbers between sections.
    fn enter(&mut self, value: Raw, code: Kept, iseq: Raw, columns_stay: bool) -> Option<(u32, Option<Kept>)> {
        let entry = Entry { code, met: self.serial };
        let numbers = self.by_iseq.entry(iseq).or_default();
        let first = numbers.front().copied();
        let can_give_way = |number: u32| self.entries[number as usize].met < self.serial;
        if let Some(number) = first
            && numbers.len() >= MAX_OF_ONE_CODE
            && self.under_way <= 1
            && !columns_stay
            && can_give_way(number)
        {
            numbers.rotate_left(1);
            let old = std::mem::replace(&mut self.entries[number as usize], entry);
            self.by_value.remove(&old.code.raw());
            self.by_value.insert(value, number);
            return Some((number, Some(old.code)));
        }
        let number = u32::try_from(self.entries.len()).ok().filter(|n| (*n as usize) < MAX_NUMBERED)?;
        numbers.push_back(number);
        self.entries.push(entry);
        self.by_value.insert(value, number);
        Some((number, None))
    }
}

/// The Proc or Method object of a number.
pub fn get(number: u32) -> Raw {
    with(|table| table.entries[number as usize].code.raw())
}

/// The id of an object that has a number.
pub fn find(value: Raw) -> Option<ProcId> {
    with(|table| table.meet(value)).map(ProcId::held)
}

/// The id of a Proc or Method object that is written in Ruby. None where it is not, or where there are too many.
///
/// `columns_stay`: whether columns that hold numbers stay between sections now.
///
/// # Errors
/// What Ruby raises.
pub fn number(raw: Raw, columns_stay: fn() -> bool) -> Result<Option<ProcId>, Error> {
    if let Some(id) = find(raw) {
        return Ok(Some(id));
    }
    let value = reflect::value(raw);
    if Proc::from_value(value).is_none() && !value.is_kind_of(Ruby::get_with(value).class_method()) {
        return Ok(None);
    }
    let Some(iseq) = reflect::iseq_of(value)? else { return Ok(None) };
    let (code, columns_stay) = (Kept::new(value), columns_stay());
    let entered = with(|table| match table.meet(raw) {
        Some(number) => Some((number, None)),
        None => table.enter(raw, code, iseq.as_raw(), columns_stay),
    });
    Ok(entered.map(|(number, _)| ProcId::held(number)))
}
