//! Graphs: launches that follow each other, submitted by one call of the driver.
//!
//! Here: [`Chains`], which one owner uses again and again for launches on one stream. Not here: which launches follow
//! each other ([`super::launch`], [`super::queue`]).
//!
//! A launch costs its caller 3 to 4 µs on an H200, and more where several threads launch, because the driver has one
//! lock. In a graph its arguments cost 0.2 µs, and the submission of all costs 2 µs. To make a graph takes 100 µs or
//! more. So there is one for each power of two, and launches of any kernels are put into its nodes.
//!
//! Invariant: one owner submits a graph to one stream, because runs of one graph follow each other.
#![allow(unsafe_code, reason = "calls into libcuda")]

use super::driver::{Device, Module, Spread, Stream};
use crate::error::Result;
use cudarc::driver::sys;
use std::ffi::c_void;
use std::sync::Arc;

/// The longest chain has two to this power launches. More would take longer to make, and little less to submit.
const LENGTHS: usize = 6;

/// Launches in their order.
pub trait Launches {
    fn count(&self) -> usize;
    /// The code of one of them, and the words of its parameter.
    fn at(&mut self, index: usize) -> (&Spread, &mut [u64]);
}

impl Launches for [(Spread, Vec<u64>)] {
    fn count(&self) -> usize {
        self.len()
    }
    fn at(&mut self, index: usize) -> (&Spread, &mut [u64]) {
        let (code, words) = &mut self[index];
        (code, words)
    }
}

/// The graphs of one owner; see the module.
#[derive(Default)]
pub struct Chains([Slot; LENGTHS]);

/// The graph of one length. It is made where it is wanted for the second time.
#[derive(Default)]
enum Slot {
    #[default]
    Unused,
    /// It was wanted once.
    Wanted,
    Made(Chain),
    /// The driver does not make or change it.
    Failed,
}

impl Chains {
    /// Puts launches on the stream.
    ///
    /// # Errors
    /// As [`Spread::launch`]. Then some of them may be on the stream. The context must be current.
    pub fn submit(
        &mut self,
        device: &Arc<Device>,
        stream: &Stream,
        launches: &mut (impl Launches + ?Sized),
    ) -> Result<()> {
        let mut from = 0;
        while from < launches.count() {
            let power = ((launches.count() - from).ilog2() as usize).min(LENGTHS);
            let part = Part { from, length: 1 << power, launches };
            from += part.length;
            match power.checked_sub(1).map(|slot| &mut self.0[slot]) {
                Some(slot) => slot.submit(device, stream, part)?,
                None => part.launch(stream)?,
            }
        }
        Ok(())
    }
}

impl Slot {
    fn submit(
        &mut self,
        device: &Arc<Device>,
        stream: &Stream,
        mut part: Part<'_, impl Launches + ?Sized>,
    ) -> Result<()> {
        match self {
            Self::Unused => *self = Self::Wanted,
            // where the driver refuses, the launches themselves say why
            Self::Wanted => *self = Chain::new(device, &mut part).map_or(Self::Failed, Self::Made),
            Self::Made(chain) => {
                if chain.set(&mut part).is_err() {
                    *self = Self::Failed;
                }
            }
            Self::Failed => {}
        }
        match self {
            Self::Made(chain) => chain.submit(stream),
            _ => part.launch(stream),
        }
    }
}

/// Some launches.
struct Part<'a, L: ?Sized> {
    from: usize,
    length: usize,
    launches: &'a mut L,
}

impl<L: Launches + ?Sized> Part<'_, L> {
    fn launch(self, stream: &Stream) -> Result<()> {
        (self.from..self.from + self.length).try_for_each(|launch| {
            let (code, words) = self.launches.at(launch);
            code.launch(stream, words)
        })
    }
}

/// A graph of launches, each behind the one before.
struct Chain {
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
    nodes: Vec<Node>,
    device: Arc<Device>,
}

/// A node, which the graph owns, and the code that it runs.
struct Node {
    raw: sys::CUgraphNode,
    module: Arc<Module>,
}

// SAFETY: any thread may use graph handles, one at a time, and a chain has one owner. The nodes are the graph's.
unsafe impl Send for Chain {}

impl Chain {
    /// # Errors
    /// `Device`. The context must be current.
    fn new(device: &Arc<Device>, part: &mut Part<'_, impl Launches + ?Sized>) -> Result<Self> {
        let (graph, executable) = (std::ptr::null_mut(), std::ptr::null_mut());
        let mut chain = Self { graph, executable, nodes: Vec::with_capacity(part.length), device: device.clone() };
        // SAFETY: a context is current, and the out-pointer is to a live field.
        device.check("cuGraphCreate", unsafe { sys::cuGraphCreate(&raw mut chain.graph, 0) })?;
        for launch in part.from..part.from + part.length {
            let (code, words) = part.launches.at(launch);
            let mut words = [words.as_mut_ptr().cast::<c_void>()];
            let params = code.node(&mut words);
            let before = chain.nodes.last().map(|node| node.raw);
            let before = before.as_slice();
            let mut raw = std::ptr::null_mut();
            // SAFETY: the graph is alive, and the node before is one of it. The driver copies the arguments before the
            // call returns. The out-pointer is to a live local.
            let added = unsafe {
                sys::cuGraphAddKernelNode_v2(
                    &raw mut raw,
                    chain.graph,
                    before.as_ptr(),
                    before.len(),
                    &raw const params,
                )
            };
            device.check("cuGraphAddKernelNode", added)?;
            chain.nodes.push(Node { raw, module: code.module.clone() });
        }
        // SAFETY: the graph is alive, and the out-pointer is to a live field.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&raw mut chain.executable, chain.graph, 0) };
        device.check("cuGraphInstantiate", made)?;
        Ok(chain)
    }

    /// Changes all launches. Earlier ones that are still on a stream stay as they are.
    ///
    /// # Errors
    /// `Device`. Then some are changed.
    fn set(&mut self, part: &mut Part<'_, impl Launches + ?Sized>) -> Result<()> {
        for (launch, node) in (part.from..).zip(&mut self.nodes) {
            let (code, words) = part.launches.at(launch);
            let mut words = [words.as_mut_ptr().cast::<c_void>()];
            let params = code.node(&mut words);
            // SAFETY: the graph and its node are alive. The driver copies the arguments before the call returns.
            let set = unsafe { sys::cuGraphExecKernelNodeSetParams_v2(self.executable, node.raw, &raw const params) };
            self.device.check("cuGraphExecKernelNodeSetParams", set)?;
            if !Arc::ptr_eq(&node.module, &code.module) {
                node.module = code.module.clone();
            }
        }
        Ok(())
    }

    fn submit(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both are alive. The caller keeps the memory to which arguments point until the stream has passed.
        let status = unsafe { sys::cuGraphLaunch(self.executable, stream.raw) };
        let largest = self.nodes.iter().map(|node| &node.module).max_by_key(|module| module.facts.local);
        largest.map_or(Ok(()), |module| module.launched("cuGraphLaunch", status))
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // it may be dropped on a thread where no context is current
        if !self.device.is_ours() || self.device.enter().is_err() {
            return;
        }
        if !self.executable.is_null() {
            // SAFETY: it is alive and not used afterwards. The driver keeps it while runs of it are under way.
            let _ = unsafe { sys::cuGraphExecDestroy(self.executable) };
        }
        if !self.graph.is_null() {
            // SAFETY: it is alive and not used afterwards.
            let _ = unsafe { sys::cuGraphDestroy(self.graph) };
        }
    }
}
