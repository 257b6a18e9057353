//! How many blocks of a kernel one multiprocessor runs at once.
//!
//! Here: the calculation behind `cuOccupancyMaxActiveBlocksPerMultiprocessor`, which NVIDIA documents in the toolkit's
//! `cuda_occupancy.h`. So a plan needs no device. Not here: the figures ([`crate::backend::resources`]).

use crate::backend::resources::{MAX_REGISTERS, Machine, Resources};

/// Registers that a warp of the kernel takes.
pub fn registers_of_warp(kernel: &Resources, machine: &Machine) -> u32 {
    (kernel.registers * machine.warp).next_multiple_of(machine.register_unit)
}

/// Bytes of shared memory that a block of the kernel takes.
pub fn shared_of_block(kernel: &Resources, machine: &Machine) -> u32 {
    (kernel.shared + machine.reserved).next_multiple_of(machine.shared_unit)
}

/// The most warps of a block of the kernel. 0: none fits.
pub fn warps_of_block(kernel: &Resources, machine: &Machine) -> u32 {
    let most = kernel.threads.min(machine.block_threads) / machine.warp;
    (1..=most).rev().find(|warps| blocks(kernel, machine, warps * machine.warp) > 0).unwrap_or(0)
}

/// How many warps of the kernel fit at most.
pub fn warps(kernel: &Resources, machine: &Machine) -> u32 {
    let most = kernel.threads.min(machine.block_threads) / machine.warp;
    (1..=most).map(|warps| warps * blocks(kernel, machine, warps * machine.warp)).max().unwrap_or(0)
}

/// How many blocks of so many threads fit.
pub fn blocks(kernel: &Resources, machine: &Machine, threads: u32) -> u32 {
    let warps = threads.div_ceil(machine.warp);
    if threads == 0
        || threads > machine.block_threads.min(kernel.threads)
        || kernel.registers > MAX_REGISTERS
        || kernel.shared > machine.block_shared
    {
        return 0;
    }
    let by_registers = match registers_of_warp(kernel, machine) {
        0 => u32::MAX,
        // A block is refused as if its warps were spread evenly.
        each if each * warps.next_multiple_of(machine.partitions) > machine.block_registers => 0,
        each => machine.registers / machine.partitions / each * machine.partitions / warps,
    };
    let by_shared = match shared_of_block(kernel, machine) {
        0 => u32::MAX,
        each => machine.shared / each,
    };
    by_registers.min(by_shared).min(machine.warps() / warps).min(machine.blocks)
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Machine = Machine::MODEL;

    fn kernel(registers: u32, shared: u32) -> Resources {
        Resources { registers, shared, threads: 1024 }
    }

    #[test]
    fn known_values() {
        let turing = Machine::of_capability(75, 68);
        let ampere = Machine::of_capability(86, 84);
        let known = [
            // registers, shared memory, threads of a block, blocks
            (H200, 32, 0, 256, 8),
            (H200, 32, 0, 1024, 2),
            (H200, 33, 0, 1024, 1),
            (H200, 40, 0, 256, 6),
            (H200, 64, 0, 256, 4),
            // 2304 registers a warp: 7 warps in each part, so 28 of 32
            (H200, 65, 0, 256, 3),
            (H200, 65, 0, 32, 28),
            (H200, 128, 0, 512, 1),
            (H200, 168, 0, 256, 1),
            (H200, 255, 0, 256, 1),
            (H200, 255, 0, 512, 0),
            (H200, 16, 0, 32, 32),
            (H200, 16, 0, 1, 32),
            (H200, 16, 0, 96, 21),
            (H200, 16, 0, 0, 0),
            (H200, 16, 0, 1025, 0),
            // 48 KiB, and 1 KiB that is reserved
            (H200, 32, 48 << 10, 256, 4),
            (H200, 32, (48 << 10) + 1, 256, 0),
            (H200, 32, 1, 64, 32),
            (H200, 32, 6 << 10, 64, 32),
            (H200, 32, (6 << 10) + 300, 64, 30),
            (turing, 32, 0, 256, 4),
            (turing, 32, 0, 32, 16),
            (turing, 32, 32 << 10, 256, 2),
            (turing, 32, (32 << 10) + 1, 256, 1),
            (ampere, 40, 0, 256, 6),
            (ampere, 42, 0, 256, 5),
            (ampere, 32, 0, 64, 16),
            (ampere, 32, 24 << 10, 64, 4),
        ];
        for (machine, registers, shared, threads, expected) in known {
            let found = blocks(&kernel(registers, shared), &machine, threads);
            assert_eq!(found, expected, "{registers} registers, {shared} bytes, {threads} threads");
        }
    }

    #[test]
    fn a_kernel_with_bounds_of_its_own_has_no_larger_block() {
        let bound = Resources { registers: 32, shared: 0, threads: 512 };
        assert_eq!((blocks(&bound, &H200, 512), blocks(&bound, &H200, 544)), (4, 0));
        assert_eq!((warps_of_block(&bound, &H200), warps(&bound, &H200)), (16, 64));
        assert_eq!((warps_of_block(&kernel(255, 0), &H200), warps(&kernel(255, 0), &H200)), (8, 8));
        // of 128 threads each
        assert_eq!(warps_of_block(&Resources { threads: 20, ..bound }, &H200), 0);
    }
}
