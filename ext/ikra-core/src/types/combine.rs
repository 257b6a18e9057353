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
pub enum HashUpdate {
    /// `h[k] += v`, `h[k] = h[k] - v`
    Operator(&'static str),
    /// `h[k] += v` and `h[k] -= w` in one block, of which the latter adds -w.
    Balance,
    /// `h[k] = v if v < h[k]`: the comparison of the value with what is there, on its left.
    If(&'static str),
    /// `h[k] = v if h[k] > v`: what is there is on the left.
    IfThere(&'static str),
    /// `h[k] = [h[k], v].min`
    Extreme(&'static str),
    /// `h[k] = [v, h[k]].min`
    ExtremeOfNew(&'static str),
    /// `h[k] = v`
    Store,
    /// `h[k] << v`
    Append,
    /// `(h[k] ||= []) << v`
    AppendToNew,
}

impl HashUpdate {
    /// The word for it, by which the Ruby library applies it.
    pub fn word(self) -> String {
        match self {
            HashUpdate::Operator(operator) => operator.into(),
            HashUpdate::Balance => "+-".into(),
            HashUpdate::If(operator) => format!("v {operator} h"),
            HashUpdate::IfThere(operator) => format!("h {operator} v"),
            HashUpdate::Extreme(name) => name.into(),
            HashUpdate::ExtremeOfNew(name) => format!("v {name}"),
            HashUpdate::Store => "=".into(),
            HashUpdate::Append => "<<".into(),
            HashUpdate::AppendToNew => "||= <<".into(),
        }
    }
}
