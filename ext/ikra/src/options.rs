//! Options of Ruby calls as options of the core.
//!
//! Here: [`Settings`], the result of `Ikra.configure`, `IKRA_*` and keywords of a call. Not here: the documentation of
//! the options (lib/ikra/config.rb).
//! Invariant: an unknown key or value raises, and the message names the known ones.

use crate::ruby::dtype::Dtype;
use crate::ruby::heap;
use crate::ruby::question;
use crate::ruby::registry::names;
use ikra_core::backend::collective::emitted;
use ikra_core::backend::collective::monitor::Engine;
use ikra_core::backend::collective::reduce::Reduction;
use ikra_core::config::{Arrangement, CodeOptions, Overflow, Precision};
use ikra_core::sched::stencil::Strategy;
use magnus::prelude::*;
use magnus::r_hash::ForEach;
use magnus::rb_sys::AsRawValue;
use magnus::value::LazyId;
use magnus::{Error, Integer, RArray, RHash, RModule, Ruby, Symbol, TryConvert, Value};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::borrow::Cow;

/// The backend that a call asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Choice {
    Auto,
    Reference,
    Cpu,
    Cuda,
    CudaShim,
}

impl Choice {
    pub const ALL: [(&'static str, Choice); 5] = [
        ("auto", Choice::Auto),
        ("cpu", Choice::Cpu),
        ("cuda", Choice::Cuda),
        ("cuda_shim", Choice::CudaShim),
        ("reference", Choice::Reference),
    ];
}

/// All options of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    pub backend: Choice,
    pub code: CodeOptions,
    /// Whether a library may multiply matrices.
    pub blas: bool,
    pub block_size: Option<u32>,
    /// The buffer that results are stored in, if they become one.
    pub into: Option<Results>,
    /// Only the reduction of the results is needed, where it is possible.
    pub reduce: Option<Reduction>,
    pub flags: Flags,
    /// What the values of each group of [`Flag::Groups`] combine to, where tables can do that.
    pub combine: Option<Combine>,
    /// How they are grouped.
    pub engine: Engine,
    /// How stencils read the values before them, where there is a choice. It serves measurements and changes no result.
    pub stencils: Option<Strategy>,
}

/// What values of a group combine to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combine {
    Sum,
    /// The same, not rounded, and of any size: to be added to those of other sections.
    Total,
    Min,
    Max,
    And,
    Or,
    /// How many there are.
    Count,
    First,
}

impl Combine {
    /// The same for tables in kernels.
    pub fn in_kernels(self) -> Option<emitted::Combine> {
        Some(match self {
            // the values of pairs are 1
            Self::Sum | Self::Total | Self::Count => emitted::Combine::Sum,
            Self::Min => emitted::Combine::Min,
            Self::Max => emitted::Combine::Max,
            Self::And => emitted::Combine::And,
            Self::Or => emitted::Combine::Or,
            Self::First => return None,
        })
    }
}

const COMBINATIONS: [(&str, Combine); 8] = [
    ("sum", Combine::Sum),
    ("total", Combine::Total),
    ("min", Combine::Min),
    ("max", Combine::Max),
    ("and", Combine::And),
    ("or", Combine::Or),
    ("count", Combine::Count),
    ("first", Combine::First),
];

/// What Ikra's own Ruby code may ask of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Reduces only Integers.
    Exact,
    /// The reduction may not be all that is needed: the section may have to run again.
    Again,
    /// A section whose results cannot be reduced is not run.
    Only,
    /// A section that changes more than its results, or draws random numbers, is not run.
    Pure,
    /// Where results are arrays of numbers, their elements become one buffer, one array after the other.
    Join,
    /// Results that are `Ikra::Hole` are left out.
    Holes,
    /// The section is one of several that process the elements together.
    Piece,
    /// A stencil may be better off reading values that another section has computed: then nothing is run.
    Apart,
    /// Results are the last pairs that elements emitted. All pairs become two lists.
    Pairs,
    /// The same, with the pairs of each key together.
    Groups,
    /// Kernels group the pairs that they emit ([`ikra_core::ir::Stmt::Emit`]). Where they cannot, the section is not
    /// run.
    Tables,
    /// Its elements are some of all. A section that asks for their positions, changes more than its results, or draws
    /// random numbers, raises NeedsAll.
    Slab,
    /// Elements are grouped by their results, where these are.
    Keys,
    /// The same, where only the first element of each group is wanted.
    Firsts,
    /// The same, where only each result is wanted once.
    Each,
    /// The same, with how often it occurs.
    Counts,
    /// A section whose results are no Strings is not run.
    Texts,
    /// With [`Flag::Tables`], a section whose keys are Strings is not run on the host.
    NoTexts,
    /// With [`Flag::Tables`], groups stay in columns.
    Columns,
}

impl Flag {
    /// The flags that are options, by their names. [`Flag::Exact`] is a part of `__reduce`.
    const NAMED: [(&str, Self); 18] = [
        ("__again", Self::Again),
        ("__only", Self::Only),
        ("__pure", Self::Pure),
        ("__join", Self::Join),
        ("__holes", Self::Holes),
        ("__piece", Self::Piece),
        ("__apart", Self::Apart),
        ("__pairs", Self::Pairs),
        ("__groups", Self::Groups),
        ("__tables", Self::Tables),
        ("__slab", Self::Slab),
        ("__keys", Self::Keys),
        ("__firsts", Self::Firsts),
        ("__each", Self::Each),
        ("__counts", Self::Counts),
        ("__texts", Self::Texts),
        ("__no_texts", Self::NoTexts),
        ("__columns", Self::Columns),
    ];

    fn bit(self) -> u32 {
        1 << self as u8
    }
}

/// A set of flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    pub fn has(self, flag: Flag) -> bool {
        self.0 & flag.bit() != 0
    }

    fn set(&mut self, flag: Flag, on: bool) {
        self.0 = if on { self.0 | flag.bit() } else { self.0 & !flag.bit() };
    }
}

/// The buffer that results become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// Of the dtype of the results.
    Natural,
    As(Dtype),
    /// As `Natural` where results are all Integers, all Floats, or all true or false. Else an Array.
    Numbers,
}

/// Ikra's names of reductions.
pub const REDUCTIONS: [(&str, Reduction); 5] = [
    ("sum", Reduction::Sum),
    ("min", Reduction::Min),
    ("max", Reduction::Max),
    ("minmax", Reduction::MinMax),
    ("count", Reduction::Count),
];

const KEYS: [&str; 10] = [
    "backend",
    "blas",
    "block_size",
    "blocks",
    "check",
    "fast_math",
    "memory_limit",
    "overflow",
    "precision",
    "unsupported",
];

/// The Ruby that this extension was built for. The same Ruby runs it.
const RUBY: (u8, u8) = (rb_sys::RUBY_API_VERSION_MAJOR as u8, rb_sys::RUBY_API_VERSION_MINOR as u8);

/// The defaults of this process.
static DEFAULTS: Mutex<Settings> = Mutex::new(Settings {
    backend: Choice::Auto,
    code: CodeOptions {
        ruby: RUBY,
        even_by_parts: false,
        negative_poles: false,
        exact_eighths: false,
        single_lost: false,
        overflow: Overflow::Raise,
        fast_math: false,
        precision: Precision::Double,
        races: false,
        arrangement: Arrangement::Columns,
        reorder: true,
    },
    blas: true,
    block_size: None,
    into: None,
    reduce: None,
    flags: Flags(0),
    combine: None,
    engine: Engine::Auto,
    stencils: None,
});

/// Asks the running Ruby for what its version does not say.
///
/// # Errors
/// What the methods asked raise.
pub fn learn(ruby: &Ruby) -> Result<(), Error> {
    let even = magnus::kwargs!("half" => ruby.to_symbol("even"));
    // The old algorithm chooses the Float below, the new one the Float above.
    let rounded: f64 = ruby.float_from_f64(833.085).funcall("round", (2, even))?;
    let math: RModule = ruby.class_object().const_get("Math")?;
    let (_, sign): (f64, i64) = math.funcall("lgamma", (-1.0,))?;
    // The power has an Integer 0 for its real part where it is made of squares.
    let imaginary: Value = ruby.module_kernel().funcall("Complex", (0, 1.0))?;
    let power: Value = imaginary.funcall("**", (3,))?;
    let real: Value = power.funcall("real", ())?;
    let single = ruby.range_new(3, 3, false)?;
    let last: RArray = single.funcall("last", (1,))?;
    let code = &mut DEFAULTS.lock().code;
    code.single_lost = last.is_empty();
    code.even_by_parts = rounded > 833.085;
    code.negative_poles = sign < 0;
    code.exact_eighths = real.is_kind_of(ruby.class_float());
    Ok(())
}

/// Arguments of a section that are no settings.
#[derive(Clone, Copy, Default)]
pub struct Asked {
    /// The error callback: called later with what the section raised, if the call does not wait for it.
    pub error_callback: Option<Value>,
    /// An Array that receives the choice made for each stencil.
    pub told: Option<RArray>,
}

impl Settings {
    /// The defaults, changed by a call's keywords.
    ///
    /// # Errors
    /// ArgumentError for an unknown key or value.
    pub fn for_call(ruby: &Ruby, options: Option<RHash>) -> Result<Self, Error> {
        Self::of_section(ruby, options).map(|(settings, _)| settings)
    }

    /// The defaults, with results in a buffer.
    pub fn defaults_into(into: Results) -> Self {
        Self { into: Some(into), ..*DEFAULTS.lock() }
    }

    /// The same, with the arguments of a section that are no settings.
    ///
    /// # Errors
    /// As [`Settings::for_call`].
    pub fn of_section(ruby: &Ruby, options: Option<RHash>) -> Result<(Self, Asked), Error> {
        let (mut settings, mut asked) = (*DEFAULTS.lock(), Asked::default());
        let Some(options) = options.filter(|options| !options.is_empty()) else { return Ok((settings, asked)) };
        let is = |key: Value, name: &'static LazyId| Symbol::from_value(key).is_some_and(|key| key == *name);
        // errors are returned, not raised within the Hash: that ends the process where Thread#kill arrives just then
        let mut given = SmallVec::<[(Value, Value); 8]>::new();
        options.foreach(|key: Value, value: Value| {
            given.push((key, value));
            Ok(ForEach::Continue)
        })?;
        for (key, value) in given {
            if is(key, &names::ERROR_CALLBACK) {
                asked.error_callback = Some(value);
            } else if is(key, &names::TOLD) {
                asked.told = RArray::from_value(value);
            } else if is(key, &names::INTO) && value.as_raw() == heap::TRUE {
                settings.into = Some(Results::Natural);
            } else if is(key, &names::INTO)
                && let Some(at) = names::DTYPES.iter().position(|name| is(value, name))
            {
                settings.into = Some(Results::As(Dtype::ALL[at].1));
            } else {
                settings.set(ruby, &text(key)?, value)?;
            }
        }
        Ok((settings, asked))
    }

    fn set(&mut self, ruby: &Ruby, key: &str, value: Value) -> Result<(), Error> {
        let given = text(value)?;
        let is_true = || one_of(ruby, key, value, &given, &["false", "true"]).map(|at| at == 1);
        match key {
            "backend" => {
                let name = given.replace('-', "_");
                let known = Choice::ALL.iter().find(|(known, _)| *known == name);
                // The backend for tests is not among the advice.
                let told = |choice| choice != Choice::CudaShim || self.backend == Choice::CudaShim;
                self.backend = match known {
                    Some((_, choice)) => *choice,
                    None => {
                        let names = Choice::ALL.iter().filter(|(_, choice)| told(*choice));
                        return none_of(ruby, key, value, &names.map(|(name, _)| *name).collect::<Vec<_>>()).map(drop);
                    }
                };
            }
            "overflow" => {
                let at = one_of(ruby, key, value, &given, &["raise", "wrap"])?;
                self.code.overflow = [Overflow::Raise, Overflow::Wrap][at];
            }
            "blas" => self.blas = is_true()?,
            "fast_math" => self.code.fast_math = is_true()?,
            "precision" => {
                let at = one_of(ruby, key, value, &given, &["f64", "f32"])?;
                self.code.precision = [Precision::Double, Precision::Single][at];
            }
            // A check that the host makes by itself (lib/ikra/operation.rb) changes no program.
            "check" => self.code.races = one_of(ruby, key, value, &given, &["none", "races", "associative"])? == 1,
            "unsupported" => drop(one_of(ruby, key, value, &given, &["raise", "ruby"])?),
            "block_size" => {
                self.block_size = match value {
                    nil if nil.is_nil() => None,
                    size => match number(ruby, size)?.or_else(|| given.parse().ok()) {
                        Some(size) if (1..=1024).contains(&size) => Some(size),
                        _ => {
                            return Err(argument(
                                ruby,
                                format!(
                                    "block_size: {} is not an Integer from 1 to 1024",
                                    question::described(value, question::shown)?
                                ),
                            ));
                        }
                    },
                };
            }
            // Ikra's own Ruby code passes these.
            "__into" => {
                self.into = Some(match &*given {
                    "true" => Results::Natural,
                    "numbers" => Results::Numbers,
                    _ => Results::As(Dtype::of(ruby, value)?),
                });
            }
            "__reduce" => {
                let name = given.strip_prefix("exact_").unwrap_or(&given);
                let at = one_of(ruby, key, value, name, &REDUCTIONS.map(|(name, _)| name))?;
                self.reduce = Some(REDUCTIONS[at].1);
                self.flags.set(Flag::Exact, name != given);
            }
            name if let Some((_, flag)) = Flag::NAMED.iter().find(|(known, _)| *known == name) => {
                self.flags.set(*flag, is_true()?);
            }
            "__combine" => {
                let at = one_of(ruby, key, value, &given, &COMBINATIONS.map(|(name, _)| name))?;
                self.combine = Some(COMBINATIONS[at].1);
            }
            "__engine" => {
                self.engine = Engine::ALL[one_of(ruby, key, value, &given, &Engine::ALL.map(Engine::name))?];
            }
            "memory_limit" => {
                let message = "memory_limit is for the whole process: Ikra.configure { |c| c.memory_limit = … }";
                return Err(argument(ruby, message.into()));
            }
            // For benchmark/micro, which measures what these are worth. They change no result.
            "__layout" => {
                let at = one_of(ruby, key, value, &given, &["columns", "structures"])?;
                self.code.arrangement = [Arrangement::Columns, Arrangement::Structures][at];
            }
            "__stencils" => {
                let at = one_of(ruby, key, value, &given, &["none", "anew", "shared", "apart"])?;
                self.stencils = [None, Some(Strategy::Recompute), Some(Strategy::Shared), Some(Strategy::Separate)][at];
            }
            "__reorder" => self.code.reorder = is_true()?,
            // So far backends decide into how many chunks work is cut.
            "blocks" => {
                if !value.is_nil() && number(ruby, value)?.is_none_or(|blocks| blocks == 0) {
                    return Err(argument(
                        ruby,
                        format!("blocks: {} is not a positive Integer", question::described(value, question::shown)?),
                    ));
                }
            }
            _ => {
                let known = KEYS.join(", ");
                return Err(argument(ruby, format!("unknown option {key}: Ikra's options are {known}")));
            }
        }
        Ok(())
    }
}

/// `Ikra.__check(options)`: raises for an option that no call takes.
///
/// # Errors
/// ArgumentError for an unknown key or value.
pub fn check(ruby: &Ruby, options: RHash) -> Result<(), Error> {
    Settings::for_call(ruby, Some(options)).map(drop)
}

/// `Ikra.__configure(key, value)`: changes a default.
///
/// # Errors
/// ArgumentError for an unknown key or value.
pub fn configure(ruby: &Ruby, key: Symbol, value: Value) -> Result<(), Error> {
    if key.name()? == "memory_limit" {
        let bytes = if value.is_nil() {
            None
        } else {
            Integer::from_value(value).and_then(|bytes| bytes.to_u64().ok()).filter(|bytes| *bytes > 0)
        };
        if bytes.is_none() && !value.is_nil() {
            return Err(argument(
                ruby,
                format!("memory_limit: {} is not a positive Integer", question::described(value, question::shown)?),
            ));
        }
        ikra_core::config::set_memory_limit(bytes);
        return Ok(());
    }
    let mut settings = *DEFAULTS.lock();
    settings.set(ruby, &key.name()?, value)?;
    *DEFAULTS.lock() = settings;
    Ok(())
}

/// A Symbol or String as text; nil is `none`.
fn text(value: Value) -> Result<Cow<'static, str>, Error> {
    Ok(match Symbol::from_value(value) {
        Some(symbol) => symbol.name()?.into_owned().into(),
        None => match value.as_raw() {
            heap::NIL => "none".into(),
            heap::TRUE => "true".into(),
            heap::FALSE => "false".into(),
            _ => question::described(value, question::text)?.into(),
        },
    })
}

/// What Ruby makes an Integer of that fits; None: it is none.
fn number(ruby: &Ruby, value: Value) -> Result<Option<u32>, Error> {
    Ok(question::own(ruby, ruby.exception_standard_error(), || u32::try_convert(value))?.given())
}

fn one_of(ruby: &Ruby, key: &str, value: Value, given: &str, known: &[&str]) -> Result<usize, Error> {
    let at = known.iter().position(|k| *k == given);
    at.map_or_else(|| none_of(ruby, key, value, known), Ok)
}

/// The error of an option's value that is none of those that are known.
fn none_of(ruby: &Ruby, key: &str, value: Value, known: &[&str]) -> Result<usize, Error> {
    let shown = |name: &&str| match *name {
        "none" => "nil".to_owned(),
        "true" | "false" => (*name).to_owned(),
        name => format!(":{name}"),
    };
    let known = known.iter().map(shown).collect::<Vec<_>>().join(", ");
    Err(argument(ruby, format!("{key}: {} is not one of {known}", question::described(value, question::shown)?)))
}

fn argument(ruby: &Ruby, message: String) -> Error {
    Error::new(ruby.exception_arg_error(), message)
}
