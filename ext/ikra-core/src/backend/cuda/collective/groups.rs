//! Groups of equal keys: see `groups.cuh`.

use super::{Blocks, Machine, Parts, Text, name, select};
use crate::backend::collective::Element;
use crate::error::Result;

const GROUPS: &str = include_str!("groups.cuh");
const THREADS: u32 = 256;
/// How many elements a block processes at least.
const PIECE: u64 = 2048;

/// Addresses for the results. Each list has room for as many entries as there are elements.
#[derive(Clone, Copy, Debug)]
pub struct Grouped {
    /// u32: the number of each element's group.
    pub group_of: u64,
    /// u32: the first element of each group.
    pub firsts: u64,
    /// u32: the number of elements of each group; 0: not wanted.
    pub counts: u64,
    /// 8 bytes: the number of groups.
    pub groups: u64,
}

fn kernel(name: String, body: &str) -> Text {
    Text::new(name, &[GROUPS], (THREADS, 1), "GroupArgs", body)
}

pub(super) fn finding(element: Element) -> Text {
    let ty = name(element);
    let keys = if element.is_float() { "Floats" } else { "Bits" };
    kernel(format!("ikra_groups_find_{ty}"), &format!("find_slots<{keys}<{ty}> >(args)"))
}

/// The further kernels, which do not depend on the type of keys.
pub(super) fn following() -> [Text; 3] {
    ["flag_firsts", "number_groups", "tell_groups"]
        .map(|name| kernel(format!("ikra_groups_{name}"), &format!("{name}(args)")))
}

/// Queues the grouping of `count` keys at `keys`. There must be fewer than 2^32.
///
/// # Errors
/// `Memory`, `Device`.
pub fn groups(machine: &impl Machine, element: Element, keys: u64, count: u64, to: Grouped) -> Result<()> {
    if count == 0 {
        return machine.fill(to.groups, 8, 0);
    }
    let capacity = (2 * count).next_power_of_two().max(64);
    let mut parts = Parts::default();
    let (table, slots, flags) = (parts.add(capacity * 4), parts.add(count * 4), parts.add(count));
    let scratch = machine.allocate(parts.bytes)?;
    let at = scratch.address();
    machine.fill(at + table, (capacity * 4) as usize, 0xff)?;
    if to.counts != 0 {
        machine.fill(to.counts, (count * 4) as usize, 0)?;
    }
    let mut args =
        [keys, count, at + table, capacity - 1, at + slots, at + flags, to.firsts, to.groups, to.group_of, to.counts];
    let blocks = Blocks::Resident(count.div_ceil(PIECE));
    let [flag, number, tell] = following();
    machine.run(&finding(element), blocks, &mut args)?;
    machine.run(&flag, blocks, &mut args)?;
    select::indices(machine, at + flags, count, to.firsts, to.groups)?;
    machine.run(&number, blocks, &mut args)?;
    machine.run(&tell, blocks, &mut args)
}
