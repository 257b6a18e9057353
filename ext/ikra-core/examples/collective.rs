//! What collective operations cost on the GPU at hand, over memory of the device.
//!
//!     cargo run --release --package ikra-core --example collective [-- NAME…]
//!
//! Each line is one operation: the time of one call on the device, and the rate. Many calls are queued between two
//! events, and the best of five rounds counts. A rate is of bytes that must be read and written, or of keys. Results
//! are checked against the host's, with which they agree to the bit. `benchmark/baseline/collective.cu` measures the
//! same through CUB.
//!
//! With the name `Tune` it measures scans and sorts with other numbers of threads, blocks and elements than they have.

use ikra_core::backend::CancelToken;
use ikra_core::backend::collective::groups as host_groups;
use ikra_core::backend::collective::reduce::{self as host, Reduction};
use ikra_core::backend::collective::scan::{self as host_scan, Scan, Scanned};
use ikra_core::backend::collective::select as host_select;
use ikra_core::backend::collective::sort::{self as host_sort, Key, Keys};
use ikra_core::backend::collective::{Element, Values, Workers};
use ikra_core::backend::cuda::CudaBackend;
use ikra_core::backend::cuda::collective::{
    self, Flagged, Grouped, OnStream, Payload, ScanArgs, ScanTuning, SortTuning, Sorting,
};
use ikra_core::backend::cuda::driver::{Device, Event, Stream};
use ikra_core::backend::cuda::storage::{Arena, Staging};
use ikra_core::backend::threads::Threads;
use ikra_core::cache::disk::DiskCache;
use ikra_core::error::Result;
use ikra_core::sched::reorder::by_class;
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
        // SAFETY: everything below is given addresses of arenas that live until its stream was waited for.
        machine: unsafe { cuda.collectives().on(&stream) },
        copiers,
        workers: Workers { threads: &threads, cancel: &CancelToken::default() },
        only,
    };
    lab.reductions()?;
    lab.scans()?;
    lab.selections()?;
    lab.sorts()?;
    lab.reorderings()?;
    lab.groups()?;
    if lab.only.iter().any(|name| name == "Tune") {
        lab.tune()?;
    }
    println!("\nAll results were right.");
    Ok(())
}

struct Lab<'a> {
    device: &'a Arc<Device>,
    stream: &'a Stream,
    machine: OnStream<'a>,
    copiers: Arc<rayon::ThreadPool>,
    workers: Workers<'a>,
    only: Vec<String>,
}

/// Plain numbers that travel as bytes.
trait Plain: Copy + Default {
    fn put(self, bytes: &mut Vec<u8>);
    fn of(bytes: &[u8]) -> Self;
}
macro_rules! plain {
    ($($t:ty),*) => { $(impl Plain for $t {
        fn put(self, bytes: &mut Vec<u8>) { bytes.extend(self.to_ne_bytes()); }
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
        let mut bytes = Vec::with_capacity(size_of_val(values));
        values.iter().for_each(|v| v.put(&mut bytes));
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
                let floats: Vec<f64> = random(1).take(n).map(unit).collect();
                let expected =
                    |values| host::reduce(self.workers, reduction, values).map(|r| r.expect("nobody cancels"));
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

    fn scans(&self) -> Result<()> {
        for (how, element) in [(Scan::Sum, Element::F64), (Scan::Sum, Element::I64), (Scan::Max, Element::F64)] {
            for n in [16 * MI, 64 * MI] {
                let name = format!("Scan {how:?} {element:?} {} Mi", n / MI);
                if !self.wanted(&name) {
                    continue;
                }
                let floats: Vec<f64> = random(1).take(n).map(unit).collect();
                let ints: Vec<i64> = random(2).take(n).map(|x| (x >> 20) as i64).collect();
                let is_float = element == Element::F64;
                let values = if is_float { Values::F64(&floats) } else { Values::I64(&ints) };
                let input = if is_float { self.upload(&floats)? } else { self.upload(&ints)? };
                let (out, flags) = (self.memory(8 * n)?, self.memory(8)?);
                let (from, to, flags) = (input.address, out.address, flags.address);
                let args = ScanArgs { input: from, count: n as u64, output: to, flags };
                let time = self.time(|| collective::scan(&self.machine, how, element, args))?;
                let (expected, _) = host_scan::scan(self.workers, how, values)?.expect("nobody cancels");
                let got = self.download::<u64>(&out, n)?;
                let same = match &expected {
                    Scanned::F64(x) => x.iter().zip(&got).all(|(x, y)| x.to_bits() == *y),
                    Scanned::I64(x) => x.iter().zip(&got).all(|(x, y)| x.cast_unsigned() == *y),
                    _ => unreachable!("elements have 8 bytes"),
                };
                assert!(same, "{name}");
                self.say(&name, time, 16 * n, n);
            }
        }
        Ok(())
    }

    fn selections(&self) -> Result<()> {
        let n = 64 * MI;
        let flags: Vec<u8> = random(7).take(n).map(|x| u8::from(unit(x) < 0.5)).collect();
        let words: Vec<u64> = random(1).take(n).collect();
        for width in [8, 4, 1] {
            let name = format!("Select {width} byte{} 64 Mi", if width == 1 { "" } else { "s" });
            if !self.wanted(&name) {
                continue;
            }
            let (on, out, hits) = (self.upload(&flags)?, self.memory(n * width)?, self.memory(8)?);
            let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes().into_iter().take(width)).collect();
            let input = self.upload(&bytes)?;
            let from = Flagged { flags: on.address, input: input.address, width, count: n as u64 };
            let (to, count) = (out.address, hits.address);
            let time = self.time(|| collective::chosen(&self.machine, from, to, count))?;
            let chosen = host_select::chosen(self.workers, &flags, &words)?.expect("nobody cancels");
            assert_eq!(self.download::<u64>(&hits, 1)?, [chosen.len() as u64], "{name}");
            let got = self.download::<u8>(&out, chosen.len() * width)?;
            let expected = chosen.iter().flat_map(|w| w.to_ne_bytes().into_iter().take(width));
            assert!(expected.eq(got), "{name}");
            self.say(&name, time, n + (n + chosen.len()) * width, n);
        }
        Ok(())
    }

    fn sorts(&self) -> Result<()> {
        let n = 64 * MI;
        for (key, pairs) in
            [(Key::U32, false), (Key::U64, false), (Key::F64, false), (Key::U32, true), (Key::F64, true)]
        {
            let name = format!("Sort {key:?}{} 64 Mi", if pairs { " with u32" } else { "" });
            if !self.wanted(&name) {
                continue;
            }
            let words: Vec<u64> =
                random(1).take(n).map(|x| if key == Key::F64 { unit(x).to_bits() } else { x }).collect();
            let (small, floats): (Vec<u32>, Vec<f64>) =
                words.iter().map(|w| ((*w >> 32) as u32, f64::from_bits(*w))).unzip();
            let (input, keys) = match key {
                Key::U32 => (self.upload(&small)?, Keys::U32(&small)),
                Key::F64 => (self.upload(&floats)?, Keys::F64(&floats)),
                _ => (self.upload(&words)?, Keys::U64(&words)),
            };
            let (out, places) = (self.memory(n * key.bytes())?, self.memory(n * 4)?);
            let payload = if pairs { Payload::Indices(places.address) } else { Payload::None };
            let (from, to) = (input.address, out.address);
            let sorting = Sorting { key, descending: false, keys: from, count: n as u64, sorted: to, payload };
            let time = self.time(|| collective::sort(&self.machine, sorting))?;
            let order = host_sort::order(self.workers, keys, host_sort::By { exact: !pairs, ..Default::default() })?
                .expect("nobody cancels");
            let same = match keys {
                Keys::U32(x) => {
                    self.download::<u32>(&out, n)?.iter().zip(&order).all(|(got, i)| *got == x[*i as usize])
                }
                _ => self.download::<u64>(&out, n)?.iter().zip(&order).all(|(got, i)| *got == words[*i as usize]),
            };
            assert!(same, "{name}");
            assert!(!pairs || self.download::<u32>(&places, n)? == order, "{name}");
            self.say(&name, time, n * key.bytes(), n);
        }
        Ok(())
    }

    /// Jobs by class: the order of elements with such class tags.
    fn reorderings(&self) -> Result<()> {
        let n = 16 * MI;
        for classes in [4, 64] {
            let name = format!("Reorder tags of {classes} classes 16 Mi");
            if !self.wanted(&name) {
                continue;
            }
            let tags: Vec<u8> = random(5).take(n).map(|x| ((x >> 32) % classes) as u8).collect();
            let input = self.upload(&tags)?;
            let (sorted, order) = (self.memory(n)?, self.memory(4 * n)?);
            let sorting = Sorting {
                key: Key::U8,
                descending: false,
                keys: input.address,
                count: n as u64,
                sorted: sorted.address,
                payload: Payload::Indices(order.address),
            };
            let time = self.time(|| collective::sort(&self.machine, sorting))?;
            let classes: Vec<u16> = tags.iter().map(|tag| u16::from(*tag)).collect();
            let expected = by_class(&classes, 256, 1, self.workers.threads);
            assert!(self.download::<u32>(&order, n)? == expected.view::<u32>()[..n], "{name}");
            self.say(&name, time, 5 * n, n);
            let began = Instant::now();
            let rounds = 5;
            (0..rounds).for_each(|_| drop(by_class(&classes, 256, 32, self.workers.threads)));
            self.say(&format!("{name}, the host"), began.elapsed() / rounds, 6 * n, n);
        }
        Ok(())
    }
}

impl Lab<'_> {
    fn tune(&self) -> Result<()> {
        let n = 64 * MI;
        let words: Vec<u64> = random(1).take(n).map(|x| unit(x).to_bits()).collect();
        let small: Vec<u32> = random(1).take(n).map(|x| (x >> 32) as u32).collect();
        let (input, input_32) = (self.upload(&words)?, self.upload(&small)?);
        let [out, out_32, places, flags] =
            [self.memory(8 * n)?, self.memory(4 * n)?, self.memory(4 * n)?, self.memory(8)?];
        let count = n as u64;
        for element in [Element::I64, Element::F64] {
            for by_index in [false, true] {
                for blocks in [3, 4, 5, 6, 7] {
                    let args = ScanArgs { input: input.address, count, output: out.address, flags: flags.address };
                    let tuning = ScanTuning { blocks, by_index };
                    let queue = || collective::scan_tuned(&self.machine, Scan::Sum, element, args, tuning);
                    let time = self.time(queue)?;
                    self.say(&format!("Tune Scan {element:?} {blocks} {by_index}"), time, 16 * n, n);
                }
            }
        }
        // Threads of a block, blocks of a multiprocessor, keys of a thread.
        let few = [(384, 2, 22), (384, 2, 18), (384, 3, 14), (384, 3, 18), (512, 2, 16), (256, 4, 16), (256, 3, 22)];
        let many = [(384, 2, 14), (384, 2, 12), (384, 3, 12), (384, 3, 10), (512, 2, 11), (256, 4, 14), (256, 4, 16)];
        for (key, pairs, tunings) in [
            (Key::U32, false, few),
            (Key::U64, false, many),
            (Key::F64, false, many),
            (Key::U32, true, few),
            (Key::F64, true, many),
        ] {
            for (threads, blocks, items) in tunings {
                let (from, to) = match key {
                    Key::U32 => (input_32.address, out_32.address),
                    _ => (input.address, out.address),
                };
                let payload = if pairs { Payload::Indices(places.address) } else { Payload::None };
                let tuning = SortTuning { threads, blocks, items };
                let sorting = Sorting { key, descending: false, keys: from, count, sorted: to, payload };
                let queue = || collective::sort_tuned(&self.machine, sorting, tuning);
                let time = self.time(queue)?;
                let name = format!("Tune Sort {key:?}{} {threads} {blocks} {items}", if pairs { " u32" } else { "" });
                self.say(&name, time, n * key.bytes(), n);
            }
        }
        Ok(())
    }

    fn groups(&self) -> Result<()> {
        let n = 16 * MI;
        for kinds in [10, 1000, MI as u64, u64::MAX] {
            let many = if kinds == u64::MAX { "as many".to_owned() } else { kinds.to_string() };
            let name = format!("Groups I64 16 Mi of {many}");
            if !self.wanted(&name) {
                continue;
            }
            let words: Vec<u64> = random(3).take(n).map(|x| x % kinds).collect();
            let input = self.upload(&words)?;
            let [group_of, firsts, counts] = [self.memory(4 * n)?, self.memory(4 * n)?, self.memory(4 * n)?];
            let number = self.memory(8)?;
            let to = Grouped {
                group_of: group_of.address,
                firsts: firsts.address,
                counts: counts.address,
                groups: number.address,
            };
            let from = input.address;
            let time = self.time(|| collective::groups(&self.machine, Element::I64, from, n as u64, to))?;
            let expected = host_groups::of_words(self.workers, &words)?.expect("nobody cancels");
            let groups = expected.firsts.len();
            assert_eq!(self.download::<u64>(&number, 1)?, [groups as u64], "{name}");
            assert!(self.download::<u32>(&group_of, n)? == expected.group_of, "{name}");
            assert!(self.download::<u32>(&firsts, groups)? == expected.firsts, "{name}");
            assert!(self.download::<u32>(&counts, groups)? == expected.counts, "{name}");
            self.say(&name, time, n * 12, n);
        }
        Ok(())
    }
}

/// Words that repeat from run to run.
fn random(seed: u64) -> impl Iterator<Item = u64> {
    (seed..).map(|i| {
        let mut z = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    })
}

/// From 0 to below 1.
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / (1u64 << 53) as f64
}
