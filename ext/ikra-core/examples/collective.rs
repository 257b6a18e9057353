//! What collective operations cost on the GPU at hand, over memory of the device.
//!
//!     cargo run --release --package ikra-core --example collective [-- NAME…]
//!
//! Each line is one operation: the time of one call on the device (of many queued one behind the other, between two events;
//! best of five rounds), and the rate: bytes that must be read and written, or keys. Results are checked against the
//! host's, with which they agree to the bit. `benchmark/baseline/collective.cu` measures the same through CUB.

use ikra_core::backend::CancelToken;
use ikra_core::backend::collective::reduce::{self as host, Reduction};
use ikra_core::backend::collective::{Crew, Element, Values};
use ikra_core::backend::cuda::CudaBackend;
use ikra_core::backend::cuda::collective::{self, OnStream};
use ikra_core::backend::cuda::driver::{Device, Event, Stream};
use ikra_core::backend::cuda::storage::{Arena, Staging};
use ikra_core::backend::threads::Threads;
use ikra_core::cache::disk::DiskCache;
use ikra_core::error::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};

const MI: usize = 1 << 20;

fn main() {
    if let Err(e) = run() {
        eprintln!("{e}");
        std::process::exit(1);
    }
}

fn run() -> Result<()> {
    let only: Vec<String> = std::env::args().skip(1).collect();
    let cuda = CudaBackend::open(Arc::new(DiskCache::open(None, 0)))?;
    println!("{:?}", cuda.facts());
    cuda.device().enter()?;
    let stream = Stream::new(cuda.device())?;
    let threads = Threads::of_host();
    let copiers = Arc::new(rayon::ThreadPoolBuilder::new().build().expect("threads can be started"));
    let lab = Lab {
        device: cuda.device(),
        stream: &stream,
        machine: cuda.collectives().on(&stream),
        copiers,
        crew: Crew { threads: &threads, cancel: &CancelToken::default() },
        only,
    };
    lab.reductions()?;
    println!("\nAll results were right.");
    Ok(())
}

struct Lab<'a> {
    device: &'a Arc<Device>,
    stream: &'a Stream,
    machine: OnStream<'a>,
    copiers: Arc<rayon::ThreadPool>,
    crew: Crew<'a>,
    only: Vec<String>,
}

/// Plain numbers that travel as bytes.
trait Plain: Copy + Default {
    fn bytes(self) -> Vec<u8>;
    fn of(bytes: &[u8]) -> Self;
}
macro_rules! plain {
    ($($t:ty),*) => { $(impl Plain for $t {
        fn bytes(self) -> Vec<u8> { self.to_ne_bytes().to_vec() }
        fn of(bytes: &[u8]) -> Self { <$t>::from_ne_bytes(bytes.try_into().expect("whole numbers")) }
    })* };
}
plain!(u8, u32, i32, f32, u64, i64, f64);

impl Lab<'_> {
    fn wanted(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|o| name.contains(&**o))
    }

    fn memory(&self, bytes: usize) -> Result<Arena<'_>> {
        Arena::new(self.device, self.stream, bytes)
    }

    fn upload<T: Plain>(&self, values: &[T]) -> Result<Arena<'_>> {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.bytes()).collect();
        let arena = self.memory(bytes.len())?;
        Staging::new(self.device, self.copiers.clone())?.upload(&arena, &[(0, &bytes)])?;
        self.stream.finish()?;
        Ok(arena)
    }

    fn download<T: Plain>(&self, arena: &Arena<'_>, count: usize) -> Result<Vec<T>> {
        let width = size_of::<T>();
        let mut bytes = vec![0; count * width];
        let mut staging = Staging::new(self.device, self.copiers.clone())?;
        let download = staging.begin_download(arena, 0..bytes.len())?;
        staging.finish_download(arena, download, &mut [(0, &mut bytes)])?;
        Ok(bytes.chunks_exact(width).map(T::of).collect())
    }

    /// Time of one call: queued many times, best of some rounds.
    fn time(&self, queue: impl Fn() -> Result<()>) -> Result<Duration> {
        let start = Instant::now();
        queue()?;
        self.stream.finish()?;
        let first = start.elapsed();
        let [before, after] = [Event::new(self.device)?, Event::new(self.device)?];
        let mut best = Duration::MAX;
        for _ in 0..5 {
            let calls = 20;
            before.record(self.stream)?;
            (0..calls).try_for_each(|_| queue())?;
            after.record(self.stream)?;
            after.wait()?;
            best = best.min(after.since(&before) / calls);
        }
        print!("  (first call, with compiling: {first:.1?}) ");
        Ok(best)
    }

    fn say(&self, name: &str, time: Duration, bytes: usize, keys: usize) {
        let per = |n: usize| n as f64 / time.as_secs_f64() / 1e9;
        println!("{name}: {:.4} ms, {:.0} GB/s, {:.2} Gkeys/s", time.as_secs_f64() * 1e3, per(bytes), per(keys));
    }

    fn reductions(&self) -> Result<()> {
        for (reduction, element) in [
            (Reduction::Sum, Element::F64),
            (Reduction::Sum, Element::I64),
            (Reduction::Sum, Element::F32),
            (Reduction::Min, Element::F64),
            (Reduction::MinMax, Element::F64),
            (Reduction::Count, Element::U8),
        ] {
            for n in [MI, 16 * MI, 64 * MI] {
                let name = format!("{reduction:?} {element:?} {} Mi", n / MI);
                if !self.wanted(&name) {
                    continue;
                }
                let mut r = 1u64;
                let mut random = || {
                    r = r.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    (r >> 11) as f64 / (1u64 << 53) as f64
                };
                let floats: Vec<f64> = (0..n).map(|_| random()).collect();
                let expected = |values| host::reduce(self.crew, reduction, values).map(|r| r.expect("nobody cancels"));
                let (input, expected) = match element {
                    Element::F64 => (self.upload(&floats)?, expected(Values::F64(&floats))?),
                    Element::F32 => {
                        let x: Vec<f32> = floats.iter().map(|f| *f as f32).collect();
                        (self.upload(&x)?, expected(Values::F32(&x))?)
                    }
                    Element::U8 => {
                        let x: Vec<u8> = floats.iter().map(|f| u8::from(*f < 0.3)).collect();
                        (self.upload(&x)?, expected(Values::U8(&x))?)
                    }
                    _ => {
                        let x: Vec<i64> = floats.iter().map(|f| f.to_bits() as i64).collect();
                        (self.upload(&x)?, expected(Values::I64(&x))?)
                    }
                };
                let out = self.memory(Reduction::WORDS * 8)?;
                let queue =
                    || collective::reduce(&self.machine, reduction, element, input.address, n as u64, out.address);
                let time = self.time(queue)?;
                let words = self.download::<u64>(&out, Reduction::WORDS)?;
                let got = reduction.read(element, words.as_slice().try_into().expect("so many words"));
                assert_eq!(got, expected, "{name}");
                self.say(&name, time, n * element.bytes(), n);
            }
        }
        Ok(())
    }
}
