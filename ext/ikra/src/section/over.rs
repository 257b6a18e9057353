//! Collective operations over buffers, in the memory where their elements are.
//!
//! Here: [`Placement`], which chooses between the device and the host's threads, and Ruby's natives for MDArray. Not
//! here: operations over Arrays ([`crate::section::collect`]), and the operations themselves
//! ([`ikra_core::backend::collective`]). Invariant: device and host give the same bits, so the choice affects only the
//! time. The documented exception is [`product`].

use crate::buffers::buffer;
use crate::device::backends;
use crate::options::{Choice, Settings};
use crate::report::explain;
use crate::report::profile::{Clock, Phase, Step};
use crate::ruby::dtype::Dtype;
use crate::ruby::errors;
use crate::ruby::gvl;
use crate::section::collect::working;
use ikra_core::backend::Backend;
use ikra_core::backend::collective::Element;
use ikra_core::backend::collective::product::product as multiply;
use ikra_core::backend::collective::reduce::{Reduced, Reduction, reduce};
use ikra_core::backend::collective::rows::{Collective, Give, Matrix, Product, Stretch};
use ikra_core::backend::collective::scan::Scan;
use ikra_core::error::{Error as CoreError, Result as CoreResult};
use ikra_core::memory::buffer::{Buffer, Residence};
use ikra_core::memory::column::HostColumn;
use ikra_core::sched::cost::History;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::{Error, RHash, Ruby, Symbol, Value};
use std::cell::Cell;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Dtype {
    pub fn element(self) -> Element {
        match self {
            Dtype::I64 => Element::I64,
            Dtype::I32 => Element::I32,
            Dtype::U8 | Dtype::Bool => Element::U8,
            Dtype::F64 => Element::F64,
            Dtype::F32 => Element::F32,
        }
    }
}

/// So many elements the host sorts in the time of a device's launches.
const FEW: usize = 4096;

/// Where an operation runs.
pub enum Placement {
    Device(Arc<dyn Backend>),
    Host,
}

impl Placement {
    /// The side where the backend runs that the call asked for. With `auto`, that is the device where the elements are
    /// there, and else the side that `auto` chooses for so many elements.
    ///
    /// # Errors
    /// DeviceError, where a backend that the call asked for does not exist.
    pub fn of(ruby: &Ruby, asked: Choice, buffer: &Buffer, count: usize) -> Result<Self, Error> {
        let there = matches!(buffer.residence(), Residence::Device | Residence::Both);
        let backend = match asked {
            // A forked process has no device.
            Choice::Auto if there && let Ok(device) = backends::open(Choice::Cuda) => device,
            asked => {
                let choice = backends::choose(asked, count, 1, &History::default());
                backends::open(choice).map_err(|e| errors::core(ruby, e))?
            }
        };
        Ok(if backend.collective().is_some() { Placement::Device(backend) } else { Placement::Host })
    }

    /// The side where a section left the elements, for a result that the host reads. Few elements are fetched: that
    /// takes no longer than to fetch the result, and the device's kernels need not be compiled, a sort's in 0.6 s.
    ///
    /// # Errors
    /// DeviceError where a device is lost.
    pub fn as_left(ruby: &Ruby, buffer: &Buffer) -> Result<Self, Error> {
        match buffer.residence() {
            Residence::Device if buffer.len() > FEW => Self::of(ruby, Choice::Auto, buffer, buffer.len()),
            _ => Ok(Placement::Host),
        }
    }

    pub fn is_device(&self) -> bool {
        matches!(self, Placement::Device(_))
    }

    /// Tells the profile what is done here. `asked` is the backend that was asked for. None: the elements are processed
    /// where they are.
    ///
    /// # Errors
    /// What Ruby raises.
    pub fn tell(
        &self,
        ruby: &Ruby,
        clock: &mut Clock,
        what: &'static str,
        (dtype, buffer): (Dtype, &Buffer),
        elements: usize,
        asked: Option<Choice>,
    ) -> Result<(), Error> {
        let there = matches!(buffer.residence(), Residence::Device | Residence::Both);
        clock.step(ruby, || {
            let why = match asked {
                _ if !explain::wanted(ruby) => String::new(),
                None if there && !self.is_device() => "its elements are few".into(),
                None => "its elements are where the section left them".into(),
                Some(Choice::Auto) if there && self.is_device() => "its elements are on the device".into(),
                Some(Choice::Cuda | Choice::CudaShim | Choice::Reference) if !self.is_device() => {
                    "the backend that was asked for leaves it to the host".into()
                }
                Some(asked) => backends::reason(asked, elements, 1, &History::default()),
            };
            let backend = match self {
                Placement::Device(backend) => backend.name(),
                Placement::Host => "cpu",
            };
            Step { what, elements, kind: dtype.name(), backend, why }
        })
    }

    /// Runs an operation over so many elements of these buffers. An interrupt ends work on the host. Where the device's
    /// memory is full, other arrays leave it. Where that does not suffice, the operation runs on the host, which gives
    /// the same result.
    ///
    /// # Errors
    /// DeviceError and its subclasses, and what interrupts raise.
    pub fn over<T: Send>(
        &self,
        ruby: &Ruby,
        clock: &mut Clock,
        buffers: &[&Arc<Buffer>],
        count: usize,
        work: impl Fn(&dyn Collective, &[HostColumn]) -> CoreResult<Option<T>> + Sync,
    ) -> Result<T, Error> {
        let Placement::Device(backend) = self else {
            let fetch = || buffers.iter().map(|buffer| buffer.on_host()).collect::<CoreResult<Vec<_>>>();
            let rows = clock.measure(Phase::Download, || gvl::released(fetch)).map_err(|e| errors::core(ruby, e))?;
            return clock.measure(Phase::Kernel, || working(ruby, count, |workers| work(&workers, &rows)));
        };
        let done = on_device(clock, |uploaded| {
            with_room(ruby, buffers, || {
                let (Some(there), Some(store)) = (backend.collective(), backend.store()) else { return Ok(None) };
                let began = Instant::now();
                let rows = buffers.iter().map(|buffer| buffer.on_device(store)).collect::<CoreResult<Vec<_>>>()?;
                uploaded.set(began.elapsed());
                work(there, &rows)
            })
        });
        match done {
            Err(CoreError::Memory { .. }) => Placement::Host.over(ruby, clock, buffers, count, work),
            done => done
                .map_err(|e| errors::core(ruby, e))?
                .ok_or_else(|| errors::internal(ruby, "what no one can interrupt was interrupted")),
        }
    }

    /// A buffer of the elements of a range whose flags are true, in order.
    ///
    /// # Errors
    /// As [`Placement::over`].
    pub fn chosen(
        &self,
        ruby: &Ruby,
        clock: &mut Clock,
        (dtype, buffer): (Dtype, &Arc<Buffer>),
        range: Range<usize>,
        flags: &Arc<Buffer>,
    ) -> Result<Value, Error> {
        let (element, count) = (dtype.element(), flags.len());
        let rows = self.over(ruby, clock, &[flags, buffer], count, |who, rows| {
            let flags = Stretch { element: Element::U8, rows: &rows[0], range: 0..count };
            who.select(flags, Some(Stretch { element, rows: &rows[1], range: range.clone() }))
        })?;
        Ok(made(ruby, clock, dtype, rows))
    }

    /// The reduction of the elements.
    ///
    /// # Errors
    /// As [`Placement::over`].
    pub fn reduce(
        &self,
        ruby: &Ruby,
        clock: &mut Clock,
        reduction: Reduction,
        (dtype, buffer): (Dtype, &Arc<Buffer>),
        range: Range<usize>,
    ) -> Result<Reduced, Error> {
        let element = dtype.element();
        match self {
            Placement::Device(backend) => {
                let done = on_device(clock, |uploaded| {
                    with_room(ruby, &[buffer], || {
                        let Some(store) = backend.store() else {
                            return Err(CoreError::Internal {
                                stage: "reduce",
                                detail: "a device without memory".into(),
                            });
                        };
                        let began = Instant::now();
                        let rows = buffer.on_device(store)?;
                        uploaded.set(began.elapsed());
                        backend.reduce(reduction, element, &rows, range.clone())
                    })
                });
                match done {
                    Err(CoreError::Memory { .. }) => {
                        Placement::Host.reduce(ruby, clock, reduction, (dtype, buffer), range)
                    }
                    done => done.map_err(|e| errors::core(ruby, e)),
                }
            }
            Placement::Host => {
                let rows = clock.measure(Phase::Download, || gvl::released(|| buffer.on_host()));
                let rows = rows.map_err(|e| errors::core(ruby, e))?;
                let from = Stretch { element, rows: &rows, range };
                let work = || working(ruby, from.len(), |workers| reduce(workers, reduction, from.values()));
                clock.measure(Phase::Kernel, work)
            }
        }
    }
}

/// Measures work on a device. `work` reports how long it took to upload.
fn on_device<T>(clock: &mut Clock, work: impl FnOnce(&Cell<Duration>) -> T) -> T {
    let (began, uploaded) = (Instant::now(), Cell::default());
    let done = work(&uploaded);
    let (took, uploaded) = (began.elapsed(), uploaded.get());
    clock.add(Phase::Upload, began, uploaded);
    clock.add(Phase::Kernel, began + uploaded, took.saturating_sub(uploaded));
    done
}

/// Waits for the device where the work is being measured.
pub fn waited(clock: &mut Clock, buffer: &Buffer) {
    if clock.is_running() {
        // A failure is reported when the result is read.
        clock.measure(Phase::Kernel, || gvl::released(|| drop(buffer.wait().and_then(|()| buffer.finish()))));
    }
}

/// Works on the device, without the GVL. Where memory is full and other arrays can leave, it tries once more.
fn with_room<T>(ruby: &Ruby, keep: &[&Arc<Buffer>], work: impl Fn() -> CoreResult<T>) -> CoreResult<T> {
    match gvl::released(&work) {
        Err(CoreError::Memory { .. }) => {
            let keep: Vec<Arc<Buffer>> = keep.iter().map(|buffer| (*buffer).clone()).collect();
            gvl::released(|| buffer::evict(&keep))?;
            ruby.gc_start();
            gvl::released(&work)
        }
        done => done,
    }
}

fn given(ruby: &Ruby, buffer: Value) -> Result<(Dtype, Arc<Buffer>), Error> {
    buffer::of(buffer.as_raw()).ok_or_else(|| Error::new(ruby.exception_arg_error(), "the array's elements are freed"))
}

/// A range of a buffer's elements.
///
/// # Errors
/// IndexError, where there are not so many.
pub fn part(ruby: &Ruby, buffer: &Buffer, from: usize, count: usize) -> Result<Range<usize>, Error> {
    let range = from..from.saturating_add(count);
    if range.end > buffer.len() {
        let said = format!("elements {range:?} of {}", buffer.len());
        return Err(Error::new(ruby.exception_index_error(), said));
    }
    Ok(range)
}

fn made(ruby: &Ruby, clock: &mut Clock, dtype: Dtype, rows: HostColumn) -> Value {
    let buffer = Arc::new(Buffer::from_column(rows));
    waited(clock, &buffer);
    buffer::wrap(ruby, dtype, buffer).as_value()
}

/// `Ikra.__scan(buffer, operation, from, count, options)`: a buffer of each element combined with all before it. The
/// operation is `:sum` or `:product`, for Integers in 64 bits, or `:min` or `:max`. nil where a number leaves 64 bits,
/// or where a NaN must be compared.
///
/// # Errors
/// DeviceError and its subclasses, and what interrupts raise.
pub fn scan(
    ruby: &Ruby,
    buffer: Value,
    operation: Symbol,
    from: usize,
    count: usize,
    options: Option<RHash>,
) -> Result<Option<Value>, Error> {
    let mut clock = Clock::start(ruby);
    let (dtype, buffer) = given(ruby, buffer)?;
    let scan = match &*operation.name()? {
        "sum" => Scan::Sum,
        "product" => Scan::Product,
        "min" => Scan::Min,
        "max" => Scan::Max,
        other => return Err(Error::new(ruby.exception_arg_error(), format!("no scan is called {other}"))),
    };
    let range = part(ruby, &buffer, from, count)?;
    let element = dtype.element();
    let asked = Settings::for_call(ruby, options)?.backend;
    let place = Placement::of(ruby, asked, &buffer, count)?;
    place.tell(ruby, &mut clock, "scan", (dtype, &buffer), count, Some(asked))?;
    let (rows, told) = place.over(ruby, &mut clock, &[&buffer], count, |who, rows| {
        who.scan(scan, Stretch { element, rows: &rows[0], range: range.clone() })
    })?;
    if told.overflow || told.nan {
        return Ok(None);
    }
    let total = match scan.total(element) {
        Element::I64 => Dtype::I64,
        Element::F64 => Dtype::F64,
        _ => dtype,
    };
    Ok(Some(made(ruby, &mut clock, total, rows)))
}

/// `Ikra.__select(buffer, from, flags, options)`: a buffer of the elements from there on whose flags are true, in
/// order.
///
/// # Errors
/// As [`scan`].
pub fn select(ruby: &Ruby, buffer: Value, from: usize, flags: Value, options: Option<RHash>) -> Result<Value, Error> {
    let mut clock = Clock::start(ruby);
    let ((dtype, buffer), (flag, flags)) = (given(ruby, buffer)?, given(ruby, flags)?);
    if flag.element() != Element::U8 {
        return Err(Error::new(ruby.exception_arg_error(), "flags are true or false"));
    }
    let range = part(ruby, &buffer, from, flags.len())?;
    let asked = Settings::for_call(ruby, options)?.backend;
    let place = Placement::of(ruby, asked, &flags, flags.len())?;
    place.tell(ruby, &mut clock, "selection", (dtype, &flags), flags.len(), Some(asked))?;
    place.chosen(ruby, &mut clock, (dtype, &buffer), range, &flags)
}

/// The arguments of `Ikra.__sort(buffer, from, count, row, descending, options)`.
pub type SortArguments = (Value, usize, usize, usize, bool, Option<RHash>);

/// `Ikra.__sort`: a buffer of sorted elements. Each `row` of consecutive elements is sorted by itself. NaNs are the
/// greatest.
///
/// # Errors
/// As [`scan`].
pub fn sort(ruby: &Ruby, (buffer, from, count, row, descending, options): SortArguments) -> Result<Value, Error> {
    let mut clock = Clock::start(ruby);
    let (dtype, buffer) = given(ruby, buffer)?;
    let (element, range) = (dtype.element(), part(ruby, &buffer, from, count)?);
    let asked = Settings::for_call(ruby, options)?.backend;
    let place = Placement::of(ruby, asked, &buffer, count)?;
    place.tell(ruby, &mut clock, "sort", (dtype, &buffer), count, Some(asked))?;
    let rows = place.over(ruby, &mut clock, &[&buffer], count, |who, rows| {
        who.sort(Stretch { element, rows: &rows[0], range: range.clone() }, row, descending, Give::Keys)
    })?;
    Ok(made(ruby, &mut clock, dtype, rows))
}

/// The fewest multiplications for which cuBLAS is used. Ikra's own kernel computes smaller products before the library
/// is open.
const MIN_BLAS_MULTIPLICATIONS: usize = 1 << 20;
/// Rows, inner size, columns, and the number of products.
type Sizes = (usize, usize, usize, usize);

/// `Ikra.__multiplier(buffer, multiplications, options)`: the side on which a library may multiply the matrices,
/// `:cuda` or `:cpu`. nil: neither. The library may still refuse them. The caller knows from which sizes on the CPU's
/// library is faster than Ikra's kernel.
///
/// # Errors
/// As [`scan`].
pub fn multiplier(
    ruby: &Ruby,
    buffer: Value,
    multiplications: usize,
    options: Option<RHash>,
) -> Result<Option<Symbol>, Error> {
    let (_, buffer) = given(ruby, buffer)?;
    let settings = Settings::for_call(ruby, options)?;
    if !settings.blas || settings.code.races {
        return Ok(None);
    }
    Ok(match Placement::of(ruby, settings.backend, &buffer, multiplications)? {
        Placement::Device(_) => (multiplications >= MIN_BLAS_MULTIPLICATIONS).then(|| ruby.to_symbol("cuda")),
        Placement::Host => matches!(settings.backend, Choice::Auto | Choice::Cpu).then(|| ruby.to_symbol("cpu")),
    })
}

/// A matrix of Ruby: the buffer, the first element, whether columns lie side by side, and two distances. They are those
/// from one row or column to the next, and from one matrix to the next.
type Given = (Value, usize, bool, usize, usize);

/// Products of matrices in these rows.
fn products<'a>(
    element: Element,
    [a, b]: [&'a HostColumn; 2],
    [left, right]: [&Given; 2],
    (rows, inner, columns, count): Sizes,
) -> Product<'a> {
    let matrix = |rows, given: &Given| {
        let (_, from, turned, lead, apart) = *given;
        Matrix { rows, from, turned, lead, apart }
    };
    Product { element, left: matrix(a, left), right: matrix(b, right), rows, inner, columns, count }
}

/// `Ikra.__product(library, left, right, sizes)`: a buffer of the products of matrices, by the library that
/// [`multiplier`] chose. nil where Ikra's own kernel must compute them.
///
/// # Errors
/// As [`scan`].
pub fn product(ruby: &Ruby, library: Symbol, left: Given, right: Given, sizes: Sizes) -> Result<Option<Value>, Error> {
    let ((dtype, one), (other, two)) = (given(ruby, left.0)?, given(ruby, right.0)?);
    if dtype != other {
        return Ok(None);
    }
    let (rows, inner, columns, count) = sizes;
    let elements = rows * columns * count;
    let mut clock = Clock::start(ruby);
    let place = match &*library.name()? {
        "cuda" => Placement::of(ruby, Choice::Cuda, &one, rows)?,
        _ => Placement::Host,
    };
    let (made, backend, why) = match &place {
        Placement::Device(backend) => {
            let made = match on_device(&mut clock, |_| {
                with_room(ruby, &[&one, &two], || on_gpu(backend, dtype, [&one, &two], [&left, &right], sizes))
            }) {
                // As if the failure were not known yet.
                Err(CoreError::Poisoned(poison)) => {
                    let buffer = Buffer::zeroed(dtype.storage(), elements);
                    buffer.poison(poison);
                    Some(Arc::new(buffer))
                }
                made => made.map_err(|e| errors::core(ruby, e))?,
            };
            (made, backend.name(), "so large a product is cuBLAS's")
        }
        Placement::Host => {
            let fetch = || Ok([one.on_host()?, two.on_host()?]);
            let operands: CoreResult<_> = clock.measure(Phase::Download, || gvl::released(fetch));
            let [a, b] = operands.map_err(|e| errors::core(ruby, e))?;
            let given = products(dtype.element(), [&a, &b], [&left, &right], sizes);
            let work = || working(ruby, elements.saturating_mul(inner), |workers| multiply(workers, &given));
            let column = clock.measure(Phase::Kernel, work)?;
            (Some(Arc::new(Buffer::from_column(column))), "cpu", "so large a product is a library's")
        }
    };
    let Some(made) = made else {
        clock.forget();
        return Ok(None);
    };
    clock.step(ruby, || Step {
        what: "product of matrices",
        elements,
        kind: dtype.name(),
        backend,
        why: why.into(),
    })?;
    waited(&mut clock, &made);
    Ok(Some(buffer::wrap(ruby, dtype, made).as_value()))
}

/// Queues the products on the device. None: it has no library, or that does not accept these matrices.
fn on_gpu(
    backend: &Arc<dyn Backend>,
    dtype: Dtype,
    [one, two]: [&Arc<Buffer>; 2],
    given: [&Given; 2],
    sizes: Sizes,
) -> CoreResult<Option<Arc<Buffer>>> {
    let (Some(there), Some(store)) = (backend.collective(), backend.store()) else { return Ok(None) };
    let mut completions = Vec::new();
    let mut rows_of = |buffer: &Arc<Buffer>| buffer.on_device_later(store, &mut completions);
    let (a, b) = (rows_of(one)?, rows_of(two)?);
    Ok(there.product(&products(dtype.element(), [&a, &b], given, sizes))?.map(|column| {
        let buffer = Buffer::zeroed(column.storage(), column.len());
        buffer.replace_with(column, completions);
        Arc::new(buffer)
    }))
}
