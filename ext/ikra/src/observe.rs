//! Live values to facts: which types are at which places.
//!
//! Here: [`Observer`], which scans roots, ivars and arrays as inference demands them, finds further objects on the way,
//! and scans those for all that was demanded before. Not here: columns ([`crate::trace`] walks again, by a schema).
//! Invariant: between two Ruby calls every object in the tables is held, so the identity map stays true.
//!
//! Nothing recurses: tables only grow at their end, and every demand has a cursor into the table that it is about.

use crate::crew::{self, PIECE};
use crate::heap::{self, FieldReader, Hashes, Raw, Seen};
use crate::holder::Holder;
use crate::identity::{IdentityMap, RawMap, WordMap};
use crate::reflect;
use crate::registry::classes;
use crate::trace::CHUNK;
use ikra_core::id::{ArrayKind, ClassId};
use ikra_core::ir::SMALL_ROWS;
use ikra_core::syntax::ast::Name;
use ikra_core::types::{Prims, StrWord, Ty};
use ikra_core::world::{Facts, Opaque, Place, Root};
use magnus::typed_data::Obj;
use magnus::{Error, Ruby};
use std::sync::Arc;

/// A value that kernels cannot hold, or an exception from a Ruby call.
#[derive(Debug)]
pub enum Refusal {
    Opaque(Opaque),
    Ruby(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Ruby(error)
    }
}

type Result<T> = std::result::Result<T, Refusal>;

/// What was seen at one place since its fact was last told.
#[derive(Default)]
struct Summary {
    prims: u16,
    /// Some Integer is not small.
    large: bool,
    classes: Vec<ClassId>,
    modules: Vec<ClassId>,
}

impl Summary {
    fn ty(&self) -> Ty {
        let mut ty = Ty::prim(Prims(self.prims));
        ty.objects.clone_from(&self.classes);
        ty.modules.clone_from(&self.modules);
        ty
    }
    fn tell(&self, place: &Place, facts: &mut Facts) {
        if self.large {
            facts.saw_large(place);
        }
        facts.saw(place, &self.ty());
    }
    fn class(&mut self, class: ClassId) {
        if let Err(at) = self.classes.binary_search(&class) {
            self.classes.insert(at, class);
        }
    }
    fn module(&mut self, module: ClassId) {
        if let Err(at) = self.modules.binary_search(&module) {
            self.modules.insert(at, module);
        }
    }
}

/// Index into [`Observer::places`].
type PlaceIndex = u32;

/// All objects found of one exact class.
struct ClassTable {
    class: ClassId,
    raw: Raw,
    objects: Vec<Raw>,
    demands: Vec<Demand>,
    frozen: bool,
    /// Kernels do not hold objects of it.
    live: bool,
}

/// An ivar to be read of all objects of a class.
struct Demand {
    place: PlaceIndex,
    reader: FieldReader,
    cursor: usize,
}

/// Arrays that were found at places of one kind, before any merge.
#[derive(Default)]
struct KindTable {
    arrays: Vec<Raw>,
    cursor: usize,
    place: Option<PlaceIndex>,
}

/// The tables of one compilation.
pub struct Observer {
    holder: Obj<Holder>,
    /// Position in `entries`, plus 1.
    map: IdentityMap,
    entries: Vec<Entry>,
    class_index: RawMap<usize>,
    tables: Vec<ClassTable>,
    kinds: WordMap<u32, KindTable>,
    demanded_kinds: Vec<ArrayKind>,
    places: Vec<Place>,
    /// The kind of the arrays at a place, as it was when the first was found.
    place_kinds: Vec<Option<ArrayKind>>,
    /// Something there was reached from elsewhere too.
    shared: Vec<bool>,
    /// Hashes, as they were laid out.
    hashes: Arc<Hashes>,
    /// Found since the holder was last told.
    fresh: Vec<Raw>,
    /// Some object or array is more than once among the elements.
    pub grouped: bool,
}

#[derive(Clone, Copy)]
struct Entry {
    /// The place where it was found first.
    first: PlaceIndex,
    /// Of an array.
    kind: Option<ArrayKind>,
}

impl Observer {
    pub fn new(ruby: &Ruby) -> Self {
        Self {
            holder: Holder::new(ruby),
            map: IdentityMap::default(),
            entries: Vec::new(),
            class_index: RawMap::default(),
            tables: Vec::new(),
            kinds: WordMap::default(),
            demanded_kinds: Vec::new(),
            places: Vec::new(),
            place_kinds: Vec::new(),
            shared: Vec::new(),
            hashes: Arc::default(),
            fresh: Vec::new(),
            grouped: false,
        }
    }

    fn place(&mut self, place: &Place) -> PlaceIndex {
        let at = self.places.iter().position(|p| p == place).unwrap_or_else(|| {
            self.places.push(place.clone());
            self.place_kinds.push(None);
            self.shared.push(false);
            self.places.len() - 1
        });
        at as PlaceIndex
    }

    /// Whether the elements are of more than one kind, as job ordering counts them.
    pub fn mixed(ty: &Ty) -> bool {
        ty.atoms().len() > 1
    }

    /// Reports one value at a root.
    ///
    /// # Errors
    /// A value that kernels cannot hold.
    pub fn root(&mut self, ruby: &Ruby, root: &Root, value: Raw, what: &str, facts: &mut Facts) -> Result<()> {
        let place = self.place(&Place::Root(root.clone()));
        let mut summary = Summary::default();
        self.value(ruby, place, value, &mut summary, facts, &|| what.into())?;
        summary.tell(&self.places[place as usize], facts);
        self.settle(ruby, facts)
    }

    /// Reports the elements of the base array.
    ///
    /// # Errors
    /// A value that kernels cannot hold.
    pub fn base(&mut self, ruby: &Ruby, array: Raw, facts: &mut Facts) -> Result<()> {
        let place = self.place(&Place::Root(Root::Element));
        let mut summary = Summary::default();
        let mut i = begin(heap::elements(array), &mut summary);
        while let Some(value) = heap::elements(array).get(i).copied() {
            ask_at(heap::elements(array), i);
            let index = i;
            self.value(ruby, place, value, &mut summary, facts, &|| format!("element {index}"))?;
            i += 1;
        }
        summary.tell(&Place::Root(Root::Element), facts);
        self.settle(ruby, facts)
    }

    /// Demands an ivar of all objects of a class, found or to be found.
    ///
    /// # Errors
    /// A value that kernels cannot hold.
    pub fn field(&mut self, ruby: &Ruby, class: ClassId, ivar: &Name, facts: &mut Facts) -> Result<()> {
        let place = self.place(&Place::Field(class, ivar.clone()));
        facts.saw(&self.places[place as usize].clone(), &Ty::never());
        let table = self.table(class, classes::get(class).raw);
        if self.tables[table].demands.iter().all(|d| d.place != place) {
            let reader = FieldReader::new(reflect::field(ruby, classes::get(class).raw, ivar)?, &self.hashes);
            self.tables[table].demands.push(Demand { place, reader, cursor: 0 });
        }
        self.settle(ruby, facts)
    }

    /// Demands the elements of all arrays of a kind, found or to be found.
    ///
    /// # Errors
    /// A value that kernels cannot hold.
    pub fn elements(&mut self, ruby: &Ruby, kind: ArrayKind, facts: &mut Facts) -> Result<()> {
        facts.saw(&Place::Elements(kind), &Ty::never());
        self.demanded_kinds.push(kind);
        self.settle(ruby, facts)
    }

    fn table(&mut self, class: ClassId, raw: Raw) -> usize {
        if let Some(at) = self.class_index.get(&raw) {
            return *at;
        }
        let at = self.tables.len();
        self.class_index.insert(raw, at);
        let live = crate::world::is_live_class(raw);
        self.tables.push(ClassTable { class, raw, objects: Vec::new(), demands: Vec::new(), frozen: false, live });
        at
    }

    /// The table of a class word; a class that was never met is numbered, for which Ruby is called.
    fn table_of(&mut self, ruby: &Ruby, raw: Raw) -> Result<usize> {
        if let Some(at) = self.class_index.get(&raw) {
            return Ok(*at);
        }
        self.hold_fresh();
        let class = classes::number(ruby, raw)?;
        Ok(self.table(class, raw))
    }

    fn hold_fresh(&mut self) {
        self.holder.hold(std::mem::take(&mut self.fresh));
    }

    /// Notes one value: its kind in `summary`, and the object or array in the tables.
    fn value(
        &mut self,
        ruby: &Ruby,
        place: PlaceIndex,
        value: Raw,
        summary: &mut Summary,
        facts: &mut Facts,
        what: &dyn Fn() -> String,
    ) -> Result<()> {
        let prim = match heap::see(value) {
            Seen::Nil => Prims::NIL,
            Seen::False => Prims::FALSE,
            Seen::True => Prims::TRUE,
            Seen::Int(i) => {
                summary.large |= is_large(i);
                Prims::INT
            }
            Seen::Float(_) => Prims::FLOAT,
            Seen::Symbol => Prims::SYM,
            Seen::Object => {
                let table = self.table_of(ruby, heap::class_word(value))?;
                if self.tables[table].live {
                    return Err(opaque(value, what()));
                }
                summary.class(self.tables[table].class);
                self.object(place, value, table, facts);
                return Ok(());
            }
            Seen::Array => {
                self.array(place, value, facts);
                return Ok(());
            }
            Seen::Buffer => match crate::buffer::of(value) {
                Some(_) => {
                    self.array(place, value, facts);
                    return Ok(());
                }
                None => return Err(Refusal::Opaque(Opaque { what: "an array that was freed".into(), place: what() })),
            },
            Seen::Str => match unheld_string(ruby, value) {
                None => Prims::STR,
                Some(what_it_is) => return Err(Refusal::Opaque(Opaque { what: what_it_is, place: what() })),
            },
            Seen::Hash => {
                let table = self.hash(ruby, value, what)?;
                summary.class(self.tables[table].class);
                self.object(place, value, table, facts);
                return Ok(());
            }
            Seen::Module => {
                self.hold_fresh();
                summary.module(classes::number(ruby, value)?);
                return Ok(());
            }
            Seen::Struct => match range(ruby, value) {
                Some(Some(prim)) if self.has_registers(place) => prim,
                Some(_) => {
                    self.own(ruby, place, value, summary, facts)?;
                    return Ok(());
                }
                None if reflect::has_members(ruby, heap::class_word(value)) => {
                    let table = self.table_of(ruby, heap::class_word(value))?;
                    summary.class(self.tables[table].class);
                    self.object(place, value, table, facts);
                    return Ok(());
                }
                None => return Err(opaque(value, what())),
            },
            Seen::Number => {
                self.own(ruby, place, value, summary, facts)?;
                return Ok(());
            }
            Seen::BigInt => {
                return Err(Refusal::Opaque(Opaque { what: "an Integer beyond 64 bits".into(), place: what() }));
            }
            Seen::Other => return Err(opaque(value, what())),
        };
        summary.prims |= prim.0;
        Ok(())
    }

    /// Whether a launch parameter holds what is at a place, with room for the ends of a Range.
    fn has_registers(&self, place: PlaceIndex) -> bool {
        matches!(&self.places[place as usize], Place::Root(root) if *root != Root::Element)
    }

    /// Notes an object that is nothing but its parts. Nobody writes to it, so nobody owns it.
    fn own(
        &mut self,
        ruby: &Ruby,
        place: PlaceIndex,
        value: Raw,
        summary: &mut Summary,
        facts: &mut Facts,
    ) -> Result<()> {
        let table = self.table_of(ruby, heap::class_word(value))?;
        summary.class(self.tables[table].class);
        self.object(place, value, table, facts);
        Ok(())
    }

    /// Lays a Hash out, at its first sight; the table of Hashes.
    fn hash(&mut self, ruby: &Ruby, hash: Raw, what: &dyn Fn() -> String) -> Result<usize> {
        if !self.hashes.contains_key(&hash) {
            self.fresh.push(hash);
            self.hold_fresh();
            let parts = match crate::hashes::parts(ruby, hash)? {
                Ok(parts) => parts,
                Err(what_it_is) => return Err(Refusal::Opaque(Opaque { what: what_it_is, place: what() })),
            };
            self.holder.hold(parts.to_vec());
            // readers share what was known when they were made: they are told anew
            Arc::make_mut(&mut self.hashes).insert(hash, parts);
            for demand in self.tables.iter_mut().flat_map(|t| &mut t.demands) {
                if let FieldReader::Part(_, hashes) = &mut demand.reader {
                    *hashes = self.hashes.clone();
                }
            }
        }
        self.table_of(ruby, heap::class_word(hash))
    }

    fn object(&mut self, place: PlaceIndex, object: Raw, table: usize, facts: &mut Facts) {
        let number = self.map.entry(object);
        if *number != 0 {
            let entry = self.entries[*number as usize - 1];
            return self.met_again(place, entry, facts);
        }
        self.entries.push(Entry { first: place, kind: None });
        *number = self.entries.len() as u64;
        let table = &mut self.tables[table];
        table.objects.push(object);
        self.fresh.push(object);
        if !table.frozen && heap::is_frozen(object) {
            table.frozen = true;
            facts.saw_frozen(table.class);
        }
    }

    fn array(&mut self, place: PlaceIndex, array: Raw, facts: &mut Facts) {
        let kind = match self.place_kinds[place as usize] {
            Some(kind) => kind,
            None => {
                let kind = facts.array_at(&self.places[place as usize].clone());
                self.place_kinds[place as usize] = Some(kind);
                kind
            }
        };
        let number = self.map.entry(array);
        if *number != 0 {
            let entry = self.entries[*number as usize - 1];
            if let Some(known) = entry.kind {
                facts.merge(known, kind);
            }
            return self.met_again(place, entry, facts);
        }
        self.entries.push(Entry { first: place, kind: Some(kind) });
        *number = self.entries.len() as u64;
        self.kinds.entry(kind.0).or_default().arrays.push(array);
        self.fresh.push(array);
        if heap::is_frozen(array) {
            facts.saw_frozen_array();
        }
    }

    /// An object or array is reached once more: neither place has it for its own.
    fn met_again(&mut self, place: PlaceIndex, entry: Entry, facts: &mut Facts) {
        let element = matches!(self.places[place as usize], Place::Root(Root::Element));
        self.grouped |= element && entry.first == place;
        for place in [place, entry.first] {
            if !std::mem::replace(&mut self.shared[place as usize], true) {
                self.tell_owned(place, facts);
            }
        }
    }

    fn tell_owned(&self, place: PlaceIndex, facts: &mut Facts) {
        let at = &self.places[place as usize];
        if !matches!(at, Place::Root(_)) {
            facts.set_owned(at, !self.shared[place as usize]);
        }
    }

    /// Reads what was demanded of everything that was found, until nothing new turns up.
    fn settle(&mut self, ruby: &Ruby, facts: &mut Facts) -> Result<()> {
        loop {
            let mut progress = false;
            for table in 0..self.tables.len() {
                for demand in 0..self.tables[table].demands.len() {
                    progress |= self.scan_field(ruby, table, demand, facts)?;
                }
            }
            let mut kinds: Vec<u32> = self.kinds.keys().copied().collect();
            kinds.sort_unstable();
            for kind in kinds {
                progress |= self.scan_kind(ruby, ArrayKind(kind), facts)?;
            }
            if !progress {
                self.hold_fresh();
                return Ok(());
            }
        }
    }

    fn scan_field(&mut self, ruby: &Ruby, table: usize, demand: usize, facts: &mut Facts) -> Result<bool> {
        let (start, place, class, id) = {
            let t = &self.tables[table];
            (t.demands[demand].cursor, t.demands[demand].place, t.raw, t.class)
        };
        let ivar = match &self.places[place as usize] {
            Place::Field(_, ivar) => ivar.clone(),
            _ => "".into(),
        };
        let what = move || format!("{ivar} of {}", classes::get(id).info.name);
        let mut summary = Summary::default();
        let mut i = start;
        while let Some(object) = self.tables[table].objects.get(i).copied() {
            ask_at(&self.tables[table].objects, i);
            let value = self.tables[table].demands[demand].reader.get(object, class);
            self.value(ruby, place, value, &mut summary, facts, &what)?;
            i += 1;
        }
        self.tables[table].demands[demand].cursor = i;
        if i > start {
            summary.tell(&self.places[place as usize], facts);
            self.tell_owned(place, facts);
        }
        Ok(i > start)
    }

    fn scan_kind(&mut self, ruby: &Ruby, kind: ArrayKind, facts: &mut Facts) -> Result<bool> {
        let known = facts.find(kind);
        if !self.demanded_kinds.iter().any(|k| facts.find(*k) == known) {
            return Ok(false);
        }
        let place = match self.kinds[&kind.0].place {
            Some(place) => place,
            None => {
                let place = self.place(&Place::Elements(kind));
                self.kinds.get_mut(&kind.0).expect("the caller names a table").place = Some(place);
                place
            }
        };
        let start = self.kinds[&kind.0].cursor;
        let mut summary = Summary::default();
        let mut i = start;
        while let Some(array) = self.kinds[&kind.0].arrays.get(i).copied() {
            ask_at(&self.kinds[&kind.0].arrays, i);
            i += 1;
            let buffer = crate::buffer::of(array);
            facts.saw_storage(kind, buffer.as_ref().map(|(dtype, _)| dtype.storage()));
            facts.saw_length(kind, buffer.as_ref().map_or_else(|| heap::elements(array).len(), |(_, b)| b.len()));
            if let Some((dtype, _)) = buffer {
                summary.prims |= dtype.prims().0;
                continue;
            }
            let mut at = begin(heap::elements(array), &mut summary);
            while let Some(value) = heap::elements(array).get(at).copied() {
                ask_at(heap::elements(array), at);
                self.value(ruby, place, value, &mut summary, facts, &|| "an element of an array".into())?;
                at += 1;
            }
        }
        self.kinds.get_mut(&kind.0).expect("the caller names a table").cursor = i;
        if i > start {
            summary.tell(&Place::Elements(facts.find(kind)), facts);
            self.tell_owned(place, facts);
        }
        Ok(i > start)
    }
}

/// Notes the values with which a long list begins, as long as all that is to be known of them is their kinds; answers how many these are. Workers look at them, while the Ruby
/// thread waits: nothing of Ruby runs meanwhile, so the list stays as it is.
fn begin(values: &[Raw], summary: &mut Summary) -> usize {
    if !crew::many(values.len()) {
        return 0;
    }
    let pieces: Vec<&[Raw]> = values.chunks(PIECE).collect();
    let found = crew::map(values.len(), pieces, |values| plain(values).map(|found| (found, values.len())));
    let mut noted = 0;
    for ((prims, large), len) in found.into_iter().map_while(|found| found) {
        summary.prims |= prims;
        summary.large |= large;
        noted += len;
    }
    noted
}

/// The kinds of values that lead nowhere, and whether some Integer is not small. None: there are others.
fn plain(values: &[Raw]) -> Option<(u16, bool)> {
    let (mut prims, mut large) = (0, false);
    for value in values {
        // nearly all are
        if heap::is_flonum(*value) {
            prims |= Prims::FLOAT.0;
            continue;
        }
        prims |= match heap::see(*value) {
            Seen::Int(i) => {
                large |= is_large(i);
                Prims::INT.0
            }
            Seen::Float(_) => Prims::FLOAT.0,
            Seen::Nil => Prims::NIL.0,
            Seen::False => Prims::FALSE.0,
            Seen::True => Prims::TRUE.0,
            Seen::Symbol => Prims::SYM.0,
            _ => return None,
        };
    }
    Some((prims, large))
}

fn is_large(i: i64) -> bool {
    !(SMALL_ROWS.0..=SMALL_ROWS.1).contains(&i)
}

/// Now and then asks for what is looked at next.
#[inline]
fn ask_at(values: &[Raw], at: usize) {
    if at.is_multiple_of(CHUNK) {
        let next = values[at..values.len().min(at + CHUNK)].iter().copied();
        heap::prefetch_all(next.filter(|value| !heap::is_immediate(*value)));
    }
}

/// Says what a String is that kernels cannot hold; None: they can.
fn unheld_string(ruby: &Ruby, string: Raw) -> Option<String> {
    use magnus::prelude::*;
    use magnus::rb_sys::AsRawValue;
    if heap::class_word(string) != ruby.class_string().as_raw() {
        return Some(format!("a {} that is no plain String", crate::errors::class_name(reflect::value(string))));
    }
    if heap::bytes(string).len() > StrWord::MOST_BYTES {
        return Some(format!("a String of more than {} bytes", StrWord::MOST_BYTES));
    }
    if heap::encoding(string).is_none() {
        let encoding = reflect::value(string).funcall::<_, _, magnus::Value>("encoding", ());
        let name = encoding.and_then(|encoding| encoding.funcall::<_, _, String>("to_s", ()));
        return Some(format!("a String in {}", name.unwrap_or_default()));
    }
    None
}

/// Of a Range that kernels know, its kind in registers, if it has any.
fn range(ruby: &Ruby, value: Raw) -> Option<Option<Prims>> {
    let bounds = Bounds::of(ruby, value)?;
    let end = |end: Raw| matches!(heap::see(end), Seen::Int(_) | Seen::Float(_) | Seen::Nil);
    (end(bounds.from) && end(bounds.to)).then(|| bounds.in_registers())
}

/// The ends of a Range.
pub struct Bounds {
    pub from: Raw,
    pub to: Raw,
    pub exclusive: bool,
}

impl Bounds {
    /// The kind of a Range that registers hold.
    pub fn in_registers(&self) -> Option<Prims> {
        match (heap::see(self.from), heap::see(self.to)) {
            (Seen::Int(_), Seen::Int(_)) => Some(Prims::INT_RANGE),
            (Seen::Float(_), Seen::Float(_)) => Some(Prims::FLOAT_RANGE),
            _ => None,
        }
    }

    /// None for anything but a Range.
    pub fn of(ruby: &Ruby, value: Raw) -> Option<Self> {
        use magnus::rb_sys::AsRawValue;
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

/// Says what a value is that kernels cannot hold.
fn opaque(value: Raw, place: String) -> Refusal {
    Refusal::Opaque(Opaque { what: a_thing(value), place })
}

/// A value by its class: `an Array`.
pub fn a_thing(value: Raw) -> String {
    let class = crate::errors::class_name(crate::reflect::value(value));
    let article = if class.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
    format!("{article} {class}")
}
