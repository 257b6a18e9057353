//! Scans: see `scan.cuh`.

use super::{Blocks, Board, LOOK_BACK, Machine, REDUCE, Text, name};
use crate::backend::collective::Element;
use crate::backend::collective::scan::{SCAN_TILE, Scan, THREADS};
use crate::error::Result;

const SCAN: &str = include_str!("scan.cuh");

/// The operation as a template of `scan.cuh`, and the bytes of its state.
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

pub(super) fn text(scan: Scan, element: Element) -> Text {
    let (operation, _) = operation(scan, element);
    let ty = name(element);
    let kernel = format!("ikra_scan_{scan:?}_{ty}").to_lowercase();
    let bounds = (THREADS as u32, 4);
    Text::new(kernel, &[REDUCE, LOOK_BACK, SCAN], bounds, "ScanArgs", &format!("scan<{ty}, {operation}>(args)"))
}

/// Queues the scan of `count` elements at `input` to as many of [`Scan::total`]'s type at `output`, which may be `input` where
/// the types are of one width. The 8 bytes at `told` then hold what [`crate::backend::collective::scan::Told`] reads.
///
/// # Errors
/// `Memory`, `Device`.
pub fn scan(
    machine: &impl Machine,
    scan: Scan,
    element: Element,
    input: u64,
    count: u64,
    output: u64,
    told: u64,
) -> Result<()> {
    machine.fill(told, 8, 0)?;
    if count == 0 {
        return Ok(());
    }
    let tiles = count.div_ceil(SCAN_TILE as u64);
    let board = Board::new(machine, tiles, operation(scan, element).1)?;
    let [a, b, c, d] = board.words;
    machine.run(&text(scan, element), Blocks::All(tiles), &mut [input, output, count, a, b, c, d, told])
}
