//! Live values to facts: which types are at which places.
//!
//! Here: [`Observer`], which scans roots, ivars and arrays as inference demands them. It finds further objects on the
//! way, and scans these for all earlier demands. Not here: columns ([`crate::marshal::trace`] walks again, by a
//! schema). Invariant: between two Ruby calls every object in the tables is held, so the identity map stays true.
//!
//! Nothing recurses. Tables only grow at their end, and every demand has a cursor into the table that it scans. Where
//! there is much to scan, workers help (`observe/beside.rs`).

use crate::marshal::held_procs;
use crate::marshal::trace::CHUNK;
use crate::ruby::hash_table;
use crate::ruby::heap::{self, FieldReader, Hashes, Raw, Seen};
use crate::ruby::holder::Holder;
use crate::ruby::identity::{IdentityMap, RawMap, WordMap};
use crate::ruby::range::Bounds;
use crate::ruby::reflect;
use crate::ruby::registry::classes;
use crate::ruby::workers::{self, PIECE};
use crate::world::hashes::{self, Unfit};
use ikra_core::id::{ArrayKind, ClassId, ProcId};
use ikra_core::memory::room;
use ikra_core::syntax::ast::Name;
use ikra_core::types::{Prims, StrWord, Ty};
use ikra_core::world::{Facts, MAX_HELD_PROCS, Opaque, OutOfRange, Place, Root, well_known};
use magnus::typed_data::Obj;
use magnus::{Error, Ruby};
use std::sync::Arc;

mod beside;

use beside::Found;

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

/// What was seen at one place since its fact was last reported.
#[derive(Default)]
struct Summary {
    prims: u16,
    /// Some Integer is outside the assumed ranges.
    outside: Option<OutOfRange>,
    classes: Vec<ClassId>,
    modules: Vec<ClassId>,
    procs: Vec<ProcId>,
}

impl Summary {
    fn ty(&self) -> Ty {
        let mut ty = Ty::prim(Prims(self.prims));
        ty.objects.clone_from(&self.classes);
        ty.modules.clone_from(&self.modules);
        ty.procs.clone_from(&self.procs);
        ty
    }
    fn tell(&self, place: &Place, facts: &mut Facts) {
        if let Some(what) = self.outside {
            facts.saw_out_of_range(place, what);
        }
        facts.saw(place, &self.ty());
    }
    fn class(&mut self, class: ClassId) {
        if let Err(at) = self.classes.binary_search(&class) {
            self.classes.insert(at, class);
        }
    }
    fn proc(&mut self, id: ProcId) {
        if let Err(at) = self.procs.binary_search(&id) {
            self.procs.insert(at, id);
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

/// A scan of the values at one place.
struct Scan<'a> {
    ruby: &'a Ruby,
    place: PlaceIndex,
    summary: Summary,
    facts: &'a mut Facts,
    /// Describes where a value is, for messages.
    what: &'a dyn Fn(Raw) -> String,
}

impl<'a> Scan<'a> {
    fn new(ruby: &'a Ruby, place: PlaceIndex, facts: &'a mut Facts, what: &'a dyn Fn(Raw) -> String) -> Self {
        Self { ruby, place, summary: Summary::default(), facts, what }
    }
    fn tell(self, place: &Place) {
        self.summary.tell(place, self.facts);
    }
    fn refuse(&self, value: Raw, what: String) -> Refusal {
        Refusal::Opaque(Opaque { what, place: (self.what)(value) })
    }
}

/// The word of an object or array in the identity map. The lower half is the place where it was found first, plus 1.
/// The upper half is the table of an object, or, with a bit, the kind of an array.
#[derive(Clone, Copy)]
struct Entry(u64);

const ARRAY: u64 = 1 << 63;

impl Entry {
    fn object(first: PlaceIndex, table: usize) -> Self {
        Self((table as u64) << 32 | (u64::from(first) + 1))
    }
    fn array(first: PlaceIndex, kind: ArrayKind) -> Self {
        Self(ARRAY | Self::object(first, kind.index()).0)
    }
    fn first(self) -> PlaceIndex {
        self.0 as u32 - 1
    }
    fn table(self) -> usize {
        (self.0 >> 32) as usize
    }
    /// The kind of an array.
    fn kind(self) -> Option<ArrayKind> {
        (self.0 & ARRAY != 0).then_some(ArrayKind((self.0 >> 32) as u32 & !(1 << 31)))
    }
}

/// All objects found of one exact class.
struct ClassTable {
    class: ClassId,
    raw: Raw,
    objects: Vec<Raw>,
    demands: Vec<Demand>,
    frozen: bool,
    /// Whether kernels cannot hold objects of it.
    live: bool,
}

/// An ivar to be read from all objects of a class.
struct Demand {
    place: PlaceIndex,
    reader: FieldReader,
    cursor: usize,
}

/// The first objects of a table, in order, and how many.
struct Order {
    table: usize,
    len: usize,
}

/// Arrays that were found at places of one kind, before kinds are merged.
#[derive(Default)]
struct KindTable {
    arrays: Vec<Raw>,
    cursor: usize,
    place: Option<PlaceIndex>,
}

/// The tables of one compilation.
pub struct Observer {
    holder: Obj<Holder>,
    /// From addresses to [`Entry`] words.
    map: IdentityMap,
    class_index: RawMap<usize>,
    tables: Vec<ClassTable>,
    kinds: WordMap<u32, KindTable>,
    demanded_kinds: Vec<ArrayKind>,
    places: Vec<Place>,
    /// The kind of the arrays at a place, as it was when the first was found.
    place_kinds: Vec<Option<ArrayKind>>,
    /// By place: whether something there was reached from another place, too.
    shared: Vec<bool>,
    /// The Hashes and their layouts.
    hashes: Arc<Hashes>,
    /// Whether parts of Hashes are demanded.
    lays_out: bool,
    /// Objects found since the last update of the holder.
    fresh: Vec<Raw>,
    /// The results of workers while the Ruby thread processes them. The holder does not have their objects yet.
    found: Option<Arc<[Found]>>,
    /// Whether the elements of the base were scanned.
    based: bool,
    /// The order of the elements, and of the lists of some kinds.
    base_order: Option<Order>,
    orders: Vec<(ArrayKind, Order)>,
    /// Whether some object or array occurs more than once among the elements.
    pub grouped: bool,
    /// Whether columns stay between sections now.
    columns_stay: fn() -> bool,
}

impl Drop for Observer {
    /// The GC may not find the holder for long, and its lists are as long as a column.
    fn drop(&mut self) {
        self.holder.let_go();
    }
}

impl Observer {
    /// The number of a Proc or Method object, as of one that objects and arrays hold.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn number_of_proc(&self, value: Raw) -> std::result::Result<Option<ProcId>, Error> {
        held_procs::number(value, self.columns_stay)
    }

    pub fn new(ruby: &Ruby, columns_stay: fn() -> bool) -> Self {
        Self {
            columns_stay,
            holder: Holder::new(ruby),
            map: IdentityMap::default(),
            class_index: RawMap::default(),
            tables: Vec::new(),
            kinds: WordMap::default(),
            demanded_kinds: Vec::new(),
            places: Vec::new(),
            place_kinds: Vec::new(),
            shared: Vec::new(),
            hashes: Arc::default(),
            lays_out: false,
            fresh: Vec::new(),
            found: None,
            based: false,
            base_order: None,
            orders: Vec::new(),
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
    pub fn root(&mut self, ruby: &Ruby, root: &Root, value: Raw, name: &str, facts: &mut Facts) -> Result<()> {
        let place = self.place(&Place::Root(root.clone()));
        let what = |_| name.to_string();
        let mut scan = Scan::new(ruby, place, facts, &what);
        self.value(&mut scan, value)?;
        scan.tell(&self.places[place as usize]);
        self.settle(ruby, facts)
    }

    /// Reports the elements of the base array.
    ///
    /// # Errors
    /// A value that kernels cannot hold.
    pub fn base(&mut self, ruby: &Ruby, array: Raw, facts: &mut Facts) -> Result<()> {
        // It may be asked for before there is anything to infer, too.
        if self.based {
            return self.settle(ruby, facts);
        }
        let place = self.place(&Place::Root(Root::Element));
        let what = |value| {
            // The first identical element is the one that was scanned.
            let index = heap::elements(array).iter().position(|element| *element == value);
            format!("element {}", index.unwrap_or_default())
        };
        let mut scan = Scan::new(ruby, place, facts, &what);
        self.lists(&mut scan, &[array], &[heap::elements(array).len() as u32])?;
        let order = self.order(&[array]);
        scan.facts.saw_in_order(&Place::Root(Root::Element), order.is_some());
        self.base_order = order;
        scan.tell(&Place::Root(Root::Element));
        self.based = true;
        self.settle(ruby, facts)
    }

    /// Demands an ivar of all objects of a class, including those found later.
    ///
    /// # Errors
    /// A value that kernels cannot hold.
    pub fn field(&mut self, ruby: &Ruby, class: ClassId, ivar: &Name, facts: &mut Facts) -> Result<()> {
        let place = self.place(&Place::Field(class, ivar.clone()));
        facts.saw(&self.places[place as usize].clone(), &Ty::never());
        // Ruby has no such object before the section.
        if well_known::is_made_hash(class) {
            return self.settle(ruby, facts);
        }
        let table = self.table(class, classes::get(class).raw);
        if self.tables[table].demands.iter().all(|d| d.place != place) {
            let field = reflect::field(ruby, classes::get(class).raw, ivar)?;
            if matches!(field, heap::Field::Part(_)) {
                self.lay_out(ruby, table, place, facts)?;
            }
            let reader = FieldReader::new(field, &self.hashes);
            self.tables[table].demands.push(Demand { place, reader, cursor: 0 });
        }
        self.settle(ruby, facts)
    }

    /// Demands the elements of all arrays of a kind, including those found later.
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
        let live = crate::world::live_world::is_live_class(raw);
        self.tables.push(ClassTable { class, raw, objects: Vec::new(), demands: Vec::new(), frozen: false, live });
        at
    }

    /// The table of a class word. A new class gets a number, for which Ruby is called.
    fn table_of(&mut self, ruby: &Ruby, raw: Raw) -> Result<usize> {
        if let Some(at) = self.class_index.get(&raw) {
            return Ok(*at);
        }
        self.hold_fresh();
        let class = classes::number(ruby, raw)?;
        Ok(self.table(class, raw))
    }

    /// Gives new objects to the holder, before Ruby is called.
    fn hold_fresh(&mut self) {
        self.holder.hold(std::mem::take(&mut self.fresh));
        if let Some(found) = self.found.take() {
            self.holder.hold(room::collect(found.iter().flat_map(Found::left)));
        }
    }

    /// Notes one value: its kind in the summary, and the object or array in the tables.
    fn value(&mut self, scan: &mut Scan, value: Raw) -> Result<()> {
        let prim = match heap::see(value) {
            Seen::Nil => Prims::NIL,
            Seen::False => Prims::FALSE,
            Seen::True => Prims::TRUE,
            Seen::Int(i) => {
                scan.summary.outside = scan.summary.outside.max(OutOfRange::of(i));
                Prims::INT
            }
            Seen::Float(_) => Prims::FLOAT,
            Seen::Symbol => Prims::SYM,
            Seen::Object | Seen::Number => return self.object(scan, value),
            Seen::Array if heap::is_of_array(value) => {
                self.array(scan, value);
                return Ok(());
            }
            Seen::Array => {
                let what_it_is = match &*crate::ruby::errors::class_name(reflect::value(value)) {
                    "Array" => "an Array with methods of its own".to_string(),
                    class => format!("a {class}, which is no plain Array"),
                };
                return Err(scan.refuse(value, what_it_is));
            }
            Seen::Buffer => match crate::buffers::buffer::of(value) {
                Some(_) => {
                    self.array(scan, value);
                    return Ok(());
                }
                None => return Err(scan.refuse(value, "an array that was freed".into())),
            },
            Seen::Str => match unheld_string(scan.ruby, value)? {
                None => Prims::STR,
                Some(what_it_is) => return Err(scan.refuse(value, what_it_is)),
            },
            Seen::Hash => {
                self.hash(scan, value)?;
                return self.object(scan, value);
            }
            Seen::Module => {
                self.hold_fresh();
                scan.summary.module(classes::number(scan.ruby, value)?);
                return Ok(());
            }
            Seen::Struct => match range(scan.ruby, value) {
                Some(Some(prim)) if self.has_registers(scan.place) => prim,
                Some(_) => return self.object(scan, value),
                None if self.has_members(scan.ruby, heap::class_word(value)) => return self.object(scan, value),
                None => return Err(scan.refuse(value, a_thing(value))),
            },
            Seen::BigInt => return Err(scan.refuse(value, "an Integer beyond 64 bits".into())),
            Seen::Other => return self.other(scan, value),
        };
        scan.summary.prims |= prim.0;
        Ok(())
    }

    /// Notes a Proc or Method object that has source and is no root. Refuses everything else.
    fn other(&mut self, scan: &mut Scan, value: Raw) -> Result<()> {
        // The variable's Proc may be another at each call, so it is a root of its own.
        if value == heap::UNDEF {
            return Err(scan.refuse(value, "what a Hash with a block for its defaults, or by identity, gives".into()));
        }
        if self.has_registers(scan.place) {
            return Err(scan.refuse(value, a_thing(value)));
        }
        self.hold_fresh();
        let Some(id) = held_procs::number(value, self.columns_stay)? else {
            return Err(scan.refuse(value, a_thing(value)));
        };
        scan.summary.proc(id);
        if scan.summary.procs.len() > MAX_HELD_PROCS {
            let what = format!("one of more than {MAX_HELD_PROCS} different Procs");
            return Err(scan.refuse(value, what));
        }
        Ok(())
    }

    /// Whether the objects of a class have members, as Structs do. Ruby is asked once for each class.
    fn has_members(&mut self, ruby: &Ruby, class: Raw) -> bool {
        self.class_index.contains_key(&class) || {
            self.hold_fresh();
            reflect::has_members(ruby, class)
        }
    }

    /// Whether a launch parameter holds the value at a place, with room for the ends of a Range.
    fn has_registers(&self, place: PlaceIndex) -> bool {
        matches!(&self.places[place as usize], Place::Root(root) if *root != Root::Element)
    }

    /// Tests a Hash, and lays it out when it is found first and its parts are demanded.
    fn hash(&mut self, scan: &Scan, hash: Raw) -> Result<()> {
        if hash_table::is_known() {
            if let Some(what_it_is) = hashes::unfit(scan.ruby, hash) {
                return Err(scan.refuse(hash, what_it_is));
            }
            if !self.lays_out {
                return Ok(());
            }
        }
        if self.hashes.contains_key(&hash) {
            return Ok(());
        }
        self.fresh.push(hash);
        self.hold_fresh();
        let parts = match hashes::parts(scan.ruby, hash) {
            Ok(parts) => parts,
            Err(Unfit::Refused(what_it_is)) => return Err(scan.refuse(hash, what_it_is)),
            Err(Unfit::Raised(error)) => return Err(error.into()),
        };
        self.holder.hold(room::copied(&parts));
        // Readers that share the Hashes let go of them, so that the map is not copied for each Hash.
        for demand in self.tables.iter_mut().flat_map(|t| &mut t.demands) {
            if let FieldReader::Part(_, hashes) = &mut demand.reader {
                *hashes = heap::no_hashes();
            }
        }
        Arc::make_mut(&mut self.hashes).insert(hash, parts);
        Ok(())
    }

    /// Lays out all Hashes that were found before their parts were demanded.
    fn lay_out(&mut self, ruby: &Ruby, table: usize, place: PlaceIndex, facts: &mut Facts) -> Result<()> {
        if std::mem::replace(&mut self.lays_out, true) {
            return Ok(());
        }
        let what = |_| "a Hash of the section".to_string();
        let scan = Scan::new(ruby, place, facts, &what);
        for hash in room::copied(&self.tables[table].objects) {
            self.hash(&scan, hash)?;
        }
        Ok(())
    }

    /// The reader of a demand, which knows all Hashes that are laid out.
    fn reader(&mut self, table: usize, demand: usize) -> &mut FieldReader {
        let reader = &mut self.tables[table].demands[demand].reader;
        if let FieldReader::Part(_, hashes) = reader
            && !Arc::ptr_eq(hashes, &self.hashes)
        {
            *hashes = self.hashes.clone();
        }
        reader
    }

    fn object(&mut self, scan: &mut Scan, object: Raw) -> Result<()> {
        let at = self.table_of(scan.ruby, heap::class_word(object))?;
        if self.tables[at].live {
            return Err(scan.refuse(object, a_thing(object)));
        }
        scan.summary.class(self.tables[at].class);
        if self.enter_object(scan, object, at) && !self.tables[at].frozen && heap::is_frozen(object) {
            self.tables[at].frozen = true;
            scan.facts.saw_frozen(self.tables[at].class);
        }
        Ok(())
    }

    /// Notes an object in its table. False where it is there already.
    fn enter_object(&mut self, scan: &mut Scan, object: Raw, table: usize) -> bool {
        let new = self.enter(scan, object, Entry::object(scan.place, table));
        if new {
            room::push(&mut self.tables[table].objects, object);
        }
        new
    }

    fn array(&mut self, scan: &mut Scan, array: Raw) {
        let kind = match self.place_kinds[scan.place as usize] {
            Some(kind) => kind,
            None => {
                let kind = scan.facts.array_at(&self.places[scan.place as usize]);
                self.place_kinds[scan.place as usize] = Some(kind);
                kind
            }
        };
        if self.enter_array(scan, array, kind) && heap::is_frozen(array) {
            scan.facts.saw_frozen_array();
        }
    }

    /// Notes an array in the table of a kind. False where it is in one already.
    fn enter_array(&mut self, scan: &mut Scan, array: Raw, kind: ArrayKind) -> bool {
        let new = self.enter(scan, array, Entry::array(scan.place, kind));
        if new {
            room::push(&mut self.kinds.entry(kind.0).or_default().arrays, array);
        }
        new
    }

    /// Gives a new object or array its entry. False where it has one.
    fn enter(&mut self, scan: &mut Scan, value: Raw, entry: Entry) -> bool {
        let known = Entry(self.map.enter(value, entry.0));
        if known.0 == 0 {
            room::push(&mut self.fresh, value);
            return true;
        }
        if let (Some(known), Some(kind)) = (known.kind(), entry.kind()) {
            scan.facts.merge(known, kind);
        }
        self.met_again(scan.place, known.first(), scan.facts);
        false
    }

    /// Notes that an object or array is reached once more, so that neither place owns it.
    fn met_again(&mut self, place: PlaceIndex, first: PlaceIndex, facts: &mut Facts) {
        let element = matches!(self.places[place as usize], Place::Root(Root::Element));
        self.grouped |= element && first == place;
        for place in [place, first] {
            if !std::mem::replace(&mut self.shared[place as usize], true) {
                self.tell_owned(place, facts);
            }
        }
    }

    fn tell_owned(&self, place: PlaceIndex, facts: &mut Facts) {
        let shared = match &self.places[place as usize] {
            Place::Root(_) => return,
            Place::Field(..) => self.shared[place as usize],
            // What was seen of kinds that were merged since is now of the merged kind.
            Place::Elements(kind) => {
                let kind = facts.find(*kind);
                let is_one = |other: &u32| facts.find(ArrayKind(*other)) == kind;
                let places = self.kinds.iter().filter(|(other, _)| is_one(other)).filter_map(|(_, table)| table.place);
                places.chain([place]).any(|place| self.shared[place as usize])
            }
        };
        facts.set_owned(&self.places[place as usize], !shared);
    }

    /// Reads all demands of everything that was found, until nothing new is found.
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
                self.tell_orders(facts);
                return Ok(());
            }
        }
    }

    fn scan_field(&mut self, ruby: &Ruby, at: usize, demand: usize, facts: &mut Facts) -> Result<bool> {
        let (start, place, raw, class) = {
            let table = &self.tables[at];
            (table.demands[demand].cursor, table.demands[demand].place, table.raw, table.class)
        };
        let ivar = match &self.places[place as usize] {
            Place::Field(_, ivar) => ivar.clone(),
            _ => "".into(),
        };
        let what = move |_| format!("{ivar} of {}", classes::get(class).info.name);
        let mut scan = Scan::new(ruby, place, facts, &what);
        let mut i = start;
        loop {
            i = self.objects_beside(&mut scan, at, demand, i)?;
            let Some(object) = self.tables[at].objects.get(i).copied() else { break };
            ask_at(&self.tables[at].objects, i);
            let value = self.reader(at, demand).get(object, raw);
            self.value(&mut scan, value)?;
            i += 1;
        }
        self.tables[at].demands[demand].cursor = i;
        if i > start {
            scan.tell(&self.places[place as usize]);
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
        let what = |_| "an element of an array".to_string();
        let mut scan = Scan::new(ruby, place, facts, &what);
        let mut end = start;
        // Arrays may lead to others of their kind.
        while end < self.kinds[&kind.0].arrays.len() {
            let lists = room::copied(&self.kinds[&kind.0].arrays[end..]);
            end += lists.len();
            let lengths = lengths(&mut scan, kind, &lists);
            tell_contents(scan.facts, kind, &lists);
            self.lists(&mut scan, &lists, &lengths)?;
        }
        self.kinds.get_mut(&kind.0).expect("the caller names a table").cursor = end;
        if end > start {
            let order = self.order(&self.kinds[&kind.0].arrays);
            scan.facts.saw_in_order(&Place::Elements(kind), order.is_some());
            self.orders.extend(order.map(|order| (kind, order)));
            let kind = scan.facts.find(kind);
            scan.tell(&Place::Elements(kind));
            self.tell_owned(place, facts);
        }
        Ok(end > start)
    }

    /// Tests whether lists contain the objects of one class in the order in which these were found, from the first on.
    /// Gives the class's table, and how many objects they are.
    fn order(&self, lists: &[Raw]) -> Option<Order> {
        let mut elements = lists.iter().flat_map(|list| match heap::see(*list) {
            Seen::Array => heap::elements(*list),
            _ => &[],
        });
        let first = elements.clone().next().filter(|object| !heap::is_immediate(**object))?;
        let table = *self.class_index.get(&heap::class_word(*first))?;
        let mut objects = self.tables[table].objects.iter();
        let all = elements.all(|element| objects.next() == Some(element));
        all.then(|| Order { table, len: self.tables[table].objects.len() - objects.len() })
    }

    /// Reports the orders of lists. A walk finds the elements first, in their order. It finds the objects of other
    /// lists in list order if nothing else leads to objects of their class.
    fn tell_orders(&self, facts: &mut Facts) {
        for (kind, order) in &self.orders {
            let of_base =
                self.base_order.as_ref().is_some_and(|base| base.table == order.table && order.len <= base.len);
            if !of_base && order.len < self.tables[order.table].objects.len() {
                facts.saw_in_order(&Place::Elements(*kind), false);
            }
        }
    }

    /// Notes the elements of lists of such lengths.
    fn lists(&mut self, scan: &mut Scan, lists: &[Raw], lengths: &[u32]) -> Result<()> {
        if workers::many(lengths.iter().map(|len| *len as usize).sum()) {
            return self.lists_beside(scan, lists, lengths);
        }
        for (list, len) in lists.iter().zip(lengths) {
            for at in 0..*len as usize {
                // Ruby may have been called, and the list may be shorter now.
                let Some(value) = heap::elements(*list).get(at).copied() else { break };
                ask_at(heap::elements(*list), at);
                self.value(scan, value)?;
            }
        }
        Ok(())
    }
}

/// Notes how long arrays are and how they hold their elements. For buffers it notes the kind of elements. Gives the
/// number of values to scan in each.
fn lengths(scan: &mut Scan, kind: ArrayKind, arrays: &[Raw]) -> Vec<u32> {
    let lengths = workers::map(arrays.len(), arrays.chunks(PIECE).collect(), |arrays| -> Vec<Option<usize>> {
        let length = |(at, array): (usize, &Raw)| {
            ask_at(arrays, at);
            (heap::see(*array) == Seen::Array).then(|| heap::elements(*array).len())
        };
        room::collect(arrays.iter().enumerate().map(length))
    });
    let mut told = None;
    let mut rows = room::with_capacity(arrays.len());
    for (array, length) in arrays.iter().zip(lengths.into_iter().flatten()) {
        let buffer = if length.is_none() { crate::buffers::buffer::of(*array) } else { None };
        let is = match &buffer {
            Some((dtype, buffer)) => (Some(dtype.storage()), buffer.len()),
            None => (None, length.unwrap_or_default()),
        };
        // Most are like the one before.
        if told.replace(is) != Some(is) {
            scan.facts.saw_storage(kind, is.0);
            scan.facts.saw_length(kind, is.1);
        }
        scan.summary.prims |= buffer.map_or(0, |(dtype, _)| dtype.prims().0);
        rows.push(length.unwrap_or_default() as u32);
    }
    rows
}

/// Notes what arrays contain, as long as it is little.
fn tell_contents(facts: &mut Facts, kind: ArrayKind, arrays: &[Raw]) {
    for array in arrays {
        if !facts.may_be_constant(kind) {
            return;
        }
        let integer = |value: &Raw| if let Seen::Int(i) = heap::see(*value) { Some(i) } else { None };
        let integers: Option<Vec<i64>> = match heap::see(*array) {
            Seen::Array => heap::elements(*array).iter().map(integer).collect(),
            _ => None,
        };
        facts.saw_contents(kind, integers.as_deref());
    }
}

/// Every few values, prefetches those that are scanned next.
#[inline]
fn ask_at(values: &[Raw], at: usize) {
    if at.is_multiple_of(CHUNK) {
        let next = values[at..values.len().min(at + CHUNK)].iter().copied();
        heap::prefetch_all(next.filter(|value| !heap::is_immediate(*value)));
    }
}

/// Says what a String is that kernels cannot hold; None: they can.
fn unheld_string(ruby: &Ruby, string: Raw) -> Result<Option<String>> {
    use magnus::prelude::*;
    use magnus::rb_sys::AsRawValue;
    if heap::class_word(string) != ruby.class_string().as_raw() {
        return Ok(Some(format!(
            "a {} that is no plain String",
            crate::ruby::errors::class_name(reflect::value(string))
        )));
    }
    if heap::bytes(string).len() > StrWord::MAX_BYTES {
        return Ok(Some(format!("a String of more than {} bytes", StrWord::MAX_BYTES)));
    }
    if heap::encoding(string).is_none() {
        let encoding = crate::ruby::question::text(reflect::value(string).funcall("encoding", ())?)?;
        return Ok(Some(format!("a String in {encoding}")));
    }
    Ok(None)
}

/// The kind of a Range in registers, if it has one. The outer None: kernels do not know the Range.
fn range(ruby: &Ruby, value: Raw) -> Option<Option<Prims>> {
    let bounds = Bounds::of(ruby, value)?;
    let end = |end: Raw| matches!(heap::see(end), Seen::Int(_) | Seen::Float(_) | Seen::Nil);
    (end(bounds.from) && end(bounds.to)).then(|| bounds.in_registers())
}

/// The class of a value, with its article: `an Array`.
pub fn a_thing(value: Raw) -> String {
    if matches!(heap::see(value), Seen::BigInt) {
        return "an Integer beyond 64 bits".into();
    }
    let class = crate::ruby::errors::class_name(crate::ruby::reflect::value(value));
    let article = if class.starts_with(['A', 'E', 'I', 'O', 'U']) { "an" } else { "a" };
    format!("{article} {class}")
}
