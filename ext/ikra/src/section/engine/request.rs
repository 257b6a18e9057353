//! What a section is asked to do.
//!
//! Here: [`Request`], parsed once from the arguments of `Ikra.__section`. Not here: options ([`crate::options`]), and
//! what is done about it ([`super`]).

use super::cache::Within;
use super::finish::ended;
use crate::buffers::buffer;
use crate::options::{Asked, Results, Settings};
use crate::ruby::dtype::Dtype;
use crate::ruby::heap::{self, Seen};
use crate::ruby::question;
use crate::ruby::range::Bounds;
use crate::ruby::reflect;
use crate::ruby::registry::names;
use crate::world::block::{Captures, Given};
use ikra_core::backend::Key;
use ikra_core::engine::SectionOp;
use ikra_core::memory::buffer::Buffer;
use magnus::block::Proc;
use magnus::prelude::*;
use magnus::rb_sys::{AsRawId, AsRawValue};
use magnus::value::{Id, IntoId};
use magnus::{Error, RArray, RHash, Ruby, Symbol, TryConvert, Value};
use std::sync::Arc;

/// The arguments of `Ikra.__section(operation, kind, base, ticks, options, block, within)`.
///
/// * `operation`: the method that the user called.
/// * `kind`: `:map`, `:each`, `:find` or `:another`. `:find` runs for effect until the methods `within` give true.
///   `:another` does the same, but the first true value restarts the section, with the index of its element in place of
///   the first given value.
/// * `within`: nil, or a list of methods, each `[name, given…]`.
///
/// Gives the section's value. With `within` it gives an array: how the section ended, and its value. How it ended is
/// one of:
///
/// * nil: all elements ran.
/// * `:found`: with the index of the element.
/// * `:left`: by `break`, with its value, and then the results of the elements before.
/// * `:reduced`, `:refused`, `:apart`, `:grouped`: see the options.
///
/// Results that are a buffer are given as they are. These options are Ikra's own:
///
/// * `__reduce:`: the value is the reduction of the results ([`crate::section::collect::reduce_buffer`]), and the
///   section ended as `:reduced`. Where the results cannot be reduced so, they are the value.
/// * `__reduce:`, `__into: :numbers` and `__holes: true`: elements whose result is `Ikra::Hole` are left out, where the
///   other results are numbers of one kind.
/// * `__only: true`: a section whose results cannot be reduced so does not run. Nor does one that looks for an element
///   and may find another one when it runs again. It ended as `:refused`.
/// * `__piece: true`: a section whose elements cannot be processed in several sections ended as `:refused`.
/// * `__pure: true`: a section that changes more than its results, or draws random numbers, ended as `:refused`.
/// * `__apart: true`: a section does not run where a stencil had better read values that another section has computed.
///   It ended as `:apart`, with the number of the stencil among those that read computed values.
/// * `__error_callback:`: an exception may be raised later, when the results are read. This object's `deferred_error`
///   makes it ready.
/// * `__told:`: an Array that receives the choice made for each of these stencils, when the section is compiled.
/// * `__join: true`: where results are arrays of Integers, or of Floats, which the section made, the value is a buffer
///   of their elements, one array after the other.
/// * `__tables: true`, `__groups: true`: the block adds its pairs to the groups that the section gives, with one value
///   for each key. It ended as `:refused` where kernels cannot combine these values, or compare these keys.
/// * `__slab: true`: the elements are some of all. A section that asks for `Ikra.index`, changes more than its results,
///   or draws random numbers, raises `Ikra::NeedsAll`.
/// * `__keys: true`, `__firsts: true`, `__each: true`, `__counts: true`: elements are to be grouped by the results.
///   Where these are compared as they are, the section ended as `:grouped`, and the value is what
///   [`crate::section::grouping::by_results`] gives. Else they are the value.
/// * `__texts: true`: a section whose results are no Strings ended as `:refused`.
/// * `__no_texts: true`: a section with `__tables` whose keys are Strings ended as `:refused`, unless it ran on a
///   device.
/// * `__columns: true`: the groups of a section with `__tables` stay in columns, where they can.
/// * `__pairs: true`, `__groups: true`: results are the last pairs of chains of `Ikra::Pair`. The value is what
///   [`crate::section::grouping::pairs`] makes of all pairs.
pub type Arguments = (Symbol, Symbol, Value, u64, Option<RHash>, Proc, Option<RArray>);

/// What becomes of the block's values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// They are the results.
    Map,
    /// Nothing.
    Each,
    /// The first that is true ends the section.
    Find,
    /// The second that is true ends the section.
    Another,
}

impl Kind {
    fn of(name: Symbol) -> Self {
        match name {
            name if name == names::MAP => Self::Map,
            name if name == names::FIND => Self::Find,
            name if name == names::ANOTHER => Self::Another,
            _ => Self::Each,
        }
    }

    /// Whether the section looks for an element.
    pub(super) fn finds(self) -> bool {
        matches!(self, Self::Find | Self::Another)
    }

    /// The same for the compiler.
    pub(super) fn op(self) -> SectionOp {
        if self == Self::Map { SectionOp::Map } else { SectionOp::Each }
    }
}

/// What a section is asked to do.
pub(super) struct Request {
    /// The name that messages and profiles show.
    pub(super) operation: Symbol,
    pub(super) kind: Kind,
    pub(super) base: Value,
    /// First element and number of elements, if the base is a Range.
    pub(super) range: Option<(i64, usize)>,
    /// How many elements the base has when the section begins.
    pub(super) elements: usize,
    pub(super) ticks: u64,
    pub(super) settings: Settings,
    pub(super) captures: Captures,
    /// Whether the caller wants to know how the section ended.
    pub(super) wrapped: bool,
    /// The error callback: called later with what it raised, if the call does not wait for it.
    pub(super) error_callback: Option<Value>,
    /// An Array that receives the choice made for each stencil.
    pub(super) told: Option<RArray>,
}

impl Request {
    /// The request, and the methods that its block is passed to. `captures` are the block's.
    ///
    /// # Errors
    /// ArgumentError for an unknown option, for a base that is no Array and no Range of Integers with an end, and for
    /// too many elements or ticks.
    pub(super) fn parse(ruby: &Ruby, arguments: Arguments, captures: Captures) -> Result<(Self, Within), Error> {
        let (operation, kind, base, ticks, options, _, within) = arguments;
        let kind = Kind::of(kind);
        let (settings, Asked { error_callback, told }) = Settings::of_section(ruby, options)?;
        let range = match RArray::from_value(base) {
            Some(_) => None,
            None => Some(int_range(ruby, base)?),
        };
        let elements = range.map_or_else(|| heap::elements(base.as_raw()).len(), |(_, len)| len);
        if ticks > 0 && elements as u64 > Key::MAX_ELEMENTS || elements > 0 && ticks > Key::MAX_TICKS {
            let message = format!("a section has at most {} elements and {} ticks", Key::MAX_ELEMENTS, Key::MAX_TICKS);
            return Err(Error::new(ruby.exception_arg_error(), message));
        }
        let wrapped = within.is_some();
        let (mut within, given) = Within::of(within, kind.finds())?;
        if within.methods.is_empty() && (captures.is_lambda() || captures.is_native()?) {
            within.methods.push((names::LAMBDA.into_id_with(ruby).as_raw(), 0));
            within.finds = kind.finds();
        }
        let captures = captures.with(given);
        let request =
            Self { operation, kind, base, range, elements, ticks, settings, captures, wrapped, error_callback, told };
        Ok((request, within))
    }

    /// The value of a section without elements or ticks. None where the block runs.
    pub(super) fn nothing(&self, ruby: &Ruby) -> Option<Value> {
        if self.elements > 0 && self.ticks > 0 {
            return None;
        }
        let value = match (self.kind, self.settings.into) {
            (Kind::Map, Some(into @ (Results::Natural | Results::As(_)))) => {
                let dtype = if let Results::As(dtype) = into { dtype } else { Dtype::F64 };
                return Some(buffer::wrap(ruby, dtype, Arc::new(Buffer::zeroed(dtype.storage(), 0))).as_value());
            }
            (Kind::Map, _) => ruby.ary_new().as_value(),
            (Kind::Another, _) => ruby.into_value(-1),
            (Kind::Each | Kind::Find, _) => self.base,
        };
        Some(if self.wrapped { ended(ruby, None, value, None) } else { value })
    }
}

impl Within {
    /// The methods that a block is passed to, and their other arguments, which the list keeps alive. A block that is
    /// passed to no method is the same site as without a list.
    fn of(list: Option<RArray>, finds: bool) -> Result<(Self, Given), Error> {
        let (mut within, mut given) = (Self::default(), Given::new());
        let methods = list.map(|list| heap::elements(list.as_raw())).unwrap_or_default();
        for method in methods {
            let method = RArray::try_convert(reflect::value(*method))?;
            let [name, values @ ..] = heap::elements(method.as_raw()) else { continue };
            let name = Symbol::try_convert(reflect::value(*name))?;
            within.methods.push((Id::from(name).as_raw(), values.len()));
            given.extend_from_slice(values);
        }
        within.finds = finds && !within.methods.is_empty();
        Ok((within, given))
    }
}

/// First element and number of elements of a Range of Integers.
fn int_range(ruby: &Ruby, range: Value) -> Result<(i64, usize), Error> {
    let bounds = Bounds::of(ruby, range.as_raw()).map(|bounds| (heap::see(bounds.from), heap::see(bounds.to), bounds));
    let Some((Seen::Int(from), Seen::Int(to), bounds)) = bounds else {
        let message = format!(
            "Ikra runs over Arrays and over Ranges of Integers with an end, not over {}: call to_a first, if it has an end",
            question::described(range, question::shown)?
        );
        return Err(Error::new(ruby.exception_arg_error(), message));
    };
    let len = (i128::from(to) - i128::from(from) + i128::from(!bounds.exclusive)).max(0);
    Ok((from, usize::try_from(len).unwrap_or(usize::MAX)))
}
