//! Kernels whose elements share the values that stencils read ([`crate::ir::stages`]).
//!
//! Here: their text. A block of threads processes tiles of elements. For each tile, it computes into shared memory all
//! stage values that the elements may read: those at the tile's own positions and around it. After a barrier it runs
//! the elements, in which a call of the stage is a read of shared memory. Positions outside the array are not computed,
//! because no element reads them.
//!
//! A trap in a stage is not reported there: another element may have to report it, or none reads that position. The
//! elements of such a tile run without sharing instead. For that, functions that can raise are emitted twice.

use super::{Function, MAX_THREADS, Shared, scalar};
use crate::ir::stages::{self, Reach, Stage};
use crate::ir::{FuncId, Operand, ParamId};
use std::fmt::Write;

/// Bytes of shared memory that a block may use on all devices without a special request, less those that the kernel
/// itself uses.
pub const SHARED_MEMORY: u64 = (48 << 10) - OWN;
/// Shared memory for the flag whether to go on, and for the states of a reduction's warps.
const OWN: u64 = 1 << 10;

impl Shared<'_> {
    /// The stages whose values are shared. A stage comes before those that read it.
    pub(super) fn sharing(&self) -> Vec<(&Stage, Reach)> {
        let reaches = stages::reaches(self.program).into_iter();
        let shared = reaches.filter_map(|reach| {
            let stage = self.program.funcs[reach.func.index()].stage.as_ref().filter(|stage| stage.is_shared())?;
            Some((stage, reach))
        });
        shared.collect()
    }

    /// The name of the shared array of a stage.
    fn cells_name(&self, func: FuncId) -> String {
        format!("{}_cells", self.func_name(func))
    }

    /// The coordinates of an element, or of a position of a stage, relative to the tile's first element.
    fn coordinates(dimensions: usize) -> String {
        (0..dimensions).map(|d| format!(", i32 c{d}")).collect()
    }

    /// Declares the shared memory of blocks, and the functions that read it: those of stages, and the entry.
    pub(super) fn sharing_functions(&self, body: &mut String, sharing: &[(&Stage, Reach)]) {
        for (stage, reach) in sharing {
            let ty = scalar(self.program.funcs[reach.func.index()].results[0]);
            let _ = writeln!(body, "__shared__ {ty} {}[{}];", self.cells_name(reach.func), reach.cells(&stage.tile));
        }
        body.push('\n');
        for func in sharing.iter().map(|(_, reach)| reach.func).chain([self.program.entry]) {
            let mut function = Function::new(self, func);
            function.sharing = Some(sharing);
            let text = function.emit();
            let name = self.func_name(func);
            let head = self.signature(func, true).replacen(&format!(" {name}("), &format!(" {name}_sharing("), 1);
            let coordinates = Self::coordinates(sharing[0].0.tile.len());
            let head = head.strip_suffix(')').map_or(head.clone(), |head| format!("{head}{coordinates})"));
            let _ = writeln!(body, "{head} {{\n{text}}}\n");
        }
    }

    /// Whether a stage can raise, so that a tile may have to run without sharing.
    pub(super) fn sharing_may_fail(&self, sharing: &[(&Stage, Reach)]) -> bool {
        sharing.iter().any(|(_, reach)| self.may_stop[reach.func.index()])
    }

    /// The kernel whose blocks run tiles.
    pub(super) fn sharing_kernel(&self, kernel: &str, sharing: &[(&Stage, Reach)]) -> String {
        let (given, args) = self.given();
        let tile = &sharing[0].0.tile;
        let (dimensions, cells): (usize, u64) = (tile.len(), tile.iter().map(|side| u64::from(*side)).product());
        let parameter = |param| self.parameter(param);
        let (last, _) = &sharing[sharing.len() - 1];
        let first = last.first.map_or_else(|| "0".to_owned(), parameter);
        let mut out = format!(
            "extern \"C\" __global__ void __launch_bounds__({MAX_THREADS}) {kernel}(__grid_constant__ const {given} args) {{\n"
        );
        out += "  __shared__ bool over, raised;\n";
        let _ = writeln!(out, "  const i64 first = {first};");
        for (d, size) in last.sizes.iter().enumerate() {
            // a launch may process a part of a list
            let size = if dimensions == 1 { "i64(args.launch.jobs)".to_owned() } else { parameter(*size) };
            let _ = writeln!(out, "  const i64 size{d} = {size};");
        }
        let counts: Vec<String> =
            tile.iter().enumerate().map(|(d, side)| format!("u64((size{d} + {side} - 1) / {side})")).collect();
        let _ = writeln!(out, "  const u64 tiles = {};", counts.join(" * "));
        out += "  for (u64 tile = blockIdx.x; tile < tiles; tile += gridDim.x) {\n    u64 rest = tile;\n";
        for d in (0..dimensions).rev() {
            let (from, within) = if d == 0 { ("first + ", String::new()) } else { ("", format!(" % {}", counts[d])) };
            let from = if dimensions == 1 { from } else { "" };
            let _ = writeln!(out, "    const i64 from{d} = {from}i64(rest{within}) * {};", tile[d]);
            if d > 0 {
                let _ = writeln!(out, "    rest /= {};", counts[d]);
            }
        }
        out += &self.begun(sharing, "return");
        out += "    bool shares = true;\n";
        out += &self.filling(sharing);
        let _ = writeln!(out, "    for (u32 cell = threadIdx.x; cell < {cells}; cell += blockDim.x) {{");
        out += &Self::places(&tile.iter().map(|side| u64::from(*side)).collect::<Vec<_>>(), &vec![0; dimensions]);
        if dimensions > 1 {
            let outside: Vec<String> = (0..dimensions).map(|d| format!("at{d} >= size{d}")).collect();
            let _ = writeln!(out, "      if ({}) continue;", outside.join(" || "));
        }
        let sizes: Vec<String> = (0..dimensions).map(|d| format!("size{d}")).collect();
        let _ = writeln!(out, "      const i64 job = {} - first;", Self::position(&sizes));
        out += "      if (job < 0 || job >= i64(args.launch.jobs)) continue;\n";
        out += "      Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE};\n";
        let arguments = format!("{args}, ctx, job, args.launch.tick_begin, args.launch.tick_end");
        let call = self.sharing_call(sharing, &arguments);
        let stops = self.may_stop[self.program.entry.index()];
        let _ = if stops { writeln!(out, "      if ({call}) ended(ctx);") } else { writeln!(out, "      {call};") };
        out + "    }\n    __syncthreads();\n  }\n}\n"
    }

    /// The code before a tile: checks whether the launch is over.
    fn begun(&self, sharing: &[(&Stage, Reach)], leave: &str) -> String {
        if !self.sharing_may_fail(sharing) && !self.looks() {
            return String::new();
        }
        let over = if self.looks() { "launch_is_over(args.launch)" } else { "false" };
        format!(
            "    if (threadIdx.x == 0) over = {over}, raised = false;\n    __syncthreads();\n    if (over) {leave};\n"
        )
    }

    /// Computes the values that the elements of a tile read, if `shares` is true. Clears `shares` if that fails.
    fn filling(&self, sharing: &[(&Stage, Reach)]) -> String {
        let (_, args) = self.given();
        let tile = &sharing[0].0.tile;
        let dimensions = tile.len();
        let parameter = |param| self.parameter(param);
        let mut out = String::new();
        for (stage, reach) in sharing {
            let widths: Vec<u64> = (0..dimensions).map(|d| reach.width(d, tile[d])).collect();
            let (func, name) = (&self.program.funcs[reach.func.index()], self.func_name(reach.func));
            let cells_name = self.cells_name(reach.func);
            let _ = writeln!(
                out,
                "    for (u32 cell = threadIdx.x; shares && cell < {}; cell += blockDim.x) {{",
                reach.cells(tile)
            );
            out += &Self::places(&widths, &reach.least);
            let outside: Vec<String> = stage
                .sizes
                .iter()
                .enumerate()
                .map(|(d, size)| format!("at{d} < 0 || at{d} >= {}", parameter(*size)))
                .collect();
            let _ = writeln!(out, "      if ({}) continue;", outside.join(" || "));
            // its key is greater than all others, so no job that reads it stops
            out += "      Ctx ctx = {args.launch, 0xffffffffu, 0xfffffffeu, 0, 0, 0, NO_SITE};\n";
            let position = Self::position(&stage.sizes.iter().map(|size| parameter(*size)).collect::<Vec<_>>());
            let away = ", 0".repeat(dimensions);
            let coordinates: String = (0..dimensions).map(|d| format!(", c{d}")).collect();
            if self.by_reference(reach.func) {
                let ty = scalar(func.results[0]);
                let call = format!("{name}_sharing({args}, ctx, {position}{away}, value{coordinates})");
                let _ = writeln!(
                    out,
                    "      {ty} value;\n      if ({call}) raised = true;\n      else {cells_name}[cell] = value;"
                );
            } else {
                let _ = writeln!(
                    out,
                    "      {cells_name}[cell] = {name}_sharing({args}, ctx, {position}{away}{coordinates});"
                );
            }
            out += "    }\n    __syncthreads();\n";
            if self.may_stop[reach.func.index()] {
                out += "    shares = shares && !raised;\n";
            }
        }
        out
    }

    /// The text of a parameter of the launch.
    fn parameter(&self, param: ParamId) -> String {
        let args = if self.indirect() { "args.args->" } else { "args." };
        format!("{args}{}", self.param_name(param))
    }

    /// The functor that a reducing kernel calls for the elements of a tile, in their order
    /// ([`super::super::collective::REDUCE`], `reduce_parts`). `run`: the code that runs a job.
    pub(super) fn sharing_part(&self, sharing: &[(&Stage, Reach)], element: &str, run: &str) -> String {
        let (given, _) = self.given();
        let first = sharing[sharing.len() - 1].0.first.map_or_else(|| "0".to_owned(), |first| self.parameter(first));
        format!(
            "struct Part {{
  const {given} &args;
  bool &over, &raised;
  bool shares;
  INLINE_MEMBER bool begin(u64 from) {{
    const i64 from0 = {first} + i64(from);
{}    shares = true;
{}    return true;
  }}
  INLINE_MEMBER bool operator()(u64 from, u32 cell, {element} &element) const {{
    const u64 job = from + cell;
    const i32 c0 = i32(cell);
{run}  }}
}};

",
            self.begun(sharing, "return false"),
            self.filling(sharing),
        )
    }

    /// The call of a job, with shared values if there are some.
    pub(super) fn sharing_call(&self, sharing: &[(&Stage, Reach)], arguments: &str) -> String {
        let entry = self.func_name(self.program.entry);
        let coordinates: String = (0..sharing[0].0.tile.len()).map(|d| format!(", c{d}")).collect();
        let call = format!("{entry}_sharing({arguments}{coordinates})");
        if self.sharing_may_fail(sharing) { format!("shares ? {call} : {entry}({arguments})") } else { call }
    }

    /// Computes from the number of a cell its coordinates and its position.
    fn places(widths: &[u64], least: &[i64]) -> String {
        let mut out = String::new();
        let mut below = String::new();
        for d in (0..widths.len()).rev() {
            let within = if d == 0 { String::new() } else { format!(" % {}", widths[d]) };
            let _ = writeln!(out, "      const i32 c{d} = i32(cell{below}{within}) + {};", least[d]);
            let _ = writeln!(out, "      const i64 at{d} = from{d} + c{d};");
            let _ = write!(below, " / {}", widths[d]);
        }
        out
    }

    fn position(sizes: &[String]) -> String {
        let mut out = "at0".to_owned();
        for (d, size) in sizes.iter().enumerate().skip(1) {
            out = format!("({out} * {size} + at{d})");
        }
        out
    }
}

impl Function<'_> {
    /// The shared value of a stage, in place of a call. None: the stage is not shared.
    pub(super) fn shared_value(&self, func: FuncId, args: &[Operand]) -> Option<String> {
        let (stage, reach) = self.sharing?.iter().find(|(_, reach)| reach.func == func)?;
        let away = stages::distances(args, stage.tile.len())?;
        let mut at = String::new();
        for (d, away) in away.into_iter().enumerate() {
            let here = format!("c{d} + {}", away - reach.least[d]);
            at = if d == 0 { here } else { format!("({at}) * {} + {here}", reach.width(d, stage.tile[d])) };
        }
        Some(format!("{}[{at}]", self.shared.cells_name(func)))
    }
}
