//! Numbers, strings and symbols.

use super::{Lower, refuse};
use crate::diagnostic::Span;
use crate::regexp::{Options, RegexpSource};
use crate::syntax::ast::{ConstBase, ConstPath, Kind, Node, PRIMITIVE};
use lib_ruby_parser::{Node as Ruby, nodes};

/// The pieces that the prelude's greatest `__join` appends at once.
const MAX_JOINED: usize = 4;

impl Lower<'_> {
    pub(super) fn literal(&mut self, node: &Ruby, span: Span) -> Kind {
        match node {
            // The parser's text of a number loses the order of sign and prefix, so this reads the source.
            Ruby::Int(_) => integer(self.source.slice(span)),
            Ruby::Float(_) => float(self.source.slice(span)),
            Ruby::Complex(_) => self.imaginary(self.source.slice(span).trim_end_matches('i'), span),
            Ruby::Rational(_) => self.rational(self.source.slice(span).trim_end_matches('r'), span),
            Ruby::Str(_) | Ruby::Dstr(_) | Ruby::Heredoc(_) if self.source.foreign_strings => refuse::FOREIGN_STRING,
            Ruby::Str(s) => Kind::Str(s.value.raw.as_slice().into()),
            Ruby::Dstr(s) => self.string(&s.parts, span),
            Ruby::Heredoc(s) if self.source.slice(span).starts_with("<<~") && joined(&s.parts).is_none() => {
                match self.indented(s) {
                    Some(parts) => self.string(&parts, span),
                    None => refuse::INDENTED_HEREDOC,
                }
            }
            Ruby::Heredoc(s) => self.string(&s.parts, span),
            Ruby::Sym(s) => symbol(&s.name.raw),
            Ruby::Dsym(s) => match joined(&s.parts) {
                Some(bytes) => symbol(&bytes),
                None => refuse::INTERPOLATED_SYMBOL,
            },
            Ruby::File(_) => Kind::Str(self.source.path.as_bytes().into()),
            Ruby::Line(_) => Kind::Int(self.source.line_of(span.start).into()),
            other => refuse::node(other),
        }
    }

    /// `2i`, without the `i`.
    fn imaginary(&mut self, text: &str, span: Span) -> Kind {
        let part = match text.as_bytes() {
            [.., b'r'] => return refuse::RATIONAL_PART,
            _ if text.contains('.') => float(text),
            _ => integer(text),
        };
        self.value("Complex", [Kind::Int(0), part], span)
    }

    /// `3r` or `1.5r`, without the `r`.
    fn rational(&mut self, text: &str, span: Span) -> Kind {
        let (digits, denominator) = match text.split_once('.') {
            Some((whole, fraction)) => {
                let places = fraction.bytes().filter(u8::is_ascii_digit).count();
                let denominator = u32::try_from(places).ok().and_then(|places| 10i64.checked_pow(places));
                let digits: String = format!("{whole}{fraction}").chars().filter(|c| *c != '_').collect();
                (digits.parse().map_or(refuse::NUMBER, Kind::Int), denominator)
            }
            None => (integer(text), Some(1)),
        };
        let (Kind::Int(numerator), Some(denominator)) = (digits, denominator) else { return refuse::NUMBER };
        let (mut a, mut b) = (numerator.unsigned_abs(), denominator.unsigned_abs());
        while b != 0 {
            (a, b) = (b, a % b);
        }
        // fits into 64 bits: it divides the denominator
        let divisor = i64::try_from(a).unwrap_or(1);
        self.value("Rational", [Kind::Int(numerator / divisor), Kind::Int(denominator / divisor)], span)
    }

    /// An object of a class whose objects consist of their parts alone.
    fn value(&mut self, class: &str, parts: [Kind; 2], span: Span) -> Kind {
        let parts = parts.into_iter().map(|part| self.make(span, part)).collect();
        let class = ConstPath { base: ConstBase::Top, name: class.into() };
        let class = self.make(span, Kind::Const(class));
        self.send(class, &format!("{PRIMITIVE}make"), parts, span).kind
    }

    /// `/…/` and `%r{…}`
    pub(super) fn regexp(&mut self, regexp: &nodes::Regexp) -> Kind {
        if joined(&regexp.parts).is_none() {
            return refuse::INTERPOLATED_REGEXP;
        }
        // the parser's text of a part is not always as it is written
        let (from, to) = (self.span(&regexp.begin_l).end, self.span(&regexp.end_l).start);
        let text = self.source.slice(Span { start: from, end: to });
        let mut options = Options::default();
        if let Some(Ruby::RegOpt(letters)) = regexp.options.as_deref() {
            for letter in letters.options.iter().flat_map(|letters| letters.chars()) {
                match letter {
                    'i' => options.ignores_case = true,
                    'x' => options.extended = true,
                    'm' => options.dot_all = true,
                    'o' => {}
                    _ => return refuse::REGEXP_OPTION,
                }
            }
        }
        if self.source.foreign_strings && !text.is_ascii() {
            return refuse::REGEXP_OPTION;
        }
        Kind::Regexp(RegexpSource { text: text.into(), options })
    }

    fn string(&mut self, parts: &[Ruby], span: Span) -> Kind {
        match joined(parts) {
            Some(bytes) => Kind::Str(bytes.into()),
            None if self.raises => {
                let text = self.interpolated(parts, span);
                Kind::DStr(Box::new(self.make(span, text)))
            }
            None => self.interpolated(parts, span),
        }
    }

    /// `"a#{x}b"`, as `"a".__join3(x.__to_text, "b")`. What comes first has a say in the encoding of the String.
    fn interpolated(&mut self, parts: &[Ruby], span: Span) -> Kind {
        let flat = if self.source.prism { parts.iter().collect() } else { flattened(parts) };
        let begins_with_value = flat.len() > 1 && (self.source.prism || flat.iter().any(|part| has_text(part)));
        let mut pieces = Vec::new();
        for part in flat {
            let first = pieces.is_empty();
            match joined(std::slice::from_ref(part)) {
                Some(bytes) if bytes.is_empty() && !(first && self.source.prism) => {}
                Some(bytes) => pieces.push(self.make(span, Kind::Str(bytes.into()))),
                None => {
                    if first && !begins_with_value {
                        pieces.push(self.make(span, Kind::Str([].into())));
                    }
                    let value = self.node(part);
                    let at = value.span;
                    pieces.push(self.send(value, &format!("{PRIMITIVE}to_text"), Vec::new(), at));
                }
            }
        }
        self.joined_pieces(pieces, span)
    }

    /// One String of several.
    pub(super) fn joined_pieces(&mut self, pieces: Vec<Node>, span: Span) -> Kind {
        let mut pieces = pieces.into_iter();
        let mut text = pieces.next().unwrap_or_else(|| self.make(span, Kind::Str([].into())));
        loop {
            let next: Vec<_> = pieces.by_ref().take(MAX_JOINED).collect();
            if next.is_empty() {
                return text.kind;
            }
            text = self.send(text, &format!("{PRIMITIVE}join{}", next.len()), next, span);
        }
    }
}

/// The bytes of literals that stand side by side or span lines. None: one of them is interpolated.
pub(super) fn joined(parts: &[Ruby]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    for part in parts {
        match part {
            Ruby::Str(s) => bytes.extend_from_slice(&s.value.raw),
            Ruby::Dstr(s) => bytes.extend(joined(&s.parts)?),
            Ruby::Heredoc(s) => bytes.extend(joined(&s.parts)?),
            _ => return None,
        }
    }
    Some(bytes)
}

/// The parts of an interpolated String, and of Strings beside it (`"a" "#{b}"`), in a row.
fn flattened(parts: &[Ruby]) -> Vec<&Ruby> {
    fn inner(part: &Ruby) -> Vec<&Ruby> {
        if let Ruby::Dstr(s) = part { flattened(&s.parts) } else { vec![part] }
    }
    parts.iter().flat_map(inner).collect()
}

/// Whether a part is text that is known here.
fn has_text(part: &Ruby) -> bool {
    match part {
        Ruby::Str(s) => !s.value.raw.is_empty(),
        Ruby::Begin(begin) => matches!(&*begin.statements, [Ruby::Str(_)]),
        _ => false,
    }
}

/// A regular expression, perhaps in parentheses.
pub(super) fn regexp_in(node: &Ruby) -> Option<&nodes::Regexp> {
    match node {
        Ruby::Regexp(regexp) => Some(regexp),
        Ruby::Begin(begin) => match &*begin.statements {
            [one] => regexp_in(one),
            _ => None,
        },
        _ => None,
    }
}

fn symbol(bytes: &[u8]) -> Kind {
    match std::str::from_utf8(bytes) {
        Ok(name) => Kind::Sym(name.into()),
        Err(_) => refuse::BINARY_SYMBOL,
    }
}

/// An Integer literal: `1_000`, `-0x_ff`, `0b101`, `0o17`, `017`, `0d19`.
fn integer(text: &str) -> Kind {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let digits: String = unsigned.chars().filter(|c| *c != '_' && !c.is_whitespace()).collect();
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0d") => (10, &lower[2..]),
        _ if lower.len() > 1 && lower.starts_with('0') => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    let sign = if negative { "-" } else { "" };
    match i64::from_str_radix(&format!("{sign}{digits}"), radix) {
        Ok(value) => Kind::Int(value),
        Err(_) => Kind::BigInt(format!("{sign}{}", decimal(digits, radix))),
    }
}

/// Converts digits of any radix to decimal digits, for literals beyond 64 bits.
fn decimal(digits: &str, radix: u32) -> String {
    // Nine decimal digits per limb, least significant first.
    let mut limbs = vec![0u64];
    for digit in digits.chars().filter_map(|c| c.to_digit(radix)) {
        let mut carry = u64::from(digit);
        for limb in &mut limbs {
            let value = *limb * u64::from(radix) + carry;
            *limb = value % 1_000_000_000;
            carry = value / 1_000_000_000;
        }
        if carry > 0 {
            limbs.push(carry);
        }
    }
    let mut text = limbs.last().map_or_else(String::new, u64::to_string);
    for limb in limbs.iter().rev().skip(1) {
        text.push_str(&format!("{limb:09}"));
    }
    text
}

/// A Float literal; beyond the largest Float it is Infinity, as in Ruby.
fn float(text: &str) -> Kind {
    let digits: String = text.chars().filter(|c| *c != '_' && !c.is_whitespace()).collect();
    digits.parse().map_or(refuse::NUMBER, Kind::Float)
}
