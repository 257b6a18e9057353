//! Strings in lowering: words, bytes, views.
//!
//! A String is one word ([`crate::types::StrWord`]): the offset of its bytes in the one column of all bytes, their
//! number, their encoding, and whether the kernel made it. A part of a String is a view of the same bytes. The
//! program's literals come first in the column. A word that the kernel did not make stands for the host's own object. A
//! word that it made becomes a new String when the section ends.
//!
//! Here: the primitives over which the prelude writes String's methods. Not here: any of those methods.

use super::body::Body;
use super::calls::Answer;
use super::compare::Asker;
use super::numbers;
use super::value::Val;
use crate::infer::builtins::{Builtin, Primitive};
use crate::infer::calls::Literal;
use crate::ir::{Cmp, New, Op, Operand, Part, Piece, Scalar, Space, Trap};
use crate::types::{Atom, Encoding, Repr, StrWord, Tag};
use std::sync::Arc;

impl Body<'_, '_> {
    /// Another builtin of Strings.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn string_builtin(&mut self, builtin: Builtin, asker: Asker, first: Option<(Atom, Val)>) -> Answer {
        if let Builtin::StrRefuse(message) = builtin {
            let error = self.error(asker.span, message);
            self.trap(Trap::refusal(error.to_string()), None);
            return Ok(None);
        }
        let Val::Str(word) = asker.val else { return Ok(None) };
        Ok(match (builtin, first) {
            (Builtin::StrBytes, _) => Some(Val::Int(self.string_length(word))),
            (Builtin::StrInterned, _) => {
                let host = self.cx.b.i64(Op::And, &[word, Operand::I64(!StrWord::MADE as i64)]);
                Some(Val::Str(self.cx.b.i64(Op::Or, &[host, Operand::I64(StrWord::FROZEN as i64)])))
            }
            (Builtin::AsText, Some((_, val @ Val::Str(_)))) => Some(val),
            (Builtin::AsText, Some((_, val))) => {
                numbers::describe(&mut self.cx, "TypeError", "no implicit conversion of ", val, " into String");
                None
            }
            _ => None,
        })
    }

    /// A primitive of Strings.
    ///
    /// # Errors
    /// As [`Body::eval`].
    pub fn string_primitive(
        &mut self,
        primitive: Primitive,
        asker: Asker,
        args: &[(Atom, Val)],
        literal: Option<&Literal>,
    ) -> Answer {
        let first = args.first().map(|a| a.1);
        if let (Primitive::NewText, Some(Val::Int(length))) = (primitive, first) {
            return Ok(Some(Val::Str(self.new_string(length))));
        }
        let Val::Str(word) = asker.val else { return Ok(None) };
        Ok(match (primitive, first) {
            (Primitive::Byte, Some(Val::Int(index))) => {
                let column = self.t.bytes();
                let row = self.string_row(word, index);
                let byte = self.cx.b.load(Scalar::I32, column, row);
                Some(Val::Int(self.cx.b.i64(Op::Widen, &[byte])))
            }
            (Primitive::FirstByte, _) => Some(Val::Int(self.cx.b.i64(Op::UShr, &[word, Operand::I64(32)]))),
            (Primitive::View, Some(Val::Int(from))) => {
                let Some((_, Val::Int(length))) = args.get(1) else { return Ok(None) };
                let _ = self.t.bytes();
                let b = &mut self.cx.b;
                let kept = Operand::I64((0xffff_ffff_0000_0000_u64 | 3 << StrWord::ENCODING_SHIFT) as i64);
                let start = b.i64(Op::And, &[word, kept]);
                let moved = b.i64(Op::Shl, &[from, Operand::I64(32)]);
                let start = b.i64(Op::Add, &[start, moved]);
                let marked = b.i64(Op::Or, &[start, Operand::I64(StrWord::MADE as i64)]);
                Some(Val::Str(b.i64(Op::Or, &[marked, *length])))
            }
            (Primitive::SetByte, Some(Val::Int(index))) => {
                let Some((_, Val::Int(byte))) = args.get(1) else { return Ok(None) };
                let column = self.t.bytes();
                let row = self.string_row(word, index);
                let byte = self.cx.b.op(Scalar::I32, Op::Narrow, &[*byte]);
                self.t.columns[column.index()].written = true;
                self.cx.b.store(column, row, byte);
                Some(Val::NIL)
            }
            (Primitive::Coded, Some(Val::Int(length))) => {
                let Some((_, Val::Int(code))) = args.get(1) else { return Ok(None) };
                let _ = self.t.bytes();
                let b = &mut self.cx.b;
                let start = b.i64(Op::And, &[word, Operand::I64(0xffff_ffff_0000_0000_u64 as i64)]);
                let code = b.i64(Op::Shl, &[*code, Operand::I64(StrWord::ENCODING_SHIFT.into())]);
                let parts = b.i64(Op::Or, &[start, code]);
                let marked = b.i64(Op::Or, &[parts, Operand::I64(StrWord::MADE as i64)]);
                Some(Val::Str(b.i64(Op::Or, &[marked, length])))
            }
            (Primitive::Code, _) => Some(Val::Int(self.string_encoding(word))),
            (Primitive::AsFrozen, _) => {
                Some(Val::Str(self.cx.b.i64(Op::Or, &[word, Operand::I64(StrWord::FROZEN as i64)])))
            }
            (Primitive::IsSingle, _) => {
                let encoding = self.string_encoding(word);
                Some(Val::Bool(self.cx.b.icmp(Cmp::Ne, encoding, Operand::I64(Encoding::Utf8 as i64))))
            }
            (Primitive::Encoding, _) => {
                let encoding = self.string_encoding(word);
                let ascii = self.cx.b.icmp(Cmp::Eq, encoding, Operand::I64(Encoding::Ascii as i64));
                Some(Val::Int(self.cx.b.select(Scalar::I64, ascii, Operand::I64(Encoding::Utf8 as i64), encoding)))
            }
            (Primitive::ArgumentError, _) => {
                let message = match literal {
                    Some(Literal::Sym(message)) => message.to_string(),
                    _ => String::new(),
                };
                self.trap(Trap::Raise { class: "ArgumentError", message }, None);
                None
            }
            (Primitive::NoNumber, _) => {
                let function = match literal {
                    Some(Literal::Sym(name)) => name.to_string(),
                    _ => String::new(),
                };
                if let Some(class) = self.an.world.class_named("ArgumentError") {
                    let before = Part::Text(format!("invalid value for {function}: "));
                    let message = Some(Piece::Text(vec![before, Part::Inspect(0)]));
                    let name = self.an.class(class).name;
                    let new = New { class, name, args: None, keywords: vec![], message };
                    let (repr, words) = self.trap_operand(asker.val);
                    let site = self.cx.site(Trap::New(Arc::new(new)), vec![repr]);
                    self.cx.b.trap(site, words);
                }
                None
            }
            _ => None,
        })
    }

    /// A String of bytes that are to be written. Its bytes stay until the section ends.
    fn new_string(&mut self, length: Operand) -> Operand {
        let column = self.t.bytes();
        self.t.columns[column.index()].written = true;
        let heap = self.t.heap(Space::Bytes, false);
        let message = format!("kernels make Strings of up to {} bytes", StrWord::MAX_BYTES);
        let long = self.cx.b.icmp(Cmp::Gt, length, Operand::I64(StrWord::MAX_BYTES as i64));
        let site = self.cx.site(Trap::refusal(message), Vec::<Repr>::new());
        self.cx.b.trap_if(long, site, vec![]);
        let site = self.cx.site(Trap::Grow(heap), vec![Repr::Int]);
        let offset = self.cx.b.alloc(Scalar::I64, heap, length, site);
        let b = &mut self.cx.b;
        let start = b.i64(Op::Shl, &[offset, Operand::I64(32)]);
        let kind = StrWord::new(0, 0, Encoding::Ascii, true).0;
        let start = b.i64(Op::Or, &[start, Operand::I64(kind as i64)]);
        b.i64(Op::Or, &[start, length])
    }

    fn string_length(&mut self, word: Operand) -> Operand {
        self.cx.b.i64(Op::And, &[word, Operand::I64(StrWord::MAX_BYTES as i64)])
    }

    fn string_encoding(&mut self, word: Operand) -> Operand {
        let low = self.cx.b.i64(Op::UShr, &[word, Operand::I64(StrWord::ENCODING_SHIFT.into())]);
        self.cx.b.i64(Op::And, &[low, Operand::I64(3)])
    }

    fn string_row(&mut self, word: Operand, index: Operand) -> Operand {
        let offset = self.cx.b.i64(Op::UShr, &[word, Operand::I64(32)]);
        self.cx.b.i64(Op::Add, &[offset, index])
    }

    /// Whether two are the same String. Two that the kernel made from the same bytes cannot be distinguished.
    pub fn same_string(&mut self, x: Operand, y: Operand) -> Val {
        let same = self.cx.b.icmp(Cmp::Eq, x, y);
        let made = self.cx.b.i64(Op::And, &[x, Operand::I64(StrWord::MADE as i64)]);
        let made = self.cx.b.icmp(Cmp::Ne, made, Operand::I64(0));
        let unknown = self.cx.b.bool(Op::And, &[same, made]);
        let message = "kernels do not know the identity of Strings that they made".to_string();
        let site = self.cx.site(Trap::refusal(message), Vec::<Repr>::new());
        self.cx.b.trap_if(unknown, site, vec![]);
        Val::Bool(same)
    }

    /// The hash of a Hash's key that is not a String, as in [`crate::world::hashes::Key::hash`].
    pub fn key_hash(&mut self, key: Val) -> Val {
        let b = &mut self.cx.b;
        let (tag, payload) = match key {
            Val::Float(f) => {
                let zero = b.fcmp(Cmp::Eq, f, Operand::float(0.0));
                let bits = b.i64(Op::FloatBits, &[f]);
                (Operand::I32(Tag::FLOAT), b.select(Scalar::I64, zero, Operand::I64(0), bits))
            }
            Val::Int(_) | Val::Sym(_) | Val::Bool(_) | Val::Unit(_) => key.tagged(b),
            // it is not a key of any Hash that kernels know
            _ => return Val::int(0),
        };
        let payload = match key {
            Val::Unit(crate::types::Unit::True) => Operand::I64(1),
            Val::Bool(truth) => b.select(Scalar::I64, truth, Operand::I64(1), Operand::I64(0)),
            _ => payload,
        };
        let tag = b.i64(Op::Widen, &[tag]);
        let mixed = b.i64(Op::Xor, &[payload, tag]);
        let mixed = b.i64(Op::Mul, &[mixed, Operand::I64(crate::world::hashes::FACTOR as i64)]);
        Val::Int(b.i64(Op::UShr, &[mixed, Operand::I64(32)]))
    }
}
