//! The form of an array expression: what the text of its kernel depends on, and what its captured variables hold.
//!
//! Here: `Ikra.__form`, which every call asks, and `Ikra.__described`, which serves the writing of a text. Not here:
//! the text (lib/ikra/mdarray/text.rb), and expressions (lib/ikra/mdarray/expression.rb).
//!
//! An operand is a number: three times its index, plus its sort ([`LEAF`], [`SCALAR`], [`STEP`]). Equal arrays are one
//! leaf. Dimensions of size 1 are left out, and dimensions that are contiguous in all leaves are one.
//! Invariant: nothing allocates in Ruby's heap until the walk has ended, so what it reads stays where it is.

use crate::ruby::heap::{self, Raw};
use crate::ruby::reflect;
use crate::ruby::registry::names;
use magnus::prelude::*;
use magnus::rb_sys::{AsRawId, AsRawValue};
use magnus::value::{IntoId, LazyId};
use magnus::{Error, RArray, Ruby, Symbol, Value};
use rb_sys::ID;
use smallvec::SmallVec;

const LEAF: u32 = 0;
const SCALAR: u32 = 1;
const STEP: u32 = 2;

type Numbers = SmallVec<[i64; 4]>;

/// How a leaf is traversed along a dimension: its stride, if that is 0 or 1.
const BY_STRIDE: i64 = -1;

/// An array that is read.
struct Leaf {
    buffer: Raw,
    dtype: Raw,
    /// The distance of neighbours in each dimension of the expression.
    strides: Numbers,
    offset: i64,
}

/// An operator, with the numbers of its operands.
struct Step {
    node: Raw,
    name: Raw,
    dtype: Raw,
    operands: SmallVec<[u32; 3]>,
    /// The dtypes of the operands.
    dtypes: SmallVec<[Raw; 3]>,
}

/// The names of the ivars that are read.
struct Ivars {
    buffer: ID,
    dtype: ID,
    layout: ID,
    name: ID,
    offset: ID,
    operands: ID,
    shape: ID,
    strides: ID,
    value: ID,
}

/// A walk over an expression.
struct Walk {
    ivars: Ivars,
    shape: Numbers,
    found: SmallVec<[(Raw, u32); 16]>,
    leaves: SmallVec<[Leaf; 4]>,
    scalars: SmallVec<[Raw; 4]>,
    steps: SmallVec<[Step; 8]>,
}

/// The form of an expression.
struct Form {
    root: u32,
    walk: Walk,
    /// Whether each leaf has the element at the place of its own number.
    flat: bool,
    sizes: Numbers,
    /// The strides of each leaf along these.
    strides: SmallVec<[Numbers; 4]>,
}

/// The strides of a list of these sizes, row after row.
fn packed(sizes: &[i64]) -> Numbers {
    let mut strides: Numbers = sizes.iter().map(|_| 1).collect();
    for dimension in (1..sizes.len()).rev() {
        strides[dimension - 1] = strides[dimension] * sizes[dimension];
    }
    strides
}

fn numbers(list: Raw) -> Numbers {
    heap::elements(list).iter().map(|number| heap::fixnum(*number)).collect()
}

impl Walk {
    fn new(ruby: &Ruby, shape: Raw) -> Self {
        let id = |name: &LazyId| name.into_id_with(ruby).as_raw();
        let ivars = Ivars {
            buffer: id(&names::BUFFER),
            dtype: id(&names::DTYPE),
            layout: id(&names::LAYOUT),
            name: id(&names::NAME),
            offset: id(&names::OFFSET),
            operands: id(&names::OPERANDS),
            shape: id(&names::SHAPE),
            strides: id(&names::STRIDES),
            value: id(&names::VALUE),
        };
        let (found, leaves, scalars, steps) = (SmallVec::new(), SmallVec::new(), SmallVec::new(), SmallVec::new());
        Self { ivars, shape: numbers(shape), found, leaves, scalars, steps }
    }

    /// The number of a node as an operand.
    fn visit(&mut self, node: Raw) -> u32 {
        if let Some((_, known)) = self.found.iter().find(|(other, _)| *other == node) {
            return *known;
        }
        let (layout, name) = (heap::ivar(node, self.ivars.layout), heap::ivar(node, self.ivars.name));
        let operand = if name != heap::NIL {
            match heap::ivar(node, self.ivars.operands) {
                // It is computed.
                heap::NIL => {
                    let sizes = numbers(heap::ivar(node, self.ivars.shape));
                    let strides = packed(&sizes);
                    self.leaf(node, (sizes, strides, 0))
                }
                operands => self.step(node, name, operands),
            }
        } else if layout != heap::NIL {
            let [sizes, strides] = [self.ivars.shape, self.ivars.strides].map(|ivar| numbers(heap::ivar(layout, ivar)));
            let offset = heap::fixnum(heap::ivar(layout, self.ivars.offset));
            self.leaf(node, (sizes, strides, offset))
        } else {
            self.scalars.push(node);
            3 * (self.scalars.len() as u32 - 1) + SCALAR
        };
        self.found.push((node, operand));
        operand
    }

    fn step(&mut self, node: Raw, name: Raw, operands: Raw) -> u32 {
        let (mut found, mut dtypes) = (SmallVec::new(), SmallVec::new());
        for operand in heap::elements(operands) {
            found.push(self.visit(*operand));
            dtypes.push(heap::ivar(*operand, self.ivars.dtype));
        }
        let dtype = heap::ivar(node, self.ivars.dtype);
        self.steps.push(Step { node, name, dtype, operands: found, dtypes });
        3 * (self.steps.len() as u32 - 1) + STEP
    }

    /// Equal arrays are read once.
    fn leaf(&mut self, node: Raw, (sizes, strides, offset): (Numbers, Numbers, i64)) -> u32 {
        let (buffer, dtype) = (heap::ivar(node, self.ivars.buffer), heap::ivar(node, self.ivars.dtype));
        let strides = if sizes == self.shape {
            strides
        } else {
            // Missing dimensions, and those of size 1, are repeated.
            let missing = self.shape.len().saturating_sub(sizes.len());
            let stride = |at: usize| if at < missing || sizes[at - missing] == 1 { 0 } else { strides[at - missing] };
            (0..self.shape.len()).map(stride).collect()
        };
        let same = |leaf: &Leaf| leaf.buffer == buffer && leaf.offset == offset && leaf.strides == strides;
        let at = self.leaves.iter().position(same).unwrap_or_else(|| {
            self.leaves.push(Leaf { buffer, dtype, strides, offset });
            self.leaves.len() - 1
        });
        3 * at as u32 + LEAF
    }

    /// Whether a leaf has all elements from the first place on, row after row.
    fn is_packed(&self, leaf: &Leaf) -> bool {
        let mut apart = 1;
        leaf.offset == 0
            && self.shape.iter().zip(&leaf.strides).rev().all(|(size, stride)| {
                let fits = *size == 1 || *stride == apart;
                apart = apart.wrapping_mul(*size); // only sizes of no array overflow
                fits
            })
    }
}

impl Form {
    fn of(ruby: &Ruby, expression: Value, shape: RArray) -> Self {
        let mut walk = Walk::new(ruby, shape.as_raw());
        let root = walk.visit(expression.as_raw());
        // Nearly always all leaves are contiguous.
        let flat = walk.leaves.iter().all(|leaf| walk.is_packed(leaf));
        let (sizes, strides) = if flat { Default::default() } else { together(&walk.shape, &walk.leaves) };
        Self { root, walk, flat, sizes, strides }
    }

    /// How a leaf is traversed along each dimension: 0, 1 or [`BY_STRIDE`]. None: its elements are consecutive.
    fn ways(&self, leaf: usize) -> Option<Numbers> {
        let strides = self.strides.get(leaf).filter(|strides| **strides != packed(&self.sizes))?;
        Some(strides.iter().map(|stride| if matches!(stride, 0 | 1) { *stride } else { BY_STRIDE }).collect())
    }

    fn begins_at_first(&self, leaf: usize) -> bool {
        self.walk.leaves[leaf].offset == 0
    }

    /// Offsets and strides that are not in the text: for each leaf, the dimension (None: its offset), and the number.
    fn places(&self) -> SmallVec<[(usize, Option<usize>, i64); 8]> {
        let mut places = SmallVec::new();
        for leaf in 0..if self.flat { 0 } else { self.walk.leaves.len() } {
            if !self.begins_at_first(leaf) {
                places.push((leaf, None, self.walk.leaves[leaf].offset));
            }
            let ways = self.ways(leaf).unwrap_or_default();
            let by = ways.iter().enumerate().filter(|(_, way)| **way == BY_STRIDE);
            places.extend(by.map(|(dimension, _)| (leaf, Some(dimension), self.strides[leaf][dimension])));
        }
        places
    }

    /// Words that are equal for forms with the same text.
    fn key(&self, sort: Raw) -> SmallVec<[u64; 32]> {
        let Walk { leaves, scalars, steps, ivars, .. } = &self.walk;
        let counts = [leaves.len(), scalars.len(), steps.len(), self.sizes.len()].map(|count| count as u64);
        let mut key: SmallVec<[u64; 32]> = SmallVec::from_slice(&counts);
        key.extend([sort, u64::from(self.root), u64::from(self.flat)]);
        for step in steps {
            key.extend([step.name, step.dtype, step.operands.len() as u64]);
            key.extend(step.operands.iter().map(|operand| u64::from(*operand)));
            key.extend(step.dtypes.iter().copied());
        }
        key.extend(scalars.iter().map(|scalar| heap::ivar(*scalar, ivars.dtype)));
        for (at, leaf) in leaves.iter().enumerate() {
            key.push(leaf.dtype);
            if !self.flat {
                let ways = self.ways(at);
                key.extend([u64::from(ways.is_some()), u64::from(self.begins_at_first(at))]);
                key.extend(ways.unwrap_or_default().iter().map(|way| *way as u64));
            }
        }
        key
    }
}

/// The sizes of dimensions, and the strides of each leaf along them. Dimensions of size 1 are left out. Neighbouring
/// ones are merged where both have one stride in every leaf.
fn together(shape: &[i64], leaves: &[Leaf]) -> (Numbers, SmallVec<[Numbers; 4]>) {
    let (mut sizes, mut strides) = (Numbers::new(), SmallVec::<[Numbers; 4]>::new());
    strides.resize(leaves.len(), Numbers::new());
    for (dimension, size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
        let inner = |leaf: usize| leaves[leaf].strides[dimension];
        let one = |(leaf, outer): (usize, &Numbers)| outer.last() == Some(&(inner(leaf) * size));
        if let Some(last) = sizes.last_mut().filter(|_| strides.iter().enumerate().all(one)) {
            *last *= size;
            strides.iter_mut().for_each(|outer| outer.truncate(outer.len() - 1));
        } else {
            sizes.push(*size);
        }
        strides.iter_mut().enumerate().for_each(|(leaf, outer)| outer.push(inner(leaf)));
    }
    (sizes, strides)
}

/// `Ikra.__form(expression, shape, sort)`: a String that is equal for expressions of such a shape whose texts of this
/// sort are the same, and what the captured variables of the text hold.
///
/// # Errors
/// NoMemoryError.
pub fn form(ruby: &Ruby, expression: Value, shape: RArray, sort: Symbol) -> Result<RArray, Error> {
    let form = Form::of(ruby, expression, shape);
    let key: SmallVec<[u8; 256]> = form.key(sort.as_raw()).iter().flat_map(|word| word.to_ne_bytes()).collect();
    let Walk { leaves, scalars, ivars, .. } = &form.walk;
    let mut values: SmallVec<[Value; 16]> = SmallVec::new();
    values.extend(leaves.iter().map(|leaf| reflect::value(leaf.buffer)));
    values.extend(scalars.iter().map(|scalar| reflect::value(heap::ivar(*scalar, ivars.value))));
    let numbers = form.sizes.iter().skip(1).copied().chain(form.places().into_iter().map(|(.., number)| number));
    let numbers: Numbers = numbers.collect();
    // From here on Ruby's heap may grow. The expression keeps the values.
    let array = ruby.ary_new_capa(1 + values.len() + numbers.len());
    array.push(ruby.str_from_slice(&key))?;
    values.iter().try_for_each(|value| array.push(*value))?;
    numbers.iter().try_for_each(|number| array.push(*number))?;
    Ok(array)
}

/// `Ikra.__described(expression, shape)`: what a text is written from. It has, in this order:
///
/// * the operand of the whole expression;
/// * for each leaf its dtype, how each dimension is traversed (0, 1, or `:by` a stride; or `:flat`), and whether it
///   begins at the first place;
/// * for each step its name, dtype, operands, and the dtypes of the operands;
/// * the operators, by the number of their step;
/// * the number of dimensions;
/// * the names of the captured variables.
///
/// # Errors
/// NoMemoryError.
pub fn described(ruby: &Ruby, expression: Value, shape: RArray) -> Result<RArray, Error> {
    let form = Form::of(ruby, expression, shape);
    let Walk { leaves: read, scalars, steps: done, .. } = &form.walk;
    let (leaves, steps, nodes, names) = (ruby.ary_new(), ruby.ary_new(), ruby.ary_new(), ruby.ary_new());
    for (at, leaf) in read.iter().enumerate() {
        let way = |way: &i64| if *way == BY_STRIDE { ruby.to_symbol("by").as_value() } else { ruby.into_value(*way) };
        let ways = match form.ways(at) {
            None => ruby.to_symbol("flat").as_value(),
            Some(ways) => ruby.ary_from_iter(ways.iter().map(way)).as_value(),
        };
        leaves.push((reflect::value(leaf.dtype), ways, form.begins_at_first(at)))?;
        names.push(format!("b{at}"))?;
    }
    (0..scalars.len()).try_for_each(|at| names.push(format!("v{at}")))?;
    (1..form.sizes.len()).try_for_each(|dimension| names.push(format!("d{dimension}")))?;
    for (leaf, dimension, _) in form.places() {
        names.push(dimension.map_or_else(|| format!("o{leaf}"), |dimension| format!("s{leaf}_{dimension}")))?;
    }
    for step in done {
        let operands = ruby.ary_from_iter(step.operands.iter().copied());
        let dtypes = ruby.ary_from_iter(step.dtypes.iter().map(|dtype| reflect::value(*dtype)));
        steps.push((reflect::value(step.name), reflect::value(step.dtype), operands, dtypes))?;
        nodes.push(reflect::value(step.node))?;
    }
    let rank = ruby.into_value(form.sizes.len());
    let parts =
        [ruby.into_value(form.root), leaves.as_value(), steps.as_value(), nodes.as_value(), rank, names.as_value()];
    Ok(ruby.ary_new_from_values(&parts))
}
