//! Columns and parameters of the program that is being lowered, and their meaning: the [`Schema`] as it grows.
//!
//! Here: id spaces of hierarchies, classes that share a column, representations of types. Not here: statements.

use crate::diagnostic::{Diagnostic, Span};
use crate::error::{Error, Result};
use crate::id::{ArrayKind, ClassId};
use crate::infer::{Analysis, SpecId};
use crate::ir::stages::Stage;
use crate::ir::{
    ASSUMED_LIMIT, AssumedRows, Column, ColumnId, Extent, FuncId, Heap, HeapId, Param, ParamId, Scalar, Space, Storage,
    TRAP_WORDS, UniformStride,
};
use crate::layout::schema::{ArrayField, Field, Hierarchy, RootParam, Schema, Slot, StringLiteral};
use crate::source::Source;
use crate::syntax::ast::Name;
use crate::types::{Atom, Encoding, Prims, Repr, StrWord, Tag, Ty, Unit};
use crate::world::{Facts, Place, Root};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The form of a value in registers: a [`Repr`], the three registers of a Range, or the five of an exception (or nil).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    One(Repr),
    IntRange,
    FloatRange,
    Exception,
}

impl Form {
    /// Types of the registers, in order.
    pub fn scalars(self) -> Vec<Scalar> {
        match self {
            Form::One(Repr::Unit(_)) => vec![],
            Form::One(Repr::Bool) => vec![Scalar::Bool],
            Form::One(Repr::Int | Repr::Sym | Repr::Str | Repr::Array(_)) => vec![Scalar::I64],
            Form::One(Repr::Float) => vec![Scalar::F64],
            Form::One(Repr::Ref(_)) => vec![Scalar::I32],
            Form::One(Repr::Union) => vec![Scalar::I32, Scalar::I64],
            Form::IntRange => vec![Scalar::I64, Scalar::I64, Scalar::Bool],
            Form::FloatRange => vec![Scalar::F64, Scalar::F64, Scalar::Bool],
            Form::Exception => [Scalar::I32].into_iter().chain([Scalar::I64; TRAP_WORDS]).collect(),
        }
    }
}

/// Data that all functions of a program share, besides [`super::Shared`].
#[derive(Default)]
pub struct Tables {
    /// The source of the section's block.
    source: Arc<Source>,
    pub columns: Vec<Column>,
    pub params: Vec<Param>,
    pub heaps: Vec<Heap>,
    pub schema: Schema,
    /// Hierarchy and preorder position of each class.
    positions: HashMap<ClassId, (u32, u32)>,
    fields: HashMap<(ClassId, Name), usize>,
    arrays: BTreeMap<ArrayKind, usize>,
    roots: BTreeMap<Root, usize>,
    pub functions: HashMap<SpecId, FuncId>,
    pub pending: Vec<SpecId>,
    /// The stages among the functions, each with the number of distances in a call.
    pub stages: HashMap<SpecId, (usize, Stage)>,
    pub recursive: BTreeSet<SpecId>,
    pub uses_random: bool,
    /// Whether keys of pairs are Strings, or have some.
    pub has_text_keys: bool,
    /// The kinds of arrays that are keys of pairs, and those whose elements are written after they were made.
    pub key_arrays: BTreeSet<ArrayKind>,
    pub changed_arrays: BTreeSet<ArrayKind>,
    /// Whether the block, or a method that it calls, reads `Ikra.index`.
    pub asks_index: bool,
    /// A slot that needs a tag beyond a byte.
    pub overfull: Option<String>,
}

/// The number of unrelated classes that tags of a byte can distinguish.
const HIERARCHIES: u32 = 256 - Tag::OBJECT as u32;

/// The columns of payloads and of tags.
type Columns = (Option<ColumnId>, Option<ColumnId>);

/// The description of a slot for the author of the block.
fn described(name: &str) -> &str {
    match name {
        "element" => "an element of the array that the block runs over",
        "result" => "the block's result",
        name if name.starts_with("elements") => "an element of an array",
        name => name,
    }
}

impl Tables {
    /// Numbers the classes that the program may meet, and gives every field that it uses its columns.
    ///
    /// # Errors
    /// If a field's kinds have no common form.
    pub fn new(an: &mut Analysis<'_>) -> Result<Self> {
        let source = an.spec(Analysis::BLOCK).unit.source.clone();
        let mut tables = Self { source, recursive: an.recursive(), ..Self::default() };
        tables.number_classes(an);
        tables.lay_out_fields(an)?;
        Ok(tables)
    }

    fn number_classes(&mut self, an: &mut Analysis<'_>) {
        let mut classes: BTreeSet<ClassId> = an.made_classes().collect();
        for (_, ty) in an.facts.places() {
            classes.extend(&ty.objects);
        }
        for spec in &an.specs {
            for ty in spec.types.iter().chain(&spec.locals).chain([&spec.key.self_ty]) {
                classes.extend(&ty.objects);
            }
        }
        // preorder: sorted by the path from the hierarchy's root down
        let mut paths: BTreeMap<ClassId, Vec<(Vec<ClassId>, ClassId)>> = BTreeMap::new();
        for class in classes {
            let root = an.class(class).hierarchy;
            let mut path = vec![class];
            let mut at = class;
            while at != root {
                let Some(superclass) = an.class(at).superclass else { break };
                path.push(superclass);
                at = superclass;
            }
            path.reverse();
            paths.entry(root).or_default().push((path, class));
        }
        for (h, mut members) in paths.into_values().enumerate() {
            members.sort();
            let classes: Vec<ClassId> = members.into_iter().map(|(_, c)| c).collect();
            for (p, class) in classes.iter().enumerate() {
                self.positions.insert(*class, (h as u32, p as u32));
            }
            let bases = vec![None; classes.len() + 1];
            self.schema.hierarchies.push(Hierarchy { classes, bases, frozen: None, origin: None });
        }
    }

    fn lay_out_fields(&mut self, an: &mut Analysis<'_>) -> Result<()> {
        // neighbours in preorder whose ivar has the same form share its columns
        let mut touched: BTreeMap<(u32, Name), Vec<(u32, ClassId)>> = BTreeMap::new();
        for (class, ivar) in an.fields.keys() {
            if let Some((h, p)) = self.positions.get(class) {
                touched.entry((*h, ivar.clone())).or_default().push((*p, *class));
            }
        }
        for ((h, ivar), mut classes) in touched {
            classes.sort_unstable();
            let mut run: Option<((Repr, Option<Storage>), Columns)> = None;
            for (p, class) in classes {
                let ty = an.facts.get(&Place::Field(class, ivar.clone())).unwrap_or_default();
                let name = format!("{}{ivar}", an.class(class).name);
                let repr = self.repr(&ty).ok_or_else(|| self.not_held(&name, &ty, self.source.params_span()))?;
                let space = Space::Class { hierarchy: h, first: p, last: p };
                let storage = storage_of(space, repr, &ty);
                let shared = run.filter(|(form, _)| *form == (repr, storage)).map(|(_, columns)| columns);
                let (value, tag) = match shared {
                    Some((value, tag)) => {
                        let refers = self.refers(&ty);
                        for column in value.iter().chain(&tag).map(|c| c.index()) {
                            if let Space::Class { last, .. } = &mut self.columns[column].space {
                                *last = p;
                            }
                            self.columns[column].refers = span(self.columns[column].refers, refers);
                        }
                        (value, tag)
                    }
                    None => self.slot_columns(&name, space, repr, &ty),
                };
                run = Some(((repr, storage), (value, tag)));
                self.fields.insert((class, ivar.clone()), self.schema.fields.len());
                let slot = Slot { ty, repr, value, tag };
                self.schema.fields.push(Field {
                    class,
                    ivar: ivar.clone(),
                    slot,
                    read: false,
                    written: false,
                    overwritten: false,
                    given: None,
                });
            }
        }
        Ok(())
    }

    pub fn column(&mut self, name: &str, space: Space, storage: Storage) -> ColumnId {
        self.columns.push(Column {
            name: name.into(),
            space,
            storage,
            refers: None,
            ranged: None,
            roundable: false,
            marks: None,
            read: false,
            written: false,
        });
        ColumnId::new(self.columns.len() - 1)
    }

    pub fn param(&mut self, name: &str, ty: Scalar) -> ParamId {
        self.params.push(Param::new(name, ty));
        ParamId::new(self.params.len() - 1)
    }

    /// The space to which all references of a type refer, if there is one.
    fn refers(&self, ty: &Ty) -> Option<Space> {
        let spaces = ty.objects.iter().map(|class| {
            let (hierarchy, p) = self.position(*class);
            Some(Space::Class { hierarchy, first: p, last: p })
        });
        spaces.reduce(span).flatten()
    }

    /// Payload and tag columns of a representation, for values of a type.
    pub fn slot_columns(&mut self, name: &str, space: Space, repr: Repr, ty: &Ty) -> Columns {
        let Some(storage) = storage_of(space, repr, ty) else { return (None, None) };
        let value = self.column(name, space, storage);
        // where the tag of a union is not that of an object, its payload is not a row
        if matches!(repr, Repr::Ref(_)) {
            self.columns[value.index()].refers = self.refers(ty);
        }
        let tag = (repr == Repr::Union).then(|| self.column(&format!("{name}.tag"), space, Storage::U8));
        if tag.is_some() && ty.objects.iter().any(|class| self.position(*class).0 >= HIERARCHIES) {
            self.overfull.get_or_insert_with(|| name.to_owned());
        }
        (Some(value), tag)
    }

    /// A slot for a type; `span`: the position that needs it.
    ///
    /// # Errors
    /// If its kinds have no common form.
    pub fn slot(&mut self, name: &str, space: Space, ty: &Ty, span: Span) -> Result<Slot> {
        let repr = self.repr(ty).ok_or_else(|| self.not_held(name, ty, span))?;
        let (value, tag) = self.slot_columns(name, space, repr, ty);
        Ok(Slot { ty: ty.clone(), repr, value, tag })
    }

    /// Stores the numbers of a slot in fewer bits.
    pub fn narrow(&mut self, slot: &Slot, storage: Option<Storage>) {
        let (Some(column), Some(storage)) = (slot.value, storage) else { return };
        let fits = match slot.repr {
            Repr::Int => matches!(storage, Storage::U8 | Storage::I32),
            Repr::Float => storage == Storage::F32,
            _ => false,
        };
        if fits {
            self.columns[column.index()].storage = storage;
        }
    }

    /// Hierarchy and position of a class.
    pub fn position(&self, class: ClassId) -> (u32, u32) {
        self.positions[&class]
    }

    /// The representation of a type in memory. None for Ranges and exceptions.
    pub fn repr(&self, ty: &Ty) -> Option<Repr> {
        match self.form(ty)? {
            Form::One(repr) => Some(repr),
            Form::IntRange | Form::FloatRange | Form::Exception => None,
        }
    }

    /// The form of a type in registers. None if it mixes a Range or an exception with other kinds, except for an
    /// exception or nil.
    pub fn form(&self, ty: &Ty) -> Option<Form> {
        let atoms = ty.atoms();
        Some(Form::One(match atoms.as_slice() {
            [] => Repr::Unit(Unit::Never),
            [Atom::Nil] => Repr::Unit(Unit::Nil),
            [Atom::True] => Repr::Unit(Unit::True),
            [Atom::False] => Repr::Unit(Unit::False),
            [Atom::Module(class)] => Repr::Unit(Unit::Module(*class)),
            [Atom::Proc(id) | Atom::Regexp(id)] => Repr::Unit(Unit::Proc(*id)),
            [Atom::Int] => Repr::Int,
            [Atom::Float] => Repr::Float,
            [Atom::Sym] => Repr::Sym,
            [Atom::Str] => Repr::Str,
            [Atom::IntRange] => return Some(Form::IntRange),
            [Atom::FloatRange] => return Some(Form::FloatRange),
            [Atom::Exception] | [Atom::Nil, Atom::Exception] => return Some(Form::Exception),
            [Atom::Array(kind)] => Repr::Array(*kind),
            _ if ty.only(Prims::BOOL) => Repr::Bool,
            _ if ty.may_be(Prims(Prims::RANGE.0 | Prims::EXCEPTION.0)) => return None,
            _ => {
                let hierarchies: BTreeSet<u32> = ty.objects.iter().map(|c| self.position(*c).0).collect();
                match hierarchies.first() {
                    Some(h) if hierarchies.len() == 1 && ty.objects.len() == atoms.len() => Repr::Ref(*h),
                    _ => Repr::Union,
                }
            }
        }))
    }

    pub fn field(&self, class: ClassId, ivar: &Name) -> Option<&Field> {
        self.fields.get(&(class, ivar.clone())).map(|i| &self.schema.fields[*i])
    }

    /// The ivars of a class that the program touches, with their slots.
    pub fn fields_of(&self, class: ClassId) -> impl Iterator<Item = (&Name, Slot)> {
        self.schema.fields.iter().filter(move |f| f.class == class).map(|f| (&f.ivar, f.slot.clone()))
    }

    /// Marks all fields of a class as read.
    pub fn reads(&mut self, class: ClassId) {
        self.schema.fields.iter_mut().filter(|f| f.class == class).for_each(|f| f.read = true);
    }

    /// Notes that the program makes objects of the class. `given`: the position of each ivar that all of them have.
    pub fn makes(&mut self, class: ClassId, given: impl Fn(&Name) -> Option<u32>) {
        for field in self.schema.fields.iter_mut().filter(|f| f.class == class) {
            field.written = true;
            field.given = given(&field.ivar);
        }
    }

    pub fn field_mut(&mut self, class: ClassId, ivar: &Name) -> Option<&mut Field> {
        self.fields.get(&(class, ivar.clone())).map(|i| &mut self.schema.fields[*i])
    }

    /// The columns of a kind of array.
    ///
    /// # Errors
    /// If its elements' kinds have no common form.
    pub fn array(&mut self, an: &mut Analysis<'_>, kind: ArrayKind) -> Result<&mut ArrayField> {
        let kind = an.facts.find(kind);
        let index = match self.arrays.get(&kind) {
            Some(index) => *index,
            None => {
                let ty = an.facts.get(&Place::Elements(kind)).unwrap_or_default();
                let span = self.source.params_span();
                let slot = self.slot(&format!("elements{}", kind.0), Space::Array(kind), &ty, span)?;
                self.narrow(&slot, an.facts.storage(kind));
                self.schema.arrays.push(ArrayField {
                    kind,
                    slot,
                    read: false,
                    written: false,
                    overwritten: false,
                    frozen: None,
                });
                self.arrays.insert(kind, self.schema.arrays.len() - 1);
                self.schema.arrays.len() - 1
            }
        };
        Ok(&mut self.schema.arrays[index])
    }

    /// The parameters of a root. `range`: the assumed range of its word, if it is an Integer or an array. `alike`: the
    /// roots that are assumed to be the same Integer.
    ///
    /// # Errors
    /// If its kinds have no common form.
    pub fn root(
        &mut self,
        root: &Root,
        ty: &Ty,
        name: &str,
        (range, alike): (Option<(i64, i64)>, &[&Root]),
    ) -> Result<RootParam> {
        if let Some(index) = self.roots.get(root) {
            return Ok(self.schema.roots[*index].clone());
        }
        let form = self.form(ty).ok_or_else(|| self.not_held(name, ty, self.source.params_span()))?;
        let scalars = form.scalars();
        let mut out = RootParam {
            root: root.clone(),
            ty: ty.clone(),
            repr: Repr::Unit(Unit::Never),
            value: None,
            tag: None,
            to: None,
            exclusive: None,
        };
        match form {
            Form::One(Repr::Union) => {
                out.repr = Repr::Union;
                out.tag = Some(self.param(&format!("{name}.tag"), Scalar::I32));
                out.value = Some(self.param(name, Scalar::I64));
            }
            Form::One(repr) => {
                out.repr = repr;
                out.value = scalars.first().map(|s| self.param(name, *s));
                if let (Repr::Int | Repr::Array(_), Some(param)) = (repr, out.value) {
                    self.params[param.index()].range = range;
                }
                if let (Repr::Int, Some(param)) = (repr, out.value) {
                    let first = self.first_alike(alike);
                    self.params[param.index()].same = first;
                    if let (Some(first), Some((least, _))) = (first, range) {
                        // what is known of one holds for both
                        let known = &mut self.params[first.index()].range;
                        *known = known.map(|(from, to)| (from.max(least), to));
                    }
                }
            }
            Form::Exception => return Err(self.not_held(name, ty, self.source.params_span())),
            Form::IntRange | Form::FloatRange => {
                out.repr = if form == Form::IntRange { Repr::Int } else { Repr::Float };
                out.value = Some(self.param(&format!("{name}.begin"), scalars[0]));
                out.to = Some(self.param(&format!("{name}.end"), scalars[1]));
                out.exclusive = Some(self.param(&format!("{name}.exclude_end"), Scalar::Bool));
            }
        }
        self.roots.insert(root.clone(), self.schema.roots.len());
        self.schema.roots.push(out.clone());
        Ok(out)
    }

    /// The parameter that the program reads for all of these roots. None: there is none yet.
    fn first_alike(&self, alike: &[&Root]) -> Option<ParamId> {
        let known = alike.iter().filter_map(|root| self.roots.get(*root)).map(|root| &self.schema.roots[*root]);
        let integers = known.filter(|root| root.repr == Repr::Int && root.to.is_none());
        integers.filter_map(|root| root.value).find(|param| self.params[param.index()].same.is_none())
    }

    /// Refuses slots that may hold objects of more classes than tags can distinguish.
    ///
    /// # Errors
    /// `Unsupported`, at the block.
    pub fn all_told_apart(&self, span: Span) -> Result<()> {
        let Some(name) = &self.overfull else { return Ok(()) };
        let message = format!("{} may be of too many unrelated classes", described(name));
        let diagnostic = Diagnostic::new(&self.source, span, message)
            .because(format!(
                "kernels tell {HIERARCHIES} classes apart that have no superclass of the program's in common"
            ))
            .advise("give these classes a common superclass, or run the block over fewer of them at a time");
        Err(diagnostic.into())
    }

    fn not_held(&self, name: &str, ty: &Ty, span: Span) -> Error {
        let place = described(name);
        debug_assert!(ty.may_be(Prims::EXCEPTION), "all else has a form");
        if name.starts_with(|c: char| c.is_ascii_lowercase()) && place == name {
            return Diagnostic::new(&self.source, span, format!("kernels cannot hold an exception in {name}"))
                .because(format!("{name} is a variable of the code around the block, which is to have it afterwards"))
                .advise(format!("give it a name that is not used around the block, not {name}"))
                .into();
        }
        Diagnostic::new(&self.source, span, format!("kernels cannot hold an exception in {place}"))
            .because("the exception itself is made when it leaves the section")
            .advise("keep it in a local variable, and give what matters of it")
            .into()
    }

    /// The parameter with the first id of the class at a position; past the last class, the end of the ids.
    pub fn base(&mut self, hierarchy: u32, position: u32) -> ParamId {
        let known = self.schema.hierarchies[hierarchy as usize].bases[position as usize];
        known.unwrap_or_else(|| {
            let param = self.param(&format!("base_{hierarchy}_{position}"), Scalar::I32);
            self.schema.hierarchies[hierarchy as usize].bases[position as usize] = Some(param);
            param
        })
    }

    /// The heap for new rows of one class or one kind of arrays.
    pub fn heap(&mut self, space: Space, scratch: bool) -> HeapId {
        if let Some(known) = self.heaps.iter().position(|h| h.space == space && h.scratch == scratch) {
            return HeapId::new(known);
        }
        let id = HeapId::new(self.heaps.len());
        let start = self.param(&format!("start_{}", id.0), Scalar::I64);
        let capacity = self.param(&format!("capacity_{}", id.0), Scalar::I64);
        let counters = if scratch { Space::Slot } else { Space::Single };
        let taken = self.column(&format!("taken_{}", id.0), counters, Storage::I64);
        // The host reads the counter after the launch, whatever the program does.
        let column = &mut self.columns[taken.index()];
        (column.read, column.written) = (true, true);
        self.heaps.push(Heap { space, scratch, start, capacity, taken });
        id
    }

    /// The columns that are assumed to have a uniform stride: the program does not write them, and all their rows are
    /// the host's. Where columns stay, no column of objects is, because other programs may write it.
    pub fn uniform_strides(&mut self, facts: &Facts) -> Vec<UniformStride> {
        let Schema { elements, fields, arrays, .. } = &self.schema;
        let elements = elements.iter().map(|slot| (slot, facts.is_in_order(&Place::Root(Root::Element))));
        let arrays = arrays.iter().map(|a| (&a.slot, facts.is_in_order(&Place::Elements(a.kind))));
        let fields = fields.iter().filter(|_| !facts.columns_stay()).map(|f| (&f.slot, false));
        let slots = elements.chain(fields).chain(arrays);
        let mut columns: Vec<(ColumnId, Option<ArrayKind>)> = Vec::new();
        for (slot, in_order) in slots {
            let Some(id) = slot.value else { continue };
            let column = &self.columns[id.index()];
            let of = match slot.repr {
                Repr::Array(kind) if facts.has_uniform_stride(kind) => Some(kind),
                _ if in_order && column.storage == Storage::U32 && column.refers.is_some() => None,
                _ => continue,
            };
            let fresh = self.heaps.iter().any(|heap| column.space.covers(heap.space));
            if column.read && !column.written && !fresh && columns.iter().all(|(known, _)| *known != id) {
                columns.push((id, of));
            }
        }
        let one = |(column, of): (ColumnId, Option<ArrayKind>)| {
            let Column { name, space, .. } = &self.columns[column.index()];
            let (name, by_id) = (name.clone(), matches!(space, Space::Class { .. }));
            let mut param = |what: &str, range| {
                let param = self.param(&format!("{name}.{what}"), Scalar::I64);
                self.params[param.index()].range = range;
                param
            };
            let Some(kind) = of else {
                return UniformStride::References { column, start: param("first", Some((0, i32::MAX.into()))) };
            };
            // rows of objects are ids, which do not begin at 0
            let start = if by_id { None } else { Some((0, u32::MAX.into())) };
            let few = (0, ASSUMED_LIMIT - 1);
            let length = facts.length(kind).map_or(few, |length| (length as i64, length as i64));
            let is_constant = facts.constants(kind).is_some() && facts.length(kind).is_some();
            let (start, step) = if is_constant { (Some((0, 0)), length) } else { (start, few) };
            let (start, step, length) =
                (param("start", start), param("step", Some(step)), param("length", Some(length)));
            UniformStride::Arrays { column, start, step, length }
        };
        let mut strides: Vec<UniformStride> = columns.into_iter().map(one).collect();
        strides.extend(self.constants(facts));
        strides
    }

    /// The columns whose Integers are assumed to be those of constants.
    fn constants(&self, facts: &Facts) -> Vec<UniformStride> {
        let one = |array: &ArrayField| {
            let rows = facts.constants(array.kind).filter(|_| array.slot.repr == Repr::Int)?;
            let id = array.slot.value?;
            let column = &self.columns[id.index()];
            let fresh = self.heaps.iter().any(|heap| column.space.covers(heap.space));
            let is_read = column.read && !column.written && column.storage == Storage::I64;
            (is_read && !fresh).then(|| UniformStride::Constants { column: id, rows: rows.into() })
        };
        self.schema.arrays.iter().filter_map(one).collect()
    }

    /// The rows that captured arrays surely have, in columns that the program changes. An array whose word is assumed
    /// to be less than 2³² begins at row 0.
    pub fn extents(&self) -> Vec<Extent> {
        let of = |root: &RootParam| {
            let (Repr::Array(kind), Some(rows)) = (root.repr, root.value) else { return None };
            let column = self.schema.arrays.iter().find(|a| a.kind == kind)?.slot.value?;
            let (least, most) = self.params[rows.index()].range?;
            let first = least >= 0 && most <= u32::MAX.into();
            (first && self.columns[column.index()].written).then_some(Extent { column, rows })
        };
        self.schema.roots.iter().filter_map(of).collect()
    }

    /// Marks the columns with a value-range assumption. The program does not write them, and all their rows
    /// are the host's, which checks them.
    pub fn mark_ranged(&mut self, facts: &Facts) {
        let Schema { elements, fields, arrays, .. } = &self.schema;
        let elements = elements.iter().map(|slot| (slot, facts.assumed_rows(&Place::Root(Root::Element))));
        let fields = fields.iter().map(|f| (&f.slot, facts.assumed_rows(&Place::Field(f.class, f.ivar.clone()))));
        // elements in a storage of their own have not been checked
        let seen =
            |kind: ArrayKind| facts.assumed_rows(&Place::Elements(kind)).filter(|_| facts.storage(kind).is_none());
        let arrays = arrays.iter().map(|a| (&a.slot, seen(a.kind)));
        let mut ranged: Vec<Option<Option<AssumedRows>>> = vec![None; self.columns.len()];
        for (slot, assumed) in elements.chain(fields).chain(arrays) {
            if let Some(id) = slot.value {
                let assumed = assumed.filter(|_| slot.repr == Repr::Int);
                let all = &mut ranged[id.index()];
                *all = Some(match (*all, assumed) {
                    (Some(one), other) if one == other => one,
                    (Some(Some(_)), Some(_)) => Some(AssumedRows::Signed),
                    (Some(_), _) => None,
                    (None, first) => first,
                });
            }
        }
        for (column, ranged) in self.columns.iter_mut().zip(ranged) {
            let fresh = self.heaps.iter().any(|heap| column.space.covers(heap.space));
            let is_read = column.read && !column.written && column.storage == Storage::I64;
            column.ranged = ranged.flatten().filter(|_| is_read && !fresh);
        }
    }

    /// Marks the columns of Floats that the host can fill with Floats of 32 bits: those of fields and of Ruby's own
    /// Arrays.
    pub fn mark_roundable(&mut self, facts: &Facts) {
        let Schema { fields, arrays, .. } = &self.schema;
        let arrays = arrays.iter().filter(|array| !facts.are_buffers(array.kind)).map(|array| &array.slot);
        for slot in fields.iter().map(|field| &field.slot).chain(arrays).filter(|slot| slot.repr == Repr::Float) {
            let column = slot.value.map(|column| &mut self.columns[column.index()]);
            column.into_iter().for_each(|column| column.roundable = column.storage == Storage::F64);
        }
    }

    /// The column of all Strings' bytes.
    pub fn bytes(&mut self) -> ColumnId {
        let known = self.schema.bytes;
        known.unwrap_or_else(|| {
            let column = self.column("bytes", Space::Bytes, Storage::U8);
            self.columns[column.index()].read = true;
            self.schema.bytes = Some(column);
            column
        })
    }

    /// A String literal of the program. `frozen`: it is the same object each time.
    pub fn string_literal(&mut self, bytes: &[u8], frozen: bool) -> StrWord {
        let literals = &mut self.schema.literals;
        let mut offset = 0;
        for literal in literals.iter() {
            if literal.bytes == bytes && literal.frozen == frozen {
                break;
            }
            offset += literal.bytes.len().max(1);
        }
        if !literals.iter().any(|l| l.bytes == bytes && l.frozen == frozen) {
            literals.push(StringLiteral { bytes: bytes.to_vec(), frozen });
        }
        StrWord::new(offset as u32, bytes.len(), Encoding::of_utf8(bytes), !frozen).with_frozen(frozen)
    }

    /// The column of frozen flags of a hierarchy.
    pub fn frozen(&mut self, hierarchy: u32) -> ColumnId {
        let known = self.schema.hierarchies[hierarchy as usize].frozen;
        known.unwrap_or_else(|| {
            let column = self.column(&format!("frozen_{hierarchy}"), self.whole(hierarchy), Storage::U8);
            self.schema.hierarchies[hierarchy as usize].frozen = Some(column);
            column
        })
    }

    /// The column with the origins of a hierarchy's objects: the host's objects of which they are copies.
    pub fn origin(&mut self, hierarchy: u32) -> ColumnId {
        let known = self.schema.hierarchies[hierarchy as usize].origin;
        known.unwrap_or_else(|| {
            let column = self.column(&format!("origin_{hierarchy}"), self.whole(hierarchy), Storage::U32);
            self.schema.hierarchies[hierarchy as usize].origin = Some(column);
            column
        })
    }

    /// The rows of all classes of a hierarchy.
    fn whole(&self, hierarchy: u32) -> Space {
        let last = self.schema.hierarchies[hierarchy as usize].classes.len() as u32 - 1;
        Space::Class { hierarchy, first: 0, last }
    }

    /// The column of frozen flags of a kind of arrays.
    ///
    /// # Errors
    /// As [`Tables::array`].
    pub fn frozen_arrays(&mut self, an: &mut Analysis<'_>, kind: ArrayKind) -> Result<ColumnId> {
        if let Some(column) = self.array(an, kind)?.frozen {
            return Ok(column);
        }
        let column = self.column("frozen_arrays", Space::Array(an.facts.find(kind)), Storage::U8);
        self.array(an, kind)?.frozen = Some(column);
        Ok(column)
    }
}

/// The storage of a representation's payload in a space, for values of a type. None: it has no payload. For a union of
/// objects and kinds without payload, the ids are enough. But results and new values of locals go to the host as they
/// are.
fn storage_of(space: Space, repr: Repr, ty: &Ty) -> Option<Storage> {
    let kept = matches!(space, Space::Class { .. } | Space::Array(_));
    Some(match repr {
        Repr::Unit(_) => return None,
        Repr::Bool => Storage::U8,
        Repr::Union if kept && ty.is_of_references() => Storage::U32,
        Repr::Int | Repr::Sym | Repr::Str | Repr::Array(_) | Repr::Union => Storage::I64,
        Repr::Float => Storage::F64,
        Repr::Ref(_) => Storage::U32,
    })
}

/// The smallest space that contains both, if they are of one hierarchy.
fn span(a: Option<Space>, b: Option<Space>) -> Option<Space> {
    match (a?, b?) {
        (
            Space::Class { hierarchy, first, last },
            Space::Class { hierarchy: other, first: other_first, last: other_last },
        ) if hierarchy == other => {
            Some(Space::Class { hierarchy, first: first.min(other_first), last: last.max(other_last) })
        }
        _ => None,
    }
}
