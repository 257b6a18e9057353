//! Blocks that look at nothing but the words of a line, each word by itself.
//!
//! A word is a run of bytes without ASCII white space. Some blocks only split a line, or scan it for matches without
//! white space. What such a block gives for a line is what it gives for the line's words, one after the other. Then a
//! kernel may have one job for each word: no job has much more to do than others, and neighbours read neighbouring
//! bytes.
//!
//! Here: which blocks these are ([`WordWise::of`]). Not here: where the words of a text are, and whether methods are
//! Ruby's own, which the caller asks. Sections that draw random numbers or ask for their index are refused later.

use super::ast::{Arg, Block, Call, Kind, LocalId, Node, Origin, Pattern, Target, Unit, plain};
use super::visit;
use crate::regexp::RegexpSource;
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};

/// What makes a block's value for a line that for its words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordWise {
    /// Whether the block's value is the list of the words themselves. Of a block with an emitter: whether it emits a
    /// pair of each word itself and 1, and nothing else.
    pub splits: bool,
    /// Whether it strips a line, which takes away NUL, too.
    pub strips: bool,
    /// The methods of String and of Array that it calls, which must be Ruby's own.
    pub of_text: BTreeSet<String>,
    pub of_list: BTreeSet<String>,
    /// What it scans for. A match must have no white space, and depend on nothing beyond a word.
    pub pattern: Option<RegexpSource>,
}

impl WordWise {
    /// `emits`: the block has an emitter as its second parameter, and its value does not matter. None: the block may
    /// depend on more than each word.
    pub fn of(unit: &Unit, emits: bool) -> Option<Self> {
        let (line, emitter) = match (&unit.params.required[..], emits) {
            ([Pattern::Local(line)], false) => (*line, None),
            ([Pattern::Local(line), Pattern::Local(emitter)], true) => (*line, Some(*emitter)),
            _ => return None,
        };
        let mut own = BTreeSet::from([line]);
        own.extend((0..unit.locals.len()).map(LocalId::new).filter(|l| unit.locals[l.index()].origin == Origin::Own));
        let mut uses: HashMap<LocalId, usize> = HashMap::new();
        let mut other = !unit.params.plain() || unit.outer_block.is_some();
        visit::unit(unit, &mut |node| match &node.kind {
            Kind::Local(local) => *uses.entry(*local).or_default() += 1,
            Kind::Return(_) | Kind::Break(_) | Kind::Yield(_) | Kind::Super { .. } => other = true,
            Kind::MultiAssign { .. } | Kind::For { .. } | Kind::Spread { .. } => other = true,
            Kind::OpAssign { target: Target::Local(local, _), .. } if own.contains(local) => other = true,
            _ => {}
        });
        // the statements before the last one only name what the next one begins with
        let (mut named, mut last) = (HashMap::new(), &unit.body);
        if let Kind::Seq(statements) = &unit.body.kind {
            let (end, before) = statements.split_last()?;
            for statement in before {
                let Kind::Assign { target: Target::Local(local, _), value } = &statement.kind else { return None };
                named.insert(*local, &**value);
            }
            last = end;
        }
        let mut assigned = 0;
        visit::unit(unit, &mut |node| {
            let of_own = |target: &Target| matches!(target, Target::Local(local, _) if own.contains(local));
            assigned += usize::from(matches!(&node.kind, Kind::Assign { target, .. } if of_own(target)));
        });
        let once = own.iter().all(|local| uses.get(local) == Some(&1));
        if other || !once || assigned != named.len() {
            return None;
        }
        let mut found = Self::default();
        let reads = Reads { line, named, used: Cell::new(0) };
        found.splits = match emitter {
            Some(emitter) => found.visited(last, emitter, &reads)?,
            None => found.words(last, &reads)?,
        };
        // a name that is used elsewhere may stand for anything
        (reads.used.get() == reads.named.len()).then_some(found)
    }

    /// A line, perhaps in other letters or without its end. Whether its words are those of the line.
    fn text(&mut self, node: &Node, reads: &Reads<'_>) -> Option<bool> {
        let call = match &reads.resolved(node).kind {
            Kind::Local(local) => return (*local == reads.line).then_some(true),
            Kind::Call(call) => bare(call)?,
            _ => return None,
        };
        let name = plain(&call.name);
        let keeps = match name {
            "chomp" => true,
            "strip" | "lstrip" | "rstrip" => {
                self.strips = true;
                true
            }
            "downcase" | "upcase" | "swapcase" => false,
            _ => return None,
        };
        self.of_text.insert(name.into());
        Some(self.text(call.receiver.as_ref()?, reads)? && keeps)
    }

    /// A list that has what each word gives, one after the other. Whether that is the words.
    fn words(&mut self, node: &Node, reads: &Reads<'_>) -> Option<bool> {
        let Kind::Call(call) = &reads.resolved(node).kind else { return None };
        let (name, receiver) = (plain(&call.name), call.receiver.as_ref()?);
        match name {
            "split" | "scan" if call.block.is_none() && call.block_arg.is_none() => self.taken_apart(call, reads),
            "map" | "collect" | "select" | "filter" | "reject" | "filter_map" | "flat_map" | "collect_concat" => {
                self.by_itself(call)?;
                self.words(receiver, reads)?;
                Some(false)
            }
            "compact" => {
                self.of_list.insert(bare(call).map(|call| plain(&call.name).to_owned())?);
                self.words(receiver, reads)?;
                Some(false)
            }
            _ => None,
        }
    }

    /// A call that gives each of such values to a block. Whether these are the words, and the block only counts them.
    fn visited(&mut self, node: &Node, emitter: LocalId, reads: &Reads<'_>) -> Option<bool> {
        let Kind::Call(call) = &reads.resolved(node).kind else { return None };
        match plain(&call.name) {
            "scan" if call.block.is_some() => self.taken_apart(call, reads).map(|_| false),
            "each" => {
                self.by_itself(call)?;
                let words = self.words(call.receiver.as_ref()?, reads)?;
                Some(words && call.block.as_ref().is_some_and(|block| counts(block, emitter)))
            }
            _ => None,
        }
    }

    /// `split` or `scan` of a line.
    fn taken_apart(&mut self, call: &Call, reads: &Reads<'_>) -> Option<bool> {
        let name = plain(&call.name);
        let splits = match (name, &call.args[..]) {
            ("split", []) => true,
            ("split", [Arg::Positional(Node { kind: Kind::Str(by), .. })]) if **by == *b" " => true,
            ("scan", [Arg::Positional(Node { kind: Kind::Regexp(pattern), .. })]) => {
                self.pattern = Some(pattern.clone());
                false
            }
            _ => return None,
        };
        if call.safe || call.block_arg.is_some() {
            return None;
        }
        self.of_text.insert(name.into());
        Some(self.text(call.receiver.as_ref()?, reads)? && splits)
    }

    /// A call of an iterator whose block gets one value, and no other argument.
    fn by_itself(&mut self, call: &Call) -> Option<()> {
        let block = match (&call.block, &call.block_arg) {
            (Some(block), None) => !block.breaks,
            (None, Some(Node { kind: Kind::Sym(_), .. })) => true,
            _ => false,
        };
        self.of_list.insert(plain(&call.name).into());
        (block && call.args.is_empty() && !call.safe).then_some(())
    }
}

/// What names stand for in a block.
struct Reads<'a> {
    line: LocalId,
    named: HashMap<LocalId, &'a Node>,
    /// How many names were resolved.
    used: Cell<usize>,
}

impl<'a> Reads<'a> {
    fn resolved(&self, mut node: &'a Node) -> &'a Node {
        while let Kind::Local(local) = &node.kind
            && let Some(value) = self.named.get(local)
        {
            self.used.set(self.used.get() + 1);
            node = value;
        }
        node
    }
}

/// Whether all that a block with an emitter as its second parameter does is to emit a pair of the first one and 1.
pub fn counts_elements(unit: &Unit) -> bool {
    let [Pattern::Local(element), Pattern::Local(emitter)] = unit.params.required[..] else { return false };
    unit.params.plain() && unit.outer_block.is_none() && emits_one(&unit.body, element, emitter)
}

/// The same for a block within one that has the emitter.
fn counts(block: &Block, emitter: LocalId) -> bool {
    let [Pattern::Local(word)] = block.params.required[..] else { return false };
    block.params.plain() && emits_one(&block.body, word, emitter)
}

/// Whether a body only emits a pair of this variable and 1.
fn emits_one(body: &Node, element: LocalId, emitter: LocalId) -> bool {
    let Kind::Call(call) = &body.kind else { return false };
    let is = |node: &Node, local: LocalId| matches!(node.kind, Kind::Local(of) if of == local);
    let alone = call.block.is_none() && call.block_arg.is_none() && !call.safe && plain(&call.name) == "emit";
    let to_emitter = call.receiver.as_ref().is_some_and(|receiver| is(receiver, emitter));
    let pair = match &call.args[..] {
        [Arg::Positional(key), Arg::Positional(one)] => is(key, element) && matches!(one.kind, Kind::Int(1)),
        _ => false,
    };
    alone && to_emitter && pair
}

/// A call without arguments and block.
fn bare(call: &Call) -> Option<&Call> {
    (call.args.is_empty() && call.block.is_none() && call.block_arg.is_none() && !call.safe).then_some(call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use crate::syntax::parse_block;
    use std::sync::Arc;

    fn of(block: &str) -> Option<WordWise> {
        let source = Arc::new(Source::whole("words.rb", block, 1));
        let unit = parse_block(&source, &["seen", "limit"]).unwrap_or_else(|told| panic!("{told}"));
        WordWise::of(&unit, unit.params.required.len() == 2)
    }

    #[test]
    fn blocks_that_split_give_the_words() {
        for block in ["{ |l| l.split }", "{ _1.split(' ') }", "{ |l| l.chomp.split }", "{ |l| w = l.strip; w.split }"] {
            let found = of(block).unwrap_or_else(|| panic!("{block}"));
            assert_eq!((found.splits, found.strips), (true, block.contains("strip")), "{block}");
            assert!(found.of_text.contains("split"), "{block}");
        }
    }

    #[test]
    fn blocks_may_change_words_and_leave_some_out() {
        for block in [
            "{ |l| l.downcase.split }",
            "{ |l| l.scan(/[a-z]+/) }",
            "{ |l| l.split.map { |w| w[0] }.reject { |c| c == 'a' } }",
            "{ |l, out| l.split.each { |w| out.emit(w, 1) if w.size > limit } }",
            "{ |l, out| words = l.downcase.scan(/\\w+/); words.each { |w| out.emit(w, w.size) } }",
            "{ |l, out| l.scan(/\\w+/) { |w| next if w == 'a'; out.emit(w, 1) } }",
            "{ |l, out| l.split.map(&:upcase).each { |w| out.emit(w, 1) } }",
        ] {
            let found = of(block).unwrap_or_else(|| panic!("{block}"));
            assert!(!found.splits, "{block}");
            assert_eq!(found.pattern.is_some(), block.contains("scan"), "{block}");
        }
    }

    #[test]
    fn blocks_that_count_words_emit_each_with_one() {
        for block in [
            "{ |l, out| l.split.each { |w| out.emit(w, 1) } }",
            "{ |l, out| words = l.chomp.split(' '); words.each { |w| out.emit(w, 1) } }",
            "{ |l, out| l.split.each { out.emit(_1, 1) } }",
        ] {
            assert_eq!(of(block).map(|found| found.splits), Some(true), "{block}");
        }
        for block in [
            "{ |l, out| l.split.each { |w| out.emit(w, 2) } }",
            "{ |l, out| l.split.each { |w| out.emit(w, 1.0) } }",
            "{ |l, out| l.split.each { |w| out.emit(w, limit) } }",
            "{ |l, out| l.split.each { |w| out.emit(w[0], 1) } }",
            "{ |l, out| l.split.each { |w| out.emit(w, 1).emit(w, 1) } }",
            "{ |l, out| l.split.each { |w| out.emit(w, 1); out.emit(w, 1) } }",
            "{ |l, out| l.split.each { |w| out.emit(w, 1) if limit } }",
            "{ |l, out| l.split.each { |w| seen.emit(w, 1) } }",
            "{ |l, out| l.split.each { |w, v| out.emit(w, 1) } }",
            "{ |l, out| l.split.each { |w = 1| out.emit(w, 1) } }",
            "{ |l, out| l.split.each { |w| out.emit(w, 1) { limit } } }",
            "{ |l, out| l.split.reject { |w| w == 'a' }.each { |w| out.emit(w, 1) } }",
            "{ |l, out| l.downcase.split.each { |w| out.emit(w, 1) } }",
        ] {
            assert_eq!(of(block).map(|found| found.splits), Some(false), "{block}");
        }
    }

    #[test]
    fn blocks_that_count_elements_emit_each_with_one() {
        let counts = |block: &str| {
            let source = Arc::new(Source::whole("words.rb", block, 1));
            counts_elements(&parse_block(&source, &["seen", "limit"]).unwrap_or_else(|told| panic!("{told}")))
        };
        assert!(counts("{ |w, out| out.emit(w, 1) }") && counts("{ _2.emit(_1, 1) }"));
        for block in [
            "{ |w, out| out.emit(w, 2) }",
            "{ |w, out| out.emit(out, 1) }",
            "{ |w, out| out.emit(w, 1) if limit }",
            "{ |w, out| seen.emit(w, 1) }",
            "{ |w, out| out.emit(w, 1); out.emit(w, 1) }",
            "{ |w, out| w = limit; out.emit(w, 1) }",
            "{ |(w, v), out| out.emit(w, 1) }",
            "{ |w, out, *others| out.emit(w, 1) }",
            "{ |w| seen.emit(w, 1) }",
        ] {
            assert!(!counts(block), "{block}");
        }
    }

    #[test]
    fn blocks_that_look_at_more_than_a_word_are_refused() {
        for block in [
            "{ |l| l }",
            "{ |l| l.split(',') }",
            "{ |l| l.split(' ', 2) }",
            "{ |l| l.split.first(2) }",
            "{ |l| l.split.uniq }",
            "{ |l| l.split + l.split }",
            "{ |l| l.chars }",
            "{ |l| l.split.map { |w| [w, l.size] } }",
            "{ |l| n = l; n.split.map { |w| w + n } }",
            "{ |l| l.gsub('a', ' ').split }",
            "{ |l, out| out.emit(l.size, 1) }",
            "{ |l, out| l.split.each { |w| out.emit(w, 1) }; out.emit('lines', 1) }",
            "{ |l, out| n = out.emit('lines', 1); l.split.each { |w| out.emit(w, 1) } }",
            "{ |l, out| n = seen.shift; l.split.each { |w| out.emit(w, n) } }",
            "{ |l, out| l.split.each { |w| break if w == 'a'; out.emit(w, 1) } }",
            "{ |l, out| l.split.each_with_index { |w, i| out.emit(w, i) } }",
            "{ |l, out| l.split.each_cons(2) { |pair| out.emit(pair, 1) } }",
            "{ |l, out| last = nil; l.split.each { |w| out.emit([last, w], 1); last = w } }",
            "{ |l, out| next if l.empty?; l.split.each { |w| out.emit(w, 1) } }",
        ] {
            assert_eq!(of(block), None, "{block}");
        }
    }
}
