//! Scans: see `scan.cuh`.

use super::{Blocks, LOOK_BACK, Machine, REDUCE, Text, TileStates, name};
use crate::backend::collective::Element;
use crate::backend::collective::scan::{SCAN_TILE, Scan, THREADS};
use crate::error::Result;

const SCAN: &str = include_str!("scan.cuh");

/// The template of `scan.cuh` for the operation, and the bytes of its state.
fn operation(scan: Scan, element: Element) -> (String, u64) {
    let ty = name(element);
    match (scan, element.is_float()) {
        (Scan::Sum, false) => (format!("ScanIntSum<{ty}>"), 8),
        (Scan::Sum, true) => (format!("ScanFloatSum<{ty}>"), 16),
        (Scan::Product, false) => (format!("ScanIntProduct<{ty}>"), 16),
        (Scan::Product, true) => (format!("ScanFloatProduct<{ty}>"), 8),
        (Scan::Min, _) => (format!("ScanExtreme<{ty}, false>"), 16),
        (Scan::Max, _) => (format!("ScanExtreme<{ty}, true>"), 16),
    }
}

/// Parameters that only affect how long a scan takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// The fewest blocks that a multiprocessor must be able to run at once, which limits the registers of a thread.
    pub blocks: u32,
    /// Whether a block takes the tile with its own number, not the next free one.
    pub by_index: bool,
}

impl Tuning {
    /// While a block waits for the tiles before its own, other blocks work. More blocks are better, as long as
    /// registers suffice. Elements that are narrower than values are kept in registers, too. Measured with
    /// `examples/collective.rs` on an H200.
    pub fn of(scan: Scan, element: Element) -> Self {
        let blocks = match (scan, element) {
            (Scan::Sum, Element::F64) => 6,
            _ if scan.total(element).bytes() == element.bytes() => 5,
            _ => 4,
        };
        Self { blocks, by_index: false }
    }
}

pub(super) fn text(scan: Scan, element: Element, tuning: Tuning) -> Text {
    let (operation, _) = operation(scan, element);
    let ty = name(element);
    let Tuning { blocks, by_index } = tuning;
    let mut kernel = format!("ikra_scan_{scan:?}_{ty}").to_lowercase();
    if tuning != Tuning::of(scan, element) {
        kernel += &format!("_{blocks}{}", if by_index { "_by_index" } else { "" });
    }
    let body = format!("scan<{ty}, {operation}, {by_index}>(args)");
    Text::new(kernel, &[REDUCE, LOOK_BACK, SCAN], (THREADS as u32, blocks), "ScanArgs", &body)
}

/// Addresses that a scan reads and writes. `output` may be `input` if both types have the same width.
#[derive(Clone, Copy, Debug)]
pub struct ScanArgs {
    pub input: u64,
    pub count: u64,
    pub output: u64,
    /// 8 bytes.
    pub flags: u64,
}

/// Queues the scan of elements, with as many results of [`Scan::total`]'s type. It writes to `flags` the word that
/// [`crate::backend::collective::scan::ScanFlags`] reads.
///
/// # Errors
/// `Memory`, `Device`.
pub fn scan(machine: &impl Machine, scan: Scan, element: Element, args: ScanArgs) -> Result<()> {
    scan_tuned(machine, scan, element, args, Tuning::of(scan, element))
}

/// As [`scan`], with other parameters, for measurements.
///
/// # Errors
/// As [`scan`].
pub fn scan_tuned(machine: &impl Machine, scan: Scan, element: Element, args: ScanArgs, tuning: Tuning) -> Result<()> {
    let ScanArgs { input, count, output, flags } = args;
    machine.fill(flags, 8, 0)?;
    if count == 0 {
        return Ok(());
    }
    let tiles = count.div_ceil(SCAN_TILE as u64);
    let states = TileStates::new(machine, tiles, operation(scan, element).1)?;
    let [a, b, c, d, e] = states.words;
    machine.run(&text(scan, element, tuning), Blocks::All(tiles), &mut [input, output, count, a, b, c, d, e, flags])
}
