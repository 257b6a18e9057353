//! A schema with Ruby's own words: class words instead of class numbers, IDs instead of names.
//!
//! Here: [`Plan`], made once per compiled program and read by every call. Not here: walking ([`crate::marshal::trace`])
//! and filling columns ([`crate::marshal::pack`]).

use crate::ruby::heap::{Field, Raw};
use crate::ruby::identity::RawMap;
use crate::ruby::reflect;
use crate::ruby::registry::classes;
use ikra_core::error::{Error as CoreError, Result as CoreResult};
use ikra_core::id::{ArrayKind, ClassId, ProcId};
use ikra_core::ir::{Column, ColumnId, Jobs, Program, Space};
use ikra_core::layout::schema::{Schema, Slot};
use ikra_core::types::{Prims, Repr, Tag, Ty};
use ikra_core::world::{Facts, Place, well_known};
use magnus::Ruby;
use magnus::rb_sys::AsRawValue;

/// The values that a slot may hold, and how they are stored.
pub struct SlotPlan {
    pub prims: Prims,
    /// Which classes of objects may be there, by class index of the plan. Empty: no objects.
    pub classes: Vec<bool>,
    /// The only class, if there is just one.
    pub sole_class: Option<usize>,
    pub modules: Vec<ClassId>,
    pub procs: Vec<ProcId>,
    /// The kind of arrays, by kind index of the plan.
    pub kind: Option<usize>,
    /// Whether this slot is the only reference to its objects and arrays.
    pub owned: bool,
    pub repr: Repr,
    pub value: Option<ColumnId>,
    pub tag: Option<ColumnId>,
    /// The column that tells which rows the program stored, where only these may differ from what was packed.
    pub marks: Option<ColumnId>,
}

impl SlotPlan {
    /// Whether objects of the class at an index of the plan may be there.
    #[inline]
    pub fn takes(&self, class: usize) -> bool {
        self.classes.get(class).copied().unwrap_or(false)
    }

    /// Whether a column has only ids of objects.
    pub fn are_ids(&self) -> bool {
        matches!(self.repr, Repr::Ref(_)) && self.tag.is_none()
    }

    /// Whether the tracer treats both slots alike.
    pub fn is_like(&self, other: &SlotPlan) -> bool {
        let same_values = self.prims == other.prims && self.classes == other.classes && self.kind == other.kind;
        same_values && self.owned == other.owned
    }

    /// The tag of every object that may be there, if all have the same.
    pub fn sole_tag(&self, plan: &Plan) -> Option<u8> {
        let taken = self.classes.iter().zip(&plan.classes).filter(|(taken, _)| **taken);
        let mut hierarchies = taken.map(|(_, class)| class.hierarchy);
        let first = hierarchies.next()?;
        hierarchies.all(|other| other == first).then(|| (Tag::OBJECT + first as i32) as u8)
    }

    /// Whether the values of both slots have rows in the same tables.
    fn numbers_with(&self, other: &SlotPlan) -> bool {
        self.meets(other) || [self, other].iter().all(|slot| slot.prims.intersects(Prims::STR))
    }

    /// Whether one object or array may be in both.
    fn meets(&self, other: &SlotPlan) -> bool {
        self.classes.iter().zip(&other.classes).any(|(a, b)| *a && *b) || self.kind.is_some() && self.kind == other.kind
    }

    /// Whether the slot may hold a heap object that has columns (or bytes) of its own.
    pub fn leads_on(&self) -> bool {
        !self.classes.is_empty() || self.kind.is_some() || self.prims.intersects(Prims::STR)
    }
}

pub struct FieldPlan {
    /// With its `@`, for an ivar.
    pub name: String,
    pub field: Field,
    pub slot: SlotPlan,
    /// Whether it is filled before a launch, or checked where there is no column.
    pub read: bool,
    pub written: bool,
    /// Whether the program also writes it in objects that it may not have made itself.
    pub overwritten: bool,
    /// The position of the ivar in new objects, which have it even where it is nil.
    pub given: Option<u32>,
}

/// A class whose objects have ids in the program.
pub struct ClassPlan {
    pub class: ClassId,
    /// Ruby's class. Several are Hash, of which only one is that of Hashes that Ruby made.
    pub raw: Raw,
    pub hierarchy: usize,
    pub fields: Vec<FieldPlan>,
    /// The indices of fields that the tracer follows.
    pub leads: Vec<usize>,
    /// Whether no two of these fields hold objects or arrays with rows in the same table. Then rows do not depend on
    /// the order in which fields are followed.
    pub apart: bool,
    /// Whether the program writes objects of the class without a check for frozen ones. It may still check those of
    /// other classes of the hierarchy.
    pub must_not_be_frozen: bool,
    /// The column of frozen flags, where the program freezes objects.
    pub freezes: Option<ColumnId>,
    /// The column of origins: the object that each new object is a copy of.
    pub origin: Option<ColumnId>,
    /// Whether an object may belong to an owned slot. Then the tracer must check that nothing else refers to it.
    pub ownable: bool,
    /// Whether the program reads parts of these Hashes, which must be laid out.
    pub laid_out: bool,
}

/// A kind of arrays that the program has values of.
pub struct KindPlan {
    pub kind: ArrayKind,
    /// None where the program reads at most their lengths.
    pub slot: Option<SlotPlan>,
    pub written: bool,
    /// Whether the program writes them, other than in `initialize` or a literal.
    pub overwritten: bool,
    pub frozen: Option<ColumnId>,
    /// Whether the program freezes arrays.
    pub freezes: bool,
    pub must_not_be_frozen: bool,
    /// As for a class.
    pub ownable: bool,
}

/// The rows of a heap: those of a class index or of a kind index, or the bytes of Strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    Class(usize),
    Kind(usize),
    Bytes,
}

pub struct Plan {
    /// In the order of the program.
    pub heaps: Vec<Rows>,
    pub classes: Vec<ClassPlan>,
    /// The index in `classes` of each hierarchy's first class, and at the end the number of classes.
    pub hierarchies: Vec<usize>,
    pub class_index: RawMap<u32>,
    pub kinds: Vec<KindPlan>,
    pub elements: Option<SlotPlan>,
    /// In the order of the schema.
    pub roots: Vec<SlotPlan>,
    pub result: Option<SlotPlan>,
    pub accumulators: Vec<SlotPlan>,
    /// Whether several occurrences of one object among the elements are one job.
    pub grouped: bool,
    /// Whether other elements may refer to an element.
    pub linked: bool,
    /// Whether roots are followed before elements. The program assumes that lists have their objects in order, and no
    /// root leads to an element.
    pub roots_first: bool,
    /// Whether the program goes over all rows of its elements' classes. Then nothing reads an element's row.
    pub whole: bool,
    /// The bytes of the program's literals, which come first among all bytes.
    pub literals: Vec<u8>,
    /// The class word of plain Strings.
    pub string_class: Raw,
    /// Whether no slot leads to other objects: then no tables are needed.
    pub plain: bool,
    /// Whether only roots lead to other objects, and these to no more. Then the tables hold only roots.
    pub flat: bool,
}

impl Plan {
    /// Makes the plan of a program.
    ///
    /// # Errors
    /// A schema that contradicts itself.
    pub fn new(ruby: &Ruby, program: &Program, schema: &Schema, facts: &Facts) -> CoreResult<Self> {
        let mut plan = Plan {
            heaps: Vec::new(),
            classes: Vec::new(),
            hierarchies: Vec::new(),
            class_index: RawMap::default(),
            kinds: Vec::new(),
            elements: None,
            roots: Vec::new(),
            result: None,
            accumulators: Vec::new(),
            grouped: program.jobs == Jobs::Grouped,
            linked: false,
            roots_first: false,
            whole: schema.whole.is_some(),
            literals: schema.literal_bytes(),
            string_class: ruby.class_string().as_raw(),
            plain: true,
            flat: true,
        };
        for (h, hierarchy) in schema.hierarchies.iter().enumerate() {
            plan.hierarchies.push(plan.classes.len());
            for class in &hierarchy.classes {
                let raw = classes::get(*class).raw;
                // Ruby's own objects of that class are of another one.
                if !well_known::is_made_hash(*class) {
                    plan.class_index.insert(raw, plan.classes.len() as u32);
                }
                let written = schema.fields.iter().any(|f| f.class == *class && f.overwritten);
                plan.classes.push(ClassPlan {
                    class: *class,
                    raw,
                    hierarchy: h,
                    fields: Vec::new(),
                    leads: Vec::new(),
                    apart: true,
                    must_not_be_frozen: written && (hierarchy.frozen.is_none() || !facts.may_be_frozen(*class)),
                    freezes: hierarchy.frozen.filter(|column| program.columns[column.index()].written),
                    origin: hierarchy.origin,
                    ownable: false,
                    laid_out: false,
                });
            }
        }
        plan.hierarchies.push(plan.classes.len());
        for array in &schema.arrays {
            let at = plan.kind(array.kind);
            let mut slot = plan.slot(&array.slot)?;
            slot.owned = slot.leads_on() && !array.written && facts.must_be_owned(&Place::Elements(array.kind));
            // Passes may have found that nothing is written, and then rounded what is there.
            let rounded = slot.value.is_some_and(|column| program.columns[column.index()].is_only_rounded());
            plan.kinds[at].slot = Some(slot);
            plan.kinds[at].written = array.written && !rounded;
            plan.kinds[at].overwritten = array.overwritten;
            plan.kinds[at].frozen = array.frozen;
            plan.kinds[at].freezes = array.frozen.is_some_and(|column| program.columns[column.index()].written);
            plan.kinds[at].must_not_be_frozen = array.overwritten && array.frozen.is_none();
        }
        for field in &schema.fields {
            let mut slot = plan.slot(&field.slot)?;
            // A program assumes nothing about places that it is known to write.
            let place = Place::Field(field.class, field.ivar.clone());
            slot.marks = slot.value.and_then(|column| program.columns[column.index()].marks);
            slot.owned = slot.leads_on() && !field.written && facts.must_be_owned(&place);
            let class = plan.class(field.class)?;
            let fields = &mut plan.classes[class];
            if slot.leads_on() {
                let mut others = fields.leads.iter().map(|lead| &fields.fields[*lead].slot);
                fields.apart &= !others.any(|other| other.numbers_with(&slot));
                fields.leads.push(fields.fields.len());
            }
            let name = reflect::field(ruby, fields.raw, &field.ivar)
                .map_err(|e| CoreError::Internal { stage: "pack", detail: e.to_string() })?;
            fields.laid_out |= matches!(name, Field::Part(_));
            let columns = || slot.value.iter().chain(&slot.tag).map(|c| &program.columns[c.index()]);
            // As for arrays.
            let written = (field.written || columns().any(|c| c.written)) && !columns().any(Column::is_only_rounded);
            // A slot without columns has only one value, which must be checked.
            // The host says where its arrays are.
            let strided = program.strides.iter().any(|stride| slot.value == Some(stride.column()));
            let read = field.read || written || strided || columns().next().is_none() || columns().any(|c| c.read);
            fields.fields.push(FieldPlan {
                name: field.ivar.to_string(),
                field: name,
                slot,
                read,
                written,
                overwritten: field.overwritten,
                given: field.given,
            });
        }
        for heap in &program.heaps {
            let rows = match heap.space {
                Space::Class { hierarchy, first, .. } => {
                    Rows::Class(plan.hierarchies[hierarchy as usize] + first as usize)
                }
                Space::Array(kind) => Rows::Kind(plan.kind(kind)),
                Space::Bytes => Rows::Bytes,
                other => return Err(internal(format!("new rows of {other}"))),
            };
            plan.heaps.push(rows);
        }
        plan.elements = schema.elements.as_ref().map(|s| plan.slot(s)).transpose()?;
        for root in &schema.roots {
            let slot = Slot { ty: root.ty.clone(), repr: root.repr, value: None, tag: None };
            let slot = plan.slot(&slot)?;
            plan.roots.push(slot);
        }
        plan.result = schema.result.as_ref().map(|s| plan.slot(s)).transpose()?;
        for accumulator in &schema.accumulators {
            let slot = plan.slot(&accumulator.slot)?;
            plan.accumulators.push(slot);
        }
        plan.plain = !plan.elements.iter().chain(&plan.roots).any(SlotPlan::leads_on);
        let fields = plan.classes.iter().flat_map(|c| c.fields.iter().map(|f| &f.slot));
        let arrays = plan.kinds.iter().filter_map(|k| k.slot.as_ref());
        let leads: Vec<&SlotPlan> = fields.chain(arrays).collect();
        let owned = || leads.iter().filter(|slot| slot.owned);
        let classes: Vec<bool> = (0..plan.classes.len()).map(|class| owned().any(|slot| slot.takes(class))).collect();
        let kinds: Vec<bool> = (0..plan.kinds.len()).map(|kind| owned().any(|slot| slot.kind == Some(kind))).collect();
        plan.flat = leads.iter().copied().chain(&plan.elements).all(|slot| !slot.leads_on()) && plan.classes.is_empty();
        plan.linked = plan.elements.iter().any(|elements| leads.iter().any(|slot| slot.meets(elements)));
        let in_order = |kind: &KindPlan| {
            let value = kind.slot.as_ref().and_then(|slot| slot.value);
            value.is_some()
                && program.strides.iter().any(|stride| stride.is_of_references() && value == Some(stride.column()))
        };
        let apart = plan.elements.iter().all(|elements| !plan.roots.iter().any(|slot| slot.meets(elements)));
        plan.roots_first = !plan.linked && apart && plan.kinds.iter().any(in_order);
        plan.classes.iter_mut().zip(classes).for_each(|(class, ownable)| class.ownable = ownable);
        plan.kinds.iter_mut().zip(kinds).for_each(|(kind, ownable)| kind.ownable = ownable);
        Ok(plan)
    }

    fn kind(&mut self, kind: ArrayKind) -> usize {
        if let Some(at) = self.kinds.iter().position(|k| k.kind == kind) {
            return at;
        }
        self.kinds.push(KindPlan {
            kind,
            slot: None,
            written: false,
            overwritten: false,
            frozen: None,
            freezes: false,
            must_not_be_frozen: false,
            ownable: false,
        });
        self.kinds.len() - 1
    }

    fn class(&self, class: ClassId) -> CoreResult<usize> {
        let known = |found: &ClassPlan| found.class == class;
        self.classes.iter().position(known).ok_or_else(|| CoreError::Internal {
            stage: "pack",
            detail: format!("the schema has no ids for {}", classes::get(class).info.name),
        })
    }

    fn slot(&mut self, slot: &Slot) -> CoreResult<SlotPlan> {
        let ty: &Ty = &slot.ty;
        let mut accepted = Vec::new();
        for class in &ty.objects {
            let at = self.class(*class)?;
            accepted.resize(self.classes.len(), false);
            accepted[at] = true;
        }
        let mut indices = accepted.iter().enumerate().filter(|(_, taken)| **taken).map(|(at, _)| at);
        let sole_class = indices.next().filter(|_| indices.next().is_none());
        Ok(SlotPlan {
            prims: ty.prims,
            classes: accepted,
            sole_class,
            modules: ty.modules.clone(),
            procs: ty.procs.clone(),
            kind: ty.array.map(|k| self.kind(k)),
            owned: false,
            repr: slot.repr,
            value: slot.value,
            tag: slot.tag,
            marks: None,
        })
    }

    /// Whether the program reads fields of objects whose changes nothing notices: those of Hashes.
    pub fn reads_hashes(&self) -> bool {
        let mut fields = self.classes.iter().flat_map(|class| &class.fields);
        fields.any(|field| matches!(field.field, Field::Part(_) | Field::Key(_)))
    }

    /// Whether the program freezes anything.
    pub fn freezes(&self) -> bool {
        self.classes.iter().any(|class| class.freezes.is_some()) || self.kinds.iter().any(|kind| kind.freezes)
    }

    /// The class indices of a hierarchy.
    pub fn hierarchy(&self, hierarchy: usize) -> std::ops::Range<usize> {
        self.hierarchies[hierarchy]..self.hierarchies[hierarchy + 1]
    }
}

fn internal(detail: String) -> CoreError {
    CoreError::Internal { stage: "pack", detail }
}
