//! Packs objects while other code goes over them.
//!
//! Here: [`TableColumns`], the columns of objects' fields and of arrays' elements, with the rows that are not filled
//! yet; [`ObjectsAlong`] and [`ArraysAlong`]. With these, revalidation of an earlier call's tables packs each object
//! while it is in the cache. Not here: how a value is stored, and packing the remaining rows ([`super`]).

use super::rows::{Cells, Rows, rows};
use super::{Fields, Lender, Packer, Part};
use crate::marshal::plan::{Plan, SlotPlan};
use crate::marshal::trace::{CHUNK, KindRows, Tables};
use crate::ruby::heap::{self, Raw};
use crate::ruby::workers::{Lists, Span};
use ikra_core::ir::{Column, Program, Space};
use ikra_core::memory::buffer::DeviceMemory;
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use ikra_core::types::Repr;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::ops::Range;
use std::sync::Arc;

/// Where more than one in so many objects of a class is not packed, all of the class is packed by all cores.
const MAX_UNPACKED_DIVISOR: usize = 16;

/// The columns of the objects and arrays of the tables.
pub struct TableColumns {
    /// The program's columns. Those of other spaces are empty, and those of kinds in which some arrays are buffers.
    pub(super) columns: Vec<HostColumn>,
    pub(super) biases: Vec<u64>,
    /// By class: rows that are not packed. None: all of them.
    pub(super) objects: Vec<Option<Vec<u32>>>,
    /// By kind: arrays that are not packed. None: all of them.
    pub(super) arrays: Vec<Option<Vec<Span>>>,
    /// By column: its rows on the device, if they are there already. Empty where no column has any.
    pub(super) sent: Vec<Option<Arc<dyn DeviceMemory>>>,
}

/// Columns that are sent to the device while others are filled: their indices, their rows, and their memory on the
/// device, if there was room.
type Sent = Vec<(usize, HostColumn, Option<Arc<dyn DeviceMemory>>)>;

/// The fewest bytes of a column that is worth a thread.
const MIN_SENT_BYTES: usize = 1 << 20;

impl TableColumns {
    /// The columns of tables of which nothing is packed yet.
    pub fn new(plan: &Plan, program: &Program, tables: &Tables, lender: Lender<'_>) -> Self {
        let packer = Packer { plan, tables, unknown: &Mutex::default() };
        let mut biases = vec![0; program.columns.len()];
        let packed_rows = packer.packed_rows(program);
        let column = |(at, column): (usize, &Column)| {
            let rows = match column.space {
                Space::Class { hierarchy, first, last } => {
                    let (from, to) = packer.ids(hierarchy as usize, first as usize, last as usize);
                    biases[at] = u64::from(from);
                    (to - from) as usize
                }
                Space::Array(kind) => {
                    let kind = plan.kinds.iter().position(|other| other.kind == kind);
                    let rows = kind.filter(|kind| !tables.has_buffers(*kind)).map(|kind| &tables.kinds[kind]);
                    rows.map_or(0, |rows| rows.rows + rows.room) as usize
                }
                _ => 0,
            };
            lender.packed(column.storage, rows, packed_rows[at])
        };
        let columns = program.columns.iter().enumerate().map(column).collect();
        let (objects, arrays) = (vec![None; plan.classes.len()], vec![None; plan.kinds.len()]);
        Self { columns, biases, objects, arrays, sent: Vec::new() }
    }

    /// Runs work that fills columns. Where columns stay on a device, those that are filled are sent there meanwhile.
    pub fn while_sending<R>(
        &mut self,
        plan: &Plan,
        tables: &Tables,
        program: &Program,
        lender: Lender<'_>,
        work: impl FnOnce(&mut Self) -> R,
    ) -> R {
        let Some(store) = lender.store.filter(|_| lender.keeps) else { return work(self) };
        let full = self.take_full(plan, tables, program);
        if full.is_empty() {
            return work(self);
        }
        // Columns are taken one by one, so that all are still there where the system gives no thread.
        let waiting = Mutex::new(full);
        let send = || {
            let next = || waiting.lock().pop();
            let send = |(at, column)| {
                let sent = store.upload_column(&column);
                (at, column, sent.ok())
            };
            std::iter::from_fn(next).map(send).collect::<Sent>()
        };
        let (done, sent) = std::thread::scope(|scope| {
            let sending = std::thread::Builder::new().name("ikra sends".into()).spawn_scoped(scope, send);
            let done = work(self);
            let sent = match sending {
                Ok(sending) => sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
                Err(_) => send(),
            };
            (done, sent)
        });
        self.sent.resize(self.columns.len(), None);
        for (at, column, memory) in sent {
            (self.columns[at], self.sent[at]) = (column, memory);
        }
        done
    }

    /// Takes the long columns of which every row is packed.
    fn take_full(&mut self, plan: &Plan, tables: &Tables, program: &Program) -> Vec<(usize, HostColumn)> {
        let packed_rows = Packer { plan, tables, unknown: &Mutex::default() }.packed_rows(program);
        // Other columns are filled later (which objects are frozen), or hold nothing.
        let is_full = |(at, column): &(usize, &Column)| match column.space {
            _ if packed_rows[*at] != self.columns[*at].len() => false,
            Space::Class { hierarchy, first, last } => {
                let start = plan.hierarchy(hierarchy as usize).start;
                let mut classes = start + first as usize..=start + last as usize;
                let is_packed = |at: usize| self.objects[at].as_ref().is_some_and(Vec::is_empty);
                classes.all(|at| is_packed(at) || tables.classes[at].objects.is_empty())
                    && self.columns[*at].byte_len() >= MIN_SENT_BYTES
            }
            _ => false,
        };
        let full: Vec<usize> = program.columns.iter().enumerate().filter(is_full).map(|(at, _)| at).collect();
        let take = |at: usize| {
            let none = HostColumn::zeroed(program.columns[at].storage, 0);
            (at, std::mem::replace(&mut self.columns[at], none))
        };
        full.into_iter().map(take).collect()
    }

    /// Packers for the objects of these classes in these pieces, each of which has rows of every class. `alive` has
    /// some objects of each class.
    pub fn objects_along<'a>(
        &'a mut self,
        packer: Packer<'a>,
        program: &Program,
        (classes, alive): (&[usize], &[Vec<Raw>]),
        pieces: Vec<Vec<Range<usize>>>,
    ) -> (ObjectsAlong<'a>, Vec<Vec<ObjectSheet<'a>>>) {
        let mut fields = packer.fields_of(classes);
        fields.iter_mut().zip(alive).for_each(|(class, alive)| class.learn(alive));
        let firsts: Vec<SmallVec<[usize; 4]>> =
            pieces.iter().map(|piece| piece.iter().map(|rows| rows.start).collect()).collect();
        let parts = packer.parts(program, &fields, pieces, &mut self.columns);
        let sheet = |(part, first)| ObjectSheet { part, first, next: 0, left: Vec::new() };
        let sheets =
            parts.into_iter().zip(firsts).map(|(parts, firsts)| parts.into_iter().zip(firsts).map(sheet).collect());
        let sheets = sheets.collect();
        (ObjectsAlong { packer, fields }, sheets)
    }

    /// The same for the arrays of a kind. None where no column of theirs can be packed.
    pub fn arrays_along<'a>(
        &'a mut self,
        packer: Packer<'a>,
        at: usize,
        pieces: &[Lists],
    ) -> Option<(ArraysAlong<'a>, Vec<ArraySheet<'a>>)> {
        let Packer { plan, tables, .. } = packer;
        let slot = plan.kinds[at].slot.as_ref().filter(|_| !tables.has_buffers(at))?;
        let kind = &tables.kinds[at];
        let wanted: Vec<(&SlotPlan, usize, usize)> =
            pieces.iter().map(|lists| (slot, kind.start(lists.first()), kind.rows_of(lists))).collect();
        let sheets = rows(&mut self.columns, &wanted).into_iter().zip(&wanted);
        let sheets = sheets.map(|(rows, (_, first, _))| ArraySheet { rows, first: *first }).collect();
        Some((ArraysAlong { packer, slot, kind }, sheets))
    }

    /// Notes that all objects of a class were visited, and that these rows were left out.
    pub fn objects_left(&mut self, class: usize, all: usize, left: Vec<u32>) {
        self.objects[class] = Some(left).filter(|left| left.len() <= all / MAX_UNPACKED_DIVISOR);
    }

    /// The same for the arrays of a kind.
    pub fn arrays_left(&mut self, kind: usize, all: usize, mut left: Vec<Span>) {
        // Arrays that could not be packed were noted after those that were not visited.
        left.sort_unstable_by_key(|span| (span.list, span.from));
        self.arrays[kind] = Some(left).filter(|left| left.len() <= all / MAX_UNPACKED_DIVISOR);
    }
}

/// Packs objects while other code goes over them.
pub struct ObjectsAlong<'a> {
    packer: Packer<'a>,
    fields: Vec<Fields<'a>>,
}

/// Objects of one class that one thread visits, and the rows of their fields.
pub struct ObjectSheet<'a> {
    part: Part<'a>,
    /// The row of the first object.
    first: usize,
    /// The number of objects that were visited.
    next: usize,
    left: Vec<u32>,
}

impl ObjectSheet<'_> {
    /// Leaves out the next so many objects.
    pub fn leave(&mut self, count: usize) {
        let next = self.first + self.next;
        room::extend(&mut self.left, next as u32..(next + count) as u32);
        self.next += count;
    }
    /// The rows that are not packed.
    pub fn left(mut self) -> Vec<u32> {
        self.leave(self.part.objects.len() - self.next);
        self.left
    }
}

impl ObjectsAlong<'_> {
    /// Packs the next objects of a sheet, at most [`CHUNK`]. Where one of the sheet's objects is left out, any other
    /// stands in its place. `ids` has the ids of the objects that followed fields refer to, where they are known.
    pub fn pack(&self, sheet: &mut ObjectSheet<'_>, objects: &[Raw], ids: &[[u32; CHUNK]]) {
        let (count, ObjectSheet { part, first, next, left }) = (objects.len(), &mut *sheet);
        let Fields { class, slots, readers, leads, .. } = &self.fields[part.class];
        let mut values = [heap::NIL; CHUNK];
        let all = slots.iter().zip(readers).zip(leads).zip(&mut part.rows).all(|(((slot, reader), lead), rows)| {
            let mut rows = rows.part(*next..*next + count);
            if lead.is_some_and(|lead| copy_ids(self.packer.plan, slot, &mut rows, &ids[lead][..count])) {
                return true;
            }
            let values = &mut values[..count];
            reader.peek_all(objects, *class, values) && self.packer.fill(slot, &mut rows, values, |_| None).is_ok()
        });
        if !all {
            return sheet.leave(count);
        }
        let others = part.objects[*next..*next + count].iter().zip(objects).enumerate();
        room::extend(left, others.filter(|(_, (own, packed))| own != packed).map(|(i, _)| (*first + *next + i) as u32));
        *next += count;
    }
}

/// Packs arrays while other code goes over them.
pub struct ArraysAlong<'a> {
    packer: Packer<'a>,
    slot: &'a SlotPlan,
    kind: &'a KindRows,
}

/// Arrays of one kind that one thread visits, and the rows of their elements.
pub struct ArraySheet<'a> {
    rows: Rows<'a>,
    /// The row where it begins.
    first: usize,
}

impl ArraysAlong<'_> {
    /// Packs arrays of a sheet, whose elements are `values`. False where that is not possible. `ids` has the ids of the
    /// elements, where they are known.
    pub fn pack(&self, sheet: &mut ArraySheet<'_>, spans: &[Span], values: &[Raw], ids: &[u32]) -> bool {
        let mut from = 0;
        // An array without elements has a row, and some arrays are left out.
        let mut runs = spans.chunk_by(|span, next| self.kind.start(*span) + span.len == self.kind.start(*next));
        runs.all(|run| {
            let len: usize = run.iter().map(|span| span.len).sum();
            let start = self.kind.start(run[0]) - sheet.first;
            let (values, ids) = (&values[from..from + len], ids.get(from..from + len).unwrap_or_default());
            from += len;
            let mut rows = sheet.rows.part(start..start + len);
            let known = ids.len() == len && copy_ids(self.packer.plan, self.slot, &mut rows, ids);
            known || self.packer.fill(self.slot, &mut rows, values, |_| None).is_ok()
        })
    }
}

/// An id that no object has: there are fewer rows.
pub const NO_ID: u32 = u32::MAX;

/// Fills rows with ids, if the column holds ids, and all are known.
fn copy_ids(plan: &Plan, slot: &SlotPlan, rows: &mut Rows<'_>, ids: &[u32]) -> bool {
    let Cells::Halves(out) = &mut rows.values else { return false };
    let tag = match slot.repr {
        Repr::Ref(_) => None,
        // A union of objects and values without an id.
        Repr::Union => match slot.sole_tag(plan) {
            None => return false,
            tag => tag,
        },
        _ => return false,
    };
    if ids.contains(&NO_ID) {
        return false;
    }
    out.copy_from_slice(ids);
    tag.into_iter().for_each(|tag| rows.tags.fill(tag));
    true
}
