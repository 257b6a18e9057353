//! Tests of kernels against the host's code, on the shim, and on a GPU if there is one.

use super::on_shim::OnShim;
use super::*;
use crate::backend::collective::groups::{self as host_groups, float_word};
use crate::backend::collective::reduce::{Reduced, Reduction};
use crate::backend::collective::scan::{self as host_scan, SCAN_TILE, Scan, ScanFlags, Scanned};
use crate::backend::collective::select as host_select;
use crate::backend::collective::sort::{self as host_sort, Key, Keys};
use crate::backend::collective::testing::{self, Owned, Random, on_host};
use crate::backend::collective::{TILE, Values};
use crate::backend::cuda::CudaShim;
use once_cell::sync::Lazy;
use std::sync::atomic::AtomicU64;

static SHIM: Lazy<CudaShim> = Lazy::new(|| CudaShim::new().expect("a C++ compiler is installed").with_barriers());

fn address<T>(values: &[T]) -> u64 {
    values.as_ptr() as u64
}

#[test]
fn every_kernel_is_compiled_by_nvrtc() {
    if let Err(e) = nvrtc::load() {
        eprintln!("SKIPPED: collective kernels are not checked by NVRTC: {e}");
        return;
    }
    let mut texts = Vec::new();
    for element in Element::ALL {
        texts.extend(Reduction::ALL.map(|r| reduce::text(r, element)));
        texts.extend(Scan::ALL.map(|s| super::scan::text(s, element, ScanTuning::of(s, element))));
    }
    for (width, others) in [(0, false), (1, false), (4, true), (8, false), (8, true)] {
        texts.push(select::text(width, others));
    }
    texts.extend(Element::ALL.map(groups::finding));
    texts.extend(groups::following());
    texts.push(sort::starting());
    texts.extend([1, 4, 8].map(gather::gathering));
    texts.push(gather::numbering());
    for key in Key::ALL {
        for descending in [false, true] {
            for exact in [false, true] {
                let by = sort::By { key, descending, exact };
                let (alone, moving) = (SortTuning::of(key, false), SortTuning::of(key, true));
                texts.push(sort::counting(by));
                texts.push(sort::pass(by, Payload::None, false, alone));
                texts.push(sort::pass(by, Payload::Values(0, 0), descending, moving));
                texts.push(sort::pass(by, Payload::Indices(0), false, moving));
            }
        }
    }
    for text in texts {
        for capability in [80, 90] {
            let checked = nvrtc::check(&text.source(), capability, &CodeOptions::default());
            checked.unwrap_or_else(|e| panic!("{}: {e}", text.kernel));
        }
    }
}

fn reduced_by_kernel(reduction: Reduction, values: &Owned) -> Reduced {
    let out = [0u64; Reduction::WORDS].map(AtomicU64::new);
    let (element, len) = (values.view().element(), values.view().len());
    reduce::reduce(&OnShim::new(&SHIM), reduction, element, values.address(), len as u64, address(&out))
        .unwrap_or_else(|e| panic!("{e}"));
    reduction.read(element, &out.map(AtomicU64::into_inner))
}

#[test]
fn reductions_of_kernels_and_of_the_host_agree_to_the_bit() {
    for values in testing::samples(&[0, 1, 31, 32, 33, 1000, TILE - 1, TILE, TILE + 1, 5 * TILE + 7]) {
        for reduction in Reduction::ALL {
            let host = on_host(|workers| crate::backend::collective::reduce::reduce(workers, reduction, values.view()));
            let kernel = reduced_by_kernel(reduction, &values);
            assert_eq!(testing::bits(host), testing::bits(kernel), "{reduction:?} of {values:?}");
        }
    }
}

/// Memory that kernels write and a test reads.
struct Out(Vec<AtomicU64>);

impl Out {
    fn new(bytes: usize) -> Self {
        Self((0..bytes.div_ceil(8) + 1).map(|_| AtomicU64::new(0x5555_5555_5555_5555)).collect())
    }
    fn address(&self) -> u64 {
        address(&self.0)
    }
    fn bytes(self) -> Vec<u8> {
        self.0.into_iter().flat_map(|w| w.into_inner().to_ne_bytes()).collect()
    }
    fn word(self) -> u64 {
        self.0[0].load(std::sync::atomic::Ordering::Relaxed)
    }
}

fn bytes_of(values: Values<'_>) -> Vec<u8> {
    fn all<const N: usize>(bytes: impl Iterator<Item = [u8; N]>) -> Vec<u8> {
        bytes.flatten().collect()
    }
    match values {
        Values::I64(x) => all(x.iter().map(|x| x.to_ne_bytes())),
        Values::I32(x) => all(x.iter().map(|x| x.to_ne_bytes())),
        Values::U8(x) => x.to_vec(),
        Values::F64(x) => all(x.iter().map(|x| x.to_ne_bytes())),
        Values::F32(x) => all(x.iter().map(|x| x.to_ne_bytes())),
    }
}

fn scanned_by_kernel(how: Scan, values: &Owned) -> (Vec<u8>, ScanFlags) {
    let (element, len) = (values.view().element(), values.view().len());
    let bytes = len * how.total(element).bytes();
    let (out, flags) = (Out::new(bytes), Out::new(8));
    let args = ScanArgs { input: values.address(), count: len as u64, output: out.address(), flags: flags.address() };
    super::scan::scan(&OnShim::new(&SHIM), how, element, args).unwrap_or_else(|e| panic!("{e}"));
    let mut out = out.bytes();
    assert_eq!(out[bytes..], [0x55; 16][..out.len() - bytes], "nothing beyond the end is written");
    out.truncate(bytes);
    (out, ScanFlags::read(flags.word()))
}

#[test]
fn scans_of_kernels_and_of_the_host_agree_to_the_bit() {
    for values in
        testing::samples(&[0, 1, 2, 31, 32, 33, 1000, SCAN_TILE - 1, SCAN_TILE, SCAN_TILE + 1, 3 * SCAN_TILE + 7])
    {
        for how in Scan::ALL {
            let (host, flags): (Scanned, ScanFlags) = on_host(|workers| host_scan::scan(workers, how, values.view()));
            let kernel = scanned_by_kernel(how, &values);
            assert!(kernel.0 == bytes_of(host.values()), "{how:?} of {values:?}");
            assert_eq!(kernel.1, flags, "{how:?} of {values:?}");
        }
    }
}

#[test]
fn what_tunes_changes_no_result() {
    let mut r = Random(9);
    let values: Vec<f64> = (0..2 * SCAN_TILE + 77).map(|_| r.unit() - 0.5).collect();
    let n = values.len();
    let machine = OnShim::new(&SHIM);
    let scanned = |tuning| {
        let (out, flags) = (Out::new(8 * n), Out::new(8));
        let args = ScanArgs { input: address(&values), count: n as u64, output: out.address(), flags: flags.address() };
        super::scan::scan_tuned(&machine, Scan::Sum, Element::F64, args, tuning).unwrap_or_else(|e| panic!("{e}"));
        out.bytes()
    };
    assert!(scanned(ScanTuning::of(Scan::Sum, Element::F64)) == scanned(ScanTuning { blocks: 3, by_index: true }));
    let sorted = |tuning| {
        let out = Out::new(8 * n);
        let (keys, sorted) = (address(&values), out.address());
        let payload = Payload::None;
        let sorting = Sorting { key: Key::F64, descending: false, keys, count: n as u64, sorted, payload };
        sort::sort_tuned(&machine, sorting, tuning).unwrap_or_else(|e| panic!("{e}"));
        out.bytes()
    };
    assert!(sorted(SortTuning::of(Key::F64, false)) == sorted(SortTuning { threads: 512, blocks: 2, items: 9 }));
}

/// complete groups, and a complete larger group
#[test]
fn scans_of_many_tiles_agree_to_the_bit() {
    let mut r = Random(5);
    for tiles in [33, 1026] {
        let values = Owned::F32((0..tiles * SCAN_TILE - 5).map(|_| r.unit() as f32 - 0.3).collect());
        let (host, _) = on_host(|workers| host_scan::scan(workers, Scan::Sum, values.view()));
        assert!(scanned_by_kernel(Scan::Sum, &values).0 == bytes_of(host.values()), "{tiles} tiles");
    }
}

#[test]
fn selections_of_kernels_are_those_of_the_host() {
    let tile = select::SELECT_TILE as usize;
    let machine = OnShim::new(&SHIM);
    for n in [0, 1, 15, 16, 33, 1000, tile - 1, tile, tile + 1, 3 * tile + 9] {
        for share in [0.0, 0.3, 1.0] {
            let mut r = Random(n as u64 + 1);
            // not aligned for loads of 16 bytes
            let padded: Vec<u8> =
                (0..n + 3).map(|_| if r.unit() < share { 1 + (r.word() % 255) as u8 } else { 0 }).collect();
            let flags = &padded[3..];
            let words: Vec<u64> = (0..n).map(|_| r.word()).collect();
            let (expected, left) = on_host(|workers| host_select::split(workers, flags, &words));
            let bytes = |x: &[u64]| x.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
            let from = Flagged { flags: address(flags), input: address(&words), width: 8, count: n as u64 };
            let (to, others, hits) = (Out::new(8 * n), Out::new(8 * n), Out::new(8));
            select::split(&machine, from, to.address(), others.address(), hits.address())
                .unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(hits.word(), expected.len() as u64);
            assert_eq!(to.bytes()[..8 * expected.len()], bytes(&expected)[..]);
            assert_eq!(others.bytes()[..8 * left.len()], bytes(&left)[..]);

            let small: Vec<u8> = words.iter().map(|w| *w as u8).collect();
            let from = Flagged { input: address(&small), width: 1, ..from };
            let (to, hits) = (Out::new(n), Out::new(8));
            select::chosen(&machine, from, to.address(), hits.address()).unwrap_or_else(|e| panic!("{e}"));
            let expected = on_host(|workers| host_select::chosen(workers, flags, &small));
            assert_eq!(hits.word(), expected.len() as u64);
            assert_eq!(to.bytes()[..expected.len()], expected[..]);

            let expected = on_host(|workers| host_select::indices(workers, flags));
            let (to, hits) = (Out::new(4 * n), Out::new(8));
            select::indices(&machine, address(flags), n as u64, to.address(), hits.address())
                .unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(hits.word(), expected.len() as u64);
            let bytes: Vec<u8> = expected.iter().flat_map(|x| x.to_ne_bytes()).collect();
            assert_eq!(to.bytes()[..bytes.len()], bytes[..]);
        }
    }
}

/// Sorts indices with kernels, and compares the order with the host's. Checks keys and another payload likewise.
fn check_sort(key: Key, keys: &[u8], wrapped: Keys<'_>, descending: bool) {
    let (n, width) = (wrapped.len(), key.bytes());
    let machine = OnShim::new(&SHIM);
    // the key that is left with a payload: without signs of zeroes, and with one NaN for all
    let left = |key: &[u8]| match wrapped {
        Keys::F64(_) => {
            let x = f64::from_ne_bytes(key.try_into().expect("8 bytes")) + 0.0;
            if x.is_nan() { (u64::MAX >> 1).to_ne_bytes().to_vec() } else { x.to_ne_bytes().to_vec() }
        }
        Keys::F32(_) => {
            let x = f32::from_ne_bytes(key.try_into().expect("4 bytes")) + 0.0;
            if x.is_nan() { (u32::MAX >> 1).to_ne_bytes().to_vec() } else { x.to_ne_bytes().to_vec() }
        }
        _ => key.to_vec(),
    };
    let input: Vec<u64> =
        keys.chunks(8).map(|c| u64::from_ne_bytes(std::array::from_fn(|i| c.get(i).copied().unwrap_or(0)))).collect();
    let payload: Vec<u32> = (0..n as u32).map(|i| i * 3).collect();
    let (sorted, places) = (Out::new(n * width), Out::new(n * 4));
    let (keys_at, count) = (address(&input), n as u64);
    for moved in
        [Payload::None, Payload::Values(address(&payload), places.address()), Payload::Indices(places.address())]
    {
        let sorting = Sorting { key, descending, keys: keys_at, count, sorted: sorted.address(), payload: moved };
        sort::sort(&machine, sorting).unwrap_or_else(|e| panic!("{e}"));
        let exact = moved == Payload::None;
        let order = on_host(|workers| host_sort::order(workers, wrapped, host_sort::By { descending, exact }));
        let all = order.iter().map(|i| &keys[*i as usize * width..][..width]);
        let expected: Vec<u8> = if exact { all.flatten().copied().collect() } else { all.flat_map(left).collect() };
        let got: Vec<u8> =
            sorted.0.iter().flat_map(|w| w.load(std::sync::atomic::Ordering::Relaxed).to_ne_bytes()).collect();
        assert!(got[..n * width] == expected[..], "{key:?} {descending} {n} {moved:?}");
        let got: Vec<u8> =
            places.0.iter().flat_map(|w| w.load(std::sync::atomic::Ordering::Relaxed).to_ne_bytes()).collect();
        let times = match moved {
            Payload::None => continue,
            Payload::Values(..) => 3,
            Payload::Indices(_) => 1,
        };
        let expected: Vec<u8> = order.iter().flat_map(|i| (i * times).to_ne_bytes()).collect();
        assert!(got[..n * 4] == expected[..], "{key:?} {descending} {n} {moved:?}");
    }
}

#[test]
fn kernels_sort_as_the_host_does() {
    let tile = SortTuning::of(Key::F64, false).tile() as usize;
    for n in [0, 1, 2, 33, 1000, tile, tile + 1, 2 * tile + 100] {
        // for many keys only some samples: each takes long here
        let samples: Vec<Owned> = testing::samples(&[n]);
        for (i, sample) in samples.iter().enumerate() {
            if n >= 1000 && i % 7 != 0 || n > tile && i % 2 != 0 {
                continue;
            }
            let bytes = bytes_of(sample.view());
            let descending = i / 2 % 2 == 1;
            match sample {
                Owned::I64(x) => check_sort(Key::I64, &bytes, Keys::I64(x), descending),
                Owned::F64(x) => check_sort(Key::F64, &bytes, Keys::F64(x), descending),
                Owned::F32(x) => check_sort(Key::F32, &bytes, Keys::F32(x), !descending),
                Owned::I32(x) => check_sort(Key::I32, &bytes, Keys::I32(x), descending),
                Owned::U8(x) => check_sort(Key::U8, &bytes, Keys::U8(x), !descending),
            }
        }
        if n == 1000 {
            continue;
        }
        let mut r = Random(n as u64);
        let (x, y): (Vec<u64>, Vec<u32>) = (0..n).map(|_| (r.word() >> (r.word() % 60), r.word() as u32)).unzip();
        check_sort(Key::U64, &x.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>(), Keys::U64(&x), false);
        check_sort(Key::U32, &y.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>(), Keys::U32(&y), true);
    }
}

#[test]
fn kernels_sort_rows_as_the_host_does() {
    let machine = OnShim::new(&SHIM);
    for (row, rows) in [(1, 3), (7, 40), (1000, 3), (3, 700), (20, 1), (2, 0)] {
        let mut r = Random(row as u64);
        let keys: Vec<i32> = (0..row * rows).map(|_| (r.word() % 50) as i32 - 25).collect();
        for descending in [false, true] {
            let mut expected: Vec<u32> = (0..keys.len() as u32).collect();
            for own in expected.chunks_mut(row) {
                own.sort_by_key(|at| keys[*at as usize] * if descending { -1 } else { 1 });
            }
            let (places, sorted) = (Out::new(keys.len() * 4), Out::new(keys.len() * 4));
            let (keys_at, count) = (address(&keys), keys.len() as u64);
            let from = Rows { keys: keys_at, count, row: row as u64, exact: descending };
            order_of_rows(&machine, Key::I32, descending, from, places.address()).unwrap_or_else(|e| panic!("{e}"));
            gather(&machine, 4, address(&keys), places.address(), keys.len() as u64, sorted.address())
                .unwrap_or_else(|e| panic!("{e}"));
            let bytes = |words: &mut dyn Iterator<Item = u32>| words.flat_map(u32::to_ne_bytes).collect::<Vec<u8>>();
            let wanted = bytes(&mut expected.iter().copied());
            assert!(places.bytes()[..wanted.len()] == wanted, "{rows} rows of {row}");
            let wanted = bytes(&mut expected.iter().map(|at| keys[*at as usize].cast_unsigned()));
            assert!(sorted.bytes()[..wanted.len()] == wanted, "{rows} rows of {row}");
        }
    }
}

#[test]
fn kernels_group_as_the_host_does() {
    let machine = OnShim::new(&SHIM);
    for values in testing::samples(&[0, 1, 2, 33, 1000, 5000, 20_000]) {
        let words: Vec<u64> = match &values {
            Owned::I64(x) => x.iter().map(|x| x.cast_unsigned()).collect(),
            Owned::I32(x) => x.iter().map(|x| i64::from(*x).cast_unsigned()).collect(),
            Owned::U8(x) => x.iter().map(|x| u64::from(*x)).collect(),
            Owned::F64(x) => x.iter().map(|x| float_word(*x)).collect(),
            Owned::F32(x) => x.iter().map(|x| float_word((*x).into())).collect(),
        };
        let n = words.len();
        let expected = on_host(|workers| host_groups::of_words(workers, &words));
        let [group_of, firsts, counts] = [(); 3].map(|()| Out::new(4 * n));
        let number = Out::new(8);
        let to = Grouped {
            group_of: group_of.address(),
            firsts: firsts.address(),
            counts: counts.address(),
            groups: number.address(),
        };
        groups::groups(&machine, values.view().element(), values.address(), n as u64, to)
            .unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(number.word(), expected.firsts.len() as u64, "{values:?}");
        let bytes = |x: &[u32]| x.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>();
        for (out, expected) in [(group_of, expected.group_of), (firsts, expected.firsts), (counts, expected.counts)] {
            assert!(out.bytes()[..4 * expected.len()] == bytes(&expected)[..], "{values:?}");
        }
    }
}
