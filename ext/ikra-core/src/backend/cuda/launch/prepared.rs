//! What a waited launch gives to its kernel: the places of its columns, and the arguments.
//!
//! Here: [`Prepared`]. Not here: the memory, and the work on a stream ([`super::waited`]).

use super::kernel::{CudaKernel, Shape};
use super::memory::address_of;
use super::plan::{Plan, Use};
use crate::backend::Launch;
use crate::backend::cuda::driver::{Device, Module, Spread};
use crate::backend::cuda::emit::Header;
use crate::error::Result;
use crate::memory::column::HostColumn;
use std::sync::Arc;

/// A launch, before it has memory on the device.
pub(super) struct Prepared {
    /// The use of each column by the copies. Columns that are on the device are not copied.
    pub(super) uses: Vec<Use>,
    pub(super) plan: Plan,
    pub(super) code: Spread,
    /// The addresses of columns that are on the device.
    resident: Vec<Option<u64>>,
    params: Vec<u64>,
    call_depth: u32,
}

impl Prepared {
    /// `words`: parameters behind those of the program.
    ///
    /// # Errors
    /// `Memory`, `Device`.
    pub(super) fn new(
        device: &Device,
        kernel: &CudaKernel,
        module: &Arc<Module>,
        launch: &Launch<'_>,
        words: &[u64],
    ) -> Result<Self> {
        let resident = launch.columns.iter().map(|c| address_of(device, c)).collect::<Result<Vec<_>>>()?;
        let moves = |(used, resident): (&Use, &Option<u64>)| if resident.is_some() { Use::None } else { *used };
        let uses: Vec<Use> = kernel.columns.iter().zip(&resident).map(moves).collect();
        let lengths: Vec<usize> = launch.columns.iter().map(HostColumn::byte_len).collect();
        let Shape { grid, block, cells } = kernel.shape(module, launch)?;
        let params = [launch.params, &cells, words].concat();
        let in_memory = if kernel.emitted.indirect { (lengths.len() + params.len()) * 8 } else { 0 };
        let plan = Plan::new(&uses, &lengths, in_memory);
        let code = Spread { module: module.clone(), grid, block };
        Ok(Self { uses, plan, code, resident, params, call_depth: kernel.call_depth()? })
    }

    /// The words of the kernel's parameter, where the columns have their places from `address`, and the bytes of those
    /// arguments that are in memory.
    pub(super) fn arguments(&self, kernel: &CudaKernel, launch: &Launch<'_>, address: u64) -> (Vec<u64>, Vec<u8>) {
        let Self { plan, params, .. } = self;
        let buffers: Vec<u64> = plan
            .offsets
            .iter()
            .enumerate()
            .map(|(i, offset)| {
                let bias = launch.biases[i].wrapping_mul(kernel.layout.stride(i) as u64);
                let address = offset.map(|o| address + o as u64).or(self.resident[i]);
                address.map_or(0, |address| address.wrapping_sub(bias))
            })
            .collect();
        let memory = kernel.emitted.memory(&buffers, params).into_iter().flat_map(u64::to_ne_bytes).collect();
        let header = Header {
            jobs: launch.jobs,
            limit: launch.limit.0,
            seed: launch.seed,
            section: launch.section,
            call_depth: self.call_depth,
            stop_key: address + plan.status as u64,
            trap: address + plan.status as u64 + 8,
            ..Header::default()
        };
        (kernel.emitted.arguments(&header, &buffers, &[params], address + plan.arguments as u64), memory)
    }
}
