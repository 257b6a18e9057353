//! The test cases for numeric methods: every method, on difficult values.

use crate::id::ClassId;
use crate::ir::Operand;
use crate::lower::value::Val;
use crate::types::Unit;
use crate::types::numeric::{Conversion, Function, Kind, Method, Rand};
use std::fmt::Write as _;

/// An operand of a test case.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Word {
    Int(i64),
    Float(f64),
    IntRange(i64, i64, bool),
    FloatRange(f64, f64, bool),
    Nil,
    True,
    False,
    Sym,
    Module,
}

pub const OTHERS: [Word; 5] = [Word::Nil, Word::True, Word::False, Word::Sym, Word::Module];

impl Word {
    /// The text that `oracle.rb` reads.
    pub fn text(self) -> String {
        let dots = |exclusive| if exclusive { "..." } else { ".." };
        match self {
            Word::Int(i) => format!("i{i}"),
            Word::Float(f) => format!("f{:x}", f.to_bits()),
            Word::IntRange(a, b, x) => format!("r{}{}{}", Word::Int(a).text(), dots(x), Word::Int(b).text()),
            Word::FloatRange(a, b, x) => format!("r{}{}{}", Word::Float(a).text(), dots(x), Word::Float(b).text()),
            Word::Nil => "nil".into(),
            Word::True => "true".into(),
            Word::False => "false".into(),
            Word::Sym => "sym".into(),
            Word::Module => "module".into(),
        }
    }
    pub fn kind(self) -> Kind {
        match self {
            Word::Int(_) => Kind::Int,
            Word::Float(_) => Kind::Float,
            Word::IntRange(..) => Kind::IntRange,
            Word::FloatRange(..) => Kind::FloatRange,
            Word::Nil => Kind::Nil,
            Word::True | Word::False => Kind::Bool,
            Word::Sym => Kind::Sym,
            Word::Module => Kind::Other,
        }
    }
    /// The value as constants.
    pub fn constant(self) -> Val {
        match self {
            Word::Int(i) => Val::int(i),
            Word::Float(f) => Val::Float(Operand::float(f)),
            Word::IntRange(a, b, x) => {
                Val::IntRange { from: Operand::I64(a), to: Operand::I64(b), exclusive: Operand::Bool(x) }
            }
            Word::FloatRange(a, b, x) => {
                Val::FloatRange { from: Operand::float(a), to: Operand::float(b), exclusive: Operand::Bool(x) }
            }
            Word::Nil => Val::NIL,
            Word::True => Val::bool(true),
            Word::False => Val::bool(false),
            Word::Sym => Val::Sym(Operand::I64(SYMBOL)),
            Word::Module => Val::Unit(Unit::Module(ClassId(7))),
        }
    }
    /// The value in I64 columns: a number in one, a Range in two.
    pub fn bits(self) -> (i64, Option<i64>) {
        match self {
            Word::Int(i) => (i, None),
            Word::Float(f) => (f.to_bits() as i64, None),
            Word::IntRange(a, b, _) => (a, Some(b)),
            Word::FloatRange(a, b, _) => (a.to_bits() as i64, Some(b.to_bits() as i64)),
            _ => (0, None),
        }
    }
}

/// The hash that stands for `:a`.
pub const SYMBOL: i64 = 97;

/// The method of the receiver, or the function of a module.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Callee {
    Method(Method),
    Divmod,
    Math(Function),
    Conversion(Conversion),
    Rand(Rand),
}

impl Callee {
    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Callee::Method(method) => method.names()[0],
            Callee::Divmod => "divmod",
            Callee::Math(function) => function.name(),
            Callee::Conversion(Conversion::Integer) => "Integer",
            Callee::Conversion(Conversion::Float) => "Float",
            Callee::Rand(_) => "rand",
        }
    }
    pub fn is_power(self) -> bool {
        matches!(self, Callee::Method(Method::Pow | Method::PowMod))
    }
}

/// One call. If the receiver is a number, it is the first operand.
#[derive(Clone, Debug)]
pub struct Question {
    pub callee: Callee,
    pub name: &'static str,
    pub operands: Vec<Word>,
    /// Whether the arguments are constants of the program and, for digits, literals.
    pub constants: bool,
}

impl Question {
    pub fn text(&self) -> String {
        let module = match self.callee {
            Callee::Math(Function::IntegerSqrt) => Some("Integer"),
            Callee::Math(_) => Some("Math"),
            Callee::Conversion(_) | Callee::Rand(Rand::Kernel) => Some("Kernel"),
            Callee::Rand(Rand::Random) => Some("Random"),
            _ => None,
        };
        let words: Vec<String> = self.operands.iter().map(|w| w.text()).collect();
        match module {
            Some(module) => format!("{module} {} {}", self.name, words.join(" ")),
            None => format!("{} {} {}", words[0], self.name, words[1..].join(" ")),
        }
        .trim_end()
        .to_owned()
    }
    /// The shape of a case. Cases of one shape share a program: it has all operands that are not numbers, or every
    /// operand if they are constants.
    pub fn shape(&self) -> String {
        let mut shape = format!("{:?} {}", self.callee, self.name);
        for (i, word) in self.operands.iter().enumerate() {
            let fixed = (self.constants && (i > 0 || self.operands.len() == 1)) || !word.kind().is_number();
            let _ = if fixed { write!(shape, " {}", word.text()) } else { write!(shape, " {:?}", word.kind()) };
        }
        shape + if self.constants { " constant" } else { "" }
    }
}

const MAX: i64 = i64::MAX;
const MIN: i64 = i64::MIN;
const NAN: f64 = f64::NAN;
const INFINITY: f64 = f64::INFINITY;
/// 2 ** 53, from which on doubles skip Integers; 2 ** 62, from which on Ruby's Integers are objects.
const WHOLE: i64 = 1 << 53;
const HEAP: i64 = 1 << 62;

/// The numbers to combine. Few of them are combined with operands that are not numbers, or three at a time.
pub struct Numbers {
    pub ints: &'static [i64],
    pub floats: &'static [f64],
    pub few_ints: &'static [i64],
    pub few_floats: &'static [f64],
}

/// Enough numbers to reach every path.
pub const MANY: Numbers = Numbers { ints: INTS, floats: FLOATS, few_ints: FEW_INTS, few_floats: FEW_FLOATS };
/// So few numbers that their results are stored in the repository.
pub const FEW: Numbers = Numbers { ints: &[0, -3, MIN], floats: &[2.5, NAN], few_ints: &[-3], few_floats: &[NAN] };

const INTS: &[i64] = &[
    0,
    1,
    -1,
    2,
    -2,
    3,
    7,
    -10,
    15,
    25,
    63,
    64,
    -64,
    12345,
    -98765,
    WHOLE,
    WHOLE + 1,
    -WHOLE - 1,
    HEAP - 1,
    HEAP,
    -HEAP,
    -HEAP - 1,
    3037000500,
    6_000_000_000_000_000_000,
    -7_770_000_000_000_000_000,
    MAX,
    MIN + 1,
    MIN,
];
const FLOATS: &[f64] = &[
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.5,
    -2.5,
    3.0,
    0.1,
    1e-5,
    2.675,
    1.005,
    5.015,
    -1.115,
    123.456,
    0.49999999999999994,
    4503599627370497.5,
    9007199254740992.0,
    -9007199254740994.0,
    4611686018427387904.0,
    9223372036854774784.0,
    9223372036854775808.0,
    -9223372036854775808.0,
    1e300,
    -1e300,
    5e-324,
    1e-310,
    INFINITY,
    -INFINITY,
    NAN,
];
const FEW_INTS: &[i64] = &[0, -1, 3, WHOLE + 1, MIN];
const FEW_FLOATS: &[f64] = &[-0.0, 2.5, -7.25, 1e20, INFINITY, NAN];

pub fn numbers(ints: &[i64], floats: &[f64]) -> Vec<Word> {
    ints.iter().map(|i| Word::Int(*i)).chain(floats.iter().map(|f| Word::Float(*f))).collect()
}

/// Each method with all numbers, with operands that are not numbers, and with constants; `ruby` is the version that
/// answers.
pub fn questions(numbers_of: &Numbers, ruby: (u8, u8)) -> Vec<Question> {
    let all = numbers(numbers_of.ints, numbers_of.floats);
    let few = numbers(numbers_of.few_ints, numbers_of.few_floats);
    let mut out: Vec<Question> = Vec::new();
    let mut add = |callee, name, operands: Vec<Word>, constants| {
        out.push(Question { callee, name, operands, constants });
    };
    for &method in Method::ALL {
        if method == Method::CeilDiv && ruby < (3, 2) {
            continue;
        }
        let callee = Callee::Method(method);
        for name in method.names() {
            let aliases = *name != method.names()[0];
            let receivers = if aliases { &few } else { &all };
            let receivers: Vec<Word> =
                receivers.iter().copied().filter(|r| Method::find(r.kind(), name).is_some()).collect();
            for &receiver in &receivers {
                let arity = method.arity();
                if *arity.start() == 0 {
                    add(callee, name, vec![receiver], false);
                }
                if arity.contains(&1) && method != Method::Clamp {
                    for &arg in if aliases { &few } else { &all } {
                        add(callee, name, vec![receiver, arg], false);
                    }
                }
            }
            for &receiver in few.iter().filter(|r| Method::find(r.kind(), name).is_some()) {
                if method.arity().contains(&1) {
                    for arg in OTHERS.into_iter().chain(ranges()) {
                        add(callee, name, vec![receiver, arg], false);
                    }
                }
                if method.arity().contains(&2) {
                    for a in few.iter().copied().chain(OTHERS) {
                        for b in few.iter().copied().chain(OTHERS) {
                            add(callee, name, vec![receiver, a, b], false);
                        }
                    }
                }
            }
            // Arguments that are known at compile time have shorter code.
            if !aliases && method.arity().contains(&1) && method != Method::Clamp {
                let rounds = matches!(method, Method::Floor | Method::Ceil | Method::Round | Method::Truncate);
                let constants: Vec<i64> = if rounds {
                    vec![-21, -20, -19, -18, -17, -3, -1, 0, 1, 2, 3, 5, 10, 14, 15, 1 << 40]
                } else {
                    vec![-3, -1, 0, 1, 2, 3, 4, 5, 8, 63, 64, MAX, MIN]
                };
                let floats = if rounds { vec![] } else { vec![0.0, 0.5, -2.0, NAN] };
                for arg in numbers(&constants, &floats) {
                    for &receiver in &receivers {
                        add(callee, name, vec![receiver, arg], true);
                    }
                }
            }
            if method == Method::Clamp {
                for &receiver in &all {
                    for (a, b) in [(-1, 3), (0, 0), (3, -1)] {
                        add(callee, name, vec![receiver, Word::Int(a), Word::Int(b)], true);
                        add(callee, name, vec![receiver, Word::IntRange(a, b, false)], false);
                        let (a, b) = (a as f64, b as f64);
                        add(callee, name, vec![receiver, Word::Float(a), Word::Float(b)], true);
                        add(callee, name, vec![receiver, Word::FloatRange(a, b, false)], false);
                    }
                }
            }
        }
    }
    for &a in &all {
        for &b in &all {
            add(Callee::Divmod, "divmod", vec![a, b], false);
        }
        for b in OTHERS {
            add(Callee::Divmod, "divmod", vec![a, b], false);
        }
    }
    for a in all.iter().copied().chain(OTHERS).chain(ranges()) {
        add(Callee::Conversion(Conversion::Integer), "Integer", vec![a], false);
        add(Callee::Conversion(Conversion::Float), "Float", vec![a], false);
        for &function in Function::ALL {
            let callee = Callee::Math(function);
            if function.arity().contains(&1) {
                add(callee, function.name(), vec![a], false);
            }
            if function.arity().contains(&2) && !matches!(a.kind(), Kind::IntRange | Kind::FloatRange) {
                for b in all.iter().copied().chain(OTHERS) {
                    add(callee, function.name(), vec![a, b], false);
                }
            }
        }
    }
    for rand in [Rand::Kernel, Rand::Random] {
        add(Callee::Rand(rand), "rand", vec![], false);
        for arg in all.iter().copied().chain(OTHERS).chain(ranges()) {
            add(Callee::Rand(rand), "rand", vec![arg], false);
        }
    }
    out
}

/// The numbers for which gamma has a table, and angles of the whole circle.
pub fn math_questions() -> Vec<Question> {
    let mut out = Vec::new();
    for i in -30i32..200 {
        let gamma = (Function::Gamma, Word::Int(i.into()));
        let single = Function::ALL.iter().filter(|f| f.arity() == (1..=1));
        for (function, x) in single.map(|f| (*f, Word::Float(f64::from(i) * 0.137))).chain([gamma]) {
            let callee = Callee::Math(function);
            out.push(Question { callee, name: function.name(), operands: vec![x], constants: false });
        }
    }
    out
}

/// `count` cases with numbers of all sizes, the same for one `seed`: decimals to round, and pairs.
pub fn random_questions(seed: u64, count: usize) -> Vec<Question> {
    let mut state = seed;
    let mut next = move || {
        // SplitMix64
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    };
    let mut out = Vec::new();
    for _ in 0..count {
        let integer = |bits: u64| Word::Int((bits as i64) >> (bits % 61));
        let decimal =
            |bits: u64| Word::Float(((bits as i64) >> (bits % 50 + 8)) as f64 / 10f64.powi((bits % 9) as i32));
        let any = |bits: u64| Word::Float(f64::from_bits(bits));
        let mut number = || {
            let bits = next();
            match next() % 4 {
                0 => decimal(bits),
                1 => any(bits),
                _ => integer(bits),
            }
        };
        let (a, b) = (number(), number());
        let digits = Word::Int((next() % 24) as i64 - 8);
        let rounding = [Method::Floor, Method::Ceil, Method::Round, Method::Truncate][(next() % 4) as usize];
        let x = decimal(next());
        let mut add = |method: Method, operands: Vec<Word>| {
            if Method::find(operands[0].kind(), method.names()[0]).is_some() {
                let (callee, name) = (Callee::Method(method), method.names()[0]);
                out.push(Question { callee, name, operands, constants: false });
            }
        };
        add(rounding, vec![x, digits]);
        add(rounding, vec![a, digits]);
        let pairs = [
            Method::Add,
            Method::Mul,
            Method::Div,
            Method::Modulo,
            Method::Remainder,
            Method::IntDiv,
            Method::Fdiv,
            Method::Pow,
            Method::Compare,
            Method::Eq,
            Method::Lt,
            Method::Gcd,
            Method::Lcm,
        ];
        let method = pairs[(next() % pairs.len() as u64) as usize];
        add(method, vec![a, b]);
        out.push(Question { callee: Callee::Divmod, name: "divmod", operands: vec![a, b], constants: false });
    }
    out
}

fn ranges() -> Vec<Word> {
    vec![
        Word::IntRange(1, 3, false),
        Word::IntRange(0, 3, true),
        Word::IntRange(3, 1, false),
        Word::IntRange(2, 2, false),
        Word::IntRange(2, 2, true),
        Word::IntRange(-3, 70, false),
        Word::IntRange(MIN, MAX, false),
        Word::FloatRange(0.5, 2.5, false),
        Word::FloatRange(2.5, 0.5, false),
        Word::FloatRange(0.0, 1.0, true),
    ]
}
