//! What tables have to columns, by whoever goes over it anyway.
//!
//! Here: [`TableColumns`], the columns of objects' fields and of arrays' elements, and which rows of them are not filled yet; [`ObjectsAlong`] and [`ArraysAlong`], by which
//! the check of an earlier call's tables packs what it looks at as long as that is in the cache. Not here: how a value is held, and whoever packs what is left ([`super`]).

use super::rows::{Cells, Rows, rows};
use super::{Fields, Lender, Packer, Part};
use crate::crew::{Lists, Span};
use crate::heap::{self, Raw};
use crate::plan::{Plan, SlotPlan};
use crate::trace::{CHUNK, KindRows, Tables};
use ikra_core::ir::{Column, Program, Space};
use ikra_core::memory::column::HostColumn;
use ikra_core::types::Repr;
use parking_lot::Mutex;
use std::ops::Range;

/// With more stretches of a class that are not packed than these, all of it is packed again.
const MOST_STRETCHES: usize = 16;

/// The columns of what tables have.
pub struct TableColumns {
    /// As the program's. Those of other spaces are empty, and of kinds of which some arrays are buffers.
    pub(super) columns: Vec<HostColumn>,
    pub(super) biases: Vec<u64>,
    /// By class: rows that are not packed. None: all of them.
    pub(super) objects: Vec<Option<Vec<Range<usize>>>>,
    /// By kind: arrays that are not packed. None: all of them.
    pub(super) arrays: Vec<Option<Vec<Lists>>>,
}

impl TableColumns {
    /// For what tables have, of which nothing is packed yet.
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
        Self { columns, biases, objects: vec![None; plan.classes.len()], arrays: vec![None; plan.kinds.len()] }
    }

    /// Objects of these classes are packed by whoever goes over them, in these pieces, each of which has rows of every class. Of each class some objects that
    /// are alive.
    pub fn objects_along<'a>(
        &'a mut self,
        plan: &'a Plan,
        program: &Program,
        tables: &'a Tables,
        unknown: &'a Mutex<Vec<Raw>>,
        (classes, alive): (&[usize], &[Vec<Raw>]),
        pieces: Vec<Vec<Range<usize>>>,
    ) -> (ObjectsAlong<'a>, Vec<Vec<ObjectSheet<'a>>>) {
        let packer = Packer { plan, tables, unknown };
        let all = classes.iter().map(|class| (*class, 0..tables.classes[*class].objects.len()));
        let mut fields = packer.fields_of(all);
        fields.iter_mut().zip(alive).for_each(|(class, alive)| class.learn(alive));
        let firsts = pieces.iter().map(|piece| piece.iter().map(|rows| rows.start).collect::<Vec<_>>());
        let firsts: Vec<Vec<usize>> = firsts.collect();
        let parts = packer.parts(program, &fields, pieces, &mut self.columns);
        let sheet = |(part, first)| ObjectSheet { part, first, next: 0, left: Vec::new() };
        let sheets =
            parts.into_iter().zip(firsts).map(|(parts, firsts)| parts.into_iter().zip(firsts).map(sheet).collect());
        let sheets = sheets.collect();
        (ObjectsAlong { packer, fields }, sheets)
    }

    /// The same for the arrays of a kind; None where none of them has a column that could be packed.
    pub fn arrays_along<'a>(
        &'a mut self,
        plan: &'a Plan,
        tables: &'a Tables,
        unknown: &'a Mutex<Vec<Raw>>,
        at: usize,
        pieces: &[Lists],
    ) -> Option<(ArraysAlong<'a>, Vec<ArraySheet<'a>>)> {
        let slot = plan.kinds[at].slot.as_ref().filter(|_| !tables.has_buffers(at))?;
        let kind = &tables.kinds[at];
        let wanted: Vec<(&SlotPlan, usize, usize)> =
            pieces.iter().map(|lists| (slot, kind.start(lists.first()), kind.rows_of(lists))).collect();
        let sheets = rows(&mut self.columns, &wanted).into_iter().zip(&wanted);
        let sheets = sheets.map(|(rows, (_, first, _))| ArraySheet { rows, first: *first, left: Vec::new() }).collect();
        Some((ArraysAlong { packer: Packer { plan, tables, unknown }, slot, kind }, sheets))
    }

    /// All objects of a class were gone over, and these rows left out.
    pub fn objects_left(&mut self, class: usize, left: impl Iterator<Item = Range<usize>>) {
        let mut stretches: Vec<Range<usize>> = Vec::new();
        for rows in left {
            match stretches.last_mut().filter(|last| last.end == rows.start) {
                Some(last) => last.end = rows.end,
                None => stretches.push(rows),
            }
        }
        self.objects[class] = Some(stretches).filter(|stretches| stretches.len() <= MOST_STRETCHES);
    }

    /// All arrays of a kind were gone over, and these left out.
    pub fn arrays_left(&mut self, kind: usize, left: Vec<Lists>) {
        self.arrays[kind] = Some(left);
    }
}

/// Packs objects that somebody else goes over.
pub struct ObjectsAlong<'a> {
    packer: Packer<'a>,
    fields: Vec<Fields<'a>>,
}

/// Objects of one class that one thread goes over, and where their fields go.
pub struct ObjectSheet<'a> {
    part: Part<'a>,
    /// The row of the first.
    first: usize,
    /// Objects that it went over.
    next: usize,
    left: Vec<Range<usize>>,
}

impl ObjectSheet<'_> {
    /// Leaves the next so many of them out.
    pub fn leave(&mut self, count: usize) {
        self.left.push(self.first + self.next..self.first + self.next + count);
        self.next += count;
    }
    /// Rows that are not packed.
    pub fn left(mut self) -> Vec<Range<usize>> {
        let rest = self.part.objects.len() - self.next;
        if rest > 0 {
            self.leave(rest);
        }
        self.left
    }
}

impl ObjectsAlong<'_> {
    /// Packs the next so many objects of a sheet, at most [`CHUNK`]. `ids`: of what the fields refer to that the tracer follows, as far as that is known.
    pub fn pack(&self, sheet: &mut ObjectSheet<'_>, count: usize, ids: &[[u32; CHUNK]]) {
        let ObjectSheet { part, next, .. } = sheet;
        let Fields { class, slots, readers, leads, .. } = &self.fields[part.class];
        let objects = &part.objects[*next..*next + count];
        let mut values = [heap::NIL; CHUNK];
        let all = slots.iter().zip(readers).zip(leads).zip(&mut part.rows).all(|(((slot, reader), lead), rows)| {
            let mut rows = rows.part(*next..*next + count);
            if lead.is_some_and(|lead| copy_ids(slot, &mut rows, &ids[lead][..count])) {
                return true;
            }
            let values = &mut values[..count];
            reader.peek_all(objects, *class, values) && self.packer.fill(slot, &mut rows, values, |_| None).is_ok()
        });
        if all { sheet.next += count } else { sheet.leave(count) }
    }
}

/// Packs arrays that somebody else goes over.
pub struct ArraysAlong<'a> {
    packer: Packer<'a>,
    slot: &'a SlotPlan,
    kind: &'a KindRows,
}

/// Arrays of one kind that one thread goes over, and where their elements go.
pub struct ArraySheet<'a> {
    rows: Rows<'a>,
    /// The row where it begins.
    first: usize,
    left: Vec<Lists>,
}

impl ArraySheet<'_> {
    /// Leaves these out, which follow each other.
    pub fn leave(&mut self, spans: &[Span]) {
        let Some((first, last)) = spans.first().zip(spans.last()) else { return };
        // of a long array only one thread's part
        let whole = Lists::Whole(first.list..last.list + 1);
        self.left.push(if spans.len() == 1 { Lists::Part(*first) } else { whole });
    }
    /// Arrays that are not packed.
    pub fn left(self) -> Vec<Lists> {
        self.left
    }
}

impl ArraysAlong<'_> {
    /// Packs arrays of a sheet, whose elements these are. `ids`: of what they refer to, as far as that is known.
    pub fn pack(&self, sheet: &mut ArraySheet<'_>, spans: &[Span], values: &[Raw], ids: &[u32]) {
        let mut from = 0;
        // an array without elements has a row
        let runs = spans.chunk_by(|span, next| self.kind.start(*span) + span.len == self.kind.start(*next));
        for run in runs {
            let len: usize = run.iter().map(|span| span.len).sum();
            let start = self.kind.start(run[0]) - sheet.first;
            let (values, ids) = (&values[from..from + len], ids.get(from..from + len).unwrap_or_default());
            from += len;
            let mut rows = sheet.rows.part(start..start + len);
            let known = ids.len() == len && copy_ids(self.slot, &mut rows, ids);
            if !known && self.packer.fill(self.slot, &mut rows, values, |_| None).is_err() {
                return sheet.leave(spans);
            }
        }
    }
}

/// What no object has for its id: there are fewer rows.
pub const NO_ID: u32 = u32::MAX;

/// Fills rows with ids, if these are what they hold, and all are known.
fn copy_ids(slot: &SlotPlan, rows: &mut Rows<'_>, ids: &[u32]) -> bool {
    match (slot.repr, &mut rows.values) {
        (Repr::Ref(_), Cells::Halves(out)) if !ids.contains(&NO_ID) => {
            out.copy_from_slice(ids);
            true
        }
        _ => false,
    }
}
