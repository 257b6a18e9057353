//! The text form of programs, for `Ikra.explain`, golden files and error reports.
//!
//! Here: printing; `parse` reads the text back. Invariant: equal programs print equally, and the text does not depend
//! on addresses or hash order.
//!
//! ```text
//! program "block in main at traffic.rb:12" jobs reordered, ticks fused, random
//! column c0 "Actor@progress" f64 in class 0 0..=3, read written
//! param p0 "weather" i64
//! heap h0 class 0 1..=1 scratch from p1 capacity p2 taken c1
//! site s0 overflow "*" at "traffic.rb":14 ()
//!
//! entry func f0 "main" (job.0: i64, first.1: i64, last.2: i64) {
//!   v3: i64 = checked mul job.0, 7 else s0
//!   store Actor@progress[v4] = 1.5
//! }
//! ```
//!
//! A register is its Ruby name, a point and its number, or `v` and its number; its type stands where it is first
//! assigned. A column goes by its name if that is a plain word and unique, else by its number. Integers without a
//! suffix are I64. A Float has a point or an exponent; a NaN or an infinity shows its bits.

use super::{
    AssumedRows, AtomicOp, CheckedOp, Class, Cmp, Column, ColumnId, Ctx, Extent, Func, FuncId, Heap, Jobs, MathFn,
    Message, New, Op, Operand, Part, Piece, Program, Scalar, Site, Space, Stmt, Storage, Trap, UniformStride, VarId,
};
use crate::types::{Repr, Unit};
use std::fmt::{self, Display, Formatter, Write};

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let jobs = match self.jobs {
            Jobs::Identity => "identity",
            Jobs::Reordered => "reordered",
            Jobs::Grouped => "grouped",
        };
        write!(f, "program {:?} jobs {jobs}", self.name)?;
        f.write_str(if self.few { ", few" } else { "" })?;
        f.write_str(if self.fused_ticks { ", ticks fused" } else { "" })?;
        f.write_str(if self.uses_random { ", random\n" } else { "\n" })?;
        for (i, column) in self.columns.iter().enumerate() {
            writeln!(f, "column c{i} {column}")?;
        }
        for (i, param) in self.params.iter().enumerate() {
            write!(f, "param p{i} {:?} {}", param.name, param.ty)?;
            if let Some((from, to)) = param.range {
                write!(f, " from {from} to {to}")?;
            }
            if let Some(same) = param.same {
                write!(f, " same as {same}")?;
            }
            writeln!(f)?;
        }
        for (i, heap) in self.heaps.iter().enumerate() {
            writeln!(f, "heap h{i} {heap}")?;
        }
        for stride in &self.strides {
            match stride {
                UniformStride::Arrays { column, start, step, length } => {
                    writeln!(f, "stride {column} from {start} step {step} length {length}")?;
                }
                UniformStride::References { column, start } => writeln!(f, "stride {column} from {start}")?,
                UniformStride::Constants { column, rows } => {
                    let rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
                    writeln!(f, "stride {column} is [{}]", rows.join(", "))?;
                }
            }
        }
        for Extent { column, rows } in &self.extents {
            writeln!(f, "extent {column} rows {rows}")?;
        }
        for (i, site) in self.sites.iter().enumerate() {
            writeln!(f, "site s{i} {site}")?;
        }
        if let Some(func) = self.rescued.again {
            writeln!(f, "again {func}")?;
        }
        if let Some(messages) = &self.rescued.messages {
            write!(f, "messages {} of [", messages.func)?;
            for (i, (site, message)) in messages.known.iter().enumerate() {
                write!(f, "{}{site} ", if i > 0 { ", " } else { "" })?;
                match message {
                    Message::Text(text) => write!(f, "text {text}"),
                    Message::Word(word) => write!(f, "word {word}"),
                }?;
            }
            f.write_str("]\n")?;
        }
        for test in &self.rescued.tests {
            write!(f, "test {} {:?} of [", test.func, test.name)?;
            for (i, class) in test.hits.iter().enumerate() {
                f.write_str(if i > 0 { ", " } else { "" })?;
                match class {
                    Class::Named(name) => write!(f, "{name:?}"),
                    Class::Made(class) => write!(f, "{}", class.0),
                }?;
            }
            f.write_str("]\n")?;
        }
        let columns = self.column_words();
        for (i, func) in self.funcs.iter().enumerate() {
            f.write_char('\n')?;
            f.write_str(if self.entry.index() == i { "entry " } else { "" })?;
            Printer { func, program: Some(self), columns: &columns, typed: vec![false; func.vars.len()] }
                .func(f, FuncId::new(i))?;
        }
        Ok(())
    }
}

impl Program {
    /// The word for each column in the text: its name if that is a plain word that no other column has.
    fn column_words(&self) -> Vec<String> {
        let plain = |name: &str| {
            name.starts_with(|c: char| c.is_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_alphanumeric() || "_@:.?!".contains(c))
                && !name.strip_prefix('c').is_some_and(|n| n.chars().all(|c| c.is_ascii_digit()))
        };
        let once = |name: &str| self.columns.iter().filter(|c| c.name == name).count() == 1;
        (0..self.columns.len())
            .map(|i| match self.columns[i].name.as_str() {
                name if plain(name) && once(name) => name.to_string(),
                _ => format!("c{i}"),
            })
            .collect()
    }
}

impl Func {
    /// The text of a register.
    pub fn var_word(&self, var: VarId) -> String {
        match self.vars.get(var.index()).and_then(|v| v.name.as_ref()) {
            Some(name) => format!("{name}.{}", var.0),
            None => format!("v{}", var.0),
        }
    }
}

struct Printer<'a> {
    func: &'a Func,
    program: Option<&'a Program>,
    columns: &'a [String],
    /// Registers whose type was printed.
    typed: Vec<bool>,
}

impl Printer<'_> {
    fn func(&mut self, f: &mut Formatter<'_>, id: FuncId) -> fmt::Result {
        write!(f, "func {id} {:?} (", self.func.name)?;
        for (i, param) in self.func.params.iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { "" })?;
            self.definition(f, *param)?;
        }
        f.write_char(')')?;
        for (i, ty) in self.func.results.iter().enumerate() {
            write!(f, "{} {ty}", if i > 0 { "," } else { " ->" })?;
        }
        f.write_str(if self.func.recursive { " recursive" } else { "" })?;
        if let Some(stage) = &self.func.stage {
            let sizes: Vec<String> = stage.sizes.iter().map(ToString::to_string).collect();
            write!(f, " stage ({})", sizes.join(", "))?;
            stage.first.map_or(Ok(()), |first| write!(f, " from {first}"))?;
            stage.tile.iter().try_for_each(|side| write!(f, " tile {side}"))?;
        }
        f.write_str(" {\n")?;
        self.list(f, &self.func.body, 1)?;
        f.write_str("}\n")
    }

    fn list(&mut self, f: &mut Formatter<'_>, body: &[Stmt], depth: usize) -> fmt::Result {
        for stmt in body {
            for _ in 0..depth {
                f.write_str("  ")?;
            }
            self.stmt(f, stmt, depth)?;
            f.write_char('\n')?;
        }
        Ok(())
    }

    fn nested(&mut self, f: &mut Formatter<'_>, body: &[Stmt], depth: usize) -> fmt::Result {
        f.write_str("{\n")?;
        self.list(f, body, depth + 1)?;
        for _ in 0..depth {
            f.write_str("  ")?;
        }
        f.write_char('}')
    }

    fn stmt(&mut self, f: &mut Formatter<'_>, stmt: &Stmt, depth: usize) -> fmt::Result {
        match stmt {
            Stmt::Let { dst, op, args } => {
                self.definition(f, *dst)?;
                write!(f, " = {op}")?;
                let param = match op {
                    Op::Param(p) => self.program.and_then(|program| program.params.get(p.index())),
                    _ => None,
                };
                if let Some(param) = param {
                    write!(f, " {:?}", param.name)?;
                }
                self.operands(f, args)
            }
            Stmt::Checked { dst, op, args, site } => {
                self.definition(f, *dst)?;
                write!(f, " = checked {op}")?;
                self.operands(f, args)?;
                write!(f, " else {site}")
            }
            Stmt::Load { dst, column, row } => {
                self.definition(f, *dst)?;
                f.write_str(" = load ")?;
                self.slot(f, *column, *row)
            }
            Stmt::Store { column, row, value } => {
                f.write_str("store ")?;
                self.slot(f, *column, *row)?;
                f.write_str(" =")?;
                self.operands(f, &[*value])
            }
            Stmt::Atomic { op, column, row, value, site } => {
                write!(f, "atomic {op} ")?;
                self.slot(f, *column, *row)?;
                f.write_char(',')?;
                self.operands(f, &[*value])?;
                site.map_or(Ok(()), |site| write!(f, " else {site}"))
            }
            Stmt::FetchAdd { dst, column, row, value } => {
                self.definition(f, *dst)?;
                f.write_str(" = fetch_add ")?;
                self.slot(f, *column, *row)?;
                f.write_char(',')?;
                self.operands(f, &[*value])
            }
            Stmt::Emit { key, value, order, text } => {
                f.write_str("emit")?;
                let key = key.iter();
                self.operands(f, &key.chain([value, order]).copied().collect::<Vec<_>>())?;
                text.map_or(Ok(()), |text| write!(f, " in {text}"))
            }
            Stmt::KeyPart { code, word } => {
                f.write_str("key_part")?;
                self.operands(f, &[*code, *word])
            }
            Stmt::Alloc { dst, heap, count, site } => {
                self.definition(f, *dst)?;
                write!(f, " = alloc {heap}")?;
                self.operands(f, &[*count])?;
                write!(f, " else {site}")
            }
            Stmt::If { cond, then, otherwise } => {
                f.write_str("if")?;
                self.operands(f, &[*cond])?;
                f.write_char(' ')?;
                self.nested(f, then, depth)?;
                if otherwise.is_empty() {
                    return Ok(());
                }
                f.write_str(" else ")?;
                self.nested(f, otherwise, depth)
            }
            Stmt::Block { label, body } => {
                write!(f, "block {label} ")?;
                self.nested(f, body, depth)
            }
            Stmt::Loop { label, body } => {
                write!(f, "loop {label} ")?;
                self.nested(f, body, depth)
            }
            Stmt::Try { label, body, raised } => {
                for (i, var) in raised.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    self.definition(f, *var)?;
                }
                write!(f, " = try {label} ")?;
                self.nested(f, body, depth)
            }
            Stmt::Break(label) => write!(f, "break {label}"),
            Stmt::Call { func, args, dsts, depth } => {
                for (i, dst) in dsts.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    self.definition(f, *dst)?;
                }
                write!(f, "{}call {func}", if dsts.is_empty() { "" } else { " = " })?;
                if let Some(callee) = self.program.and_then(|p| p.funcs.get(func.index())) {
                    write!(f, " {:?}", callee.name)?;
                }
                self.operands(f, args)?;
                depth.map_or(Ok(()), |site| write!(f, " depth {site}"))
            }
            Stmt::Return(values) => {
                f.write_str("return")?;
                self.operands(f, values)
            }
            Stmt::Trap { site, operands } => {
                write!(f, "trap {site}")?;
                self.operands(f, operands)
            }
            Stmt::Poll => f.write_str("poll"),
            Stmt::Meet { dst, value } => {
                self.definition(f, *dst)?;
                f.write_str(" = meet")?;
                self.operands(f, &[*value])
            }
            Stmt::Place(site) => write!(f, "place {site}"),
            Stmt::Begin { index, tick, check } => {
                f.write_str(if *check { "begin check" } else { "begin" })?;
                self.operands(f, &[*index, *tick])
            }
        }
    }

    fn slot(&self, f: &mut Formatter<'_>, column: ColumnId, row: Operand) -> fmt::Result {
        match self.columns.get(column.index()) {
            Some(word) => f.write_str(word)?,
            None => write!(f, "{column}")?,
        }
        f.write_char('[')?;
        self.operand(f, row)?;
        f.write_char(']')
    }

    /// A register, with its type at its first assignment.
    fn definition(&mut self, f: &mut Formatter<'_>, var: VarId) -> fmt::Result {
        f.write_str(&self.func.var_word(var))?;
        match self.typed.get_mut(var.index()) {
            Some(typed) if !*typed => {
                *typed = true;
                write!(f, ": {}", self.func.vars[var.index()].ty)
            }
            _ => Ok(()),
        }
    }

    fn operands(&self, f: &mut Formatter<'_>, operands: &[Operand]) -> fmt::Result {
        for (i, operand) in operands.iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { " " })?;
            self.operand(f, *operand)?;
        }
        Ok(())
    }

    fn operand(&self, f: &mut Formatter<'_>, operand: Operand) -> fmt::Result {
        match operand {
            Operand::Var(v) => f.write_str(&self.func.var_word(v)),
            Operand::Bool(b) => write!(f, "{b}"),
            Operand::I32(i) => write!(f, "{i}i32"),
            Operand::I64(i) => write!(f, "{i}"),
            Operand::F64(bits) => {
                let value = f64::from_bits(bits);
                if value.is_nan() { write!(f, "nan:{bits:x}") } else { write!(f, "{value:?}") }
            }
        }
    }
}

impl Display for Column {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {} in {}", self.name, self.storage, self.space)?;
        if let Some(space) = self.refers {
            write!(f, " to {space}")?;
        }
        match (self.read, self.written) {
            (true, true) => f.write_str(", read written"),
            (true, false) => f.write_str(", read"),
            (false, true) => f.write_str(", written"),
            (false, false) => Ok(()),
        }?;
        match self.ranged {
            Some(AssumedRows::Natural) => f.write_str(", natural")?,
            Some(AssumedRows::Signed) => f.write_str(", ranged")?,
            None => {}
        }
        if self.roundable {
            f.write_str(", roundable")?;
        }
        if let Some(marks) = self.marks { write!(f, ", marks {marks}") } else { Ok(()) }
    }
}

impl Display for Heap {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let scratch = if self.scratch { " scratch" } else { "" };
        write!(f, "{}{scratch} from {} capacity {} taken {}", self.space, self.start, self.capacity, self.taken)
    }
}

impl Display for Space {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Space::Class { hierarchy, first, last } => write!(f, "class {hierarchy} {first}..={last}"),
            Space::Array(kind) => write!(f, "array {}", kind.0),
            Space::Bytes => f.write_str("bytes"),
            Space::Element => f.write_str("element"),
            Space::Job => f.write_str("job"),
            Space::Single => f.write_str("single"),
            Space::Slot => f.write_str("slot"),
        }
    }
}

impl Display for Site {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:?}:{} (", self.trap, self.path, self.line)?;
        for (i, repr) in self.operands.iter().enumerate() {
            f.write_str(if i > 0 { ", " } else { "" })?;
            match repr {
                Repr::Unit(unit) => match unit {
                    Unit::Nil => f.write_str("nil"),
                    Unit::True => f.write_str("true"),
                    Unit::False => f.write_str("false"),
                    Unit::Module(class) => write!(f, "module {}", class.0),
                    Unit::Proc(id) => write!(f, "proc {}", id.0),
                    Unit::Never => f.write_str("never"),
                },
                Repr::Bool => f.write_str("bool"),
                Repr::Int => f.write_str("int"),
                Repr::Float => f.write_str("float"),
                Repr::Sym => f.write_str("sym"),
                Repr::Str => f.write_str("str"),
                Repr::Ref(hierarchy) => write!(f, "ref {hierarchy}"),
                Repr::Array(kind) => write!(f, "array {}", kind.0),
                Repr::Union => f.write_str("union"),
            }?;
        }
        f.write_char(')')
    }
}

impl Display for Trap {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Trap::ZeroDivision => f.write_str("zero_division"),
            Trap::IntegerOverflow(op) => write!(f, "overflow {op:?}"),
            Trap::NoMethod { name, private, bare } => {
                write!(
                    f,
                    "no_method {name:?}{}{}",
                    if *private { " private" } else { "" },
                    if *bare { " bare" } else { "" }
                )
            }
            Trap::Race => f.write_str("race"),
            Trap::Missing => f.write_str("missing"),
            Trap::NoSuper(name) => write!(f, "no_super {name:?}"),
            Trap::IndexTooSmall => f.write_str("index_too_small"),
            Trap::KeyMissing => f.write_str("key_missing"),
            Trap::Name { message, name } => write!(f, "name {name:?} {message:?}"),
            Trap::Frozen => f.write_str("frozen"),
            Trap::FloatDomain => f.write_str("float_domain"),
            Trap::OutOfRange => f.write_str("out_of_range"),
            Trap::Raise { class, message } => write!(f, "raise {class:?} {message:?}"),
            Trap::Limit { class, before, after } => write!(f, "limit {class:?} {before:?} {after:?}"),
            Trap::Describe { class, before, after } => write!(f, "describe {class:?} {before:?} {after:?}"),
            Trap::Mention { class, before, after } => write!(f, "mention {class:?} {before:?} {after:?}"),
            Trap::New(new) => write!(f, "{new}"),
            Trap::StackOverflow => f.write_str("stack_overflow"),
            Trap::Break => f.write_str("break"),
            Trap::Grow(heap) => write!(f, "grow {heap}"),
            Trap::Refuted(at) => write!(f, "refuted {:?} {} {}", at.path, at.line, at.column),
        }
    }
}

impl Display for New {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "new {:?} {}", self.name, self.class.0)?;
        if let Some(args) = &self.args {
            f.write_str(" args [")?;
            for (i, arg) in args.iter().enumerate() {
                write!(f, "{}{arg}", if i > 0 { ", " } else { "" })?;
            }
            f.write_char(']')?;
        }
        for (name, piece) in &self.keywords {
            write!(f, " keyword {name:?} {piece}")?;
        }
        match &self.message {
            Some(piece) => write!(f, " message {piece}"),
            None => Ok(()),
        }
    }
}

impl Display for Piece {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Piece::Value(operand) => write!(f, "value {operand}"),
            Piece::Text(parts) => {
                f.write_str("text [")?;
                for (i, part) in parts.iter().enumerate() {
                    f.write_str(if i > 0 { ", " } else { "" })?;
                    match part {
                        Part::Text(text) => write!(f, "{text:?}"),
                        Part::Value(operand) => write!(f, "{operand}"),
                        Part::Inspect(operand) => write!(f, "inspect {operand}"),
                    }?;
                }
                f.write_char(']')
            }
        }
    }
}

/// Defines the words for an enum's values, for printing and parsing.
macro_rules! words {
    ($ty:ident: $($variant:ident $word:literal),+ $(,)?) => {
        impl $ty {
            /// Every value with its word in the text form.
            pub const WORDS: &'static [(&'static str, $ty)] = &[$(($word, $ty::$variant)),+];
        }
        impl Display for $ty {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $($ty::$variant => $word),+ })
            }
        }
    };
}

words!(Scalar: Bool "bool", I32 "i32", I64 "i64", F64 "f64");
words!(Storage: U8 "u8", U32 "u32", I32 "i32", I64 "i64", F32 "f32", F64 "f64");
words!(Cmp: Eq "eq", Ne "ne", Lt "lt", Le "le", Gt "gt", Ge "ge");
words!(CheckedOp: Add "add", Sub "sub", Mul "mul", And "and");
words!(AtomicOp: Add "add", FAdd "fadd", Min "min", Max "max", And "and", Or "or", Xor "xor");
words!(MathFn:
    Sin "sin", Cos "cos", Tan "tan", Asin "asin", Acos "acos", Atan "atan", Atan2 "atan2", Sinh "sinh", Cosh "cosh",
    Tanh "tanh", Asinh "asinh", Acosh "acosh", Atanh "atanh", Exp "exp", Log "log", Log2 "log2", Log10 "log10",
    Cbrt "cbrt", Hypot "hypot", Erf "erf", Erfc "erfc", Pow "pow", Tgamma "tgamma", Lgamma "lgamma", Ldexp "ldexp",
);

/// The operations without parameters, with their words.
pub const PLAIN_OPS: &[(&str, Op)] = &[
    ("copy", Op::Copy),
    ("add", Op::Add),
    ("sub", Op::Sub),
    ("mul", Op::Mul),
    ("mulhi", Op::MulHi),
    ("umulhi", Op::UMulHi),
    ("div", Op::Div),
    ("rem", Op::Rem),
    ("udiv", Op::UDiv),
    ("urem", Op::URem),
    ("mulmod", Op::MulMod),
    ("addmod", Op::AddMod),
    ("and", Op::And),
    ("or", Op::Or),
    ("xor", Op::Xor),
    ("shl", Op::Shl),
    ("shr", Op::Shr),
    ("ushr", Op::UShr),
    ("clz", Op::Clz),
    ("fadd", Op::FAdd),
    ("fsub", Op::FSub),
    ("fmul", Op::FMul),
    ("fdiv", Op::FDiv),
    ("fneg", Op::FNeg),
    ("fabs", Op::FAbs),
    ("fsqrt", Op::FSqrt),
    ("ffloor", Op::FFloor),
    ("fceil", Op::FCeil),
    ("ftrunc", Op::FTrunc),
    ("frint", Op::FRint),
    ("fround", Op::FRound),
    ("fsingle", Op::FSingle),
    ("frem", Op::FRem),
    ("fnextafter", Op::FNextAfter),
    ("fcopysign", Op::FCopySign),
    ("int_to_float", Op::IntToFloat),
    ("float_to_int", Op::FloatToInt),
    ("float_bits", Op::FloatBits),
    ("single_bits", Op::SingleBits),
    ("float_from_bits", Op::FloatFromBits),
    ("widen", Op::Widen),
    ("narrow", Op::Narrow),
    ("bool_to_int", Op::BoolToInt),
    ("not", Op::Not),
    ("select", Op::Select),
    ("tick", Op::Ctx(Ctx::Tick)),
    ("index", Op::Ctx(Ctx::Index)),
    ("slot", Op::Ctx(Ctx::Slot)),
    ("stopped", Op::Ctx(Ctx::Stopped)),
    ("random", Op::Random),
];

impl Display for Op {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Op::ICmp(cmp) => write!(f, "icmp.{cmp}"),
            Op::UCmp(cmp) => write!(f, "ucmp.{cmp}"),
            Op::FCmp(cmp) => write!(f, "fcmp.{cmp}"),
            Op::Math(function) => write!(f, "math.{function}"),
            Op::Param(param) => write!(f, "param {param}"),
            plain => {
                let word = PLAIN_OPS.iter().find(|(_, op)| op == plain).map(|(word, _)| *word);
                f.write_str(word.unwrap_or("?"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::ir::build::Builder;
    use crate::ir::testing::program;
    use crate::ir::{CheckedOp, Cmp, ColumnId, Op, Operand, Scalar, SiteId};

    #[test]
    fn a_program_prints_as_nested_text() {
        let text = program(|b: &mut Builder, job| {
            b.repeat(|b, done| {
                let x = b.load(Scalar::F64, ColumnId(1), job);
                let small = b.fcmp(Cmp::Lt, x, Operand::float(-0.0));
                b.branch(
                    small,
                    |b| b.push(super::Stmt::Break(done)),
                    |b| b.store(ColumnId(1), job, Operand::float(1e300)),
                );
                let n = b.checked(CheckedOp::Mul, job, Operand::I64(i64::MIN), SiteId(0));
                let tag = b.op(Scalar::I32, Op::Narrow, &[n]);
                let known = b.icmp(Cmp::Eq, tag, Operand::I32(-3));
                b.trap_if(known, SiteId(1), vec![n]);
                b.store(ColumnId(1), job, Operand::float(f64::NAN));
            });
        })
        .to_string();
        insta::assert_snapshot!(text, @r#"
        program "test" jobs identity
        column c0 "in" i64 in element, read written
        column c1 "out" f64 in element, read written
        column c2 "ints" i64 in element, read written
        column c3 "tags" u8 in element, read written
        column c4 "refs" u32 in element, read written
        column c5 "Car@speed" f64 in class 0 0..=2, read written
        param p0 "n" i64
        param p1 "x" f64
        param p2 "flag" bool
        param p3 "small" i32
        site s0 overflow "*" at "test.rb":1 ()
        site s1 float_domain at "test.rb":1 (int)
        site s2 stack_overflow at "test.rb":1 ()
        site s3 zero_division at "test.rb":1 ()

        entry func f0 "entry" (job.0: i64, first.1: i64, last.2: i64) {
          begin check job.0, first.1
          v3: i64 = index
          loop L0 {
            v4: f64 = load out[v3]
            v5: bool = fcmp.lt v4, -0.0
            if v5 {
              break L0
            } else {
              store out[v3] = 1e300
            }
            v6: i64 = checked mul v3, -9223372036854775808 else s0
            v7: i32 = narrow v6
            v8: bool = icmp.eq v7, -3i32
            if v8 {
              trap s1 v6
            }
            store out[v3] = nan:7ff8000000000000
          }
        }
        "#);
    }
}
