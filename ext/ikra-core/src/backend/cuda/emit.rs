//! IR to CUDA C++: text that a person can read, and that both NVRTC and a host compiler (with `shim.hpp`) accept.
//!
//! Here: one function per IR function, structured control flow as it is, registers as variables declared where they
//! are first assigned, temporaries that are used once folded into the expression that uses them. Not here: compiling,
//! and any device: this builds and runs everywhere.
//!
//! Invariants: every variable is declared in the innermost braces that hold all its occurrences, so that the forward
//! `goto` of a `Break` never jumps over a declaration; [`Emitted::arguments`] and [`Emitted::memory`] write words in the
//! order of the `Args` that the text declares.

mod neighbours;
mod several;
mod shared;

use super::{collective, gather};
use crate::backend::collective::LANES;
use crate::backend::fold::Fold;
use crate::backend::sink::Sink;
use crate::error::{Error, Result};
use crate::ir::gathered::{Gathered, gathered};
use crate::ir::stages::{Reach, Stage};
use crate::ir::visit::{is_plain, walk_mut};
use crate::ir::{
    AtomicOp, CheckedOp, Cmp, ColumnId, Ctx, Func, FuncId, LabelId, MathFn, Op, Operand, Program, Scalar, SiteId, Stmt,
    Storage, Trap, VarId, verify, walk,
};
use crate::layout::{Address, Layout};
use crate::passes::loops::Counting;
use crate::passes::{self, Twin};
use std::collections::HashMap;
use std::fmt::Write;

pub use several::Several;
pub use shared::SHARED_MEMORY;

/// What all kernels stand on; precedes the generated text.
pub const PRELUDE: &str = include_str!("prelude.cuh");

/// Bytes of a launch's arguments that every driver takes.
const ARGUMENT_BYTES: usize = 4_096;
/// Expanded size, in statements, up to which a function that is called several times is inlined everywhere.
const INLINE_SIZE: usize = 2_000;
/// Words of `struct ReduceArgs`.
const REDUCE_WORDS: usize = 5;
/// Threads of a block of a kernel with a sink.
pub const SINK_THREADS: u32 = LANES as u32;
/// Threads that a block may have. Each may then use 128 registers.
const MOST_THREADS: u32 = 512;
/// Where all jobs go the same way through a loop and load something in common, to say that one block for each multiprocessor is enough lets the assembler ask for what
/// several repetitions load at once: else it takes so few registers that they wait for one after the other. Nbody's kernel took 4 % longer, and a product of matrices
/// 80; where branches part the jobs, as boids', more registers make it slower.
const FEWEST_SHARING: u32 = 1;
/// The same for elements that are reduced at once: the sum of products of 64 Mi Floats takes 259 µs in place of 277. What is sieved takes longer so, 316 in place of 281.
const FEWEST_FOLDING: u32 = 2;
/// Threads of a block that runs groups of jobs: each takes many registers.
const GROUP_THREADS: u32 = 128;
/// Statements of a loop up to which the compiler may unroll it. Longer ones gain nothing, and take several times as long to
/// compile and a third more registers.
const UNROLL_SIZE: usize = 10;
/// The same where the loop has no loop or call in it, and does not poll: four repetitions at a time, so that loads of the next
/// ones are under way while this one computes.
const UNROLL_PLAIN: usize = 40;
/// Statements of all repetitions of a loop of which nothing is left then.
const UNROLL_WHOLE: usize = 160;
/// Statements of a loop that [presumes](passes::presume) for one of another, at most: marks in place of a check are more statements, and fewer
/// instructions.
const MARKS: usize = 4;
/// Longest expression that is folded into another.
const FOLD_WIDTH: usize = 72;

/// Generated code and how it is called.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// Name of the kernel function.
    pub kernel: String,
    /// The program without the prelude.
    pub body: String,
    /// May call itself, so that its stack is not known to the compiler.
    pub recursive: bool,
    /// Buffers and parameters are more than a launch takes: they lie in device memory, and the launch says where.
    pub indirect: bool,
    /// What becomes of results in the same kernel; it stands on templates of [`collective`] then.
    pub sink: Option<Sink>,
    /// Elements that a block of threads goes over together, meeting at barriers; 0: each thread runs by itself.
    pub tile: u64,
    /// Buffers of which blocks of threads add up rows for themselves, meeting at barriers.
    pub gathers: Vec<usize>,
    /// Each thread runs one job at most: a launch is to have as many threads as jobs.
    pub once: bool,
    /// Or so many jobs each, where threads are fewer.
    pub several: Option<Several>,
}

/// The words of `struct Launch`, in the prelude's order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    pub jobs: u64,
    pub tick_begin: u64,
    pub tick_end: u64,
    pub limit: u64,
    pub seed: u64,
    pub section: u32,
    pub call_depth: u32,
    pub stop_key: u64,
    pub trap: u64,
}

impl Header {
    pub const WORDS: usize = 9;
    /// Which words [`Header::tick_begin`] and [`Header::tick_end`] are.
    pub const TICK_BEGIN: usize = 1;
    pub const TICK_END: usize = 2;

    pub fn words(&self) -> [u64; Self::WORDS] {
        [
            self.jobs,
            self.tick_begin,
            self.tick_end,
            self.limit,
            self.seed,
            u64::from(self.section),
            u64::from(self.call_depth),
            self.stop_key,
            self.trap,
        ]
    }
}

impl Emitted {
    /// All that a compiler needs.
    pub fn source(&self) -> String {
        format!("{PRELUDE}\n{}{}", self.templates(), self.body)
    }
    /// What stands between the prelude and the program.
    pub fn templates(&self) -> String {
        let gathers = if self.gathers.is_empty() { String::new() } else { format!("{}\n", gather::TEMPLATES) };
        let templates: &[&str] = match self.sink {
            None => return gathers,
            Some(Sink::Fold(_)) => &[collective::REDUCE],
            Some(Sink::Sieve(_)) => &collective::SIEVE,
        };
        format!("{}\n{}\n", collective::COMMON, templates.join("\n"))
    }
    /// The words of the kernel's argument, but for those of its sink, which follow. It is the header, then the addresses of buffers (biased, as numbers) and the
    /// parameters with what [`gather::Cells`] says behind them, or else where `memory` lies.
    pub fn arguments(&self, header: &Header, buffers: &[u64], params: &[&[u64]], memory: u64) -> Vec<u64> {
        let mut words = Vec::with_capacity(Header::WORDS + buffers.len() + 16);
        words.extend(header.words());
        if self.indirect {
            words.push(memory);
        } else {
            words.extend_from_slice(buffers);
            params.iter().for_each(|params| words.extend_from_slice(params));
        }
        words
    }
    /// The words that must lie in device memory for the launch.
    pub fn memory(&self, buffers: &[u64], params: &[u64]) -> Vec<u64> {
        if self.indirect { [buffers, params].concat() } else { Vec::new() }
    }
}

/// A C++ name for the program's kernel: `block in main at traffic.rb:12` is `ikra_block_in_main_at_traffic_rb`. The line
/// is left out, so that a block that only moved keeps its code.
pub fn kernel_name(program: &Program) -> String {
    let name = match program.name.rsplit_once(':') {
        Some((before, line)) if line.bytes().all(|b| b.is_ascii_digit()) => before,
        _ => &program.name,
    };
    format!("ikra_{}", identifier(name).chars().take(120).collect::<String>())
}

/// Letters, digits and single underscores.
fn identifier(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if c.is_ascii() {
            if !out.ends_with('_') {
                out.push('_');
            }
        } else {
            let _ = write!(out, "u{:x}", u32::from(c));
        }
    }
    out.trim_end_matches('_').to_string()
}

/// Whether jobs look, while they run, whether another has stopped the launch.
fn listens(program: &Program) -> bool {
    let mut found = false;
    for func in &program.funcs {
        walk(&func.body, &mut |s| {
            if let Stmt::Loop { body, .. } = s {
                walk(body, &mut |s| found |= matches!(s, Stmt::Poll | Stmt::Begin { check: true, .. }));
            }
        });
    }
    found || program.funcs.iter().any(|f| f.recursive)
}

/// The program, whose jobs do not look whether they are still wanted if it surely ends: nothing stops its launches, and none has a
/// limit. Each look is a branch before an element's loads, which keeps those of several elements from being under way together. Of fused ticks the host launches no more than take a moment.
fn unwatched(mut program: Program) -> Program {
    if program.each_tick_surely_ends() {
        for func in &mut program.funcs {
            walk_mut(&mut func.body, &mut |stmt| {
                if let Stmt::Begin { check, .. } = stmt {
                    *check = false;
                }
            });
        }
    }
    program
}

/// Whether a program can be emitted: a pass must have made its new rows arithmetic.
///
/// # Errors
/// `Internal`.
pub fn check(program: &Program) -> Result<()> {
    let mut found = false;
    for func in &program.funcs {
        walk(&func.body, &mut |s| found |= matches!(s, Stmt::Alloc { .. } | Stmt::Try { .. }));
    }
    let detail = "new rows that no pass has made arithmetic".to_owned();
    if found { Err(Error::Internal { stage: "cuda", detail }) } else { Ok(()) }
}

/// Text of a program whose kernel is called `kernel`.
pub fn emit(program: &Program, layout: &Layout, kernel: &str) -> Emitted {
    emit_into(program, layout, kernel, None)
}

/// The same; with a sink, elements of its column go there instead of to memory, in the same kernel.
pub fn emit_into(program: &Program, layout: &Layout, kernel: &str, sink: Option<Sink>) -> Emitted {
    emit_bound(program, layout, kernel, sink, false)
}

/// The same of a program whose jobs are groups of another's.
pub fn emit_groups(program: &Program, layout: &Layout, kernel: &str) -> Emitted {
    emit_bound(program, layout, kernel, None, true)
}

/// What a kernel with a sink is given.
fn sinking(given: &str, words: &str) -> String {
    format!("struct Sinking {{\n  {given} args;\n  {words} sink;\n}};\n\n")
}

/// How often a loop goes round that counts from 0, if that is known and little.
fn few_turns(label: LabelId, body: &[Stmt], size: usize) -> Option<usize> {
    let (counting, _) = Counting::of_body(label, body, false)?;
    let Operand::I64(end) = counting.end else { return None };
    let turns = usize::try_from(end).ok()?.div_ceil(counting.step as usize);
    (turns > 0 && turns * size <= UNROLL_WHOLE).then_some(turns)
}

fn sinking_head(kernel: &str, bounds: &str) -> String {
    format!("extern \"C\" __global__ void __launch_bounds__({bounds}) {kernel}(__grid_constant__ const Sinking given)")
}

/// How many threads a block has at most, and how many blocks a multiprocessor is to hold at least.
fn bounds(program: &Program, twins: &[Twin]) -> String {
    if passes::jam::shares(program) || twins.iter().any(|twin| twin.floats) {
        format!("{MOST_THREADS}, {FEWEST_SHARING}")
    } else {
        MOST_THREADS.to_string()
    }
}

fn emit_bound(program: &Program, layout: &Layout, kernel: &str, sink: Option<Sink>, groups: bool) -> Emitted {
    let given = program;
    let (program, twins) = passes::presume(program.clone());
    let program = &passes::joint(unwatched(passes::escapes(passes::nested(passes::ahead(program, &twins)))));
    if cfg!(debug_assertions)
        && let Err(broken) = verify::verify_after("cuda", program)
        && verify::verify(given).is_ok()
    {
        panic!("{broken}");
    }
    let order = callees_first(program);
    let (inline, sizes) = inlined(program, &order);
    let mut shared = Shared::new(program, layout, sizes);
    shared.sink = sink;
    shared.twins = twins;
    if sink.is_none() && shared.sharing().is_empty() {
        shared.gathers = gathered(program);
        shared.gathers.retain(|gathered| layout.own_buffer(program, gathered.column).is_some());
        shared.once = shared.gathers.is_empty() && !given.uses_slots();
    }
    let mut body = format!("// {}\n\n", program.name.replace(['\n', '\r'], " "));
    shared.args(&mut body);
    for &func in order.iter().filter(|f| program.funcs[f.index()].recursive) {
        let _ = writeln!(body, "{};", shared.signature(func, inline[func.index()]));
    }
    if order.iter().any(|f| program.funcs[f.index()].recursive) {
        body.push('\n');
    }
    let sharing = shared.sharing();
    let twice = sharing.is_empty() || shared.sharing_may_fail(&sharing);
    for &func in &order {
        // what runs where sharing failed is no part of the kernel's own code
        let shares =
            !sharing.is_empty() && (func == program.entry || sharing.iter().any(|(_, reach)| reach.func == func));
        if shares && !twice {
            continue;
        }
        let text = Function::new(&shared, func).emit();
        let _ = writeln!(body, "{} {{\n{text}}}\n", shared.signature(func, inline[func.index()] && !shares));
    }
    if !sharing.is_empty() {
        shared.sharing_functions(&mut body, &sharing);
    }
    let several = Several::of(&shared);
    if let Some(several) = &several {
        shared.several_functions(&mut body, several);
    }
    let fold = sink.and_then(|sink| sink.fold());
    let copied = fold.and_then(|fold| Some((fold, fold.copied.filter(|column| shared.own_buffer(*column))?)));
    body += &match (sink, copied) {
        (_, Some((fold, copied))) => shared.copying_kernel(kernel, fold, copied),
        (Some(sink), None) => shared.sinking_kernel(kernel, sink, &sharing),
        (None, None) if groups => shared.kernel(kernel, &format!("{GROUP_THREADS}, {FEWEST_SHARING}")),
        (None, None) if sharing.is_empty() => {
            let bounds = bounds(given, &shared.twins);
            match &several {
                Some(several) => shared.several_kernel(kernel, &bounds, several),
                None => shared.kernel(kernel, &bounds),
            }
        }
        (None, None) => shared.sharing_kernel(kernel, &sharing),
    };
    let recursive = order.iter().any(|f| program.funcs[f.index()].recursive);
    let tile = sharing.first().map_or(0, |(stage, _)| stage.tile.iter().map(|side| u64::from(*side)).product());
    let gathers = shared.gathers.iter().filter_map(|gathered| layout.own_buffer(program, gathered.column)).collect();
    let (indirect, once) = (shared.indirect(), shared.once);
    Emitted { kernel: kernel.to_string(), body, recursive, indirect, sink, tile, gathers, once, several }
}

/// The text without its comments: code that differs in nothing else is the same code.
pub fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let code = line.split_once("//").map_or(line, |(code, _)| code).trim_end();
        if !code.is_empty() {
            out.push_str(code);
            out.push('\n');
        }
    }
    out
}

/// Functions that the entry reaches, each after those it calls (but for recursion).
fn callees_first(program: &Program) -> Vec<FuncId> {
    let callees = |f: FuncId| {
        let mut found = Vec::new();
        walk(&program.funcs[f.index()].body, &mut |s| {
            if let Stmt::Call { func, .. } = s {
                found.push(*func);
            }
        });
        found
    };
    let mut seen = vec![false; program.funcs.len()];
    let mut order = Vec::new();
    // A function with the callees that are still to be visited.
    let mut path = vec![(program.entry, callees(program.entry))];
    seen[program.entry.index()] = true;
    while let Some((func, left)) = path.last_mut() {
        match left.pop() {
            Some(callee) if !seen[callee.index()] => {
                seen[callee.index()] = true;
                path.push((callee, callees(callee)));
            }
            Some(_) => {}
            None => {
                order.push(*func);
                path.pop();
            }
        }
    }
    order
}

/// Whether each function is inlined into its callers (all but recursive ones, and large ones called more than once), and
/// its size with all that is inlined into it.
fn inlined(program: &Program, order: &[FuncId]) -> (Vec<bool>, Vec<usize>) {
    let mut size = vec![0usize; program.funcs.len()];
    let mut calls = vec![0usize; program.funcs.len()];
    for &f in order {
        walk(&program.funcs[f.index()].body, &mut |s| {
            if let Stmt::Call { func, .. } = s {
                calls[func.index()] += 1;
            }
        });
    }
    let mut inline = vec![true; program.funcs.len()];
    for &f in order {
        let mut total = 0usize;
        walk(&program.funcs[f.index()].body, &mut |s| {
            total += 1;
            if let Stmt::Call { func, .. } = s
                && inline[func.index()]
            {
                total += size[func.index()];
            }
        });
        size[f.index()] = total;
        let func = &program.funcs[f.index()];
        inline[f.index()] = f == program.entry || !func.recursive && (total <= INLINE_SIZE || calls[f.index()] <= 1);
    }
    (inline, size)
}

/// What the functions of a program have in common.
struct Shared<'a> {
    program: &'a Program,
    layout: &'a Layout,
    may_stop: Vec<bool>,
    /// Of each function, the registers that hold Integers of 32 bits.
    short: Vec<Vec<bool>>,
    listens: bool,
    written: Vec<bool>,
    /// Statements of each function, with those of its callees.
    sizes: Vec<usize>,
    /// Where elements of a column go, if not to memory.
    sink: Option<Sink>,
    /// Columns of which blocks add up rows for themselves.
    gathers: Vec<Gathered>,
    /// Each thread runs one job at most.
    once: bool,
    /// Loops that are there twice.
    twins: Vec<Twin>,
}

impl<'a> Shared<'a> {
    fn new(program: &'a Program, layout: &'a Layout, sizes: Vec<usize>) -> Self {
        let mut written: Vec<bool> = program.columns.iter().map(|c| c.written).collect();
        for func in &program.funcs {
            walk(&func.body, &mut |s| {
                if let Stmt::Store { column, .. } | Stmt::Atomic { column, .. } | Stmt::FetchAdd { column, .. } = s {
                    written[column.index()] = true;
                }
            });
        }
        let (short, listens) = (passes::short(program), listens(program));
        Self {
            program,
            layout,
            may_stop: program.may_stop(),
            written,
            sizes,
            short,
            listens,
            sink: None,
            gathers: Vec::new(),
            once: false,
            twins: Vec::new(),
        }
    }

    fn column_name(&self, column: ColumnId) -> String {
        format!("{column}_{}", identifier(&self.program.columns[column.index()].name))
    }
    fn param_name(&self, param: crate::ir::ParamId) -> String {
        format!("{param}_{}", identifier(&self.program.params[param.index()].name))
    }
    fn func_name(&self, func: FuncId) -> String {
        format!("{func}_{}", identifier(&self.program.funcs[func.index()].name))
    }

    /// The type of the kernel's argument without a reduction, and how functions are given theirs.
    fn given(&self) -> (&'static str, &'static str) {
        if self.indirect() { ("Given", "*args.args") } else { ("Args", "args") }
    }

    /// Whether a kernel looks, before it begins, whether its launch is still wanted. One whose jobs repeat nothing is over as soon as the word that says so has
    /// come, which all its loads would wait for; and what a launch stores behind one that was stopped is lost anyway. Nothing stops one that surely ends.
    fn looks(&self) -> bool {
        !self.program.is_straight() && !self.program.each_tick_surely_ends()
    }

    /// The kernel, whose threads run jobs.
    fn kernel(&self, kernel: &str, bounds: &str) -> String {
        let (given, args) = self.given();
        let entry = self.func_name(self.program.entry);
        let call = format!("{entry}({args}, ctx, i64(job), args.launch.tick_begin, args.launch.tick_end)");
        let stops = self.may_stop[self.program.entry.index()];
        let call = if stops { format!("if ({call}) ended(ctx);") } else { format!("{call};") };
        let head = format!(
            "extern \"C\" __global__ void __launch_bounds__({bounds}) {kernel}(__grid_constant__ const {given} args)"
        );
        let ctx = "Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE};";
        if self.once {
            // Numbers of jobs that fit into 32 bits are compared in these.
            let few = self.program.funcs[self.program.entry.index()].params.first();
            let few = few.is_some_and(|job| self.short[self.program.entry.index()][job.index()]);
            let (job, jobs) =
                if few { ("u32 job = u32", "u32(args.launch.jobs)") } else { ("u64 job = u64", "args.launch.jobs") };
            // no branch of its own, so that one wait is for both
            let over = if self.looks() {
                format!("(job >= {jobs}) | launch_is_over(args.launch)")
            } else {
                format!("job >= {jobs}")
            };
            return format!(
                "{head} {{
  const {job}(blockIdx.x) * blockDim.x + threadIdx.x;
  if ({over}) return;
  {ctx}
  {call}
}}
"
            );
        }
        let over = if self.looks() { "  if (launch_is_over(args.launch)) return;\n" } else { "" };
        let [before, each, behind] = self.gathering();
        format!(
            "{head} {{
{over}{before}  const u64 step = u64(gridDim.x) * blockDim.x;
  for (u64 job = u64(blockIdx.x) * blockDim.x + threadIdx.x; job < args.launch.jobs; job += step) {{
    {ctx}
    {call}
{each}  }}
{behind}}}
"
        )
    }

    /// What a block does for its own sums before the first job, behind each, and behind the last.
    fn gathering(&self) -> [String; 3] {
        if self.gathers.is_empty() {
            return Default::default();
        }
        let args = if self.indirect() { "args.args->" } else { "args." };
        let mut before = format!("  const u32 copies = {args}copies;\n  if (copies != 0) {{\n");
        let mut behind = "  if (copies != 0) {\n    __syncthreads();\n".to_owned();
        let raises = self.gathers.iter().any(|gathered| gathered.site.is_some());
        for gathered in &self.gathers {
            let (operation, cells) = (gather::operation(*gathered), cells_name(gathered.column));
            let _ = writeln!(before, "    clear_cells<{operation}>(copies, {args}{cells});");
            let column = self.column_name(gathered.column);
            let merge = format!("merge_cells<{operation}>(copies, {args}{cells}, {args}{column})");
            let _ = match gathered.site {
                Some(site) => writeln!(
                    behind,
                    "    if ({merge}) gathered_too_much(args.launch, {}, element);{}",
                    site.index(),
                    self.site(site)
                ),
                None => writeln!(behind, "    {merge};"),
            };
        }
        before += "    __syncthreads();\n  }\n";
        behind += "  }\n";
        if !raises {
            return [before, String::new(), behind];
        }
        // the first thread has run something if any of its block has
        let shown = "  __shared__ u32 element;\n  if (threadIdx.x == 0) element = last;\n";
        [before + "  u32 last = 0;\n", "    last = ctx.index;\n".to_owned(), shown.to_owned() + &behind]
    }

    /// The kernel of a program whose jobs do nothing but give a column's own rows: it reduces these where they are.
    fn copying_kernel(&self, kernel: &str, fold: Fold, copied: ColumnId) -> String {
        let (given, _) = self.given();
        let args = if self.indirect() { "given.args.args->" } else { "given.args." };
        let (element, operation) =
            (collective::name(fold.element), collective::operation(fold.reduction, fold.element));
        format!(
            "{}{} {{
  reduce_loaded<{element}, {operation}>(given.sink, {args}{});
}}
",
            sinking(given, "ReduceArgs"),
            sinking_head(kernel, &format!("{SINK_THREADS}, {}", collective::fewest_blocks(fold.reduction))),
            self.column_name(copied),
        )
    }

    /// The kernel, whose threads run the jobs of tiles, and reduce or sieve what they give.
    fn sinking_kernel(&self, kernel: &str, sink: Sink, sharing: &[(&Stage, Reach)]) -> String {
        let (given, args) = self.given();
        let entry = self.func_name(self.program.entry);
        let element = collective::name(sink.element());
        let (mark, marked, given_too) =
            if sink.marks().is_some() { ("\n    u8 given = 0;", "given != 0", ", given") } else { ("", "true", "") };
        let arguments =
            format!("{args}, ctx, i64(job), args.launch.tick_begin, args.launch.tick_end, element{given_too}");
        let call = match sharing {
            [] => format!("{entry}({arguments})"),
            _ => self.sharing_call(sharing, &arguments),
        };
        let run = if self.may_stop[self.program.entry.index()] {
            let call = if sharing.is_empty() { call } else { format!("({call})") };
            format!("if (!{call}) return {marked};\n    ended(ctx);\n    return false;")
        } else {
            format!("{call};\n    return {marked};")
        };
        let run =
            format!("    Ctx ctx = {{args.launch, 0, 0, 0, 0, 0, NO_SITE}};\n    element = 0;{mark}\n    {run}\n");
        // Jobs whose loads are under way at once: more take registers, and with them threads.
        let ahead = match self.sizes[self.program.entry.index()] {
            0..=40 => 4,
            41..=100 => 2,
            _ => 1,
        };
        let tile = sharing.first().map(|(stage, _)| stage.tile[0]);
        let (words, template) = match (sink, tile) {
            (Sink::Sieve(_), _) => ("SieveArgs", format!("sieve_each<{element}, {ahead}>")),
            (Sink::Fold(fold), tile) => {
                let operation = collective::operation(fold.reduction, fold.element);
                let template = match tile {
                    Some(side) => format!("reduce_parts<{element}, {operation}, {side}>"),
                    None => format!("reduce_each<{element}, {operation}, {ahead}>"),
                };
                ("ReduceArgs", template)
            }
        };
        let sinking = sinking(given, words);
        let head = sinking_head(
            kernel,
            &match sink {
                Sink::Fold(_) => format!("{SINK_THREADS}, {FEWEST_FOLDING}"),
                Sink::Sieve(_) => SINK_THREADS.to_string(),
            },
        );
        if !sharing.is_empty() {
            let part = self.sharing_part(sharing, element, &run);
            return format!(
                "{sinking}{part}{head} {{
  __shared__ bool over, raised;
  Part part = {{given.args, over, raised, false}};
  {template}(given.sink, part);
}}
"
            );
        }
        let over = if self.looks() { "launch_is_over(args.launch)" } else { "false" };
        format!(
            "{sinking}struct Job {{
  const {given} &args;
  INLINE_MEMBER bool is_over() const {{ return {over}; }}
  INLINE_MEMBER bool operator()(u64 job, {element} &element) const {{
{run}  }}
}};

{head} {{
  {template}(given.sink, Job{{given.args}});
}}
"
        )
    }

    /// Whether buffers and parameters are more than a launch takes.
    fn indirect(&self) -> bool {
        let sink = match self.sink {
            None => 0,
            Some(Sink::Fold(_)) => REDUCE_WORDS,
            Some(Sink::Sieve(_)) => collective::SIEVE_WORDS,
        };
        let cells = gather::words(self.gathers.len());
        (Header::WORDS + self.layout.buffers() + self.program.params.len() + cells + sink) * 8 > ARGUMENT_BYTES
    }

    /// `struct Args`: [`Header`], one address per buffer, one word per parameter. Where those lie in memory, the header
    /// stands with their address in `struct Given`.
    fn args(&self, out: &mut String) {
        out.push_str(if self.indirect() { "struct Args {\n" } else { "struct Args {\n  Launch launch;\n" });
        for buffer in 0..self.layout.buffers() {
            let mut columns = (0..self.program.columns.len()).map(ColumnId::new).filter(|c| {
                let Address::Strided { buffer: b, .. } = self.layout.address(*c);
                b == buffer
            });
            let first = columns.next();
            match first {
                Some(column) if self.own_buffer(column) => {
                    let c = &self.program.columns[column.index()];
                    let constant = if self.written[column.index()] { "" } else { "const " };
                    let (ty, name) = (storage(c.storage), self.column_name(column));
                    let _ = writeln!(out, "  {constant}{ty} *{name};  // {}, {:?}", c.name, c.space);
                }
                _ => {
                    let names: Vec<_> =
                        first.into_iter().chain(columns).map(|c| &*self.program.columns[c.index()].name).collect();
                    let _ = writeln!(out, "  u8 *b{buffer};  // {}", names.join(", "));
                }
            }
        }
        for (index, param) in self.program.params.iter().enumerate() {
            let name = self.param_name(crate::ir::ParamId::new(index));
            let _ = writeln!(out, "  alignas(8) {} {name};  // {}", scalar(param.ty), param.name);
        }
        if !self.gathers.is_empty() {
            out.push_str("  alignas(8) u32 copies;  // of each cell; 0: no rows have any\n");
        }
        for gathered in &self.gathers {
            let _ = writeln!(out, "  Gathered {};", cells_name(gathered.column));
        }
        out.push_str("};\n\n");
        if self.indirect() {
            out.push_str("struct Given {\n  Launch launch;\n  const Args *args;\n};\n\n");
        }
    }

    /// Whether the column's rows are a plain array.
    fn own_buffer(&self, column: ColumnId) -> bool {
        self.layout.own_buffer(self.program, column).is_some()
    }

    /// A slot as an lvalue; `row` is an expression of an unsigned 32-bit or a signed 64-bit number.
    fn slot(&self, column: ColumnId, row: &str) -> String {
        if self.sink.is_some_and(|sink| sink.column() == column) {
            return "element".to_owned();
        }
        if self.sink.is_some_and(|sink| sink.marks() == Some(column)) {
            return "given".to_owned();
        }
        let Address::Strided { buffer, stride, offset } = self.layout.address(column);
        if self.own_buffer(column) {
            format!("args.{}[{row}]", self.column_name(column))
        } else {
            let ty = storage(self.program.columns[column.index()].storage);
            let constant = if self.written[column.index()] { "" } else { "const " };
            format!("*({constant}{ty} *)(args.b{buffer} + i64({row}) * {stride} + {offset})")
        }
    }

    fn signature(&self, func: FuncId, inline: bool) -> String {
        let f = &self.program.funcs[func.index()];
        let inline = if inline { "__forceinline__" } else { "__noinline__" };
        let names = names(f);
        let result = match (self.may_stop[func.index()], &f.results[..]) {
            (true, _) => "bool",
            (false, [only]) => scalar(*only),
            (false, _) => "void",
        };
        // Nothing that a kernel stores changes them.
        let args = if self.indirect() { "const Args &__restrict__ args" } else { "const Args &args" };
        let mut text = format!("static __device__ {inline} {result} {}({args}, Ctx &ctx", self.func_name(func));
        for p in &f.params {
            let _ = write!(text, ", {} {}", self.register(func, *p), names[p.index()]);
        }
        if self.by_reference(func) {
            for (i, ty) in f.results.iter().enumerate() {
                let _ = write!(text, ", {} &result{i}", scalar(*ty));
            }
        }
        if let Some(sink) = self.sink
            && func == self.program.entry
        {
            let _ = write!(text, ", {} &element", collective::name(sink.element()));
            text += if sink.marks().is_some() { ", u8 &given" } else { "" };
        }
        text.push(')');
        text
    }

    /// The type of a register. An Integer that fits into 32 bits is held, and so computed, in these: what is wider takes
    /// two instructions for each.
    fn register(&self, func: FuncId, v: VarId) -> &'static str {
        if self.short[func.index()][v.index()] {
            "i32"
        } else {
            scalar(self.program.funcs[func.index()].vars[v.index()].ty)
        }
    }

    /// Whether results come back through references.
    fn by_reference(&self, func: FuncId) -> bool {
        self.may_stop[func.index()] || self.program.funcs[func.index()].results.len() > 1
    }

    /// What a trap says, for a reader of the text.
    fn site(&self, site: SiteId) -> String {
        let Some(s) = self.program.sites.get(site.index()) else { return String::new() };
        let file = s.path.rsplit('/').next().unwrap_or(&s.path);
        let what = match &s.trap {
            Trap::ZeroDivision => "divided by 0".to_string(),
            Trap::IntegerOverflow(op) => format!("overflow in {op}"),
            Trap::NoMethod { name, .. } => format!("no method {name}"),
            Trap::Name { message, .. } | Trap::Raise { message, .. } => message.clone(),
            Trap::Race => "data race".to_string(),
            Trap::Missing => "no such method".to_string(),
            Trap::NoSuper(name) => format!("no super method of {name}"),
            Trap::IndexTooSmall => "index too small".to_string(),
            Trap::KeyMissing => "key not found".to_string(),
            Trap::Frozen => "frozen".to_string(),
            Trap::FloatDomain => "not a number or infinite".to_string(),
            Trap::OutOfRange => "Float out of range".to_string(),
            Trap::Describe { before, after, .. } | Trap::Mention { before, after, .. } => format!("{before}…{after}"),
            Trap::New(new) => new.name.clone(),
            Trap::StackOverflow => "stack level too deep".to_string(),
            Trap::Break => "break".to_string(),
            Trap::Grow(_) => "no room for more".to_string(),
            #[allow(unreachable_patterns, reason = "a trap without a wording of its own is still a trap")]
            _ => String::new(),
        };
        let comment = format!("  // {file}:{}: {what}", s.line);
        comment.replace(|c: char| c.is_control() || c == '\\', " ").trim_end().to_string()
    }
}

fn scalar(ty: Scalar) -> &'static str {
    match ty {
        Scalar::Bool => "bool",
        Scalar::I32 => "i32",
        Scalar::I64 => "i64",
        Scalar::F64 => "f64",
    }
}

fn storage(storage: Storage) -> &'static str {
    match storage {
        Storage::U8 => "u8",
        Storage::U32 => "u32",
        Storage::I32 => "i32",
        Storage::I64 => "i64",
        Storage::F32 => "float",
        Storage::F64 => "f64",
    }
}

/// Which cells blocks have for the rows of a column.
fn cells_name(column: ColumnId) -> String {
    format!("{column}_cells")
}

/// `progress_12` for the register of a Ruby variable, `v12` for one without a name.
fn names(func: &Func) -> Vec<String> {
    let name = |(index, var): (usize, &crate::ir::Var)| match var.name.as_deref().map(identifier) {
        Some(name) if !name.trim_matches('_').is_empty() => format!("{}_{index}", name.trim_start_matches('_')),
        _ => format!("v{index}"),
    };
    func.vars.iter().enumerate().map(name).collect()
}

/// An expression that is not yet written.
#[derive(Clone, Debug)]
struct Expr {
    text: String,
    /// Needs parentheses inside another.
    compound: bool,
    reads: Vec<VarId>,
}

impl Expr {
    fn atom(text: String, reads: Vec<VarId>) -> Self {
        Self { text, compound: false, reads }
    }
}

/// A list of statements of a function, numbered outer ones first, in the order of the text.
type ListId = usize;

/// Where the registers of a function live.
struct Places {
    /// Registers to declare before the statement at a position of a list; true: the statement itself declares it.
    declare: HashMap<(ListId, usize), Vec<(VarId, bool)>>,
    /// Assigned exactly once.
    constant: Vec<bool>,
    /// May be folded into its only use.
    foldable: Vec<bool>,
}

impl Places {
    fn of(func: &Func) -> Self {
        let n = func.vars.len();
        let mut survey = Survey {
            parents: vec![None],
            home: vec![None; n],
            defs: vec![0; n],
            uses: vec![0; n],
            def_list: vec![None; n],
            use_list: vec![None; n],
        };
        survey.list(&func.body, 0);
        let mut first = First { home: &survey.home, next: 1, path: Vec::new(), found: vec![None; n] };
        first.list(&func.body, 0);
        let mut declare: HashMap<_, Vec<_>> = HashMap::new();
        for (index, found) in first.found.iter().enumerate() {
            let var = VarId::new(index);
            if let Some((place, direct)) = found
                && !func.params.contains(&var)
            {
                declare.entry(*place).or_default().push((var, *direct));
            }
        }
        let foldable = (0..n)
            .map(|v| {
                let var = VarId::new(v);
                func.vars[v].name.is_none()
                    && !func.params.contains(&var)
                    && survey.defs[v] == 1
                    && survey.uses[v] == 1
                    && survey.def_list[v] == survey.use_list[v]
                    && survey.def_list[v].is_some()
            })
            .collect();
        let constant = survey.defs.iter().map(|d| *d == 1).collect();
        Places { declare, constant, foldable }
    }
}

/// Registers that a statement itself (not those nested in it) reads.
fn operands(stmt: &Stmt, visit: impl FnMut(Operand)) {
    stmt.reads(visit);
}

/// Registers that a statement itself assigns.
fn results(stmt: &Stmt) -> &[VarId] {
    stmt.assigns()
}

fn nested(stmt: &Stmt) -> [Option<&Vec<Stmt>>; 2] {
    match stmt {
        Stmt::If { then, otherwise, .. } => [Some(then), Some(otherwise)],
        Stmt::Block { body, .. } | Stmt::Loop { body, .. } => [Some(body), None],
        _ => [None, None],
    }
}

/// First pass: the innermost list that holds all occurrences of each register.
struct Survey {
    parents: Vec<Option<ListId>>,
    home: Vec<Option<ListId>>,
    defs: Vec<usize>,
    uses: Vec<usize>,
    /// The list of the only assignment, where that can be folded.
    def_list: Vec<Option<ListId>>,
    use_list: Vec<Option<ListId>>,
}

impl Survey {
    fn list(&mut self, body: &[Stmt], list: ListId) {
        for stmt in body {
            operands(stmt, |o| {
                if let Operand::Var(v) = o {
                    self.occurs(v, list);
                    self.uses[v.index()] += 1;
                    self.use_list[v.index()] = Some(list);
                }
            });
            for v in results(stmt) {
                self.occurs(*v, list);
                self.defs[v.index()] += 1;
                if matches!(stmt, Stmt::Let { op, .. } if *op != Op::Random) {
                    self.def_list[v.index()] = Some(list);
                }
            }
            for inner in nested(stmt).into_iter().flatten() {
                self.parents.push(Some(list));
                self.list(inner, self.parents.len() - 1);
            }
        }
    }
    fn occurs(&mut self, v: VarId, list: ListId) {
        let home = &mut self.home[v.index()];
        // A list's number is greater than its parent's.
        let (mut a, mut b) = (home.unwrap_or(list), list);
        while a != b {
            let higher = if a > b { &mut a } else { &mut b };
            *higher = self.parents[*higher].unwrap_or(0);
        }
        *home = Some(a);
    }
}

/// Second pass: the first statement of its home list in which each register occurs.
struct First<'a> {
    home: &'a [Option<ListId>],
    next: ListId,
    /// Open lists with the position in each.
    path: Vec<(ListId, usize)>,
    found: Vec<Option<((ListId, usize), bool)>>,
}

impl First<'_> {
    fn list(&mut self, body: &[Stmt], list: ListId) {
        for (position, stmt) in body.iter().enumerate() {
            self.path.push((list, position));
            operands(stmt, |o| {
                if let Operand::Var(v) = o {
                    self.occurs(v, false);
                }
            });
            for v in results(stmt) {
                self.occurs(*v, true);
            }
            for inner in nested(stmt).into_iter().flatten() {
                let id = self.next;
                self.next += 1;
                self.list(inner, id);
            }
            self.path.pop();
        }
    }
    fn occurs(&mut self, v: VarId, assigned: bool) {
        if self.found[v.index()].is_none() {
            let at = self.path.iter().rev().find(|(list, _)| Some(*list) == self.home[v.index()]);
            let at = *at.expect("a register's home encloses it");
            let direct = assigned && self.path.last() == Some(&at);
            self.found[v.index()] = Some((at, direct));
        }
    }
}

/// A block or loop around the cursor.
struct Open {
    label: LabelId,
    is_loop: bool,
    /// Its body, and how many statements that has.
    list: ListId,
    length: usize,
    /// Nothing follows it in the block around it, so that leaving this one leaves that one.
    last: bool,
    /// Was left by `goto`.
    left: bool,
}

/// Text of one function's body.
struct Function<'a> {
    shared: &'a Shared<'a>,
    id: FuncId,
    func: &'a Func,
    stops: bool,
    by_reference: bool,
    names: Vec<String>,
    places: Places,
    pending: Vec<(VarId, Expr)>,
    next_list: ListId,
    /// Blocks and loops around the cursor, innermost last.
    open: Vec<Open>,
    indent: usize,
    out: String,
    /// Stages whose values it reads.
    sharing: Option<&'a [(&'a Stage, Reach)]>,
    /// What loops around the cursor load several neighbours of at a time, or what the thread has loaded for several jobs.
    nexts: Vec<VarId>,
    /// Columns of which the thread stores the rows of several jobs behind these; none: it runs one.
    taken: Vec<ColumnId>,
}

impl<'a> Function<'a> {
    fn new(shared: &'a Shared<'a>, func: FuncId) -> Self {
        Self::of(shared, func, &shared.program.funcs[func.index()])
    }

    /// `f`: the function, or other statements over its registers.
    fn of(shared: &'a Shared<'a>, func: FuncId, f: &'a Func) -> Self {
        Self {
            shared,
            id: func,
            func: f,
            stops: shared.may_stop[func.index()],
            by_reference: shared.by_reference(func),
            names: names(f),
            places: Places::of(f),
            pending: Vec::new(),
            next_list: 1,
            open: Vec::new(),
            indent: 1,
            out: String::new(),
            sharing: None,
            nexts: Vec::new(),
            taken: Vec::new(),
        }
    }

    fn emit(mut self) -> String {
        let func = self.func;
        self.list(&func.body, 0);
        if self.stops && !ends(&func.body) {
            self.line("return false;");
        }
        self.out
    }

    fn line(&mut self, text: &str) {
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn register(&self, v: VarId) -> &'static str {
        self.shared.register(self.id, v)
    }

    fn is_short(&self, v: VarId) -> bool {
        self.shared.short[self.id.index()][v.index()]
    }

    /// Whether all operands are held in 32 bits, or are constants of that size.
    fn are_short(&self, args: &[Operand]) -> bool {
        args.iter().all(|arg| match arg {
            Operand::Var(v) => self.is_short(*v),
            Operand::I64(i) => i32::try_from(*i).is_ok_and(|i| i != i32::MIN),
            _ => false,
        })
    }

    fn name(&self, v: VarId) -> &str {
        &self.names[v.index()]
    }

    fn list(&mut self, body: &[Stmt], list: ListId) {
        for (position, stmt) in body.iter().enumerate() {
            self.stmt(stmt, list, position);
        }
        // Whatever is left was for statements that cannot be reached.
        self.pending.clear();
    }

    /// Writes out a folded register after all.
    fn materialise(&mut self, which: impl Fn(&(VarId, Expr)) -> bool) {
        let mut kept = Vec::new();
        for (var, expr) in std::mem::take(&mut self.pending) {
            if which(&(var, expr.clone())) {
                let ty = self.register(var);
                self.line(&format!("const {ty} {} = {};", self.names[var.index()], expr.text));
            } else {
                kept.push((var, expr));
            }
        }
        self.pending = kept;
    }

    /// The operand as an expression, folding what waits for this use.
    fn operand(&mut self, operand: Operand) -> Expr {
        match operand {
            Operand::Var(v) => match self.pending.iter().position(|(p, _)| *p == v) {
                Some(at) => self.pending.remove(at).1,
                None => Expr::atom(self.name(v).to_string(), vec![v]),
            },
            Operand::Bool(b) => Expr::atom(b.to_string(), Vec::new()),
            Operand::I32(i32::MIN) => Expr::atom("i32(0x80000000u)".to_string(), Vec::new()),
            Operand::I32(i) => Expr::atom(i.to_string(), Vec::new()),
            Operand::I64(i64::MIN) => Expr::atom("INT_LEAST".to_string(), Vec::new()),
            Operand::I64(i) => Expr::atom(i.to_string(), Vec::new()),
            Operand::F64(bits) => {
                let x = f64::from_bits(bits);
                let text = if x.is_finite() { format!("{x:?}") } else { format!("float_of({bits:#x})") };
                Expr::atom(text, Vec::new())
            }
        }
    }

    /// The operand where C++ must not take a literal for an `int`.
    fn typed(&mut self, operand: Operand) -> Expr {
        let ty = scalar(self.func.ty(operand));
        let mut expr = self.operand(operand);
        if matches!(operand, Operand::I64(_)) {
            expr.text = format!("{ty}({})", expr.text);
        }
        expr
    }

    fn row(&mut self, column: ColumnId, row: Operand) -> String {
        let ty = self.func.ty(row);
        let text = self.operand(row).text;
        if self.taken.contains(&column) {
            return self.shared.taken_name(column);
        }
        match ty {
            Scalar::I32 => self.shared.slot(column, &format!("u32({text})")),
            _ => self.shared.slot(column, &text),
        }
    }

    /// Declares what `stmt` is the first to mention; answers those that it declares itself.
    fn declare(&mut self, stmt: &Stmt, list: ListId, position: usize) -> Vec<VarId> {
        let mut own = Vec::new();
        for (var, direct) in self.places.declare.remove(&(list, position)).unwrap_or_default() {
            let folds = self.places.foldable[var.index()] && matches!(stmt, Stmt::Let { .. });
            if direct
                && (folds
                    || matches!(stmt, Stmt::Let { .. } | Stmt::Load { .. } | Stmt::FetchAdd { .. })
                    || self.returns_value(stmt))
            {
                own.push(var);
            } else {
                let text = format!("{} {};", self.register(var), self.name(var));
                self.line(&text);
            }
        }
        own
    }

    /// A call whose value is that of its expression.
    fn returns_value(&self, stmt: &Stmt) -> bool {
        matches!(stmt, Stmt::Call { func, dsts, .. } if dsts.len() == 1 && !self.shared.by_reference(*func))
    }

    /// `dst = text`, with its declaration where this is the first assignment.
    fn assign(&mut self, dst: VarId, own: &[VarId], text: &str) {
        let name = self.name(dst);
        let line = if own.contains(&dst) {
            let constant = if self.places.constant[dst.index()] { "const " } else { "" };
            format!("{constant}{} {name} = {text};", self.register(dst))
        } else {
            format!("{name} = {text};")
        };
        self.line(&line);
    }

    fn stmt(&mut self, stmt: &Stmt, list: ListId, position: usize) {
        // What this statement consumes is rendered before anything else is written.
        match stmt {
            Stmt::Let { dst, op, args } => {
                let folds = self.places.foldable[dst.index()];
                let short = self.is_short(*dst);
                let expr = match (op, folds) {
                    (Op::Copy, false) => self.operand(args[0]),
                    // Nothing wraps. That is said in C++'s own arithmetic, so that what counts can be made to count addresses.
                    (Op::Add, _) if short && self.are_short(args) => self.infix("+", args),
                    (Op::Sub, _) if short && self.are_short(args) => self.infix("-", args),
                    (Op::Mul, _) if short && self.are_short(args) => self.infix("*", args),
                    // the lower half of a sum needs only lower halves
                    (Op::Add, _) if short => self.helper("add32", args),
                    (Op::Sub, _) if short => self.helper("sub32", args),
                    (Op::Mul, _) if short => self.helper("mul32", args),
                    (_, true) if short => {
                        let expr = self.op(*op, args, Scalar::I64);
                        Expr::atom(format!("i32({})", expr.text), expr.reads)
                    }
                    _ => self.op(*op, args, self.func.vars[dst.index()].ty),
                };
                self.before_assignment(&[*dst]);
                let own = self.declare(stmt, list, position);
                if folds && own.contains(dst) && expr.text.len() <= FOLD_WIDTH {
                    self.pending.push((*dst, expr));
                } else {
                    self.assign(*dst, &own, &expr.text);
                }
            }
            Stmt::Checked { dst, op, args: [a, b], site } => {
                let (a, b) = (self.operand(*a).text, self.operand(*b).text);
                self.before_assignment(&[*dst]);
                self.declare(stmt, list, position);
                let helper = match op {
                    CheckedOp::Add => "add_overflows",
                    CheckedOp::Sub => "sub_overflows",
                    CheckedOp::Mul => "mul_overflows",
                    CheckedOp::And => "and_overflows",
                };
                let text = format!("{helper}({a}, {b}, {})", self.name(*dst));
                self.stop_if(&text, *site, &[]);
            }
            Stmt::Load { dst, column, row } => {
                let slot = self.row(*column, *row);
                self.before_assignment(&[*dst]);
                let own = self.declare(stmt, list, position);
                let ty = self.func.vars[dst.index()].ty;
                let value = match self.shared.written[column.index()] {
                    _ if self.nexts.contains(dst) => self.next_name(*dst),
                    true => slot,
                    false => format!("__ldg(&{slot})"),
                };
                let text = match (self.shared.program.columns[column.index()].storage, ty) {
                    (Storage::U8, Scalar::Bool) => format!("{value} != 0"),
                    (Storage::U8 | Storage::I32, Scalar::I64) => format!("i64({value})"),
                    (Storage::U8 | Storage::U32, _) => format!("i32({value})"),
                    (Storage::F32, _) => format!("f64({value})"),
                    _ => value,
                };
                self.assign(*dst, &own, &text);
            }
            Stmt::Store { column, row, value } => {
                let slot = self.row(*column, *row);
                let value = self.operand(*value).text;
                self.declare(stmt, list, position);
                let text = match self.shared.program.columns[column.index()].storage {
                    Storage::U8 => format!("{slot} = u8({value});"),
                    Storage::U32 => format!("{slot} = u32({value});"),
                    Storage::I32 => format!("{slot} = i32({value});"),
                    Storage::F32 => format!("{slot} = float({value});"),
                    Storage::I64 | Storage::F64 => format!("{slot} = {value};"),
                };
                self.line(&text);
            }
            Stmt::Atomic { column, row, value, site, .. }
                if let Some(gathered) = self.shared.gathers.iter().find(|gathered| gathered.column == *column) =>
            {
                let (at, value) = (self.operand(*row).text, self.operand(*value).text);
                let at = if self.func.ty(*row) == Scalar::I32 { format!("u32({at})") } else { at };
                self.declare(stmt, list, position);
                let (operation, name) = (gather::operation(*gathered), self.shared.column_name(*column));
                let cells = cells_name(*column);
                let call = format!("gather<{operation}>(args.copies, args.{cells}, {at}, args.{name}, {value})");
                match site {
                    Some(site) => self.stop_if(&call, *site, &[]),
                    None => self.line(&format!("{call};")),
                }
            }
            Stmt::Atomic { op, column, row, value, site } => {
                let slot = self.row(*column, *row);
                let value = self.operand(*value).text;
                self.declare(stmt, list, position);
                let helper = match op {
                    AtomicOp::Add => "atomic_add",
                    AtomicOp::FAdd => "atomic_fadd",
                    AtomicOp::Min => "atomic_min",
                    AtomicOp::Max => "atomic_max",
                    AtomicOp::And => "atomic_and",
                    AtomicOp::Or => "atomic_or",
                    AtomicOp::Xor => "atomic_xor",
                };
                match site {
                    Some(site) => self.stop_if(&format!("{helper}_overflows(&{slot}, {value})"), *site, &[]),
                    None => self.line(&format!("{helper}(&{slot}, {value});")),
                }
            }
            Stmt::FetchAdd { dst, column, row, value } => {
                let slot = self.row(*column, *row);
                let value = self.operand(*value).text;
                self.before_assignment(&[*dst]);
                let own = self.declare(stmt, list, position);
                self.assign(*dst, &own, &format!("fetch_add(&{slot}, {value})"));
            }
            Stmt::Alloc { .. } | Stmt::Try { .. } => unreachable!("refused before"),
            Stmt::If { cond, then, otherwise } => {
                let cond = self.operand(*cond);
                self.materialise(|_| true);
                self.declare(stmt, list, position);
                self.branch(&cond, then, otherwise, "");
            }
            Stmt::Block { label, body } => {
                self.materialise(|_| true);
                self.declare(stmt, list, position);
                self.labelled("{", *label, false, body, (list, position));
            }
            Stmt::Loop { label, body } => {
                self.materialise(|_| true);
                self.declare(stmt, list, position);
                match self.neighbours(stmt) {
                    Some(neighbours) => self.over_neighbours(&neighbours, *label, body),
                    None => self.labelled("while (true) {", *label, true, body, (list, position)),
                }
            }
            Stmt::Break(label) => {
                let target =
                    self.open.iter().rposition(|o| o.label == *label).expect("a break is inside what it leaves");
                let innermost = self.open.iter().rposition(|o| o.is_loop);
                // `break` leaves the innermost loop, and what ends with it.
                let leaves = innermost.is_some_and(|i| {
                    target == i
                        || target < i
                            && self.open[target..i].iter().all(|o| !o.is_loop)
                            && self.open[target + 1..=i].iter().all(|o| o.last)
                });
                if leaves {
                    self.line("break;");
                } else {
                    self.open[target].left = true;
                    self.line(&format!("goto {label};"));
                }
            }
            Stmt::Call { func, args, dsts, depth } => self.call(stmt, *func, args, dsts, *depth, (list, position)),
            Stmt::Return(values) => {
                let values: Vec<_> = values.iter().map(|v| self.operand(*v).text).collect();
                match &values[..] {
                    [only] if !self.by_reference => self.line(&format!("return {only};")),
                    _ => {
                        for (i, value) in values.iter().enumerate() {
                            self.line(&format!("result{i} = {value};"));
                        }
                        self.line(if self.stops { "return false;" } else { "return;" });
                    }
                }
            }
            Stmt::Trap { site, operands } => self.stop(*site, operands),
            Stmt::Place(_) => {}
            Stmt::Poll => self.line("if (poll(ctx)) return true;"),
            Stmt::Begin { index, tick, check } => {
                let (index, tick) = (self.operand(*index).text, self.operand(*tick).text);
                self.materialise(|_| true);
                self.declare(stmt, list, position);
                // several jobs of a thread have no limit
                if *check && self.taken.is_empty() {
                    self.line(&format!("if (begin_checked(ctx, {index}, {tick})) return true;"));
                } else {
                    self.line(&format!("begin(ctx, {index}, {tick});"));
                }
            }
        }
    }

    /// Writes out what reads registers that are about to change.
    fn before_assignment(&mut self, dsts: &[VarId]) {
        self.materialise(|(_, expr)| dsts.iter().any(|d| expr.reads.contains(d)));
    }

    fn stop(&mut self, site: SiteId, operands: &[Operand]) {
        let mut text = format!("trap(ctx, {}", site.index());
        for o in operands {
            let _ = write!(text, ", word({})", self.typed(*o).text);
        }
        self.line(&format!("{text});{}", self.shared.site(site)));
        if self.shared.listens {
            self.line("stop_others(ctx);");
        }
        self.line("return true;");
    }

    fn stop_if(&mut self, cond: &str, site: SiteId, operands: &[Operand]) {
        self.line(&format!("if ({cond}) {{"));
        self.indent += 1;
        self.stop(site, operands);
        self.indent -= 1;
        self.line("}");
    }

    /// Statements, those of callees included.
    fn size(&self, body: &[Stmt]) -> usize {
        let mut size = 0;
        walk(body, &mut |s| {
            size += match s {
                Stmt::Call { func, .. } => self.shared.sizes[func.index()],
                _ => 1,
            }
        });
        size
    }

    fn nest(&mut self, body: &[Stmt]) {
        let list = self.next_list;
        self.next_list += 1;
        self.indent += 1;
        self.list(body, list);
        self.indent -= 1;
    }

    fn branch(&mut self, cond: &Expr, then: &[Stmt], otherwise: &[Stmt], before: &str) {
        if then.is_empty() && !otherwise.is_empty() {
            let cond = wrapped(cond);
            self.line(&format!("{before}if (!{cond}) {{"));
            self.next_list += 1;
            self.nest(otherwise);
        } else {
            let head = format!("{before}if ({}) ", cond.text);
            if otherwise.is_empty()
                && before.is_empty()
                && let [Stmt::Break(_)] = then
            {
                let start = self.out.len();
                self.nest(then);
                let jump = self.out.split_off(start);
                self.next_list += 1;
                return self.line(&format!("{head}{}", jump.trim()));
            }
            self.line(&format!("{head}{{"));
            self.nest(then);
            match otherwise {
                [] => self.next_list += 1,
                // An `else if`, unless registers are to be declared between.
                [Stmt::If { cond, then, otherwise }] if !self.places.declare.contains_key(&(self.next_list, 0)) => {
                    self.next_list += 1;
                    let cond = self.operand(*cond);
                    return self.branch(&cond, then, otherwise, "} else ");
                }
                _ => {
                    self.line("} else {");
                    self.nest(otherwise);
                }
            }
        }
        self.line("}");
    }

    /// How many statements of a plain loop count as one; none where it runs too rarely to be more than its text.
    fn scale(&self, label: LabelId) -> Option<usize> {
        let twins = || self.shared.twins.iter().filter(|twin| twin.func == self.id);
        let rare = twins().any(|twin| twin.exact == label);
        (!rare).then(|| if twins().any(|twin| twin.presumes == label) { MARKS } else { 1 })
    }

    fn labelled(&mut self, head: &str, label: LabelId, is_loop: bool, body: &[Stmt], at: (ListId, usize)) {
        let last = self.open.last().is_some_and(|o| (o.list, o.length) == (at.0, at.1 + 1));
        self.open.push(Open { label, is_loop, list: self.next_list, length: body.len(), last, left: false });
        if is_loop {
            match (self.scale(label), self.size(body)) {
                // each repetition would have its own branch again
                _ if passes::is_turned(label, body) => self.line("#pragma unroll 1"),
                (Some(_), size) if let Some(turns) = few_turns(label, body, size) => {
                    self.line(&format!("#pragma unroll {turns}"));
                }
                // roots and quotients of several repetitions are computed side by side, and each is a long chain
                (Some(scale), size) if size <= scale * UNROLL_PLAIN && is_plain(body) && self.is_quick_loop(label) => {
                    self.line("#pragma unroll 8")
                }
                (Some(scale), size) if size <= scale * UNROLL_PLAIN && is_plain(body) => self.line("#pragma unroll 4"),
                (Some(_), ..=UNROLL_SIZE) => {}
                _ => self.line("#pragma unroll 1"),
            }
        }
        self.line(head);
        self.nest(body);
        self.line("}");
        if self.open.pop().is_some_and(|o| o.left) {
            self.line(&format!("{label}:;"));
        }
    }

    fn call(
        &mut self,
        stmt: &Stmt,
        func: FuncId,
        args: &[Operand],
        dsts: &[VarId],
        depth: Option<SiteId>,
        at: (ListId, usize),
    ) {
        let mut text = format!("{}(args, ctx", self.shared.func_name(func));
        for a in args {
            let _ = write!(text, ", {}", self.operand(*a).text);
        }
        self.before_assignment(dsts);
        let own = self.declare(stmt, at.0, at.1);
        if let (Some(value), [dst]) = (self.shared_value(func, args), dsts) {
            return self.assign(*dst, &own, &value);
        }
        if let Some(site) = depth {
            let comment = self.shared.site(site);
            self.line(&format!("if (enter(ctx, {})) return true;{comment}", site.index()));
        }
        if self.shared.by_reference(func) {
            for d in dsts {
                let _ = write!(text, ", {}", self.name(*d));
            }
        }
        text.push(')');
        if self.shared.may_stop[func.index()] {
            self.line(&format!("if ({text}) return true;"));
        } else if self.returns_value(stmt) {
            self.assign(dsts[0], &own, &text);
        } else {
            self.line(&format!("{text};"));
        }
        if depth.is_some() {
            self.line("leave(ctx);");
        }
    }

    fn op(&mut self, op: Op, args: &[Operand], ty: Scalar) -> Expr {
        let narrow = args.first().is_some_and(|a| self.func.ty(*a) == Scalar::I32);
        let boolean = args.first().is_some_and(|a| self.func.ty(*a) == Scalar::Bool);
        let suffix = if narrow { "32" } else { "" };
        match op {
            Op::Copy => self.typed(args[0]),
            Op::Add => self.helper(&format!("add{suffix}"), args),
            Op::Sub => self.helper(&format!("sub{suffix}"), args),
            Op::Mul => self.helper(&format!("mul{suffix}"), args),
            Op::MulHi => self.helper("mul_high", args),
            Op::UMulHi => self.helper("umul_high", args),
            Op::Div => self.infix("/", args),
            Op::Rem => self.infix("%", args),
            Op::UDiv => self.helper(&format!("udiv{suffix}"), args),
            Op::URem => self.helper(&format!("urem{suffix}"), args),
            Op::MulMod => self.helper("mul_mod", args),
            Op::AddMod => self.helper("add_mod", args),
            Op::And if boolean => self.infix("&&", args),
            Op::Or if boolean => self.infix("||", args),
            Op::Xor if boolean => self.infix("!=", args),
            Op::And => self.infix("&", args),
            Op::Or => self.infix("|", args),
            Op::Xor => self.infix("^", args),
            Op::Shl => self.helper(&format!("shl{suffix}"), args),
            Op::Shr => self.helper(&format!("shr{suffix}"), args),
            Op::UShr => self.helper(&format!("ushr{suffix}"), args),
            Op::Clz => self.helper("leading_zeros", args),
            Op::ICmp(cmp) | Op::FCmp(cmp) => self.infix(comparison(cmp), args),
            Op::UCmp(cmp) => {
                let unsigned = if narrow { "u32" } else { "u64" };
                let (a, b) = (self.operand(args[0]), self.operand(args[1]));
                let text = format!("{unsigned}({}) {} {unsigned}({})", a.text, comparison(cmp), b.text);
                Expr { text, compound: true, reads: [a.reads, b.reads].concat() }
            }
            Op::FAdd => self.infix("+", args),
            Op::FSub => self.infix("-", args),
            Op::FMul => self.infix("*", args),
            Op::FDiv if self.is_quick(op, args) => self.helper("quick_div", args),
            Op::FDiv => self.infix("/", args),
            Op::FNeg => self.prefix("-", args[0]),
            Op::FAbs => self.helper("fabs", args),
            Op::FSqrt if self.is_quick(op, args) => self.helper("quick_sqrt", args),
            Op::FSqrt => self.helper("sqrt", args),
            Op::FFloor => self.helper("floor", args),
            Op::FCeil => self.helper("ceil", args),
            Op::FTrunc => self.helper("trunc", args),
            Op::FRint => self.helper("rint", args),
            Op::FRound => self.helper("round", args),
            Op::FSingle => self.helper("single", args),
            Op::FRem => self.helper("fmod", args),
            Op::FNextAfter => self.helper("nextafter", args),
            Op::FCopySign => self.helper("copysign", args),
            Op::Math(function) => self.helper(math(function), args),
            Op::IntToFloat => self.helper("f64", args),
            Op::FloatToInt => self.helper("i64", args),
            Op::FloatBits => self.helper("float_bits", args),
            Op::FloatFromBits => self.helper("float_of", args),
            Op::Widen => {
                let x = self.operand(args[0]);
                Expr::atom(format!("i64(u32({}))", x.text), x.reads)
            }
            Op::Narrow => self.helper("i32", args),
            Op::BoolToInt => self.helper(scalar(ty), args),
            Op::Not => self.prefix("!", args[0]),
            Op::Select => {
                let cond = self.operand(args[0]);
                let (a, b) = (self.typed(args[1]), self.typed(args[2]));
                let text = format!("{} ? {} : {}", wrapped(&cond), wrapped(&a), wrapped(&b));
                Expr { text, compound: true, reads: [cond.reads, a.reads, b.reads].concat() }
            }
            Op::Ctx(Ctx::Tick) => Expr::atom("i64(ctx.tick)".to_string(), Vec::new()),
            Op::Ctx(Ctx::Slot) => Expr::atom("slot()".to_string(), Vec::new()),
            Op::Ctx(Ctx::Index) => Expr::atom("i64(ctx.index)".to_string(), Vec::new()),
            Op::Random => Expr::atom("random_bits(ctx)".to_string(), Vec::new()),
            Op::Param(param) => Expr::atom(format!("args.{}", self.shared.param_name(param)), Vec::new()),
        }
    }

    /// Whether what an operation gives without a branch will do: a loop around looks behind itself whether it was right.
    fn is_quick(&self, op: Op, args: &[Operand]) -> bool {
        passes::is_quick(op, args) && self.open.iter().any(|o| o.is_loop && self.is_quick_loop(o.label))
    }

    fn is_quick_loop(&self, label: LabelId) -> bool {
        self.shared.twins.iter().any(|twin| twin.func == self.id && twin.floats && twin.presumes == label)
    }

    fn helper(&mut self, name: &str, args: &[Operand]) -> Expr {
        let args: Vec<_> = args.iter().map(|a| self.operand(*a)).collect();
        let text: Vec<_> = args.iter().map(|a| &*a.text).collect();
        let text = format!("{name}({})", text.join(", "));
        Expr::atom(text, args.into_iter().flat_map(|a| a.reads).collect())
    }

    fn infix(&mut self, sign: &str, args: &[Operand]) -> Expr {
        let (a, b) = (self.typed(args[0]), self.operand(args[1]));
        let text = format!("{} {sign} {}", wrapped(&a), wrapped(&b));
        Expr { text, compound: true, reads: [a.reads, b.reads].concat() }
    }

    fn prefix(&mut self, sign: &str, arg: Operand) -> Expr {
        let a = self.operand(arg);
        let inner = if a.text.starts_with('-') { format!("({})", a.text) } else { wrapped(&a) };
        Expr { text: format!("{sign}{inner}"), compound: true, reads: a.reads }
    }
}

fn wrapped(expr: &Expr) -> String {
    if expr.compound { format!("({})", expr.text) } else { expr.text.clone() }
}

fn comparison(cmp: Cmp) -> &'static str {
    match cmp {
        Cmp::Eq => "==",
        Cmp::Ne => "!=",
        Cmp::Lt => "<",
        Cmp::Le => "<=",
        Cmp::Gt => ">",
        Cmp::Ge => ">=",
    }
}

fn math(function: MathFn) -> &'static str {
    match function {
        MathFn::Sin => "sin",
        MathFn::Cos => "cos",
        MathFn::Tan => "tan",
        MathFn::Asin => "asin",
        MathFn::Acos => "acos",
        MathFn::Atan => "atan",
        MathFn::Atan2 => "atan2",
        MathFn::Sinh => "sinh",
        MathFn::Cosh => "cosh",
        MathFn::Tanh => "tanh",
        MathFn::Asinh => "asinh",
        MathFn::Acosh => "acosh",
        MathFn::Atanh => "atanh",
        MathFn::Exp => "exp",
        MathFn::Log => "log",
        MathFn::Log2 => "log2",
        MathFn::Log10 => "log10",
        MathFn::Cbrt => "cbrt",
        MathFn::Hypot => "hypot",
        MathFn::Erf => "erf",
        MathFn::Erfc => "erfc",
        MathFn::Pow => "pow",
        MathFn::Tgamma => "tgamma",
        MathFn::Lgamma => "lgamma",
        MathFn::Ldexp => "scale",
    }
}

/// Whether control never runs past the end of the list.
fn ends(body: &[Stmt]) -> bool {
    match body.last() {
        Some(Stmt::Return(_) | Stmt::Trap { .. } | Stmt::Break(_)) => true,
        Some(Stmt::If { then, otherwise, .. }) => ends(then) && ends(otherwise),
        _ => false,
    }
}
