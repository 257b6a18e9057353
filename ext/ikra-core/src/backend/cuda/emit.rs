//! Translates the IR to CUDA C++: readable text that both NVRTC and a host compiler (with `shim.hpp`) accept.
//!
//! Here: arguments, signatures and kernels; one C++ function per IR function ([`function`]), with registers as
//! variables ([`places`]); special kernels for groups of threads and of jobs. Not here: compiling, and any device: this
//! module builds and runs everywhere.
//!
//! Invariants: each variable is declared in the innermost braces that hold all its occurrences, so the forward `goto`
//! of a `Break` never jumps over a declaration. [`Emitted::arguments`] and [`Emitted::memory`] write words in the order
//! of the `Args` that the text declares.

mod function;
mod needed;
mod neighbours;
mod places;
mod several;
mod shared;

use super::{collective, groups, privatization};
use crate::backend::collective::LANES;
use crate::backend::collective::cells::CELLS;
use crate::backend::epilogue::Epilogue;
use crate::backend::fold::Fold;
use crate::error::{Error, Result};
use crate::ir::privatized::{Privatized, privatized};
use crate::ir::stages::{Reach, Stage};
use crate::ir::{ColumnId, FuncId, ParamId, Program, Scalar, SiteId, Stmt, Storage, Trap, VarId, walk};
use crate::layout::{Address, Layout};
use crate::passes::team::{MAX_LANES, Team};
use crate::passes::{self, LoopVersions, Versioned};
use function::{Function, names};
use std::fmt::Write;

pub use needed::with_prelude;
pub use several::Several;
pub use shared::SHARED_MEMORY;

/// The common part of all kernels, which precedes the generated text.
pub const PRELUDE: &str = include_str!("prelude.cuh");

/// Bytes of launch arguments that all drivers accept.
const ARGUMENT_BYTES: usize = 4_096;
/// A function that is called several times is inlined everywhere up to this size, in statements, with all that is
/// inlined into it.
const INLINE_SIZE: usize = 2_000;
/// A program with more statements, all inlined, is long. NVRTC's time grows faster than the size of a function. For
/// 9700 statements it takes 42 s, or 8 s if functions are not inlined and it optimises less.
const LONG: usize = 2_500;
/// Functions of long programs are inlined up to this size.
const INLINE_SIZE_LONG: usize = 40;
/// Words of `struct ReduceArgs`.
const REDUCE_WORDS: usize = 5;
/// Threads of a block of a kernel with an epilogue.
pub const EPILOGUE_THREADS: u32 = LANES as u32;
/// The threads that a block may have. Each may then use 128 registers.
const MAX_THREADS: u32 = 512;
/// The fewest blocks per multiprocessor, for kernels whose jobs all take the same way through a loop and load common
/// rows. With 1, the assembler uses enough registers to load for several repetitions at once. Otherwise it uses so few
/// that the loads wait for each other. Then nbody's kernel took 4 % longer, and a product of matrices 80 % longer. If
/// branches part the jobs, as in boids, more registers make the kernel slower.
const MIN_BLOCKS_SHARING: u32 = 1;
/// The same for a fold of computed elements: the sum of products of 64 Mi Floats takes 259 µs instead of 277. A
/// compaction would be slower, with 316 instead of 281.
const MIN_BLOCKS_FOLDING: u32 = 2;
/// The threads of a block that runs groups of jobs. Few, because each uses many registers.
const GROUP_THREADS: u32 = 128;

/// How many groups a block of threads has in its own table, in shared memory. Where keys are no Strings, cells are
/// beside it. On an H200, the templates alone count the words of 100 MB in 0.6 ms with 1024 groups, and in 0.84 with
/// 256. But where jobs read the bytes of Strings themselves, that memory serves better as a cache for these.
const BLOCK_GROUPS: u32 = 512;
const BLOCK_GROUPS_OF_TEXTS: u32 = 1024;
const BLOCK_GROUPS_BESIDE_TEXTS: u32 = 256;

/// Generated code, and how to call it.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// The name of the kernel function.
    pub kernel: String,
    /// The program without the prelude.
    pub body: String,
    /// Whether a function may call itself, so that the compiler does not know the stack size.
    pub recursive: bool,
    /// Whether buffers and parameters exceed the arguments of a launch. Then they are in device memory, and the
    /// argument has their address.
    pub indirect: bool,
    /// The epilogue of the kernel, which uses templates of [`collective`].
    pub epilogue: Option<Epilogue>,
    /// How many elements a block of threads processes together, with barriers; 0: each thread runs alone.
    pub tile: u64,
    /// Buffers whose reductions blocks of threads privatize, with barriers.
    pub privatized: Vec<usize>,
    /// Whether it groups the pairs that it emits, and whether their keys have parts.
    pub groups: bool,
    pub key_parts: bool,
    /// Whether most of its time would be what blocks do with their own groups, if there were a block for few jobs.
    pub few_blocks: bool,
    /// Whether each thread runs at most one job, so that a launch needs as many threads as jobs.
    pub once: bool,
    /// How each thread can run several jobs, if threads are fewer than jobs.
    pub several: Option<Several>,
    /// Where each thread runs at most one job: the form whose threads loop over jobs.
    loops: Option<Loops>,
    /// Whether a team of threads runs each job, with barriers.
    pub team: bool,
    /// Whether it is so long that a compiler should optimise it less.
    pub is_long: bool,
}

/// Another kernel function for the same program.
#[derive(Clone, Debug, PartialEq)]
struct Loops {
    /// Bytes of text before the kernel function, which are the same.
    before: usize,
    text: String,
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
    /// The indices of the words [`Header::tick_begin`] and [`Header::tick_end`].
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
    /// The form whose threads loop over jobs. None: that is this one.
    pub fn looping(&self) -> Option<Self> {
        let Loops { before, text } = self.loops.as_ref()?;
        let body = format!("{}{text}", &self.body[..*before]);
        Some(Self { body, once: false, several: None, loops: None, ..self.clone() })
    }
    /// Whether any number of threads can run the jobs of a launch.
    pub fn takes_share(&self) -> bool {
        self.tile == 0 && self.epilogue.is_none()
    }
    /// The complete source for a compiler.
    pub fn source(&self) -> String {
        with_prelude(&format!("{}{}", self.templates(), self.body))
    }
    /// The templates between the prelude and the program.
    pub fn templates(&self) -> String {
        let privatized =
            if self.privatized.is_empty() { String::new() } else { format!("{}\n", privatization::TEMPLATES) };
        let templates: &[&str] = match self.epilogue {
            None if self.groups => return format!("{privatized}{}\n", groups::TEMPLATES),
            None => return privatized,
            Some(Epilogue::Fold(_)) => &[collective::REDUCE],
            Some(Epilogue::Compaction(_)) => &collective::COMPACTION,
        };
        format!("{}\n{}\n", collective::COMMON, templates.join("\n"))
    }
    /// The words of the kernel's argument, without those of its epilogue, which follow. First comes the header. Then
    /// come the addresses of buffers (biased, as numbers), the parameters, and the words of [`privatization::Cells`]
    /// and of [`groups::Room`]. If those are in memory, the address `memory` follows the header instead.
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
    /// The words that must be in device memory for the launch.
    pub fn memory(&self, buffers: &[u64], params: &[u64]) -> Vec<u64> {
        if self.indirect { [buffers, params].concat() } else { Vec::new() }
    }
}

/// A C++ name for the program's kernel: `block in main at traffic.rb:12` becomes `ikra_block_in_main_at_traffic_rb`.
/// The line number is omitted, so that a block that only moved keeps its code.
pub fn kernel_name(program: &Program) -> String {
    let name = match program.name.rsplit_once(':') {
        Some((before, line)) if line.bytes().all(|b| b.is_ascii_digit()) => before,
        _ => &program.name,
    };
    format!("ikra_{}", identifier(name).chars().take(120).collect::<String>())
}

/// Replaces all but letters and digits by single underscores.
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

/// Whether jobs check, while they run, if another job has stopped the launch.
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

/// Checks that a program can be emitted: a pass must have turned its allocations of rows into arithmetic.
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

/// The code of a program; its kernel is named `kernel`.
pub fn emit(program: &Program, layout: &Layout, kernel: &str) -> Emitted {
    emit_into(program, layout, kernel, None)
}

/// As [`emit`]. The elements of the epilogue's column go to the epilogue, not to memory.
pub fn emit_into(program: &Program, layout: &Layout, kernel: &str, epilogue: Option<Epilogue>) -> Emitted {
    emit_bound(program, layout, kernel, epilogue, Threads::Jobs)
}

/// As [`emit`], for a program whose jobs are groups of another program's jobs.
pub fn emit_groups(program: &Program, layout: &Layout, kernel: &str) -> Emitted {
    emit_bound(program, layout, kernel, None, Threads::Groups)
}

/// As [`emit`], for a program whose jobs are lanes of [`Team`]s.
pub fn emit_team(program: &Program, layout: &Layout, kernel: &str) -> Emitted {
    emit_bound(program, layout, kernel, None, Threads::Team)
}

/// What the jobs of a program are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Threads {
    Jobs,
    Groups,
    Team,
}

/// The arguments of a kernel with an epilogue.
fn with_epilogue(given: &str, words: &str) -> String {
    format!("struct WithEpilogue {{\n  {given} args;\n  {words} epilogue;\n}};\n\n")
}

fn with_epilogue_head(kernel: &str, bounds: &str) -> String {
    format!(
        "extern \"C\" __global__ void __launch_bounds__({bounds}) {kernel}(__grid_constant__ const WithEpilogue given)"
    )
}

/// The launch bounds: the most threads of a block, and the fewest blocks of a multiprocessor.
fn bounds(program: &Program, versions: &[LoopVersions]) -> String {
    if passes::jam::shares(program) || versions.iter().any(|pair| pair.floats) {
        format!("{MAX_THREADS}, {MIN_BLOCKS_SHARING}")
    } else {
        MAX_THREADS.to_string()
    }
}

fn emit_bound(
    program: &Program,
    layout: &Layout,
    kernel: &str,
    epilogue: Option<Epilogue>,
    threads: Threads,
) -> Emitted {
    let given = program;
    let Versioned { program, versions } =
        passes::run_given(passes::CUDA, Versioned::from(program.clone())).unwrap_or_else(|broken| panic!("{broken}"));
    let program = &program;
    let order = callees_first(program);
    let Inlining { inlined: inline, sizes, is_long } = Inlining::of(program, &order);
    let mut shared = Shared::new(program, layout, sizes);
    shared.epilogue = epilogue;
    shared.versions = versions;
    if threads == Threads::Team {
        shared.team = Some(Team::bits(program));
    } else if epilogue.is_none() && shared.sharing().is_empty() {
        shared.privatized = privatized(program);
        shared.privatized.retain(|privatized| layout.own_buffer(program, privatized.column).is_some());
        // blocks that group pairs run many jobs, and then merge their groups
        shared.once = shared.privatized.is_empty() && !shared.groups && !given.uses_slots();
    }
    let mut body = format!("// {}\n\n", program.name.replace(['\n', '\r'], " "));
    shared.args(&mut body);
    for &func in order.iter().filter(|f| program.funcs[f.index()].recursive) {
        let _ = writeln!(body, "{};", shared.signature(func, inline[func.index()]));
    }
    if order.iter().any(|f| program.funcs[f.index()].recursive) {
        body.push('\n');
    }
    let sharing = if shared.team.is_some() { Vec::new() } else { shared.sharing() };
    let twice = sharing.is_empty() || shared.sharing_may_fail(&sharing);
    for &func in &order {
        // the versions for tiles whose sharing failed are not inlined
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
    let fold = epilogue.and_then(|epilogue| epilogue.fold());
    let copied = fold.and_then(|fold| Some((fold, fold.copied.filter(|column| shared.own_buffer(*column))?)));
    let before = body.len();
    let loops = (shared.once && epilogue.is_none() && threads == Threads::Jobs)
        .then(|| Loops { before, text: shared.looping_kernel(kernel, &bounds(given, &shared.versions)) });
    body += &match (epilogue, copied) {
        (_, Some((fold, copied))) => shared.copying_kernel(kernel, fold, copied),
        (Some(epilogue), None) => shared.epilogue_kernel(kernel, epilogue, &sharing),
        (None, None) if threads == Threads::Team => shared.team_kernel(kernel),
        (None, None) if threads == Threads::Groups => {
            shared.kernel(kernel, &format!("{GROUP_THREADS}, {MIN_BLOCKS_SHARING}"))
        }
        (None, None) if sharing.is_empty() => {
            let bounds = bounds(given, &shared.versions);
            match &several {
                Some(several) => shared.several_kernel(kernel, &bounds, several),
                None => shared.kernel(kernel, &bounds),
            }
        }
        (None, None) => shared.sharing_kernel(kernel, &sharing),
    };
    let recursive = order.iter().any(|f| program.funcs[f.index()].recursive);
    let tile = sharing.first().map_or(0, |(stage, _)| stage.tile.iter().map(|side| u64::from(*side)).product());
    let privatized =
        shared.privatized.iter().filter_map(|privatized| layout.own_buffer(program, privatized.column)).collect();
    let (indirect, once, groups) = (shared.indirect(), shared.once, shared.groups);
    let (key_parts, few_blocks) = (shared.key_parts, shared.word_keys().is_some() && !shared.reads_texts());
    let (kernel, team) = (kernel.to_string(), shared.team.is_some());
    Emitted {
        kernel,
        body,
        recursive,
        indirect,
        epilogue,
        tile,
        privatized,
        groups,
        key_parts,
        few_blocks,
        once,
        several,
        loops,
        team,
        is_long,
    }
}

/// The text without comments. Two texts that differ only in comments are the same code.
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

/// The functions that the entry reaches, callees first (except for recursion).
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
    // functions, each with the callees that are still to be visited
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

/// Which functions are inlined into their callers.
struct Inlining {
    inlined: Vec<bool>,
    /// For each function, the number of statements, with those of all that is inlined into it.
    sizes: Vec<usize>,
    /// Whether the program is longer than [`LONG`].
    is_long: bool,
}

impl Inlining {
    /// All are inlined but recursive functions, and large ones with several calls. In a long program, all but small
    /// ones are not inlined.
    fn of(program: &Program, order: &[FuncId]) -> Self {
        let mut calls = vec![0usize; program.funcs.len()];
        for &f in order {
            walk(&program.funcs[f.index()].body, &mut |s| {
                if let Stmt::Call { func, .. } = s {
                    calls[func.index()] += 1;
                }
            });
        }
        let limited = |most: usize, most_called_once: usize| {
            let mut sizes = vec![0usize; program.funcs.len()];
            let mut inlined = vec![true; program.funcs.len()];
            for &f in order {
                let mut total = 0usize;
                walk(&program.funcs[f.index()].body, &mut |s| {
                    total += 1;
                    if let Stmt::Call { func, .. } = s
                        && inlined[func.index()]
                    {
                        total += sizes[func.index()];
                    }
                });
                sizes[f.index()] = total;
                let most = if calls[f.index()] <= 1 { most_called_once } else { most };
                inlined[f.index()] = f == program.entry || !program.funcs[f.index()].recursive && total <= most;
            }
            (inlined, sizes)
        };
        let (inlined, sizes) = limited(INLINE_SIZE, usize::MAX);
        let is_long = sizes[program.entry.index()] > LONG;
        let (inlined, sizes) = if is_long { limited(INLINE_SIZE_LONG, INLINE_SIZE_LONG) } else { (inlined, sizes) };
        Self { inlined, sizes, is_long }
    }
}

/// What is common to the functions of a program.
struct Shared<'a> {
    program: &'a Program,
    layout: &'a Layout,
    may_stop: Vec<bool>,
    /// For each function, which registers hold Integers of 32 bits.
    short: Vec<Vec<bool>>,
    /// The same for registers of which only the lower half matters ([`passes::low`]).
    low: Vec<Vec<bool>>,
    /// For each function, which registers hold Floats of 32 bits.
    single: Vec<Vec<bool>>,
    listens: bool,
    written: Vec<bool>,
    /// For each function, the number of statements, with those of all that is inlined into it.
    sizes: Vec<usize>,
    /// The epilogue, if a column's elements go to one instead of to memory.
    epilogue: Option<Epilogue>,
    /// Columns whose reductions blocks privatize.
    privatized: Vec<Privatized>,
    /// Whether jobs emit pairs.
    groups: bool,
    key_parts: bool,
    /// Whether each thread runs at most one job.
    once: bool,
    /// Loops that are emitted in two versions.
    versions: Vec<LoopVersions>,
    /// The parameter that says how many lanes a team has, if teams run the jobs.
    team: Option<ParamId>,
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
        let low = passes::low(program, &short);
        Self {
            program,
            layout,
            may_stop: program.may_stop(),
            written,
            sizes,
            short,
            low,
            single: passes::single(program),
            listens,
            epilogue: None,
            privatized: Vec::new(),
            groups: program.emits(),
            key_parts: program.has_key_parts(),
            once: false,
            versions: Vec::new(),
            team: None,
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

    /// The type of the kernel's argument without an epilogue, and the expression that passes it to functions.
    fn given(&self) -> (&'static str, &'static str) {
        if self.indirect() { ("Given", "*args.args") } else { ("Args", "args") }
    }

    /// Whether a kernel checks before it begins if its launch is still wanted. Jobs without loops do not check: they
    /// end about as soon as the stop key is loaded, and all their loads would wait for it. What a launch stores after
    /// one that was stopped is discarded anyway. Launches of a program that surely ends are never stopped.
    fn looks(&self) -> bool {
        !self.program.is_straight() && !self.program.each_tick_surely_ends()
    }

    /// The kernel whose threads run jobs.
    fn kernel(&self, kernel: &str, bounds: &str) -> String {
        self.kernel_of(kernel, bounds, self.once)
    }

    /// The kernel whose threads loop over jobs.
    fn looping_kernel(&self, kernel: &str, bounds: &str) -> String {
        self.kernel_of(kernel, bounds, false)
    }

    fn kernel_of(&self, kernel: &str, bounds: &str, once: bool) -> String {
        let (given, args) = self.given();
        let entry = self.func_name(self.program.entry);
        let call = format!("{entry}({args}, ctx, i64(job), args.launch.tick_begin, args.launch.tick_end)");
        let stops = self.may_stop[self.program.entry.index()];
        let call = if stops { format!("if ({call}) ended(ctx);") } else { format!("{call};") };
        let head = format!(
            "extern \"C\" __global__ void __launch_bounds__({bounds}) {kernel}(__grid_constant__ const {given} args)"
        );
        let ctx = if self.key_parts {
            "KeyParts key;\n  begin_key(key);\n  Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE, {}, 0, &key};"
        } else {
            "Ctx ctx = {args.launch, 0, 0, 0, 0, 0, NO_SITE};"
        };
        if once {
            // a number of jobs that fits 32 bits is compared in 32 bits
            let few = self.program.funcs[self.program.entry.index()].params.first();
            let few = few.is_some_and(|job| self.short[self.program.entry.index()][job.index()]);
            let (job, jobs) =
                if few { ("u32 job = u32", "u32(args.launch.jobs)") } else { ("u64 job = u64", "args.launch.jobs") };
            // not a branch of its own, so that both conditions are loaded at the same time
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
        let [before, each, behind] = self.privatized_parts();
        let [clear, merge] = self.block_group_parts();
        let (before, behind) = (clear + &before, behind + &merge);
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

    /// Whether pairs have keys of one word, which blocks of threads group first. Then the column of their bytes, if
    /// some are Strings.
    fn word_keys(&self) -> Option<Option<ColumnId>> {
        let mut found: Option<Option<ColumnId>> = None;
        for func in &self.program.funcs {
            walk(&func.body, &mut |s| {
                if let Stmt::Emit { key: Some(_), text, .. } = s {
                    found = Some(found.flatten().or(*text));
                }
            });
        }
        found
    }

    /// How many groups a block of threads has in its own table.
    fn block_groups(&self) -> u32 {
        match self.word_keys().flatten() {
            None => BLOCK_GROUPS,
            Some(_) if self.reads_texts() => BLOCK_GROUPS_BESIDE_TEXTS,
            Some(_) => BLOCK_GROUPS_OF_TEXTS,
        }
    }

    /// Whether jobs read the bytes of Strings that are keys, which takes long.
    fn reads_texts(&self) -> bool {
        let Some(text) = self.word_keys().flatten() else { return false };
        let mut reads = false;
        for func in &self.program.funcs {
            walk(&func.body, &mut |s| reads |= matches!(s, Stmt::Load { column, .. } if *column == text));
        }
        reads
    }

    /// How many cells it has. Strings have none.
    fn block_cells(&self) -> usize {
        if self.word_keys().flatten().is_some() { 0 } else { CELLS }
    }

    /// Whether no job writes the bytes of keys.
    fn is_fixed(&self, text: Option<ColumnId>) -> bool {
        text.is_none_or(|column| !self.written[column.index()])
    }

    /// The code of a block for its own groups: before the first job, and after the last one.
    fn block_group_parts(&self) -> [String; 2] {
        let Some(text) = self.word_keys() else { return Default::default() };
        let (count, cells, fixed) = (self.block_groups(), self.block_cells(), self.is_fixed(text));
        let args = if self.indirect() { "args.args->" } else { "args." };
        let bytes = text.map_or("nullptr".to_owned(), |text| format!("&{}", self.slot(text, "0")));
        let bytes = bytes.replacen("args.", args, 1);
        [
            format!("  clear_block_groups<{count}, {cells}>({args}groups);\n"),
            format!("  merge_block_groups<{count}, {cells}, {fixed}>({args}groups, {bytes});\n"),
        ]
    }

    /// The number of lanes of a team, as an expression.
    fn lanes(&self, args: &str) -> String {
        let bits = self.team.map(|bits| self.param_name(bits)).unwrap_or_default();
        format!("1u << u32({args}{bits})")
    }

    /// The kernel whose threads are lanes of teams. A block has whole teams.
    fn team_kernel(&self, kernel: &str) -> String {
        let (given, args) = self.given();
        let entry = self.func_name(self.program.entry);
        let call = format!("{entry}({args}, ctx, i64(thread), args.launch.tick_begin, args.launch.tick_end)");
        let stops = self.may_stop[self.program.entry.index()];
        let call = if stops { format!("if ({call}) ended(ctx);") } else { format!("{call};") };
        let lanes = self.lanes(if self.indirect() { "args.args->" } else { "args." });
        // either all lanes of a team begin, or none
        let over = format!("  if (meet({lanes}, i64(!launch_is_over(args.launch))) == 0) return;\n");
        let over = if self.looks() { over } else { String::new() };
        format!(
            "extern \"C\" __global__ void __launch_bounds__({MAX_LANES}) {kernel}(__grid_constant__ const {given} args) {{
  const u64 thread = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  if (thread >= args.launch.jobs) return;
{over}  Ctx ctx = {{args.launch, 0, 0, 0, 0, 0, NO_SITE}};
  {call}
}}
"
        )
    }

    /// The code of a block for its private sums: before the first job, after each job, and after the last one.
    fn privatized_parts(&self) -> [String; 3] {
        if self.privatized.is_empty() {
            return Default::default();
        }
        let args = if self.indirect() { "args.args->" } else { "args." };
        let mut before = format!("  const u32 copies = {args}copies;\n  if (copies != 0) {{\n");
        let mut behind = "  if (copies != 0) {\n    __syncthreads();\n".to_owned();
        let raises = self.privatized.iter().any(|privatized| privatized.site.is_some());
        for privatized in &self.privatized {
            let (operation, cells) = (privatization::operation(*privatized), cells_name(privatized.column));
            let _ = writeln!(before, "    clear_cells<{operation}>(copies, {args}{cells});");
            let column = self.column_name(privatized.column);
            let merge = format!("merge_cells<{operation}>(copies, {args}{cells}, {args}{column})");
            let _ = match privatized.site {
                Some(site) => writeln!(
                    behind,
                    "    if ({merge}) privatized_overflow(args.launch, {}, element);{}",
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
        // if any thread of a block has run an element, the first one has
        let shown = "  __shared__ u32 element;\n  if (threadIdx.x == 0) element = last;\n";
        [before + "  u32 last = 0;\n", "    last = ctx.index;\n".to_owned(), shown.to_owned() + &behind]
    }

    /// The kernel of a program whose jobs only copy a column: it reduces that column's rows in place.
    fn copying_kernel(&self, kernel: &str, fold: Fold, copied: ColumnId) -> String {
        let (given, _) = self.given();
        let args = if self.indirect() { "given.args.args->" } else { "given.args." };
        let (element, operation) =
            (collective::name(fold.element), collective::operation(fold.reduction, fold.element));
        format!(
            "{}{} {{
  reduce_loaded<{element}, {operation}>(given.epilogue, {args}{});
}}
",
            with_epilogue(given, "ReduceArgs"),
            with_epilogue_head(kernel, &format!("{EPILOGUE_THREADS}, {}", collective::fewest_blocks(fold.reduction))),
            self.column_name(copied),
        )
    }

    /// The kernel whose threads run the jobs of tiles, and reduce or compact the results.
    fn epilogue_kernel(&self, kernel: &str, epilogue: Epilogue, sharing: &[(&Stage, Reach)]) -> String {
        let (given, args) = self.given();
        let entry = self.func_name(self.program.entry);
        let element = collective::name(epilogue.element());
        let (mark, marked, given_too) =
            if epilogue.mask().is_some() { ("\n    u8 given = 0;", "given != 0", ", given") } else { ("", "true", "") };
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
        // The number of jobs whose loads overlap. More jobs need more registers, so fewer threads would run.
        let ahead = match self.sizes[self.program.entry.index()] {
            0..=40 => 4,
            41..=100 => 2,
            _ => 1,
        };
        let tile = sharing.first().map(|(stage, _)| stage.tile[0]);
        let (words, template) = match (epilogue, tile) {
            (Epilogue::Compaction(_), _) => ("CompactionArgs", format!("compact_each<{element}, {ahead}>")),
            (Epilogue::Fold(fold), tile) => {
                let operation = collective::operation(fold.reduction, fold.element);
                let template = match tile {
                    Some(side) => format!("reduce_parts<{element}, {operation}, {side}>"),
                    None => format!("reduce_each<{element}, {operation}, {ahead}>"),
                };
                ("ReduceArgs", template)
            }
        };
        let with_epilogue = with_epilogue(given, words);
        let head = with_epilogue_head(
            kernel,
            &match epilogue {
                Epilogue::Fold(_) => format!("{EPILOGUE_THREADS}, {MIN_BLOCKS_FOLDING}"),
                Epilogue::Compaction(_) => EPILOGUE_THREADS.to_string(),
            },
        );
        if !sharing.is_empty() {
            let part = self.sharing_part(sharing, element, &run);
            return format!(
                "{with_epilogue}{part}{head} {{
  __shared__ bool over, raised;
  Part part = {{given.args, over, raised, false}};
  {template}(given.epilogue, part);
}}
"
            );
        }
        let over = if self.looks() { "launch_is_over(args.launch)" } else { "false" };
        format!(
            "{with_epilogue}struct Job {{
  const {given} &args;
  INLINE_MEMBER bool is_over() const {{ return {over}; }}
  INLINE_MEMBER bool operator()(u64 job, {element} &element) const {{
{run}  }}
}};

{head} {{
  {template}(given.epilogue, Job{{given.args}});
}}
"
        )
    }

    /// Whether buffers and parameters exceed the arguments of a launch.
    fn indirect(&self) -> bool {
        let epilogue = match self.epilogue {
            None => 0,
            Some(Epilogue::Fold(_)) => REDUCE_WORDS,
            Some(Epilogue::Compaction(_)) => collective::COMPACTION_WORDS,
        };
        let cells = privatization::words(self.privatized.len());
        let groups = if self.groups { groups::WORDS } else { 0 };
        let more = cells + groups + epilogue;
        (Header::WORDS + self.layout.buffers() + self.program.params.len() + more) * 8 > ARGUMENT_BYTES
    }

    /// Declares `struct Args`: a [`Header`], one address per buffer, one word per parameter. If those are in memory,
    /// also `struct Given`: the header and their address.
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
        if !self.privatized.is_empty() {
            out.push_str("  alignas(8) u32 copies;  // of each cell; 0: no rows have any\n");
        }
        for privatized in &self.privatized {
            let _ = writeln!(out, "  PrivateCells {};", cells_name(privatized.column));
        }
        if self.groups {
            out.push_str("  GroupTable groups;\n");
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

    /// A slot as an lvalue. `row` is an expression of an unsigned 32-bit or a signed 64-bit number.
    fn slot(&self, column: ColumnId, row: &str) -> String {
        if self.epilogue.is_some_and(|epilogue| epilogue.column() == column) {
            return "element".to_owned();
        }
        if self.epilogue.is_some_and(|epilogue| epilogue.mask() == Some(column)) {
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
        // `__restrict__`: no store of the kernel changes them
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
        if let Some(epilogue) = self.epilogue
            && func == self.program.entry
        {
            let _ = write!(text, ", {} &element", collective::name(epilogue.element()));
            text += if epilogue.mask().is_some() { ", u8 &given" } else { "" };
        }
        text.push(')');
        text
    }

    /// The C++ type of a register. An Integer that fits 32 bits is held and computed in 32 bits, because a 64-bit
    /// operation takes two instructions. A Float of 32 bits is, because a GPU computes more of them at a time.
    fn register(&self, func: FuncId, v: VarId) -> &'static str {
        if self.short[func.index()][v.index()] || self.low[func.index()][v.index()] {
            "i32"
        } else if self.single[func.index()][v.index()] {
            "float"
        } else {
            scalar(self.program.funcs[func.index()].vars[v.index()].ty)
        }
    }

    /// Whether the function returns its results through references.
    fn by_reference(&self, func: FuncId) -> bool {
        self.may_stop[func.index()] || self.program.funcs[func.index()].results.len() > 1
    }

    /// A comment that explains a trap to a reader of the text.
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
            Trap::Limit { before, after, .. } if s.operands.is_empty() => format!("{before}{after}"),
            Trap::Limit { before, after, .. }
            | Trap::Describe { before, after, .. }
            | Trap::Mention { before, after, .. } => format!("{before}…{after}"),
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

/// The variable that says which cells blocks have for a column.
fn cells_name(column: ColumnId) -> String {
    format!("{column}_cells")
}
