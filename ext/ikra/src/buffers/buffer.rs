//! `Ikra::Buffer`: a typed array whose bytes are on the host, on a device, or on both.
//!
//! Here: Ruby's side of [`Buffer`]: elements and bytes in and out, and the sizes that the GC counts. Not here: where
//! the bytes are and when they move ([`ikra_core::memory::buffer`]), shapes and views (lib/ikra/mdarray.rb).
//!
//! The GC only drops a handle. The next allocation gives the device's memory back.

use crate::report::profile::{Clock, Phase, Step};
use crate::ruby::dtype::Dtype;
use crate::ruby::encode;
use crate::ruby::errors;
use crate::ruby::gvl;
use crate::ruby::heap::{self, Raw, Seen};
use crate::ruby::list;
use crate::ruby::question::{described, shown};
use crate::ruby::registry::{self, names};
use ikra_core::error::Error as CoreError;
use ikra_core::ir::Storage;
use ikra_core::memory::buffer::{Buffer, DeviceMemory, Residence};
use ikra_core::memory::column::HostColumn;
use ikra_core::memory::room;
use ikra_core::memory::words::copy_by_threads;
use magnus::prelude::*;
use magnus::rb_sys::AsRawValue;
use magnus::symbol::IntoSymbol;
use magnus::typed_data::Obj;
use magnus::value::Lazy;
use magnus::{
    DataTypeFunctions, Error, RArray, RClass, RModule, RString, Ruby, Symbol, TypedData, Value, function, method,
};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

/// Ruby's handle of a buffer.
#[derive(TypedData)]
#[magnus(class = "Ikra::Buffer", free_immediately, size)]
pub struct RubyBuffer {
    dtype: Dtype,
    /// None once it was freed.
    buffer: Mutex<Option<Arc<Buffer>>>,
    /// Bytes that were reported to the GC.
    weight: isize,
}

impl DataTypeFunctions for RubyBuffer {
    fn size(&self) -> usize {
        let held = self.buffer.lock().as_ref().map_or((0, 0), |buffer| buffer.held());
        size_of::<Self>() + held.0 + held.1
    }
}

impl Drop for RubyBuffer {
    fn drop(&mut self) {
        if self.buffer.get_mut().is_some() {
            account(-self.weight);
        }
    }
}

/// Reports memory that the GC does not see.
fn account(bytes: isize) {
    // SAFETY: it changes a counter; the GC calls it in finalizers, too.
    #[allow(unsafe_code)]
    unsafe {
        rb_sys::rb_gc_adjust_memory_usage(bytes as _);
    }
}

/// So many bytes of a device count as one byte of the host. A device has more memory than the GC assumes. Where it runs
/// out all the same, Ikra starts the GC itself.
const SHARE: usize = 32;

/// The bytes to report to the GC for a new buffer.
fn weight(buffer: &Buffer) -> isize {
    let bytes = buffer.byte_len();
    (if buffer.residence() == Residence::Device { bytes / SHARE } else { bytes }) as isize
}

/// The buffers of this process.
struct Buffers {
    /// `Ikra::Buffer`.
    class: Lazy<RClass>,
    /// Those that may hold device memory. [`evict`] looks for memory here.
    live: Mutex<Vec<Weak<Buffer>>>,
}

static BUFFERS: Buffers = Buffers {
    class: Lazy::new(|ruby| {
        let ikra: RModule = ruby.class_object().const_get("Ikra").expect("Ikra is there");
        ikra.const_get("Buffer").expect("defined at the start")
    }),
    live: Mutex::new(Vec::new()),
};

/// The buffer behind a VALUE. None where the VALUE is no buffer, or the buffer was freed.
pub fn of(raw: Raw) -> Option<(Dtype, Arc<Buffer>)> {
    if heap::see(raw) != Seen::Buffer {
        return None;
    }
    // SAFETY: the caller has a live object of the class, and all objects of the class are wrapped handles. So the data
    // is a handle, which lives as long as the object.
    #[allow(unsafe_code)]
    let handle = unsafe { rb_sys::macros::RTYPEDDATA_GET_DATA(raw).cast::<RubyBuffer>().as_ref() };
    handle?.contents()
}

/// A buffer for Ruby.
pub fn wrap(ruby: &Ruby, dtype: Dtype, buffer: Arc<Buffer>) -> Obj<RubyBuffer> {
    let weight = weight(&buffer);
    account(weight);
    remember(&buffer);
    ruby.obj_wrap_as(RubyBuffer { dtype, buffer: Mutex::new(Some(buffer)), weight }, ruby.get_inner(&BUFFERS.class))
}

fn remember(buffer: &Arc<Buffer>) {
    let mut live = BUFFERS.live.lock();
    if live.len() == live.capacity() {
        live.retain(|other| other.strong_count() > 0);
    }
    live.push(Arc::downgrade(buffer));
}

/// Makes room on the device by moving buffers to the host. Buffers whose contents the host has already go first. Gives
/// how many buffers left.
///
/// # Errors
/// `Device`, when contents cannot be fetched.
pub fn evict(keep: &[Arc<Buffer>]) -> Result<usize, CoreError> {
    let live: Vec<Arc<Buffer>> = BUFFERS.live.lock().iter().filter_map(Weak::upgrade).collect();
    // Buffers that stay may also hold more memory than they need.
    live.iter().try_for_each(|buffer| buffer.make_sure())?;
    let mut gone = 0;
    // Buffers that cannot be read go first.
    for wanted in [Residence::Poisoned, Residence::Both, Residence::Device] {
        for buffer in &live {
            let there = buffer.residence() == wanted && buffer.held().1 > 0;
            if there && !keep.iter().any(|other| Arc::ptr_eq(other, buffer)) {
                buffer.leave_device()?;
                gone += 1;
            }
        }
    }
    Ok(gone)
}

/// `Ikra.__before_fork`: copies to the host all contents that only a device has, because a child cannot read the
/// parent's device. From then on nothing is page-locked.
///
/// # Errors
/// `Device`, when contents cannot be fetched.
pub fn before_fork(ruby: &Ruby) -> Result<(), Error> {
    let live: Vec<Arc<Buffer>> = BUFFERS.live.lock().iter().filter_map(Weak::upgrade).collect();
    let fetched = gvl::released(|| {
        let fetched = live.iter().try_for_each(|buffer| buffer.come_home());
        crate::device::backends::before_fork();
        fetched
    });
    fetched.map_err(|error| errors::core(ruby, error))
}

/// Bytes of live buffers on the host, those on the device, and the number of buffers.
pub fn held() -> (usize, usize, usize) {
    let live: Vec<Arc<Buffer>> = BUFFERS.live.lock().iter().filter_map(Weak::upgrade).collect();
    let host = live.iter().map(|buffer| buffer.held().0).sum();
    (host, on_device(live.iter()), live.len())
}

/// Bytes that buffers have on a device. Memory that several buffers share counts once.
pub fn on_device<'a>(buffers: impl Iterator<Item = &'a Arc<Buffer>>) -> usize {
    let memory: Vec<Arc<dyn DeviceMemory>> = buffers.flat_map(|buffer| buffer.device()).collect();
    let by_address: HashMap<usize, usize> =
        memory.iter().map(|memory| (Arc::as_ptr(memory).cast::<()>() as usize, memory.bytes())).collect();
    by_address.into_values().sum()
}

fn length(ruby: &Ruby, length: Value) -> Result<usize, Error> {
    let number = i64::try_convert(length)?;
    usize::try_from(number).ok().filter(|n| *n <= MAX_ELEMENTS).ok_or_else(|| {
        Error::new(ruby.exception_arg_error(), format!("a buffer has 0 to {MAX_ELEMENTS} elements, not {number}"))
    })
}

/// A column on the host that is written completely, and may go to a device.
fn to_fill(storage: Storage, len: usize) -> HostColumn {
    HostColumn::to_fill(storage, len, crate::device::backends::lend(HostColumn::words_for(storage, len)))
}

/// The most elements that a kernel can index.
const MAX_ELEMENTS: usize = u32::MAX as usize - 1;

fn wrong(ruby: &Ruby, dtype: Dtype, value: Value, index: Option<usize>) -> Error {
    let place = index.map_or_else(String::new, |index| format!(" at index {index}"));
    let shown = match described(value, shown) {
        Ok(shown) => shown,
        Err(error) => return error,
    };
    match (dtype, heap::see(value.as_raw())) {
        (Dtype::I64 | Dtype::I32 | Dtype::U8, Seen::Int(_) | Seen::BigInt) => {
            let message = format!("{shown}{place} is out of range of {}", dtype.name());
            Error::new(ruby.exception_range_error(), message)
        }
        (Dtype::I64 | Dtype::I32 | Dtype::U8, Seen::Float(f)) if !f.is_finite() => {
            let message = format!("{shown}{place} is no Integer");
            Error::new(ruby.exception_float_domain_error(), message)
        }
        (Dtype::I64 | Dtype::I32 | Dtype::U8, Seen::Float(_)) => {
            let message = format!("{shown}{place} is out of range of {}", dtype.name());
            Error::new(ruby.exception_range_error(), message)
        }
        _ => {
            let message = format!("{shown}{place} is no element of {}", dtype.name());
            Error::new(ruby.exception_type_error(), message)
        }
    }
}

/// The value of the element at the start of these bytes.
fn element(ruby: &Ruby, dtype: Dtype, bytes: &[u8]) -> Value {
    match dtype {
        Dtype::I64 => ruby.into_value(i64::from_ne_bytes(first(bytes))),
        Dtype::I32 => ruby.into_value(i32::from_ne_bytes(first(bytes))),
        Dtype::U8 => ruby.into_value(bytes.first().copied().unwrap_or(0)),
        Dtype::F64 => ruby.into_value(f64::from_ne_bytes(first(bytes))),
        Dtype::F32 => ruby.into_value(f64::from(f32::from_ne_bytes(first(bytes)))),
        Dtype::Bool => ruby.into_value(bytes.first().is_some_and(|byte| *byte != 0)),
    }
}

/// Elements between two checks for interrupts.
const STRETCH: usize = 1 << 18;

/// A list with the same elements that no other thread can change. It is a copy where the list is long, because other
/// threads may run meanwhile. Ruby shares the elements between both.
fn unchanging(ruby: &Ruby, list: RArray) -> Result<RArray, Error> {
    if list.len() <= STRETCH {
        return Ok(list);
    }
    let copy = ruby.ary_new();
    copy.replace(list)?;
    Ok(copy)
}

/// All elements as Ruby's values.
///
/// # Errors
/// DeviceError, when they cannot be fetched.
pub fn list(ruby: &Ruby, dtype: Dtype, buffer: &Buffer) -> Result<RArray, Error> {
    let rows = gvl::released(|| buffer.on_host()).map_err(|error| errors::core(ruby, error))?;
    elements(ruby, dtype, &rows.bytes()[..buffer.len() * buffer.storage().bytes()])
}

/// These elements as Ruby's values.
fn elements(ruby: &Ruby, dtype: Dtype, all: &[u8]) -> Result<RArray, Error> {
    let width = dtype.storage().bytes();
    let filled = list::filled(ruby, all.len() / width, |first, out| {
        for (out, bytes) in out.iter_mut().zip(all[first * width..].chunks_exact(width)) {
            *out = immediate(dtype, bytes);
        }
        Ok::<_, std::convert::Infallible>(())
    });
    let (list, rest) = filled.map_err(|failed| failed.or(|never| match never {}))?;
    let polls = gvl::Polls::new();
    for index in rest {
        polls.look(ruby)?;
        list.store(index as isize, element(ruby, dtype, &all[index * width..]))?;
    }
    Ok(list)
}

fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.first_chunk().copied().unwrap_or([0; N])
}

/// The element as an immediate value. UNDEF where Ruby needs an object for it.
fn immediate(dtype: Dtype, bytes: &[u8]) -> Raw {
    let (integer, float) = match dtype {
        Dtype::I64 => (i64::from_ne_bytes(first(bytes)), None),
        Dtype::I32 => (i32::from_ne_bytes(first(bytes)).into(), None),
        Dtype::U8 => (bytes[0].into(), None),
        Dtype::F64 => (0, Some(f64::from_ne_bytes(first(bytes)))),
        Dtype::F32 => (0, Some(f32::from_ne_bytes(first(bytes)).into())),
        Dtype::Bool => return if bytes[0] == 0 { heap::FALSE } else { heap::TRUE },
    };
    float.map_or_else(|| heap::fixnum_of(integer), heap::flonum_of).unwrap_or(heap::UNDEF)
}

/// Where the elements of a part of a buffer are: the sizes of its dimensions, the distance between neighbours in each,
/// and the first index.
#[derive(Clone, Debug)]
pub struct Part {
    shape: Vec<usize>,
    strides: Vec<isize>,
    offset: usize,
}

impl Part {
    /// None where an index of the part is not below `len`.
    pub fn new(offset: usize, shape: Vec<usize>, strides: Vec<isize>, len: usize) -> Option<Self> {
        let (mut low, mut high) = (isize::try_from(offset).ok()?, isize::try_from(offset).ok()?);
        for (size, stride) in shape.iter().zip(&strides) {
            let far = isize::try_from(size.checked_sub(1).unwrap_or(0)).ok()?.checked_mul(*stride)?;
            if far < 0 { low = low.checked_add(far)? } else { high = high.checked_add(far)? }
        }
        let empty = shape.contains(&0);
        let fits = shape.len() == strides.len() && low >= 0 && (high as usize) < len;
        (empty || fits).then_some(Self { shape, strides, offset })
    }
    pub fn count(&self) -> usize {
        self.shape.iter().product()
    }
    /// Visits consecutive elements, in the order of the part: the first index, and how many follow each other.
    pub fn stretches(&self, mut visit: impl FnMut(usize, usize)) {
        if self.shape.contains(&0) {
            return;
        }
        // The number of outer dimensions, which are looped over, and the number of consecutive elements within them.
        let (mut outer, mut run) = (self.shape.len(), 1);
        while outer > 0 && (self.shape[outer - 1] == 1 || self.strides[outer - 1] == run as isize) {
            run *= self.shape[outer - 1];
            outer -= 1;
        }
        let mut at = vec![0; outer];
        let mut place = self.offset as isize;
        loop {
            visit(place as usize, run);
            let mut dimension = outer;
            loop {
                let Some(next) = dimension.checked_sub(1) else { return };
                dimension = next;
                at[dimension] += 1;
                place += self.strides[dimension];
                if at[dimension] < self.shape[dimension] {
                    break;
                }
                place -= self.strides[dimension] * self.shape[dimension] as isize;
                at[dimension] = 0;
            }
        }
    }
    /// Copies elements of `width` bytes to the places of the part. The source has them one after the other.
    pub fn scatter(&self, width: usize, from: &[u8], to: &mut [u8]) {
        let mut done = 0;
        self.stretches(|place, count| {
            let bytes = count * width;
            copy_by_threads(&mut to[place * width..][..bytes], &from[done..][..bytes]);
            done += bytes;
        });
    }
    /// Copies the elements of the part one after the other.
    pub fn gather(&self, width: usize, from: &[u8], to: &mut [u8]) {
        let mut done = 0;
        self.stretches(|place, count| {
            let bytes = count * width;
            copy_by_threads(&mut to[done..][..bytes], &from[place * width..][..bytes]);
            done += bytes;
        });
    }
}

impl RubyBuffer {
    /// Its dtype and contents. None where it was freed.
    pub fn contents(&self) -> Option<(Dtype, Arc<Buffer>)> {
        let shared = self.buffer.lock().clone()?;
        Some((self.dtype, shared))
    }

    fn shared(&self, ruby: &Ruby) -> Result<Arc<Buffer>, Error> {
        let freed = || Error::new(ruby.exception_runtime_error(), "this array was freed");
        self.buffer.lock().clone().ok_or_else(freed)
    }

    /// `Buffer.new(dtype, length)`: zeros, which take no memory before their first use.
    fn new(ruby: &Ruby, dtype: Value, size: Value) -> Result<Obj<Self>, Error> {
        let dtype = Dtype::of(ruby, dtype)?;
        Ok(wrap(ruby, dtype, Arc::new(Buffer::zeroed(dtype.storage(), length(ruby, size)?))))
    }

    /// `Buffer.from_list(dtype, array)`.
    fn from_list(ruby: &Ruby, dtype: Value, list: RArray) -> Result<Obj<Self>, Error> {
        let dtype = Dtype::of(ruby, dtype)?;
        let mut clock = clock_of(ruby, "packing", dtype, list.len(), Residence::Host)?;
        let (list, polls, width) = (unchanging(ruby, list)?, gvl::Polls::new(), dtype.storage().bytes());
        let mut column = to_fill(dtype.storage(), list.len());
        for from in (0..list.len()).step_by(STRETCH) {
            let values = &heap::elements(list.as_raw())[from..];
            let values = &values[..STRETCH.min(values.len())];
            let out = &mut column.bytes_mut()[from * width..][..values.len() * width];
            if let Some(at) = clock.measure(Phase::Pack, || encode::fill(dtype, values, out)) {
                return Err(wrong(ruby, dtype, crate::ruby::reflect::value(values[at]), Some(from + at)));
            }
            polls.look_now(ruby)?;
        }
        Ok(wrap(ruby, dtype, Arc::new(Buffer::from_column(column))))
    }

    /// `Buffer.kind(array)`: the kind of the elements, where they are all Integers, all Floats, or all true or false.
    /// Else nil.
    ///
    /// # Errors
    /// What interrupts raise.
    fn kind(ruby: &Ruby, list: RArray) -> Result<Option<Symbol>, Error> {
        let (list, polls, mut kind) = (unchanging(ruby, list)?, gvl::Polls::new(), None);
        for from in (0..list.len()).step_by(STRETCH) {
            let values = &heap::elements(list.as_raw())[from..];
            let one = encode::kind(&values[..STRETCH.min(values.len())]);
            if one.is_none() || kind.is_some() && kind != one {
                return Ok(None);
            }
            kind = one;
            polls.look_now(ruby)?;
        }
        Ok(kind.map(|dtype| registry::symbol(ruby, dtype.name())))
    }

    /// `Buffer.from_bytes(dtype, string)`.
    fn from_bytes(ruby: &Ruby, dtype: Value, bytes: RString) -> Result<Obj<Self>, Error> {
        let dtype = Dtype::of(ruby, dtype)?;
        let given = heap::bytes(bytes.as_raw());
        let width = dtype.storage().bytes();
        if !given.len().is_multiple_of(width) {
            let message = format!("{} bytes are no whole number of {} of {width} bytes", given.len(), dtype.name());
            return Err(Error::new(ruby.exception_arg_error(), message));
        }
        let mut clock = clock_of(ruby, "packing", dtype, given.len() / width, Residence::Host)?;
        let mut column = to_fill(dtype.storage(), given.len() / width);
        clock.measure(Phase::Pack, || match dtype {
            // Every byte other than 0 is true.
            Dtype::Bool => column.bytes_mut().iter_mut().zip(given).for_each(|(to, from)| *to = u8::from(*from != 0)),
            _ => copy_by_threads(column.bytes_mut(), given),
        });
        Ok(wrap(ruby, dtype, Arc::new(Buffer::from_column(column))))
    }

    fn dtype(ruby: &Ruby, this: Obj<Self>) -> Symbol {
        names::DTYPES[this.dtype as usize].into_symbol_with(ruby)
    }

    fn len(ruby: &Ruby, this: Obj<Self>) -> Result<usize, Error> {
        Ok(this.shared(ruby)?.len())
    }

    fn byte_len(ruby: &Ruby, this: Obj<Self>) -> Result<usize, Error> {
        Ok(this.shared(ruby)?.byte_len())
    }

    /// The range that arguments name, checked.
    fn stretch(&self, ruby: &Ruby, args: &[Value]) -> Result<(Arc<Buffer>, usize, usize), Error> {
        let buffer = self.shared(ruby)?;
        let from = args.first().map_or(Ok(0), |from| usize::try_convert(*from))?;
        let rest = buffer.len().saturating_sub(from);
        let count = args.get(1).map_or(Ok(rest), |count| usize::try_convert(*count))?;
        if from > buffer.len() || count > rest {
            let message = format!("{count} elements from {from} of {}", buffer.len());
            return Err(Error::new(ruby.exception_index_error(), message));
        }
        Ok((buffer, from, count))
    }

    /// Reads the bytes of a range. Where only the device has the contents, just this range is copied.
    fn fetch<T>(&self, ruby: &Ruby, args: &[Value], look: impl FnOnce(&[u8]) -> T) -> Result<T, Error> {
        let (buffer, from, count) = self.stretch(ruby, args)?;
        // Reading one element that the host has is too short to measure.
        let mut clock = match (count, buffer.residence()) {
            (1, Residence::Nowhere | Residence::Host | Residence::Both) => Clock::stopped(),
            (_, from) => clock_of(ruby, "unpacking", self.dtype, count, from)?,
        };
        let width = buffer.storage().bytes();
        let whole = count == buffer.len() || matches!(buffer.residence(), Residence::Host | Residence::Both);
        let (mut column, mut part) = (None, Vec::new());
        let read = || {
            if whole {
                column = Some(buffer.on_host()?);
                return Ok(());
            }
            part = room::zeroed(count * width);
            buffer.read(from * width, &mut part)
        };
        let read = clock.measure(Phase::Download, || gvl::released(read));
        read.map_err(|error| errors::core(ruby, error))?;
        let bytes = column.as_ref().map_or(&part[..], |column| &column.bytes()[from * width..][..count * width]);
        Ok(clock.measure(Phase::Unpack, || look(bytes)))
    }

    /// `to_list(from = 0, count = the rest)`.
    fn to_list(ruby: &Ruby, this: Obj<Self>, args: &[Value]) -> Result<RArray, Error> {
        this.fetch(ruby, args, |bytes| elements(ruby, this.dtype, bytes))?
    }

    /// `to_bytes(from = 0, count = the rest)`.
    fn to_bytes(ruby: &Ruby, this: Obj<Self>, args: &[Value]) -> Result<RString, Error> {
        this.fetch(ruby, args, list::string)?
    }

    fn get(ruby: &Ruby, this: Obj<Self>, index: Value) -> Result<Value, Error> {
        this.fetch(ruby, &[index, ruby.into_value(1)], |bytes| element(ruby, this.dtype, bytes))
    }

    fn set(ruby: &Ruby, this: Obj<Self>, index: Value, value: Value) -> Result<Value, Error> {
        if heap::is_frozen(this.as_raw()) {
            return Err(errors::frozen(ruby, this.as_value()));
        }
        let (buffer, at, _) = this.stretch(ruby, &[index, ruby.into_value(1)])?;
        let mut one = HostColumn::zeroed(buffer.storage(), 1);
        if encode::fill(this.dtype, &[value.as_raw()], one.bytes_mut()).is_some() {
            return Err(wrong(ruby, this.dtype, value, None));
        }
        let width = buffer.storage().bytes();
        let written = gvl::released(|| buffer.write(at * width, one.bytes()));
        written.map_err(|error| errors::core(ruby, error))?;
        Ok(value)
    }

    /// `part(from, count)`: a new buffer on the host, with a copy of a range.
    fn part(ruby: &Ruby, this: Obj<Self>, from: usize, count: usize) -> Result<Obj<Self>, Error> {
        let (buffer, from, count) = this.stretch(ruby, &[ruby.into_value(from), ruby.into_value(count)])?;
        let mut clock = clock_of(ruby, "copy", this.dtype, count, buffer.residence())?;
        let mut column = to_fill(buffer.storage(), count);
        let read = || buffer.read(from * buffer.storage().bytes(), column.bytes_mut());
        let read = clock.measure(Phase::Download, || gvl::released(read));
        read.map_err(|error| errors::core(ruby, error))?;
        Ok(wrap(ruby, this.dtype, Arc::new(Buffer::from_column(column))))
    }

    /// `gather(offset, shape, strides)`: a new buffer on the host, with a copy of the elements of a part, one after the
    /// other.
    fn gather(
        ruby: &Ruby,
        this: Obj<Self>,
        offset: usize,
        shape: Vec<usize>,
        strides: Vec<isize>,
    ) -> Result<Obj<Self>, Error> {
        let buffer = this.shared(ruby)?;
        let part = Part::new(offset, shape, strides, buffer.len())
            .ok_or_else(|| Error::new(ruby.exception_arg_error(), "no part of the buffer"))?;
        let mut clock = clock_of(ruby, "copy", this.dtype, part.count(), buffer.residence())?;
        let mut column = to_fill(buffer.storage(), part.count());
        let fetched = clock.measure(Phase::Download, || gvl::released(|| buffer.on_host()));
        let gathered = fetched.map(|elements| {
            let gather = || part.gather(buffer.storage().bytes(), elements.bytes(), column.bytes_mut());
            clock.measure(Phase::Kernel, || gvl::released(gather));
        });
        gathered.map_err(|error| errors::core(ruby, error))?;
        Ok(wrap(ruby, this.dtype, Arc::new(Buffer::from_column(column))))
    }

    /// `store_bytes(from, string)`: writes elements from their bytes.
    fn store_bytes(ruby: &Ruby, this: Obj<Self>, from: Value, bytes: RString) -> Result<(), Error> {
        if heap::is_frozen(this.as_raw()) {
            return Err(errors::frozen(ruby, this.as_value()));
        }
        let own = heap::bytes(bytes.as_raw());
        let mut given: Vec<u8> = room::zeroed(own.len());
        given.copy_from_slice(own);
        let width = this.dtype.storage().bytes();
        let (buffer, at, count) = this.stretch(ruby, &[from, ruby.into_value(given.len() / width)])?;
        let mut clock = clock_of(ruby, "storing", this.dtype, count, buffer.residence())?;
        let write = || buffer.write(at * width, &given[..given.len() / width * width]);
        let written = clock.measure(Phase::Upload, || gvl::released(write));
        written.map_err(|error| errors::core(ruby, error))
    }

    /// `store_part(source, offset, shape, strides)`: writes the elements of `source`, one after the other, to the
    /// places of a part of the buffer. Nothing else is copied, unless the contents are shared. Gives false where a
    /// kernel must do it.
    fn store_part(
        ruby: &Ruby,
        this: Obj<Self>,
        source: Obj<Self>,
        offset: usize,
        shape: Vec<usize>,
        strides: Vec<isize>,
    ) -> Result<bool, Error> {
        let (buffer, source) = (this.shared(ruby)?, source.shared(ruby)?);
        let width = buffer.storage().bytes();
        let part = Part::new(offset, shape, strides, buffer.len())
            .filter(|part| part.count() == source.len() && source.storage() == buffer.storage())
            .ok_or_else(|| Error::new(ruby.exception_arg_error(), "no part of the buffer"))?;
        let mut clock = clock_of(ruby, "storing", this.dtype, part.count(), buffer.residence())?;
        let store = || match buffer.residence() {
            Residence::Nowhere | Residence::Host | Residence::Poisoned => {
                let elements = source.on_host()?;
                buffer.change(|all| part.scatter(width, elements.bytes(), all))?;
                Ok(true)
            }
            Residence::Device => {
                let mut places = Vec::new();
                part.stretches(|place, count| {
                    if places.len() <= MAX_SINGLE_RANGES {
                        places.push((place, count));
                    }
                });
                if places.len() > MAX_SINGLE_RANGES {
                    return Ok(false);
                }
                let elements = source.on_host()?;
                let mut rest = elements.bytes();
                let parts = places.into_iter().map(|(place, count)| {
                    let (own, others) = rest.split_at(count * width);
                    rest = others;
                    (place * width, own)
                });
                buffer.write_parts(&parts.collect::<Vec<_>>())
            }
            Residence::Both => Ok(false),
        };
        let stored = clock.measure(Phase::Upload, || gvl::released(store));
        if let Ok(false) = stored {
            clock.forget();
        }
        stored.map_err(|error| errors::core(ruby, error))
    }

    /// `take_over(other)`: shares the other's contents from now on.
    fn take_over(ruby: &Ruby, this: Obj<Self>, other: Obj<Self>) -> Result<(), Error> {
        let (buffer, other) = (this.shared(ruby)?, other.shared(ruby)?);
        if (buffer.storage(), buffer.len()) != (other.storage(), other.len()) {
            return Err(Error::new(ruby.exception_arg_error(), "contents of another form"));
        }
        buffer.share(&other);
        Ok(())
    }

    /// `poisoned?`: waits for the launches that the contents depend on, and says whether one of them failed. It does
    /// not raise their exceptions.
    fn is_poisoned(ruby: &Ruby, this: Obj<Self>) -> Result<bool, Error> {
        let buffer = this.shared(ruby)?;
        match gvl::released(|| buffer.wait()) {
            Err(CoreError::Poisoned(_)) => Ok(true),
            waited => waited.map(|()| false).map_err(|error| errors::core(ruby, error)),
        }
    }

    /// `follow(earlier)`: this buffer holds the new elements of an array that had the earlier buffer. Should their
    /// launch fail, this one gets the earlier contents back.
    fn follow(ruby: &Ruby, this: Obj<Self>, earlier: Obj<Self>) -> Result<(), Error> {
        let (buffer, earlier) = (this.shared(ruby)?, earlier.shared(ruby)?);
        if (buffer.storage(), buffer.len()) != (earlier.storage(), earlier.len()) {
            return Err(Error::new(ruby.exception_arg_error(), "contents of another form"));
        }
        gvl::released(|| buffer.follow(&earlier));
        Ok(())
    }

    /// `succeed(earlier)`: the earlier buffer takes this one's contents, as [`RubyBuffer::follow`] says, and this one
    /// is freed.
    fn succeed(ruby: &Ruby, this: Obj<Self>, earlier: Obj<Self>) -> Result<(), Error> {
        let (buffer, before) = (this.shared(ruby)?, earlier.shared(ruby)?);
        // Nearly always there is nothing to wait for.
        if !(buffer.is_sure() && before.is_sure()) {
            Self::follow(ruby, this, earlier)?;
        }
        Self::take_over(ruby, earlier, this)?;
        Self::free(this);
        Ok(())
    }

    /// Whether it may yet get its earlier contents back.
    fn may_come_back(ruby: &Ruby, this: Obj<Self>) -> Result<bool, Error> {
        Ok(this.shared(ruby)?.may_come_back())
    }

    /// A new buffer with the same contents. They are copied when one of the two is written.
    fn copy(ruby: &Ruby, this: Obj<Self>) -> Result<Obj<Self>, Error> {
        Ok(wrap(ruby, this.dtype, Arc::new(this.shared(ruby)?.snapshot())))
    }

    /// `:host`, `:device` or `:both`. nil where all elements are zero and no memory was allocated yet.
    fn residence(ruby: &Ruby, this: Obj<Self>) -> Result<Option<Symbol>, Error> {
        Ok(match this.shared(ruby)?.residence() {
            Residence::Nowhere => None,
            Residence::Host => Some(registry::symbol(ruby, "host")),
            Residence::Device => Some(registry::symbol(ruby, "device")),
            Residence::Both => Some(registry::symbol(ruby, "both")),
            Residence::Poisoned => Some(registry::symbol(ruby, "poisoned")),
        })
    }

    /// Waits until the contents are computed. They stay where they are.
    fn sync(ruby: &Ruby, this: Obj<Self>) -> Result<Obj<Self>, Error> {
        let buffer = this.shared(ruby)?;
        let mut clock = match buffer.is_sure() && buffer.residence() != Residence::Device {
            true => Clock::stopped(),
            false => clock_of(ruby, "waiting", this.dtype, buffer.len(), buffer.residence())?,
        };
        let finished = clock.measure(Phase::Kernel, || gvl::released(|| buffer.finish()));
        finished.map_err(|error| errors::core(ruby, error))?;
        Ok(this)
    }

    /// Waits for the launches that the contents depend on. They stay where they are.
    fn settle(ruby: &Ruby, this: Obj<Self>) -> Result<Obj<Self>, Error> {
        let buffer = this.shared(ruby)?;
        gvl::released(|| buffer.settle()).map_err(|error| errors::core(ruby, error))?;
        Ok(this)
    }

    /// Gives memory back now. The buffer cannot be used afterwards.
    fn free(this: Obj<Self>) {
        let buffer = this.buffer.lock().take();
        if buffer.is_some() {
            account(-this.weight);
        }
    }

    fn is_freed(this: Obj<Self>) -> bool {
        this.buffer.lock().is_none()
    }
}

/// Measures what is done with the elements of a buffer beside computing.
fn clock_of(ruby: &Ruby, what: &'static str, dtype: Dtype, elements: usize, from: Residence) -> Result<Clock, Error> {
    let mut clock = Clock::start(ruby);
    clock.step(ruby, || {
        let (backend, why) = match from {
            Residence::Device => ("cuda", "the elements are on the device"),
            _ => ("cpu", "the elements are on the host"),
        };
        Step { what, elements, kind: dtype.name(), backend, why: why.into() }
    })?;
    Ok(clock)
}

/// The most ranges of a device's memory that are written one by one.
const MAX_SINGLE_RANGES: usize = 16;

/// `Ikra.__single(value)`: the nearest Float of 32 bits, rounded as kernels round.
pub fn single(value: f64) -> f64 {
    f64::from(value as f32)
}

/// Defines `Ikra::Buffer`.
///
/// # Errors
/// Where the name is taken.
pub fn init(ikra: RModule, ruby: &Ruby) -> Result<(), Error> {
    let class = ikra.define_class("Buffer", ruby.class_object())?;
    class.undef_default_alloc_func();
    Lazy::force(&BUFFERS.class, ruby);
    heap::set_buffer_class(class.as_raw());
    class.define_singleton_method("new", function!(RubyBuffer::new, 2))?;
    class.define_singleton_method("kind", function!(RubyBuffer::kind, 1))?;
    class.define_singleton_method(
        "from_list",
        function!(
            |ruby: &Ruby, dtype, list| errors::within_memory(ruby, || RubyBuffer::from_list(ruby, dtype, list)),
            2
        ),
    )?;
    class.define_singleton_method(
        "from_bytes",
        function!(
            |ruby: &Ruby, dtype, bytes| errors::within_memory(ruby, || RubyBuffer::from_bytes(ruby, dtype, bytes)),
            2
        ),
    )?;
    class.define_method("dtype", method!(|ruby: &Ruby, this| RubyBuffer::dtype(ruby, this), 0))?;
    class.define_method("size", method!(|ruby: &Ruby, this| RubyBuffer::len(ruby, this), 0))?;
    class.define_method("bytesize", method!(|ruby: &Ruby, this| RubyBuffer::byte_len(ruby, this), 0))?;
    class.define_method(
        "to_list",
        method!(
            |ruby: &Ruby, this: Obj<RubyBuffer>, args: &[Value]| errors::within_memory(ruby, || RubyBuffer::to_list(
                ruby, this, args
            )),
            -1
        ),
    )?;
    class.define_method(
        "to_bytes",
        method!(
            |ruby: &Ruby, this: Obj<RubyBuffer>, args: &[Value]| errors::within_memory(ruby, || RubyBuffer::to_bytes(
                ruby, this, args
            )),
            -1
        ),
    )?;
    class.define_method(
        "[]",
        method!(|ruby: &Ruby, this, index| errors::within_memory(ruby, || RubyBuffer::get(ruby, this, index)), 1),
    )?;
    class.define_method(
        "[]=",
        method!(
            |ruby: &Ruby, this, index, value| errors::within_memory(ruby, || RubyBuffer::set(ruby, this, index, value)),
            2
        ),
    )?;
    class.define_method(
        "store_bytes",
        method!(
            |ruby: &Ruby, this, from, bytes| errors::within_memory(ruby, || RubyBuffer::store_bytes(
                ruby, this, from, bytes
            )),
            2
        ),
    )?;
    class.define_method(
        "part",
        method!(
            |ruby: &Ruby, this, from, count| errors::within_memory(ruby, || RubyBuffer::part(ruby, this, from, count)),
            2
        ),
    )?;
    class.define_method(
        "gather",
        method!(
            |ruby: &Ruby, this, offset, shape: Vec<usize>, strides: Vec<isize>| errors::within_memory(ruby, || {
                RubyBuffer::gather(ruby, this, offset, shape.clone(), strides.clone())
            }),
            3
        ),
    )?;
    class.define_method(
        "store_part",
        method!(
            |ruby: &Ruby, this, source, offset, shape: Vec<usize>, strides: Vec<isize>| {
                errors::within_memory(ruby, || {
                    RubyBuffer::store_part(ruby, this, source, offset, shape.clone(), strides.clone())
                })
            },
            4
        ),
    )?;
    class
        .define_method("take_over", method!(|ruby: &Ruby, this, other| RubyBuffer::take_over(ruby, this, other), 1))?;
    class.define_method("poisoned?", method!(|ruby: &Ruby, this| RubyBuffer::is_poisoned(ruby, this), 0))?;
    class.define_method("follow", method!(|ruby: &Ruby, this, earlier| RubyBuffer::follow(ruby, this, earlier), 1))?;
    class
        .define_method("succeed", method!(|ruby: &Ruby, this, earlier| RubyBuffer::succeed(ruby, this, earlier), 1))?;
    class.define_method("may_come_back?", method!(|ruby: &Ruby, this| RubyBuffer::may_come_back(ruby, this), 0))?;
    class.define_method("copy", method!(|ruby: &Ruby, this| RubyBuffer::copy(ruby, this), 0))?;
    class.define_method("where", method!(|ruby: &Ruby, this| RubyBuffer::residence(ruby, this), 0))?;
    class.define_method("sync", method!(|ruby: &Ruby, this| RubyBuffer::sync(ruby, this), 0))?;
    class.define_method("settle", method!(|ruby: &Ruby, this| RubyBuffer::settle(ruby, this), 0))?;
    class.define_method("free", method!(RubyBuffer::free, 0))?;
    class.define_method("freed?", method!(RubyBuffer::is_freed, 0))?;
    Ok(())
}
