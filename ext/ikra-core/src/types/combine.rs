//! How the contributions of elements to a captured local become its new value.
//!
//! Here: the operations and how the program writes them. Inference finds them (`infer::accumulate`), columns say them
//! (`layout::schema`), and the host combines by them (`sched::combine`).

/// How the contributions of elements to a captured local become its new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    /// `sum += x`: start + all contributions; Integers exact (in 128 bits), Floats by a pairwise tree over the
    /// element indices (see `sched::combine`).
    Add,
    Mul,
    /// The least of start and all contributions. A NaN is not less than any number: as a contribution it is left out,
    /// and as the start it stays.
    Min(Equals),
    Max(Equals),
    And,
    Or,
    Xor,
    /// The value with the greatest (tick, index) that wrote it; the start if none did.
    Last,
}

impl Combine {
    /// Whether it combines bits of Integers, which Floats do not have.
    pub fn is_bitwise(self) -> bool {
        matches!(self, Combine::And | Combine::Or | Combine::Xor)
    }
}

/// Which of two equal values is kept: 3 and 3.0 are equal, and so are 0.0 and -0.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Equals {
    /// `l = x if x < l`, `l = [l, x].min`
    Earliest,
    /// `l = [x, l].min`
    Latest,
}

/// How the block writes its contributions to `l`. It gives the method that Ruby would call if `l` starts with a value
/// that kernels do not combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wording {
    /// `+` and the like; `<` or `>` of `l = x if x < l`; `min` or `max` of `l = [l, x].min`.
    pub operator: &'static str,
    /// `l + x`, `l < x`, `[l, x]`; not `x + l`.
    pub local_first: bool,
}

impl Wording {
    /// `l = [l, x].min`, which raises for NaN.
    pub fn is_list(self) -> bool {
        matches!(self.operator, "min" | "max")
    }
}

/// How the block updates a captured Hash `h` at a key `k`, with a value `v`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HashUpdate {
    pub step: HashStep,
    /// What stands for a value that is not there.
    pub missing: Option<Missing>,
}

/// What an update makes of what is there and the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashStep {
    /// `h[k] += v`, `h[k] = h[k] - v`
    Operator(&'static str),
    /// `h[k] += v` and `h[k] -= w` in one block, of which the latter adds -w.
    Balance,
    /// `h[k] = v if v < h[k]`: the comparison of the value with what is there, on its left.
    If(&'static str),
    /// `h[k] = v if h[k] > v`: what is there is on the left.
    IfThere(&'static str),
    /// `h[k] = v if h[k].nil? || v < h[k]`, as [`HashStep::If`].
    IfAny(&'static str),
    /// `h[k] = v if h[k].nil? || h[k] > v`, as [`HashStep::IfThere`].
    IfAnyThere(&'static str),
    /// `h[k] = [h[k], v].min`
    Extreme(&'static str),
    /// `h[k] = [v, h[k]].min`
    ExtremeOfNew(&'static str),
    /// `h[k] = [h[k], v].compact.min`
    Compact(&'static str),
    /// `h[k] = [v, h[k]].compact.min`
    CompactOfNew(&'static str),
    /// `h[k] = v`
    Store,
    /// `h[k] ||= v`
    Default,
    /// `h[k] << v`
    Append,
    /// `(h[k] ||= []) << v`
    AppendToNew,
}

/// What an update takes instead of a value that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// `(h[k] || seed) + v`
    Falsy(Seed),
    /// `h.fetch(k, seed) + v`
    Absent(Seed),
}

/// A literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    Int(i64),
    /// The bits of a Float.
    Float(u64),
    /// `""`
    Text,
}

impl From<HashStep> for HashUpdate {
    fn from(step: HashStep) -> Self {
        Self { step, missing: None }
    }
}

impl HashUpdate {
    /// What the values of a key's updates come to in any order. None where more must be known of them. The first update
    /// decides where a new key stands. Which of two equal numbers is kept does not matter. Values that are not
    /// [beyond](Self::beyond) the Hash's default are left out.
    pub fn total(self) -> Option<Combine> {
        Some(match self.step {
            HashStep::If(_) | HashStep::IfThere(_) => match self.beyond()? {
                "<" | "<=" => Combine::Min(Equals::Earliest),
                _ => Combine::Max(Equals::Earliest),
            },
            HashStep::Operator("+" | "-") | HashStep::Balance => Combine::Add,
            HashStep::Operator("&") => Combine::And,
            HashStep::Operator("|") => Combine::Or,
            HashStep::IfAny("<" | "<=") | HashStep::IfAnyThere(">" | ">=") => Combine::Min(Equals::Earliest),
            HashStep::IfAny(">" | ">=") | HashStep::IfAnyThere("<" | "<=") => Combine::Max(Equals::Earliest),
            HashStep::Extreme(name)
            | HashStep::ExtremeOfNew(name)
            | HashStep::Compact(name)
            | HashStep::CompactOfNew(name) => match name {
                "min" => Combine::Min(Equals::Earliest),
                _ => Combine::Max(Equals::Earliest),
            },
            _ => return None,
        })
    }

    /// For `h[k] = v if v < h[k]` and the like: how a value compares with what is there, where it is stored. The first
    /// value that is so beyond the Hash's default decides where a new key stands.
    pub fn beyond(self) -> Option<&'static str> {
        match self.step {
            HashStep::If(comparison) => Some(comparison),
            HashStep::IfThere("<") => Some(">"),
            HashStep::IfThere(">") => Some("<"),
            HashStep::IfThere("<=") => Some(">="),
            HashStep::IfThere(_) => Some("<="),
            _ => None,
        }
    }

    /// The word for it, by which the Ruby library applies it.
    pub fn word(self) -> String {
        match self.step {
            HashStep::Operator(operator) => operator.into(),
            HashStep::Balance => "+-".into(),
            HashStep::If(operator) => format!("v {operator} h"),
            HashStep::IfThere(operator) => format!("h {operator} v"),
            HashStep::IfAny(operator) => format!("nil or v {operator} h"),
            HashStep::IfAnyThere(operator) => format!("nil or h {operator} v"),
            HashStep::Extreme(name) => name.into(),
            HashStep::ExtremeOfNew(name) => format!("v {name}"),
            HashStep::Compact(name) => format!("compact {name}"),
            HashStep::CompactOfNew(name) => format!("v compact {name}"),
            HashStep::Store => "=".into(),
            HashStep::Default => "||=".into(),
            HashStep::Append => "<<".into(),
            HashStep::AppendToNew => "||= <<".into(),
        }
    }
}
