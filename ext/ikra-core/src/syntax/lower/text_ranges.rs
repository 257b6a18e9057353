//! `"a".."f"` where it is asked at once: in `when`, by `===`, `cover?` and `include?`, and for its characters.
//!
//! Here: comparisons with both ends, and the array of the characters, in place of the Range. Kernels have no Ranges of
//! Strings. Where the program redefines the Range's method, the call stays as it is, and is refused.

use super::Lower;
use super::calls::Head;
use crate::diagnostic::Span;
use crate::syntax::ast::{Kind, LocalId, Node};
use lib_ruby_parser::Node as Ruby;

/// A Range of two literal Strings.
pub(super) struct TextRange<'a> {
    from: &'a [u8],
    to: &'a [u8],
    exclusive: bool,
}

/// Methods that give the same for a Range as for the array of its elements, with any arguments.
const OF_LIST: &[&str] = &[
    "all?",
    "any?",
    "collect",
    "each_cons",
    "each_slice",
    "each_with_object",
    "entries",
    "filter",
    "filter_map",
    "find",
    "flat_map",
    "group_by",
    "inject",
    "map",
    "none?",
    "partition",
    "reduce",
    "reject",
    "select",
    "take",
    "to_a",
    "to_h",
    "zip",
];

pub(super) fn text_range(node: &Ruby) -> Option<TextRange<'_>> {
    let (left, right, exclusive) = match node {
        Ruby::Begin(b) if b.statements.len() == 1 => return text_range(&b.statements[0]),
        Ruby::Irange(r) => (r.left.as_deref()?, r.right.as_deref()?, false),
        Ruby::Erange(r) => (r.left.as_deref()?, r.right.as_deref()?, true),
        _ => return None,
    };
    match (left, right) {
        (Ruby::Str(from), Ruby::Str(to)) => Some(TextRange { from: &from.value.raw, to: &to.value.raw, exclusive }),
        _ => None,
    }
}

impl TextRange<'_> {
    /// Both ends, if they are single characters of ASCII.
    fn characters(&self) -> Option<(u8, u8)> {
        match (self.from, self.to) {
            ([from], [to]) if from.is_ascii() && to.is_ascii() => Some((*from, *to)),
            _ => None,
        }
    }
}

impl Lower<'_> {
    /// The test of a `when` for the value of a variable.
    pub(super) fn when_in_text_range(&mut self, range: &TextRange<'_>, subject: LocalId, span: Span) -> Node {
        let value = self.local_node(subject, span);
        let test = self.between(value, range, span);
        let test = self.own_range("===", test, span, |s| {
            let whole = s.text_range_node(range, span);
            let value = s.local_node(subject, span);
            s.send(whole, "===", vec![value], span)
        });
        let test = self.make(span, Kind::Seq(vec![test]));
        self.make(span, Kind::Splat(Box::new(test)))
    }

    /// A call on such a Range. None: it is no such call.
    pub(super) fn on_text_range(
        &mut self,
        recv: Option<&Ruby>,
        head: &Head<'_>,
        args: &[Ruby],
        span: Span,
    ) -> Option<Node> {
        let range = text_range(recv?)?;
        if head.safe || self.source.foreign_strings {
            return None;
        }
        match (head.name, args) {
            ("===" | "cover?" | "include?" | "member?", [arg]) if is_plain(arg) => {
                let asks_each = matches!(head.name, "include?" | "member?");
                if asks_each && range.characters().is_none() {
                    return None;
                }
                let arg = self.node(arg);
                let (keep, local) = self.keep(arg);
                let value = self.local_node(local, span);
                let test = match asks_each {
                    true => self.call_with_ends(value, "%__among_characters", &range, span),
                    false => self.between(value, &range, span),
                };
                let name = head.name.to_owned();
                let test = self.own_range(&name, test, span, |s| {
                    let whole = s.text_range_node(&range, span);
                    let value = s.local_node(local, span);
                    s.send(whole, &name, vec![value], span)
                });
                Some(self.make(span, Kind::Seq(vec![keep, test])))
            }
            _ => None,
        }
    }

    /// The characters of such a Range as an array, for a method that does the same with it.
    pub(super) fn characters(&mut self, recv: Option<&Ruby>, head: &Head<'_>, span: Span) -> Option<Node> {
        let range = text_range(recv?)?;
        if head.safe || self.source.foreign_strings || !OF_LIST.contains(&head.name) {
            return None;
        }
        let (from, to) = range.characters()?;
        let end = u16::from(to) + u16::from(!range.exclusive);
        let mut items = Vec::new();
        for byte in u16::from(from)..end {
            let text = self.make(span, Kind::Str([byte as u8].into()));
            items.push(self.send(text, "%__copy", Vec::new(), span));
        }
        let list = self.make(span, Kind::Array(items));
        let name = head.name.to_owned();
        Some(self.own_range(&name, list, span, |s| s.text_range_node(&range, span)))
    }

    fn between(&mut self, value: Node, range: &TextRange<'_>, span: Span) -> Node {
        self.call_with_ends(value, "%__between_texts", range, span)
    }

    fn call_with_ends(&mut self, value: Node, name: &str, range: &TextRange<'_>, span: Span) -> Node {
        let (from, to) = (self.make(span, Kind::Str(range.from.into())), self.make(span, Kind::Str(range.to.into())));
        let exclusive = self.make(span, if range.exclusive { Kind::True } else { Kind::False });
        self.send(value, name, vec![from, to, exclusive], span)
    }

    /// What is meant where a Range's method is Ruby's own, and the call as it is otherwise.
    fn own_range(&mut self, name: &str, meant: Node, span: Span, written: impl FnOnce(&mut Self) -> Node) -> Node {
        let (zero, one) = (self.make(span, Kind::Int(0)), self.make(span, Kind::Int(1)));
        let range = Kind::Range { from: Some(Box::new(zero)), to: Some(Box::new(one)), exclusive: false };
        let range = self.make(span, range);
        let name = self.make(span, Kind::Sym(name.into()));
        let cond = Box::new(self.send(range, "%__own?", vec![name], span));
        let otherwise = Box::new(written(self));
        self.make(span, Kind::If { cond, then: Box::new(meant), otherwise })
    }

    fn text_range_node(&mut self, range: &TextRange<'_>, span: Span) -> Node {
        let (from, to) = (self.make(span, Kind::Str(range.from.into())), self.make(span, Kind::Str(range.to.into())));
        let exclusive = range.exclusive;
        self.make(span, Kind::Range { from: Some(Box::new(from)), to: Some(Box::new(to)), exclusive })
    }
}

fn is_plain(arg: &Ruby) -> bool {
    !matches!(arg, Ruby::Splat(_) | Ruby::Kwargs(_) | Ruby::BlockPass(_) | Ruby::ForwardedArgs(_))
}
