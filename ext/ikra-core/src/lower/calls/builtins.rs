//! Ruby's own methods, except those of numbers and iterators.
//!
//! Here: methods of objects, Symbols, Arrays, Ranges. Not here: arithmetic ([`crate::lower::numbers`]), iterators
//! ([`super::iterate`]), Strings ([`crate::lower::strings`]).

use crate::config::Precision;
use crate::diagnostic::Span;
use crate::error::Result;
use crate::infer::builtins::{Builtin, Primitive, is_immutable};
use crate::infer::calls::{Args, Literal, Target};
use crate::infer::structs::KeyValue;
use crate::ir::{Cmp, Ctx, Op, Operand, Scalar, Stmt, Trap};
use crate::layout::schema::GroupKeys;
use crate::lower::append::LENT;
use crate::lower::body::Body;
use crate::lower::compare::Asker;
use crate::lower::numbers;
use crate::lower::tables::Form;
use crate::lower::value::Val;
use crate::types::keys::KeyCode;
use crate::types::numeric::{Conversion, Kind as Number, Method};
use crate::types::{Atom, Reach, Repr, StrWord, Tag, Ty, Unit};
use crate::unicode::case_table;
use crate::world::well_known;

impl Body<'_, '_> {
    /// Rounds an operand or result of a numeric method to the section's `precision`. Intermediate values of Ruby's own
    /// methods keep their precision.
    fn precise(&mut self, val: Val) -> Val {
        match val {
            Val::Float(x) if self.cx.shared.options.precision == Precision::Single && self.here.site.is_none() => {
                Val::Float(self.cx.b.f64(Op::FSingle, &[x]))
            }
            val => val,
        }
    }

    /// The code of a builtin without a block, for one kind of each operand.
    #[allow(clippy::too_many_arguments, reason = "a call has this many parts")]
    pub(super) fn builtin(
        &mut self,
        builtin: Builtin,
        (atom, reach): (Atom, Reach),
        receiver: Val,
        name: &str,
        args: &[(Atom, Val)],
        types: &Args,
        (span, at): (Span, Span),
    ) -> Result<Option<Val>> {
        use Builtin::*;
        let vals: Vec<Val> = args.iter().map(|a| a.1).collect();
        let first = args.first().copied();
        let falsy = |a: Atom| matches!(a, Atom::Nil | Atom::False);
        let asker = Asker { atom, reach, val: receiver, span, at };
        Ok(match builtin {
            Numeric(method) if self.asks_equality(method, args, span)? => {
                let Some((other, val)) = first else { return Ok(None) };
                let of_arg = Asker { atom: other, reach: Reach::Mixed, val, ..asker };
                self.asked_equality(of_arg, method == Method::NotEq, (atom, receiver))?
            }
            Numeric(method) => {
                let (receiver, vals) =
                    (self.precise(receiver), vals.into_iter().map(|v| self.precise(v)).collect::<Vec<_>>());
                let val = method.lower(&mut self.cx, receiver, &vals, types.int_literal());
                Some(self.precise(val))
            }
            Math(function) => {
                let vals = vals.into_iter().map(|v| self.precise(v)).collect::<Vec<_>>();
                let val = function.lower(&mut self.cx, &vals);
                Some(self.precise(val))
            }
            Rand(rand) => {
                self.t.uses_random = true;
                let val = rand.lower(&mut self.cx, &vals, types.int_literal());
                Some(self.speculated_rand(val, first.map(|f| f.0), at))
            }
            Raise => None,
            IsNil => Some(Val::bool(atom == Atom::Nil)),
            Not => Some(Val::bool(falsy(atom))),
            Equal | Identical => first.map(|(b, y)| match name {
                "eql?" => self.eql(atom, receiver, b, y),
                _ => self.equal(atom, receiver, b, y),
            }),
            CaseEqual | Compare | Ordered(_) => self.comparison(builtin, asker, args)?,
            SameReference => first.map(|(b, y)| self.same_reference(atom, receiver, b, y)),
            Kin => first.map(|(b, _)| Val::bool(self.an.is_kin(atom, b))),
            Kinds => first.map(|(b, _)| Val::int(self.kind_number(atom) << 31 | self.kind_number(b))),
            Identity => match receiver {
                Val::Array(_, packed) => Some(Val::Int(packed)),
                Val::Ref(_, row) => Some(Val::Int(self.cx.b.i64(Op::Widen, &[row]))),
                _ => None,
            },
            StructGet | StructSet => match args {
                [index, rest @ ..] => {
                    let literal = types.literals.first().and_then(Option::as_ref);
                    self.struct_index(asker, *index, literal, rest.first().map(|a| a.1))?
                }
                [] => None,
            },
            StructSize => Some(self.struct_size(atom)),
            KeyCount => {
                let keys = self.an.own_keys(self.here.spec, atom).map_err(|r| self.refused(r, span))?;
                Some(keys.map_or_else(|| self.struct_size(atom), |keys| Val::int(keys.len() as i64)))
            }
            Member => {
                let keys = self.an.own_keys(self.here.spec, atom).map_err(|r| self.refused(r, span))?;
                match (keys, args, types.literals.first()) {
                    (None, [index, ..], literal) => {
                        self.struct_index(asker, *index, literal.and_then(Option::as_ref), None)?
                    }
                    (Some(keys), _, Some(Some(Literal::Sym(key)))) => {
                        match keys.into_iter().find(|(name, _)| name == key).map(|(_, value)| value) {
                            // was asked for before
                            None => {
                                self.unreachable();
                                None
                            }
                            Some(KeyValue::Field(field)) => Some(self.read_field(atom, receiver, &field)),
                            Some(KeyValue::Sym(name)) => Some(Val::Sym(Operand::I64(crate::world::symbol_hash(&name)))),
                            Some(KeyValue::Int(n)) => Some(Val::int(n)),
                            Some(KeyValue::True) => Some(Val::bool(true)),
                            Some(KeyValue::False) => Some(Val::bool(false)),
                            Some(KeyValue::Nil) => Some(Val::NIL),
                        }
                    }
                    _ => {
                        self.unreachable();
                        None
                    }
                }
            }
            Message => self.message(receiver, asker.span)?,
            StrBytes | StrInterned | AsText | StrRefuse(_) => self.string_builtin(builtin, asker, first)?,
            Primitive(primitive) => {
                let literal = types.literals.first().and_then(Option::as_ref);
                self.primitive(primitive, asker, args, literal)?
            }
            KeyHash => Some(self.key_hash(receiver)),
            ArrayEqual | ArrayEql | ArrayCompare | StructEqual | StructEql | StructInitialize | DataWith
            | MakeValue | OfRange | StrEqual | StrCompare => None,
            NotEqual => {
                let Some((b, y)) = first else { return Ok(None) };
                let arg = (y, Ty::of(b, Reach::Mixed), None);
                let (val, _) =
                    self.call_values((receiver, &Ty::of(atom, reach)), ":==", &[arg], &[], false, span, at)?;
                let truth = self.truth(val);
                Some(match truth {
                    Operand::Bool(b) => Val::bool(!b),
                    t => Val::Bool(self.cx.b.bool(Op::Not, &[t])),
                })
            }
            IsA | InstanceOf | ModuleCase => {
                let Some((other, _)) = first else { return Ok(None) };
                let (value, module) = if builtin == ModuleCase { (other, atom) } else { (atom, other) };
                match module {
                    Atom::Module(m) if value == Atom::Exception => {
                        let exception = if builtin == ModuleCase { vals[0] } else { receiver };
                        Some(Val::Bool(self.is_of_class(exception, m, builtin == InstanceOf)))
                    }
                    Atom::Module(m) if builtin == InstanceOf => {
                        let class = self.an.real_class(crate::infer::calls::class_of(value));
                        Some(Val::bool(!matches!(value, Atom::Module(_)) && class == m))
                    }
                    Atom::Module(m) => Some(Val::bool(self.an.atom_is_a(value, m))),
                    _ => {
                        let message = "class or module required".to_string();
                        self.trap(Trap::Raise { class: "TypeError", message }, None);
                        None
                    }
                }
            }
            RespondTo | Answers | ClassOf | HasKeys | IsList | IsOwn | HashStoresList => {
                // both follow from the type
                let types =
                    Args { positional: args.iter().map(|a| Ty::of(a.0, Reach::Any)).collect(), ..types.clone() };
                let speculated = self.assumption(at);
                let target = Target::Builtin(builtin);
                let ty = self
                    .an
                    .reached(self.here.spec, &target, (atom, reach), name, &types, &speculated)
                    .map_err(|r| self.refused(r, span))?;
                match self.t.form(&ty) {
                    Some(Form::One(Repr::Unit(unit))) => Some(Val::Unit(unit)),
                    _ => None,
                }
            }
            New | Allocate => None,
            Initialize => Some(Val::NIL),
            Itself => Some(receiver),
            IsFrozen => Some(self.is_frozen(atom, receiver)?),
            Freeze => {
                self.freeze(atom, receiver)?;
                Some(receiver)
            }
            Builtin::Copy => match (atom, receiver) {
                (Atom::Object(class), Val::Ref(_, object)) => Some(self.copy_of(class, object)),
                (Atom::Str, Val::Str(word)) => {
                    // the host makes the new String from the bytes
                    self.t.bytes();
                    let thawed = self.cx.b.i64(Op::And, &[word, Operand::I64(!StrWord::FROZEN as i64)]);
                    Some(Val::Str(self.cx.b.i64(Op::Or, &[thawed, Operand::I64(StrWord::MADE as i64)])))
                }
                _ => Some(receiver),
            },
            IsCopied => Some(Val::bool(!is_immutable(atom))),
            ProcArity => match atom {
                Atom::Proc(id) => {
                    let arity = self.an.arity(self.here.spec, id).map_err(|refusal| self.refused(refusal, span))?;
                    Some(Val::int(arity))
                }
                _ => None,
            },
            MethodToProc => match atom {
                Atom::Proc(id) => Some(Val::Unit(Unit::Proc(self.an.converted(id)))),
                _ => None,
            },
            MethodName => match atom {
                Atom::Proc(id) => {
                    let name = self.an.method_name(id);
                    name.map(|name| Val::Sym(Operand::I64(crate::world::symbol_hash(&name))))
                }
                _ => None,
            },
            MethodOwner => match atom {
                Atom::Proc(id) => self.an.method_owner(id).map(|owner| Val::Unit(Unit::Module(owner))),
                _ => None,
            },
            MethodReceiver => match atom {
                Atom::Proc(id) => self.kept_values(id)?.first().map(|(val, ..)| *val),
                _ => None,
            },
            CaseTable(change) => {
                let table = case_table(self.an.world.unicode(), change);
                Some(Val::Str(Operand::I64(self.t.string_literal(&table, true).0 as i64)))
            }
            RegexpTable(table) => match atom {
                Atom::Regexp(id) => {
                    let table = self.an.regexp_table(id, table).map_err(|refusal| self.refused(refusal, span))?;
                    Some(Val::Str(Operand::I64(self.t.string_literal(&table, true).0 as i64)))
                }
                _ => None,
            },
            RegexpHasGroups => Some(Val::bool(matches!(atom, Atom::Regexp(id) if self.an.regexp_of(id).groups > 0))),
            RegexpIsAscii => Some(Val::bool(matches!(atom, Atom::Regexp(id) if self.an.regexp_of(id).ascii))),
            RegexpIsNumbered => {
                Some(Val::bool(matches!(atom, Atom::Regexp(id) if self.an.regexp_of(id).names.is_empty())))
            }
            RegexpIsOnePass => Some(Val::bool(
                matches!(atom, Atom::Regexp(id) if self.an.regexp_of(id).table(crate::regexp::Table::Captures).is_ok()),
            )),
            RegexpGroupNamed => match (atom, args) {
                (Atom::Regexp(id), [(_, Val::Sym(name))]) => {
                    let names = self.an.regexp_of(id).names.clone();
                    let mut number = Operand::I64(-1);
                    for (k, known) in names.iter().enumerate() {
                        let hash = Operand::I64(crate::world::symbol_hash(known));
                        let same = self.cx.b.icmp(crate::ir::Cmp::Eq, *name, hash);
                        number = self.cx.b.select(Scalar::I64, same, Operand::I64(k as i64 + 1), number);
                    }
                    Some(Val::Int(number))
                }
                _ => None,
            },
            RegexpGroupName => match (atom, args) {
                (Atom::Regexp(id), [(_, Val::Int(number))]) => {
                    let names = self.an.regexp_of(id).names.clone();
                    let mut name = Operand::I64(0);
                    for (k, known) in names.iter().enumerate() {
                        let same = self.cx.b.icmp(crate::ir::Cmp::Eq, *number, Operand::I64(k as i64 + 1));
                        let hash = Operand::I64(crate::world::symbol_hash(known));
                        name = self.cx.b.select(Scalar::I64, same, hash, name);
                    }
                    Some(Val::Sym(name))
                }
                _ => None,
            },
            RegexpGroups => match atom {
                Atom::Regexp(id) => Some(Val::int(self.an.regexp_of(id).groups as i64)),
                _ => None,
            },
            IsLambda => match atom {
                Atom::Proc(id) => Some(Val::bool(self.an.proc_info(id).kind.is_lambda())),
                _ => None,
            },
            ArrayPut => match (atom, receiver, args) {
                (Atom::Array(kind), Val::Array(_, packed), [(_, Val::Int(index)), (_, val)]) => {
                    self.put_element(kind, packed, *index, *val)?;
                    self.t.array(self.an, kind)?.overwritten |= reach != Reach::Fresh;
                    Some(Val::NIL)
                }
                _ => None,
            },
            Alike => match (atom, first) {
                (Atom::Array(kind), Some((_, Val::Int(length)))) => Some(self.rows(kind, length)?.2),
                _ => None,
            },
            Grown => match (atom, receiver, first) {
                (Atom::Array(kind), Val::Array(_, packed), Some((_, val))) => {
                    Some(Val::Array(kind, self.grown_by(kind, packed, val, span)?))
                }
                _ => None,
            },
            HashLend | HashLent => match atom {
                Atom::Object(class) if builtin == HashLent || self.an.do_hash_lists_grow(class) => {
                    let Val::Int(walks) = self.read_field(atom, receiver, &"walks".into()) else { return Ok(None) };
                    if builtin == HashLent {
                        let lent = self.cx.b.i64(Op::And, &[walks, Operand::I64(LENT)]);
                        Some(Val::Bool(self.cx.b.icmp(Cmp::Ne, lent, Operand::I64(0))))
                    } else {
                        let lent = self.cx.b.i64(Op::Or, &[walks, Operand::I64(LENT)]);
                        self.write_field((atom, reach), receiver, &"walks".into(), Val::Int(lent));
                        Some(Val::NIL)
                    }
                }
                _ => Some(Val::NIL),
            },
            HashBlock => match atom {
                Atom::Object(class) => match *self.an.block_of_hash(class).procs {
                    [id] => Some(Val::Unit(Unit::Proc(id))),
                    _ => Some(Val::NIL),
                },
                _ => None,
            },
            TakeOf => match (atom, receiver, first) {
                (Atom::Array(kind), Val::Array(_, packed), Some((_, Val::Int(count)))) => {
                    let (offset, _) = self.array_parts(packed);
                    let high = self.cx.b.i64(Op::Shl, &[offset, Operand::I64(32)]);
                    Some(Val::Array(kind, self.cx.b.i64(Op::Or, &[high, count])))
                }
                _ => None,
            },
            OneLevel | Unconverted(_) => Some(Val::NIL),
            Refuse(..) => None,
            ArrayAt => match (atom, receiver, first) {
                (Atom::Array(kind), Val::Array(_, packed), Some((_, Val::Int(index)))) => {
                    Some(self.element_in_range(kind, packed, index)?)
                }
                _ => None,
            },
            Unwritten => match atom {
                Atom::Array(kind) => {
                    let kind = self.an.facts.find(kind);
                    Some(Val::bool(!self.an.arrays.get(&kind).is_some_and(|access| access.written())))
                }
                _ => None,
            },
            ElementsAre(prims) => match atom {
                Atom::Array(kind) => {
                    let ty = self.an.elements(self.here.spec, kind, reach).unwrap_or_default();
                    Some(Val::bool(ty.only(prims)))
                }
                _ => None,
            },
            Buffer
            | MakeHash
            | NeedsArray
            | MakeProc
            | ProcCall
            | Curry
            | Compose { .. }
            | Staged
            | BlockGiven
            | Send { .. }
            | Uncomparable
            | Uncoercible
            | Doubt
            | IvarGet
            | IvarSet
            | NoMatch => None,
            Lacks(..) | NoRange => Some(Val::NIL),
            NilToInt => Some(Val::int(0)),
            NilToFloat => Some(Val::Float(Operand::float(0.0))),
            BoolAnd => first.map(|(b, _)| Val::bool(atom == Atom::True && !falsy(b))),
            BoolOr => first.map(|(b, _)| Val::bool(atom == Atom::True || !falsy(b))),
            BoolXor => first.map(|(b, _)| Val::bool((atom == Atom::True) == falsy(b))),
            Single => Some(numbers::single(&mut self.cx, first.map_or(Val::NIL, |(_, x)| x))),
            Tick => Some(Val::Int(self.cx.b.i64(Op::Ctx(Ctx::Tick), &[]))),
            Index => {
                self.t.asks_index = true;
                Some(Val::Int(self.cx.b.i64(Op::Ctx(Ctx::Index), &[])))
            }
            ToFloat => first.map(|(_, val)| Conversion::Float.lower(&mut self.cx, val)),
            ToInteger => first.map(|(_, val)| Conversion::Integer.lower(&mut self.cx, val)),
            RangeFirst | RangeLast | RangeMin | RangeMax | RangeSize | RangeCover | RangeExcludesEnd => {
                self.range_builtin(builtin, receiver, first)
            }
            ArrayGet => match (atom, receiver, first) {
                (Atom::Array(kind), Val::Array(_, packed), Some((_, index))) => match self.as_int(index) {
                    Some(index) => Some(self.element(kind, packed, index, at)?),
                    None => None,
                },
                _ => None,
            },
            AsInt => first.and_then(|(_, val)| self.as_int(val)).map(Val::Int),
            AsCInt => first.and_then(|(_, val)| numbers::to_c_int(&mut self.cx, val)).map(Val::Int),
            ArraySet => match (atom, receiver, args) {
                (Atom::Array(kind), Val::Array(_, packed), [(_, index), (_, val)]) => {
                    let Some(index) = self.as_int(*index) else { return Ok(None) };
                    self.write_element(kind, packed, index, *val)?;
                    Some(*val)
                }
                _ => None,
            },
            ArraySize => match receiver {
                Val::Array(_, packed) => Some(Val::Int(self.array_parts(packed).1)),
                _ => None,
            },
            ArrayIsEmpty => match receiver {
                Val::Array(_, packed) => {
                    let (_, length) = self.array_parts(packed);
                    Some(Val::Bool(self.cx.b.icmp(Cmp::Eq, length, Operand::I64(0))))
                }
                _ => None,
            },
            ArrayFirst | ArrayLast => match (atom, receiver) {
                (Atom::Array(kind), Val::Array(_, packed)) => {
                    let index = if builtin == ArrayFirst { 0 } else { -1 };
                    Some(self.element(kind, packed, Operand::I64(index), at)?)
                }
                _ => None,
            },
            Loop | Times | Upto | Downto | Step | RangeEach | RangeReverseEach | RangeEachWithIndex | RangeStep
            | ArrayEach | ArrayEachWithIndex | ArrayEachIndex | ArrayReverseEach | MethodMissing => None,
        })
    }

    /// The code of a primitive.
    fn primitive(
        &mut self,
        primitive: Primitive,
        asker: Asker,
        args: &[(Atom, Val)],
        literal: Option<&Literal>,
    ) -> Result<Option<Val>> {
        use Primitive::*;
        let options = self.cx.shared.options;
        let first = args.first().map(|a| a.1);
        Ok(match primitive {
            Byte | FirstByte | View | AsFrozen | IsSingle | Encoding | Code | Coded | SetByte | NewText
            | ArgumentError | NoNumber => self.string_primitive(primitive, asker, args, literal)?,
            ReadsPoints => Some(Val::bool(options.ruby >= (3, 4))),
            KnowsEighths => Some(Val::bool(options.exact_eighths)),
            AsksBounds => Some(Val::bool(options.ruby >= (3, 3))),
            NegatesPoles => Some(Val::bool(options.negative_poles)),
            LosesSingle => Some(Val::bool(options.single_lost)),
            RoundsParts => Some(Val::bool(options.even_by_parts)),
            Bits => match asker.val {
                Val::Float(x) => Some(Val::Int(self.cx.b.i64(Op::FloatBits, &[x]))),
                _ => None,
            },
            OfBits => match asker.val {
                Val::Int(bits) => Some(Val::Float(self.cx.b.f64(Op::FloatFromBits, &[bits]))),
                _ => None,
            },
            TimesHigh | TimesLow => match (asker.val, first) {
                (Val::Int(a), Some(Val::Int(b))) => {
                    let op = if primitive == TimesHigh { Op::MulHi } else { Op::Mul };
                    Some(Val::Int(self.cx.b.i64(op, &[a, b])))
                }
                _ => None,
            },
            Powers => {
                let table = self.t.string_literal(crate::prelude::powers_of_ten(), true);
                Some(Val::Str(Operand::I64(table.0 as i64)))
            }
            LogGamma => match asker.val {
                Val::Float(x) => Some(Val::Float(self.cx.b.f64(Op::Math(crate::ir::MathFn::Lgamma), &[x]))),
                _ => None,
            },
            Tick => Some(Val::Int(self.cx.b.i64(Op::Ctx(Ctx::Tick), &[]))),
            Add => {
                self.add_pair(args);
                Some(Val::NIL)
            }
            AddParts => {
                self.add_parts(args);
                Some(Val::NIL)
            }
            KeyPart => {
                let part = args.first().and_then(|(_, part)| self.key_part(*part));
                if part.is_none() {
                    self.other_keys();
                }
                Some(Val::NIL)
            }
            KeyList => self.key_list(asker.val, asker.reach),
            Position => Some(Val::Int(self.cx.b.i64(Op::Ctx(Ctx::Index), &[]))),
            KeyError => {
                let Some(key) = first else { return Ok(None) };
                if numbers::carried(key).is_err() {
                    let message =
                        "kernels do not know KeyError of a Range that is made in the section, whose message shows it";
                    self.trap(Trap::refusal(message), None);
                    return Ok(None);
                }
                if matches!(asker.atom, Atom::Object(class) if well_known::is_made_hash(class)) {
                    numbers::mention(&mut self.cx, "KeyError", "key not found: ", key, "");
                    return Ok(None);
                }
                let ((hash, mut words), (repr, more)) = (self.trap_operand(asker.val), self.trap_operand(key));
                words.extend(more);
                let site = self.cx.site(Trap::KeyMissing, vec![hash, repr]);
                self.cx.b.trap(site, words);
                None
            }
            MemberName => match first {
                Some(Val::Int(place)) => Some(self.member_name(asker.atom, place)),
                _ => None,
            },
            Place => match first {
                Some(Val::Sym(name)) => Some(self.struct_place(asker.atom, name)),
                _ => None,
            },
        })
    }

    /// Adds a pair to the section's groups. The schema tells where some cannot be added.
    fn add_pair(&mut self, args: &[(Atom, Val)]) {
        let &[(_, key), value, number] = args else { return self.other_keys() };
        let keys = match self.key_part(key) {
            Some(Repr::Float | Repr::Unit(_)) => GroupKeys::Parts,
            Some(repr) => GroupKeys::Of(repr),
            None => GroupKeys::Other,
        };
        self.saw_keys(keys);
        self.emit_pair(value, number);
    }

    /// The same for a key of several parts.
    fn add_parts(&mut self, args: &[(Atom, Val)]) {
        let &[value, number] = args else { return self.other_keys() };
        self.saw_keys(GroupKeys::Parts);
        self.emit_pair(value, number);
    }

    fn emit_pair(&mut self, (_, value): (Atom, Val), (_, number): (Atom, Val)) {
        let Val::Int(number) = number else { return self.other_keys() };
        let (value, is_float) = match value {
            Val::Int(value) => (value, false),
            // in 32 bits, values are rounded where they are stored
            Val::Float(value) if self.cx.shared.options.precision != Precision::Single => {
                (self.cx.b.i64(Op::FloatBits, &[value]), true)
            }
            _ => return self.other_keys(),
        };
        if *self.t.schema.groups_floats.get_or_insert(is_float) != is_float {
            self.other_keys();
        }
        let index = self.cx.b.i64(Op::Ctx(Ctx::Index), &[]);
        let index = self.cx.b.i64(Op::Shl, &[index, Operand::I64(32)]);
        let order = self.cx.b.i64(Op::Or, &[index, number]);
        self.cx.b.push(Stmt::Emit { key: None, value, order, text: None });
    }

    /// Adds a part to the key of the next pair. Its kind, if tables know it.
    fn key_part(&mut self, key: Val) -> Option<Repr> {
        let (repr, code, word) = match key {
            Val::Int(key) => (Repr::Int, KeyCode::INT, key),
            Val::Float(key) => (Repr::Float, KeyCode::FLOAT, self.cx.b.i64(Op::FloatBits, &[key])),
            Val::Str(key) => {
                self.t.bytes();
                self.t.has_text_keys = true;
                (Repr::Str, KeyCode::STR, key)
            }
            Val::Sym(key) => (Repr::Sym, KeyCode::SYM, key),
            Val::Unit(Unit::Nil) => (Repr::Unit(Unit::Nil), KeyCode::NIL, Operand::I64(0)),
            Val::Unit(Unit::True) => (Repr::Bool, KeyCode::TRUE, Operand::I64(1)),
            Val::Unit(Unit::False) => (Repr::Bool, KeyCode::FALSE, Operand::I64(0)),
            Val::Bool(key) => {
                let word = self.cx.b.i64(Op::BoolToInt, &[key]);
                let code = self.cx.b.i64(Op::Add, &[word, Operand::I64(KeyCode::FALSE as i64)]);
                self.cx.b.push(Stmt::KeyPart { code, word });
                return Some(Repr::Bool);
            }
            _ => return None,
        };
        self.cx.b.push(Stmt::KeyPart { code: Operand::I64(code as i64), word });
        Some(repr)
    }

    /// Adds an array to the key of the next pair, and gives its length. Its elements are further parts. Arrays of the
    /// host stay the very objects in results, and those that change have their last elements. Tables can do neither.
    fn key_list(&mut self, list: Val, reach: Reach) -> Option<Val> {
        let Val::Array(kind, packed) = list else { return None };
        let is_made = reach == Reach::Fresh || !self.an.facts.has_any(kind);
        if !is_made || self.an.has_room(kind) {
            self.other_keys();
        }
        self.t.key_arrays.insert(kind);
        let (_, length) = self.array_parts(packed);
        // one that is longer has too many parts in any case
        let length_code = self.cx.b.i64(Op::And, &[length, Operand::I64(15)]);
        let code = self.cx.b.i64(Op::Add, &[length_code, Operand::I64(KeyCode::LIST as i64)]);
        self.cx.b.push(Stmt::KeyPart { code, word: Operand::I64(0) });
        Some(Val::Int(length))
    }

    fn other_keys(&mut self) {
        self.saw_keys(GroupKeys::Other);
    }

    fn saw_keys(&mut self, keys: GroupKeys) {
        let known = &mut self.t.schema.groups;
        *known = Some(match (*known, keys) {
            (None, keys) => keys,
            (Some(known), keys) if known == keys => keys,
            (Some(GroupKeys::Other), _) | (_, GroupKeys::Other) => GroupKeys::Other,
            _ => GroupKeys::Parts,
        });
    }

    /// The Integer that Ruby gets by `to_int`. None: that always raises.
    fn as_int(&mut self, val: Val) -> Option<Operand> {
        match val {
            Val::Int(v) => Some(v),
            Val::Float(v) => Some(numbers::to_long(&mut self.cx, v)),
            _ => {
                self.no_conversion(val, "Integer");
                None
            }
        }
    }

    /// TypeError: `no implicit conversion from nil to integer`, in Ruby's two wordings.
    pub fn no_conversion(&mut self, val: Val, to: &str) {
        if val == Val::NIL {
            let message = format!("no implicit conversion from nil to {}", to.to_lowercase());
            self.trap(Trap::Raise { class: "TypeError", message }, None);
        } else {
            let after = format!(" into {to}");
            numbers::describe(&mut self.cx, "TypeError", "no implicit conversion of ", val, &after);
        }
    }

    /// Checks that the result of `rand` has the kind that was speculated on.
    fn speculated_rand(&mut self, val: Val, arg: Option<Atom>, span: Span) -> Val {
        let at = self.assumption(span);
        if !self.an.facts.holds(&at) {
            return val;
        }
        let Val::Union { tag, .. } = val else { return val };
        let (expected, form) = match arg {
            Some(Atom::Int | Atom::IntRange) => (Tag::INT, Form::One(Repr::Int)),
            Some(Atom::FloatRange) => (Tag::FLOAT, Form::One(Repr::Float)),
            _ => return val,
        };
        let wrong = self.cx.b.icmp(Cmp::Ne, tag, Operand::I32(expected));
        let site = self.cx.site(Trap::Refuted(at), vec![]);
        self.cx.b.trap_if(wrong, site, vec![]);
        self.cast(val, form)
    }

    /// `==` for one kind on each side, neither of which defines its own `==`.
    pub fn equal(&mut self, a: Atom, x: Val, b: Atom, y: Val) -> Val {
        match (a, x, b, y) {
            (Atom::IntRange | Atom::FloatRange, _, Atom::IntRange | Atom::FloatRange, _) => {
                self.equal_ranges(x, y, false)
            }
            (Atom::Nil, _, Atom::Nil, _) | (Atom::True, _, Atom::True, _) | (Atom::False, _, Atom::False, _) => {
                Val::bool(true)
            }
            (Atom::Module(m), _, Atom::Module(n), _) => Val::bool(m == n),
            // an array is of one kind, and offsets identify arrays only within a kind
            (_, Val::Array(k, _), _, Val::Array(l, _)) if self.an.facts.find(k) != self.an.facts.find(l) => {
                Val::bool(false)
            }
            (_, Val::Str(x), _, Val::Str(y)) => self.same_string(x, y),
            (_, Val::Int(x), _, Val::Int(y))
            | (_, Val::Sym(x), _, Val::Sym(y))
            | (_, Val::Array(_, x), _, Val::Array(_, y)) => Val::Bool(self.cx.b.icmp(Cmp::Eq, x, y)),
            (Atom::Object(c), Val::Ref(h, x), Atom::Object(d), Val::Ref(k, y)) if h == k && c == d => {
                Val::Bool(self.cx.b.icmp(Cmp::Eq, x, y))
            }
            _ => Val::bool(false),
        }
    }

    /// A number for a kind of value. Arrays and objects of one kind are told apart by [`Builtin::Identity`].
    fn kind_number(&self, atom: Atom) -> i64 {
        match atom {
            Atom::Array(kind) => self.an.facts.find(kind).index() as i64 * 2,
            Atom::Object(class) => class.index() as i64 * 2 + 1,
            _ => 0,
        }
    }

    /// `eql?` of values that are not numbers: as `==`, except for Ranges.
    pub(super) fn eql(&mut self, a: Atom, x: Val, b: Atom, y: Val) -> Val {
        match (a, b) {
            (Atom::IntRange | Atom::FloatRange, Atom::IntRange | Atom::FloatRange) => self.equal_ranges(x, y, true),
            _ => self.equal(a, x, b, y),
        }
    }

    fn range_builtin(&mut self, builtin: Builtin, receiver: Val, arg: Option<(Atom, Val)>) -> Option<Val> {
        match receiver {
            Val::IntRange { from, to, exclusive } => Some(match builtin {
                Builtin::RangeFirst => Val::Int(from),
                Builtin::RangeLast => Val::Int(to),
                Builtin::RangeExcludesEnd => Val::Bool(exclusive),
                Builtin::RangeSize => {
                    let count = self.trip_count(from, to, exclusive);
                    Val::Int(count)
                }
                Builtin::RangeMin | Builtin::RangeMax => {
                    let last = self.last(to, exclusive);
                    let some = self.cx.b.icmp(Cmp::Le, from, last);
                    let value = if builtin == Builtin::RangeMin { from } else { last };
                    let tag = self.cx.b.select(Scalar::I32, some, Operand::I32(Tag::INT), Operand::I32(Tag::NIL));
                    Val::Union { tag, payload: value }
                }
                _ => return self.covers(Val::Int(from), Val::Int(to), exclusive, arg),
            }),
            Val::FloatRange { from, to, exclusive } => match builtin {
                Builtin::RangeExcludesEnd => Some(Val::Bool(exclusive)),
                Builtin::RangeFirst => Some(Val::Float(from)),
                Builtin::RangeLast => Some(Val::Float(to)),
                Builtin::RangeCover => self.covers(Val::Float(from), Val::Float(to), exclusive, arg),
                _ => None,
            },
            _ => None,
        }
    }

    /// `from <= arg && arg <= to` (or `<`).
    pub(super) fn covers(&mut self, from: Val, to: Val, exclusive: Operand, arg: Option<(Atom, Val)>) -> Option<Val> {
        let (_, arg) = arg?;
        if !Number::of_val(arg).is_number() {
            return Some(Val::bool(false));
        }
        let above = Method::Le.lower(&mut self.cx, from, &[arg], None);
        let below = Method::Le.lower(&mut self.cx, arg, &[to], None);
        let strictly = Method::Lt.lower(&mut self.cx, arg, &[to], None);
        let (above, below, strictly) = (self.truth(above), self.truth(below), self.truth(strictly));
        let below = self.cx.b.select(Scalar::Bool, exclusive, strictly, below);
        Some(Val::Bool(self.cx.b.bool(Op::And, &[above, below])))
    }

    /// The last Integer of a Range; for an empty Range it is less than the first. For an exclusive Range that ends at
    /// the least Integer the result wraps. Such a Range is empty, and callers compare with `from` first.
    pub(super) fn last(&mut self, to: Operand, exclusive: Operand) -> Operand {
        let less = self.cx.b.i64(Op::Sub, &[to, Operand::I64(1)]);
        let least = self.cx.b.icmp(Cmp::Eq, to, Operand::I64(i64::MIN));
        let less = self.cx.b.select(Scalar::I64, least, to, less);
        self.cx.b.select(Scalar::I64, exclusive, less, to)
    }

    /// The number of Integers in a Range.
    fn trip_count(&mut self, from: Operand, to: Operand, exclusive: Operand) -> Operand {
        let last = self.last(to, exclusive);
        let some = self.cx.b.icmp(Cmp::Le, from, last);
        let empty_least = self.cx.b.icmp(Cmp::Eq, to, Operand::I64(i64::MIN));
        let empty_least = self.cx.b.bool(Op::And, &[empty_least, exclusive]);
        let not_least = self.cx.b.bool(Op::Not, &[empty_least]);
        let some = self.cx.b.bool(Op::And, &[some, not_least]);
        let site = self.cx.site(Trap::IntegerOverflow("size"), vec![]);
        let count = self.cx.b.temp(Scalar::I64);
        self.cx.b.set(count, Operand::I64(0));
        self.cx.b.when(some, |b| {
            let span = b.checked(crate::ir::CheckedOp::Sub, last, from, site);
            let n = b.checked(crate::ir::CheckedOp::Add, span, Operand::I64(1), site);
            b.set(count, n);
        });
        Operand::Var(count)
    }
}
