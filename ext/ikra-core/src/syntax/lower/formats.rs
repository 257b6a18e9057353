//! `format("…", x)`, `sprintf` and `"…" % x` with a literal.
//!
//! Here: the directives of a literal, and the call as a joined String of pieces, one for each directive. The pieces ask
//! the prelude's methods (`prelude/float.rb`). Not here: types. If the name means a method of the program's own, the
//! call stays as it is, which inference decides. Directives that are not known leave the call as it is, too, and then
//! it is refused.

use super::calls::Head;
use super::{Lower, refuse};
use crate::diagnostic::Span;
use crate::syntax::ast::{Kind, Node};
use lib_ruby_parser::{Node as Ruby, nodes};

const MINUS: i64 = 1;
const ZERO: i64 = 2;
const PLUS: i64 = 4;
const SPACE: i64 = 8;
/// Letters among digits are capitals.
const CAPITALS: i64 = 16;
/// The widest field, and the most places behind the point.
const MAX_WIDTH: i64 = 500;
const MAX_PLACES: i64 = 100;

/// A part of a format.
#[derive(Debug, PartialEq)]
enum Piece {
    Text(Vec<u8>),
    /// The prelude's method, its arguments, and the name of the value, if it has one (`%<name>d`, `%{name}`).
    Directive(&'static str, Vec<i64>, Option<String>),
}

impl Lower<'_> {
    /// None: it is no such call.
    pub(super) fn formatted(
        &mut self,
        recv: Option<&Ruby>,
        head: &Head<'_>,
        args: &[Ruby],
        span: Span,
    ) -> Option<Kind> {
        if head.safe || self.source.foreign_strings {
            return None;
        }
        let (text, given, sole) = match (recv, head.name, args) {
            (None, "format" | "sprintf", [Ruby::Str(text), given @ ..]) => (text, given, false),
            (Some(Ruby::Str(text)), "%", given @ [Ruby::Hash(_)]) => (text, given, false),
            (Some(Ruby::Str(text)), "%", [Ruby::Array(list)]) => (text, &list.elements[..], false),
            (Some(Ruby::Str(text)), "%", given @ [_]) => (text, given, true),
            _ => return None,
        };
        let plain = |arg: &Ruby| {
            !matches!(
                arg,
                Ruby::Splat(_) | Ruby::Kwargs(_) | Ruby::BlockPass(_) | Ruby::Hash(_) | Ruby::ForwardedArgs(_)
            )
        };
        let mut pieces = pieces(&text.value.raw)?;
        let mut named = Vec::new();
        let (given, names): (Vec<&Ruby>, bool) = match given {
            [Ruby::Kwargs(nodes::Kwargs { pairs, .. }) | Ruby::Hash(nodes::Hash { pairs, .. })] => {
                let mut values = Vec::new();
                for pair in pairs {
                    let Ruby::Pair(nodes::Pair { key, value, .. }) = pair else { return None };
                    let Ruby::Sym(key) = &**key else { return None };
                    named.push(key.name.to_string_lossy());
                    values.push(&**value);
                }
                (values, true)
            }
            given => (given.iter().collect(), false),
        };
        // the place of each directive's value
        let mut places = Vec::new();
        for piece in &mut pieces {
            let Piece::Directive(.., name) = piece else { continue };
            places.push(match name {
                Some(name) => named.iter().rposition(|key| key == name)?,
                None if names => return None,
                None => places.len(),
            });
        }
        if !given.iter().all(|arg| plain(arg)) || places.iter().any(|place| *place >= given.len()) {
            return None;
        }
        let bytes = text.value.raw.clone();
        let mut all = Vec::new();
        let mut locals = Vec::new();
        for arg in given {
            let value = self.node(arg);
            let (keep, local) = self.keep(value);
            all.push(keep);
            locals.push(local);
        }
        let literal = self.make(span, Kind::Str(bytes.as_slice().into()));
        let values = locals.iter().map(|local| self.local_node(*local, span)).collect::<Vec<_>>();
        let (asks, otherwise) = match recv {
            None => {
                let name = self.make(span, Kind::Sym(head.name.into()));
                let asks = self.send_self("%__own?", vec![name], span);
                let args = std::iter::once(literal).chain(values).collect();
                let own = match names {
                    true => self.make(span, refuse::NAMED_FORMAT),
                    false => self.send_self(head.name, args, span),
                };
                (asks, own)
            }
            Some(_) => {
                let again = self.make(span, Kind::Str(bytes.as_slice().into()));
                let name = self.make(span, Kind::Sym("%".into()));
                let asks = self.send(again, "%__own?", vec![name], span);
                let arg = match sole {
                    true => values,
                    false => vec![self.make(span, Kind::Array(values))],
                };
                let own = match names {
                    true => self.make(span, refuse::NAMED_FORMAT),
                    false => self.send(literal, "%", arg, span),
                };
                (asks, own)
            }
        };
        let mut places = places.into_iter();
        let mut joined = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Text(bytes) => joined.push(self.make(span, Kind::Str(bytes.into()))),
                Piece::Directive(method, numbers, _) => {
                    if joined.is_empty() {
                        joined.push(self.make(span, Kind::Str([].into())));
                    }
                    let place = places.next().expect("they were counted");
                    let mut value = self.local_node(locals[place], span);
                    if sole {
                        value = self.send(value, "%__format_sole", Vec::new(), span);
                    }
                    let numbers = numbers.into_iter().map(|number| self.make(span, Kind::Int(number))).collect();
                    joined.push(self.send(value, method, numbers, span));
                }
            }
        }
        if joined.len() == 1 {
            // a new String, not the literal
            joined.push(self.make(span, Kind::Str([].into())));
        }
        let then = self.joined_pieces(joined, span);
        let then = Box::new(self.make(span, then));
        let choice = Kind::If { cond: Box::new(asks), then, otherwise: Box::new(otherwise) };
        all.push(self.make(span, choice));
        Some(Kind::Seq(all))
    }

    /// A call on self.
    fn send_self(&mut self, name: &str, args: Vec<Node>, span: Span) -> Node {
        let receiver = self.make(span, Kind::SelfRef);
        let mut node = self.send(receiver, name, args, span);
        if let Kind::Call(call) = &mut node.kind {
            call.receiver = None;
        }
        node
    }
}

/// The parts of a format. None: it has others than kernels know.
fn pieces(format: &[u8]) -> Option<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut text = Vec::new();
    let mut rest = format;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            text.push(*first);
            continue;
        }
        if let Some(after) = rest.strip_prefix(b"%") {
            text.push(b'%');
            rest = after;
            continue;
        }
        let (directive, after) = directive(rest)?;
        rest = after;
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(directive);
    }
    if !text.is_empty() || pieces.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Some(pieces)
}

/// A directive behind its `%`, and what follows it.
fn directive(mut rest: &[u8]) -> Option<(Piece, &[u8])> {
    let mut flags = 0;
    let mut name = None;
    loop {
        flags |= match rest.first()? {
            b'-' => MINUS,
            b'0' => ZERO,
            b'+' => PLUS,
            b' ' => SPACE,
            b'<' if name.is_none() => {
                name = Some(named(&mut rest, b'>')?);
                continue;
            }
            _ => break,
        };
        rest = &rest[1..];
    }
    let width = number(&mut rest).unwrap_or(0);
    if rest.first() == Some(&b'<') && name.is_none() {
        name = Some(named(&mut rest, b'>')?);
    }
    let places = match rest.strip_prefix(b".") {
        Some(after) => {
            rest = after;
            Some(number(&mut rest).unwrap_or(0))
        }
        None => None,
    };
    if width > MAX_WIDTH || places.is_some_and(|places| places > MAX_PLACES) {
        return None;
    }
    if rest.first() == Some(&b'{') && name.is_none() {
        name = Some(named(&mut rest, b'}')?);
        return Some((Piece::Directive("%__format_text", vec![places.unwrap_or(-1), flags, width], name), rest));
    }
    let (letter, after) = rest.split_first()?;
    let whole = |radix, more| places.is_none().then(|| vec![radix, flags | more, width]);
    let (method, numbers) = match letter {
        b'd' | b'i' | b'u' => ("%__format_int", whole(10, 0)?),
        b'x' => ("%__format_int", whole(16, 0)?),
        b'X' => ("%__format_int", whole(16, CAPITALS)?),
        b'o' => ("%__format_int", whole(8, 0)?),
        b'b' => ("%__format_int", whole(2, 0)?),
        b'f' => ("%__format_float", vec![places.unwrap_or(6), flags, width]),
        b's' => ("%__format_text", vec![places.unwrap_or(-1), flags, width]),
        b'p' => ("%__format_inspection", vec![places.unwrap_or(-1), flags, width]),
        b'c' if places.is_none() => ("%__format_char", vec![flags, width]),
        _ => return None,
    };
    Some((Piece::Directive(method, numbers, name), after))
}

/// A name between brackets, the first of which comes next.
fn named(rest: &mut &[u8], close: u8) -> Option<String> {
    let end = rest.iter().position(|byte| *byte == close)?;
    let name = std::str::from_utf8(&rest[1..end]).ok()?.to_owned();
    *rest = &rest[end + 1..];
    Some(name)
}

fn number(rest: &mut &[u8]) -> Option<i64> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, after) = rest.split_at(digits);
    *rest = after;
    (digits > 0).then(|| std::str::from_utf8(number).ok()?.parse().ok()).map(|number| number.unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_read() {
        let text = |text: &str| Piece::Text(text.into());
        assert_eq!(pieces(b""), Some(vec![text("")]));
        assert_eq!(pieces(b"50%%"), Some(vec![text("50%")]));
        let field = Piece::Directive("%__format_float", vec![2, MINUS | ZERO, 8], None);
        assert_eq!(pieces(b"a%-08.2fb"), Some(vec![text("a"), field, text("b")]));
        assert_eq!(pieces(b"%.s"), Some(vec![Piece::Directive("%__format_text", vec![0, 0, 0], None)]));
        let named = |flags, width| Piece::Directive("%__format_int", vec![10, flags, width], Some("ab".into()));
        assert_eq!(pieces(b"%<ab>-5d"), Some(vec![named(MINUS, 5)]));
        assert_eq!(pieces(b"%05<ab>d"), Some(vec![named(ZERO, 5)]));
        assert_eq!(
            pieces(b"%{ab}s"),
            Some(vec![Piece::Directive("%__format_text", vec![-1, 0, 0], Some("ab".into())), text("s")])
        );
        for unknown in [
            "%",
            "%5%",
            "%#x",
            "%*d",
            "%<a",
            "%<a>",
            "%{a",
            "%1$d",
            "%.3d",
            "%g",
            "%-",
            "%.200f",
            "%99999999999999999999d",
        ] {
            assert_eq!(pieces(unknown.as_bytes()), None, "{unknown}");
        }
    }
}
