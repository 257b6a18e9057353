//! Runs generated CUDA C++ on the host: the host's C++ compiler compiles the same text that NVRTC gets, against
//! `shim.hpp`. It serves tests without a GPU.
//!
//! Here: [`CudaShim`], a [`Backend`]. Not here: speed, and the device's memory model; blocks run one after the other.
//!
//! Compiled libraries are kept in a directory that only this user can write, under a hash of all their inputs. So a
//! test suite compiles each kernel once.
//!
//! If `IKRA_NVRTC_CHECK` is set, all prepared texts must also pass NVRTC. A text does not depend on the architecture.
//! So each text is compiled for one architecture, an old or a new one, which its hash selects. The common parts of
//! texts are compiled for both.
#![allow(unsafe_code, reason = "loads compiled libraries and calls into them")]

use super::collective;
use super::emit::{self, Emitted, Header};
use super::groups::{Asked, Room};
use super::nvrtc;
use super::privatization;
use crate::backend::collective::Workers;
use crate::backend::collective::emitted::Records;
use crate::backend::collective::reduce::Reduction;
use crate::backend::epilogue::{Compacted, Compaction, Epilogue};
use crate::backend::fold::{self, Fold, Folded};
use crate::backend::resources::Machine;
use crate::backend::threads::Threads;
use crate::backend::{Backend, CancelToken, Executable, Key, Launch, Outcome, own};
use crate::config::CodeOptions;
use crate::error::{Error, Result};
use crate::ir::{Program, TRAP_WORDS};
use crate::layout::Layout;
use crate::memory::column::HostColumn;
use crate::passes::jam::{Grouping, Jam};
use crate::passes::team::Team;
use crate::target::Target;
use libloading::Library;
use once_cell::sync::OnceCell;
use parking_lot::Mutex;
use std::any::Any;
use std::collections::HashMap;
use std::ffi::{OsString, c_void};
use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

/// The architectures for which [`nvrtc`] must accept the texts.
pub const CHECKED_ARCHITECTURES: [u32; 2] = [80, 90];

const SHIM: &str = include_str!("shim.hpp");

/// No contraction, as with NVRTC. Calls of libm are not evaluated by the compiler, whose results are more exact than
/// libm's. Signed overflow stays undefined, as with NVRTC. Only quick optimisations, because tests compile far more
/// than they run.
const FLAGS: &[&str] = &[
    "-std=gnu++17",
    "-Og",
    "-ffp-contract=off",
    // without it g++ turns `0.0 - x` into `-x` if x was an Integer, which differs for x = 0
    "-frounding-math",
    "-fno-math-errno",
    "-fno-exceptions",
    "-fno-rtti",
    "-fPIC",
    "-shared",
    // A library has no initialisers, and calls only functions that the process has. Linking would be a quarter of the
    // time for a small kernel.
    "-nostdlib",
    "-w",
];
const LIBM: &str = "sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp log log2 log10 cbrt hypot pow \
                    erf erfc tgamma lgamma ldexp fmod nextafter";
/// Ends the process at undefined integer arithmetic in generated code.
const SANITIZE: &[&str] =
    &["-fsanitize=signed-integer-overflow,shift,integer-divide-by-zero", "-fsanitize-undefined-trap-on-error"];

/// Threads of a block, and blocks of a grid. Few, so that threads run several jobs where they may.
const BLOCK: u32 = 32;
/// The same, where jobs are run by teams: several of them.
const TEAM_BLOCK: u64 = 128;
const GRID: u32 = 3;
/// Plans are made for a little device, so that kernels have fewer threads than jobs, and need several batches.
const MACHINE: Machine = Machine { threads: 256, blocks: 4, ..Machine::of_capability(90, 2) };

/// A library that is loaded twice is one library, with one set of built-in variables. So launches run one at a time.
static RUNNING: Mutex<()> = Mutex::new(());

/// The shim; see the module.
pub struct CudaShim {
    target: Target,
    directory: PathBuf,
    compiler: OsString,
    sanitize: bool,
    barriers: bool,
    /// How many lanes teams have. None: each job has one thread.
    lanes: Option<u64>,
    /// Kernels that were run by [`CudaShim::run_text`].
    texts: Mutex<HashMap<String, (Arc<Library>, Entry)>>,
    cells: Mutex<Cells>,
}

type Entry = unsafe extern "C" fn(grid: u32, block: u32, args: *const c_void);

struct Kernel {
    emitted: Emitted,
    layout: Layout,
    fused_ticks: bool,
    /// Whether the kernel reads the number of its thread.
    slots: bool,
    written: Vec<bool>,
    entry: Entry,
    compiled_in: Duration,
    from_cache: bool,
    /// The same program for several jobs at once.
    jammed: Option<(Jam, Box<Kernel>)>,
    /// The same program with threads that loop over jobs.
    looping: OnceCell<Box<Kernel>>,
    /// The same program for teams.
    teamed: Option<(Team, OnceCell<Box<Kernel>>)>,
    /// The library with the code of `entry`.
    _library: Arc<Library>,
}

/// What a launch has to know of a program.
struct Facts {
    layout: Layout,
    fused_ticks: bool,
    slots: bool,
    written: Vec<bool>,
}

impl Executable for Kernel {
    fn as_any(&self) -> &dyn Any {
        self
    }
    fn listing(&self) -> String {
        let together = self.jammed.iter().map(|(jam, kernel)| jam.listing(&kernel.emitted.body));
        let teamed =
            self.teamed.iter().map(|(_, kernel)| Team::listing(kernel.get().map(|kernel| &*kernel.emitted.body)));
        std::iter::once(self.emitted.body.clone()).chain(together).chain(teamed).collect()
    }
    fn compiled_in(&self) -> Duration {
        self.compiled_in
    }
    fn from_cache(&self) -> bool {
        self.from_cache
    }
    fn runs_epilogue(&self) -> bool {
        self.emitted.epilogue.is_some()
    }
}

impl CudaShim {
    /// # Errors
    /// `Device` if there is no C++ compiler, or no directory for its output.
    pub fn new() -> Result<Self> {
        let compiler = std::env::var_os("CXX").unwrap_or_else(|| "g++".into());
        let found = Command::new(&compiler).arg("--version").output();
        found.map_err(|e| Error::Device { what: format!("starting {}", compiler.display()), cause: e.to_string() })?;
        let target = Target {
            architecture: "shim".to_string(),
            warp: 32,
            call_depth: 1_000,
            memory: 1 << 30,
            shared_memory: emit::SHARED_MEMORY,
        };
        Ok(Self {
            target,
            directory: private_directory()?,
            compiler,
            sanitize: false,
            barriers: false,
            lanes: std::env::var("IKRA_SHIM_LANES").ok().and_then(|lanes| lanes.parse().ok()),
            texts: Mutex::default(),
            cells: Mutex::default(),
        })
    }

    /// Makes the threads of a block fibers, which kernels with barriers need.
    #[must_use]
    pub fn with_barriers(self) -> Self {
        Self { barriers: true, ..self }
    }

    /// Runs jobs by teams of so many lanes, a power of two, where programs allow it.
    #[must_use]
    pub fn with_teams(self, lanes: u64) -> Self {
        Self { lanes: Some(lanes), ..self }
    }

    /// Makes undefined integer arithmetic in generated code end the process.
    #[must_use]
    pub fn sanitized(self) -> Self {
        Self { sanitize: true, ..self }
    }

    /// Compiles several programs in one run of the compiler.
    ///
    /// # Errors
    /// The first error of [`Backend::prepare`] for one of them.
    pub fn prepare_many(&self, programs: &[(&Program, &Layout)]) -> Result<Vec<Arc<dyn Executable>>> {
        self.prepare_all(programs, None)
    }

    /// `epilogue`: the epilogue of each program.
    fn prepare_all(
        &self,
        programs: &[(&Program, &Layout)],
        epilogue: Option<Epilogue>,
    ) -> Result<Vec<Arc<dyn Executable>>> {
        let of = |program| if epilogue.is_none() { Jam::of(program, Grouping::Strided) } else { None };
        let mut jams: Vec<Option<Jam>> = programs.iter().map(|(program, _)| of(program)).collect();
        let together =
            programs.iter().zip(&jams).filter_map(|((_, layout), jam)| Some((&jam.as_ref()?.program, *layout)));
        let all: Vec<_> = programs.iter().copied().chain(together).collect();
        let mut kernels = self.compile_all(&all, epilogue, false)?.into_iter();
        let mut singles: Vec<Kernel> = kernels.by_ref().take(programs.len()).collect();
        for (single, jam) in singles.iter_mut().zip(&mut jams) {
            single.jammed = jam.take().map(|jam| (jam, Box::new(kernels.next().expect("it was compiled"))));
        }
        if self.lanes.is_some() && epilogue.is_none() {
            for (single, (program, _)) in singles.iter_mut().zip(programs) {
                single.teamed = Team::of(program).map(|team| (team, OnceCell::new()));
            }
        }
        Ok(singles.into_iter().map(|kernel| Arc::new(kernel) as Arc<dyn Executable>).collect())
    }

    /// The kernel for a launch with a share of the device.
    fn for_share<'k>(&self, kernel: &'k Kernel, launch: &Launch<'_>) -> Result<&'k Kernel> {
        if !kernel.emitted.takes_share() || launch.share.is_none_or(|share| share.threads(MACHINE.warp) >= launch.jobs)
        {
            return Ok(kernel);
        }
        let Some(emitted) = kernel.emitted.looping() else { return Ok(kernel) };
        let make = || {
            let facts = Facts {
                layout: kernel.layout.clone(),
                fused_ticks: kernel.fused_ticks,
                slots: kernel.slots,
                written: kernel.written.clone(),
            };
            let mut made = self.compile_emitted(vec![emitted], vec![facts], None)?;
            Ok::<_, Error>(Box::new(made.remove(0)))
        };
        kernel.looping.get_or_try_init(make).map(|looping| &**looping)
    }

    /// `team`: whether jobs are lanes of teams.
    fn compile_all(
        &self,
        programs: &[(&Program, &Layout)],
        epilogue: Option<Epilogue>,
        team: bool,
    ) -> Result<Vec<Kernel>> {
        programs.iter().try_for_each(|(program, _)| emit::check(program))?;
        let emitted: Vec<Emitted> = programs
            .iter()
            .enumerate()
            .map(|(i, (program, layout))| {
                let name = emit::kernel_name(program);
                let name = if programs.len() == 1 { name } else { format!("{name}_{i}") };
                match team {
                    true => emit::emit_team(program, layout, &name),
                    false => emit::emit_into(program, layout, &name, epilogue),
                }
            })
            .collect();
        let facts = programs
            .iter()
            .map(|(program, layout)| Facts {
                layout: (*layout).clone(),
                fused_ticks: program.fused_ticks,
                slots: program.uses_slots(),
                written: layout.written(program),
            })
            .collect();
        self.compile_emitted(emitted, facts, epilogue)
    }

    fn compile_emitted(
        &self,
        emitted: Vec<Emitted>,
        facts: Vec<Facts>,
        epilogue: Option<Epilogue>,
    ) -> Result<Vec<Kernel>> {
        let start = Instant::now();
        let templates = emitted.iter().map(Emitted::templates).max_by_key(String::len).unwrap_or_default();
        let mut device = format!("{}\n{templates}", emit::PRELUDE);
        let mut source = String::new();
        for (i, e) in emitted.iter().enumerate() {
            device += &format!("namespace program_{i} {{\n{}}}\n", emit::without_comments(&e.body));
            source += &format!("IKRA_LAUNCHER(launch_{i}, program_{i}::{})\n", e.kernel);
        }
        if std::env::var_os("IKRA_NVRTC_CHECK").is_some() {
            self.check(&device)?;
        }
        let source = format!("{SHIM}\n{device}{source}");
        let meets = |e: &Emitted| e.team || e.tile > 0 || !e.privatized.is_empty() || e.groups;
        let (library, from_cache) =
            self.library(&source, self.barriers || epilogue.is_some() || emitted.iter().any(meets))?;
        let library = Arc::new(library);
        let share = start.elapsed() / u32::try_from(facts.len().max(1)).unwrap_or(1);
        let kernel = |(i, (emitted, facts)): (usize, (Emitted, Facts))| {
            // SAFETY: the library was compiled from `source`, whose IKRA_LAUNCHER defines this symbol with the
            // signature of `Entry`. The pointer is used only by a `Kernel`, which keeps the library loaded.
            let entry = unsafe { library.get::<Entry>(format!("launch_{i}\0")) };
            let entry = *entry.map_err(|e| internal(format!("{e}\n{source}")))?;
            Ok(Kernel {
                emitted,
                layout: facts.layout,
                fused_ticks: facts.fused_ticks,
                slots: facts.slots,
                written: facts.written,
                entry,
                compiled_in: share,
                from_cache,
                jammed: None,
                looping: OnceCell::new(),
                teamed: None,
                _library: library.clone(),
            })
        };
        emitted.into_iter().zip(facts).enumerate().map(kernel).collect()
    }

    /// Runs a kernel of one parameter, whose words are `args`. `body` is its text after the prelude. A name always
    /// stands for the same text.
    ///
    /// # Errors
    /// As [`Backend::prepare`].
    ///
    /// # Safety
    /// `args` has all words of the parameter. The memory to which they point is alive and as large as the kernel
    /// assumes, and nothing else writes it meanwhile.
    pub unsafe fn run_text(&self, kernel: &str, body: &str, grid: u32, block: u32, args: &[u64]) -> Result<()> {
        let known = self.texts.lock().get(kernel).cloned();
        let (_library, entry) = match known {
            Some(known) => known,
            None => {
                let device = format!("{}\n{body}", emit::PRELUDE);
                if std::env::var_os("IKRA_NVRTC_CHECK").is_some() {
                    self.check(&device)?;
                }
                let source = format!("{SHIM}\n{device}\nIKRA_LAUNCHER(launch_0, {kernel})\n");
                let library = Arc::new(self.library(&source, self.barriers)?.0);
                // SAFETY: as in `prepare_many`. The pointer is stored with the library.
                let entry = unsafe { library.get::<Entry>(b"launch_0\0") };
                let entry = *entry.map_err(|e| internal(format!("{e}\n{source}")))?;
                self.texts.lock().insert(kernel.to_owned(), (library.clone(), entry));
                (library, entry)
            }
        };
        let _alone = RUNNING.lock();
        // SAFETY: `args` has the words of the kernel's parameter, and the memory to which they point outlives the call,
        // by this function's contract.
        unsafe { entry(grid, block, args.as_ptr().cast()) };
        Ok(())
    }

    /// Sets `length` bytes of memory to `byte`.
    ///
    /// # Safety
    /// The bytes are in one live allocation, which nothing else reads or writes meanwhile.
    pub unsafe fn fill(address: u64, length: usize, byte: u8) {
        let _alone = RUNNING.lock();
        // SAFETY: by this function's contract.
        unsafe { (address as *mut u8).write_bytes(byte, length) };
    }

    /// Compiles the source with NVRTC, unless that was done before.
    fn check(&self, source: &str) -> Result<()> {
        if let Err(e) = nvrtc::load() {
            static SAID: Once = Once::new();
            SAID.call_once(|| eprintln!("SKIPPED: generated CUDA C++ is not checked by NVRTC: {e}"));
            return Ok(());
        }
        let hash = blake3::hash(source.as_bytes());
        let mark = self.directory.join(format!("{}.nvrtc", &hash.to_hex()[..32]));
        if mark.exists() {
            return Ok(());
        }
        let capability = CHECKED_ARCHITECTURES[usize::from(hash.as_bytes()[0]) % CHECKED_ARCHITECTURES.len()];
        nvrtc::check(source, capability, &CodeOptions::default())?;
        fs::write(&mark, [])
            .map_err(|e| Error::Device { what: format!("writing {}", mark.display()), cause: e.to_string() })
    }

    /// Compiles the source, unless that was done before, and loads the library.
    fn library(&self, source: &str, barriers: bool) -> Result<(Library, bool)> {
        let mut flags: Vec<String> = FLAGS.iter().map(ToString::to_string).collect();
        flags.extend(LIBM.split_whitespace().map(|f| format!("-fno-builtin-{f}")));
        if self.sanitize {
            flags.extend(SANITIZE.iter().map(ToString::to_string));
            // the last of several such options counts: without optimisation, many programs compile in a third less time
            flags.push("-O0".to_string());
        }
        if barriers {
            flags.push("-DIKRA_FIBERS".to_string());
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.compiler.as_encoded_bytes());
        hasher.update(flags.join(" ").as_bytes());
        hasher.update(source.as_bytes());
        let path = self.directory.join(format!("{}.so", &hasher.finalize().to_hex()[..32]));
        let cached = path.exists();
        if !cached {
            self.compile(source, &flags, &path)?;
        }
        // SAFETY: only this user can write to the directory (see `private_directory`). So the file is one that
        // `compile` made: a library whose initialisers only set plain variables.
        let library = unsafe { Library::new(&path) };
        Ok((library.map_err(|e| internal(format!("loading {}: {e}", path.display())))?, cached))
    }

    fn compile(&self, source: &str, flags: &[String], path: &Path) -> Result<()> {
        let temporary = path.with_extension(format!("{}.{:?}", std::process::id(), std::thread::current().id()));
        let [text, library] = ["cpp", "so"].map(|e| PathBuf::from(format!("{}.{e}", temporary.display())));
        let io = |e: io::Error| Error::Device { what: format!("writing {}", text.display()), cause: e.to_string() };
        fs::write(&text, source).map_err(io)?;
        let output = Command::new(&self.compiler)
            .env("LC_ALL", "C")
            .args(flags)
            .arg(&text)
            .arg("-o")
            .arg(&library)
            .args(["-lm", "-lgcc"])
            .output();
        let output = output.map_err(|e| Error::Device {
            what: format!("running {}", self.compiler.display()),
            cause: e.to_string(),
        })?;
        let _ = fs::remove_file(&text);
        if !output.status.success() {
            let _ = fs::remove_file(&library);
            let numbered: String = source.lines().enumerate().map(|(i, l)| format!("{:4} {l}\n", i + 1)).collect();
            return Err(internal(format!("{}\n{numbered}", String::from_utf8_lossy(&output.stderr))));
        }
        // another process may do the same; both files are good
        fs::rename(&library, path).map_err(io)
    }
}

/// Records of a table at first. They are few, so that tables grow in tests.
const FIRST_RECORDS: u64 = 8;

impl Backend for CudaShim {
    fn name(&self) -> &'static str {
        "cuda-shim"
    }
    fn target(&self) -> &Target {
        &self.target
    }
    fn prepare(&self, program: &Program, layout: &Layout, _options: &CodeOptions) -> Result<Arc<dyn Executable>> {
        let mut kernels = self.prepare_many(&[(program, layout)])?;
        Ok(kernels.remove(0))
    }
    fn groups(&self) -> bool {
        true
    }
    fn slots(&self, _jobs: u64) -> u64 {
        u64::from(GRID * BLOCK)
    }
    fn machine(&self) -> Machine {
        MACHINE
    }
    fn launch(&self, executable: &dyn Executable, launch: Launch<'_>) -> Result<Outcome> {
        let kernel = own::<Kernel>(executable, "cuda-shim")?;
        if kernel.emitted.epilogue.is_some() {
            return Err(internal("a kernel without a column of results was launched for these".to_string()));
        }
        let start = Instant::now();
        if !arm(launch.cancel, launch.limit) {
            return Ok(Outcome::Cancelled);
        }
        if kernel.emitted.groups {
            return self.launch_groups(kernel, launch, start);
        }
        let run = |kernel: &Kernel, launch: Launch<'_>| {
            launch.with_buffers(&kernel.layout, |launch| run(kernel, self.target.call_depth, launch, start, &[]))
        };
        let kernel = self.for_share(kernel, &launch)?;
        let is_whole = launch.limit == Key::NONE && launch.share.is_none();
        if let (Some((team, teamed)), Some(lanes)) = (&kernel.teamed, self.lanes)
            && is_whole
            && launch.block_size.is_none()
        {
            let make = || {
                let mut kernels = self.compile_all(&[(&team.program, &kernel.layout)], None, true)?;
                Ok::<_, Error>(Box::new(kernels.remove(0)))
            };
            let teamed = teamed.get_or_try_init(make)?;
            let (jobs, params) = Team::launch(launch.jobs, lanes, launch.params);
            return Ok(run(teamed, Launch { jobs, params: &params, ..launch }));
        }
        if let Some((jam, together)) = kernel.jammed.as_ref().filter(|_| is_whole)
            && let Some((groups, params)) = jam.groups(launch.jobs, launch.ticks, launch.params)
        {
            return Ok(run(together, Launch { jobs: groups, params: &params, ..launch }));
        }
        Ok(run(kernel, launch))
    }
    fn prepare_with_epilogue(
        &self,
        program: &Program,
        layout: &Layout,
        epilogue: Epilogue,
        _options: &CodeOptions,
    ) -> Result<Arc<dyn Executable>> {
        let epilogue = collective::at_once(program, epilogue).then_some(epilogue);
        let mut kernels = self.prepare_all(&[(program, layout)], epilogue)?;
        Ok(kernels.remove(0))
    }
    fn launch_fold(&self, executable: &dyn Executable, fold: Fold, launch: Launch<'_>) -> Result<Folded> {
        let kernel = own::<Kernel>(executable, "cuda-shim")?;
        if kernel.emitted.epilogue.is_none() {
            return fold::apart(self, &Threads::new(1), executable, fold, launch);
        }
        if kernel.emitted.epilogue != Some(Epilogue::Fold(fold)) || launch.ticks != 1 {
            return Err(internal("a kernel that reduces was launched for several ticks, or another fold".to_string()));
        }
        let start = Instant::now();
        if !arm(launch.cancel, launch.limit) {
            return Ok((Outcome::Cancelled, None));
        }
        let tiles = collective::tiles(launch.jobs);
        let state = collective::state_bytes(fold.reduction, fold.element);
        // filled with a pattern, because kernels must not rely on the contents
        let states: Vec<AtomicU64> = (0..tiles * state / 8).map(|_| AtomicU64::new(0xabab_abab_abab_abab)).collect();
        let ended = AtomicU64::new(0);
        let out = [0u64; Reduction::WORDS].map(AtomicU64::new);
        let words = [0, launch.jobs, states.as_ptr() as u64, ended.as_ptr() as u64, out.as_ptr() as u64];
        let outcome = run_with(kernel, self.target.call_depth, launch, start, (&[], &words));
        let reduced = fold.reduction.read(fold.element, &out.map(AtomicU64::into_inner));
        Ok((outcome, (outcome == Outcome::Done).then_some(reduced)))
    }
    fn launch_compaction(
        &self,
        executable: &dyn Executable,
        compaction: Compaction,
        launch: Launch<'_>,
    ) -> Result<Compacted> {
        let kernel = own::<Kernel>(executable, "cuda-shim")?;
        if kernel.emitted.epilogue != Some(Epilogue::Compaction(compaction)) || launch.ticks != 1 {
            return Err(internal(
                "a kernel that compacts was launched for several ticks, or with another epilogue".to_string(),
            ));
        }
        if launch.jobs == 0 {
            return Ok(compaction.of_nothing());
        }
        let start = Instant::now();
        if !arm(launch.cancel, launch.limit) {
            return Ok((Outcome::Cancelled, None));
        }
        let jobs = launch.jobs;
        let mut rows = HostColumn::zeroed(compaction.element.storage(), jobs as usize);
        let hits = AtomicU64::new(0);
        let mut cells = self.cells.lock();
        cells.make_room(collective::compaction_tiles(jobs));
        cells.mark += 1;
        let [a, b, c, d] = collective::cells(cells.tiles).1.map(|offset| cells.words.as_ptr() as u64 + offset);
        let words = [rows.as_kernel_ptr(true) as u64, jobs, a, b, c, d, cells.mark, hits.as_ptr() as u64];
        let outcome = run_with(kernel, self.target.call_depth, launch, start, (&[], &words));
        rows.resize(hits.into_inner() as usize);
        Ok((outcome, (outcome == Outcome::Done).then_some(rows)))
    }
}

impl CudaShim {
    /// Runs a kernel that groups pairs, until its table has room for all groups.
    fn launch_groups(&self, kernel: &Kernel, mut launch: Launch<'_>, start: Instant) -> Result<Outcome> {
        let Some(groups) = launch.groups.take() else {
            return Err(internal("pairs are emitted in a launch without groups".to_owned()));
        };
        (groups.records, groups.has_parts) = (FIRST_RECORDS, kernel.emitted.key_parts);
        loop {
            let room = Room::of(groups);
            let memory: Vec<AtomicU64> = (0..room.bytes() / 8)
                .map(|at| AtomicU64::new(if at * 8 < room.zeroes() { 0 } else { 0xabab_abab_abab_abab }))
                .collect();
            let words = room.words(memory.as_ptr() as u64, groups);
            let again = launch.again();
            let outcome =
                again.with_buffers(&kernel.layout, |launch| run(kernel, self.target.call_depth, launch, start, &words));
            let memory: Vec<u64> = memory.into_iter().map(AtomicU64::into_inner).collect();
            if outcome != Outcome::Done {
                return Ok(outcome);
            }
            let asked = Asked::of([memory[0], memory[1], memory[2], memory[3]]);
            groups.refused = asked.refused;
            if groups.refused {
                return Ok(outcome);
            }
            if groups.grow(asked.needed()) {
                continue;
            }
            if groups.refused {
                return Ok(outcome);
            }
            let rows = |range: Range<usize>| &memory[range.start / 8..range.end / 8];
            let count = asked.records as usize;
            let [records, states, highs] = [room.records(count), room.states(count), room.highs(count)].map(rows);
            let words = groups.has_parts.then(|| rows(room.words_of_keys(asked.words as usize)));
            let on = Workers { threads: &Threads::new(1), cancel: launch.cancel };
            let tops = groups.how.has_sums().then(|| rows(room.tops(asked.records as usize)));
            let negative_zero = asked.negative_zero;
            groups.take_records(on, &Records { rows: records, states, words, highs, tops, negative_zero })?;
            return Ok(outcome);
        }
    }
}

/// The tile states of all compactions, which run one after the other.
#[derive(Default)]
struct Cells {
    /// How many tiles it has room for.
    tiles: u64,
    words: Vec<AtomicU64>,
    /// The mark of the last launch.
    mark: u64,
}

impl Cells {
    fn make_room(&mut self, tiles: u64) {
        if self.tiles < tiles {
            let (bytes, _) = collective::cells(tiles);
            *self = Self { tiles, words: (0..bytes / 8).map(|_| AtomicU64::new(0)).collect(), mark: 0 };
        }
    }
}

/// Runs all ticks of a launch over the layout's buffers. `groups`: the words of its table of groups. The caller keeps
/// the memory to which they point.
fn run(kernel: &Kernel, call_depth: u32, launch: Launch<'_>, start: Instant, groups: &[u64]) -> Outcome {
    run_with(kernel, call_depth, launch, start, (groups, &[]))
}

/// As [`run`]. `words`: those of a kernel's epilogue.
fn run_with(
    kernel: &Kernel,
    call_depth: u32,
    launch: Launch<'_>,
    start: Instant,
    (groups, words): (&[u64], &[u64]),
) -> Outcome {
    let mut record = Record::new();
    let buffers: Vec<u64> = launch
        .columns
        .iter_mut()
        .zip(launch.biases)
        .enumerate()
        .map(|(buffer, (c, bias))| {
            let stride = kernel.layout.stride(buffer) as u64;
            (c.as_kernel_ptr(kernel.written[buffer]) as u64).wrapping_sub(bias.wrapping_mul(stride))
        })
        .collect();
    let mut header = Header {
        jobs: launch.jobs,
        limit: launch.limit.0,
        seed: launch.seed,
        section: launch.section,
        call_depth,
        stop_key: launch.cancel.stop_key().as_ptr() as u64,
        trap: (&raw mut record) as u64,
        ..Header::default()
    };
    let cells = privatization::Cells::of(&kernel.emitted.privatized, &launch);
    let params = [launch.params, &cells.words, groups].concat();
    let memory = kernel.emitted.memory(&buffers, &params);
    let shared = launch.share.filter(|_| kernel.emitted.takes_share());
    let wanted = shared.map(|share| share.warps * MACHINE.warp).or(launch.block_size);
    let block = wanted.unwrap_or(BLOCK).clamp(1, 1024);
    // no more threads than slots
    let grid = if kernel.slots { GRID.min((launch.slots / u64::from(block)).max(1) as u32) } else { GRID };
    let several =
        kernel.emitted.several.as_ref().filter(|several| launch.limit == Key::NONE && several.are_there(&launch));
    let several = several.filter(|_| shared.is_none());
    let threads = launch.jobs.div_ceil(several.map_or(1, |several| several.jobs));
    let grid = match shared {
        Some(share) if !kernel.slots => share.blocks,
        _ => grid,
    };
    let grid = if kernel.emitted.once { threads.div_ceil(u64::from(block)) as u32 } else { grid };
    let (grid, block) = match launch.params.last() {
        Some(bits) if kernel.emitted.team => {
            let block = Team::block(1 << bits, TEAM_BLOCK);
            (launch.jobs.div_ceil(block) as u32, block as u32)
        }
        _ => (grid, block),
    };
    let block = if kernel.slots { block.min(launch.slots as u32) } else { block };
    let block = if words.is_empty() { block } else { emit::EPILOGUE_THREADS };
    for ticks in slices(launch.ticks, kernel.fused_ticks) {
        // later ticks do not start after the launch was stopped
        if launch.cancel.stop_key().load(Ordering::SeqCst) <= ticks.start << 32 {
            break;
        }
        (header.tick_begin, header.tick_end) = (ticks.start, ticks.end);
        let mut args = kernel.emitted.arguments(&header, &buffers, &[&params], memory.as_ptr() as u64);
        args.extend_from_slice(words);
        let _alone = RUNNING.lock();
        // SAFETY: `args` has the words of the kernel's parameter. The columns, the stop key, the record and the words
        // in memory to which it points outlive the call. The columns are borrowed mutably, and the record is a local.
        // The stop key is an atomic that kernels access by atomic or volatile operations only. Rows are within the
        // columns by the launch's contract.
        unsafe { (kernel.entry)(grid, block, args.as_ptr().cast()) };
    }
    launch.timings.kernel += start.elapsed();
    record.outcome(launch.cancel)
}

/// The ticks of each run of the kernel. Fused ticks take two runs, so that their state is stored in the columns once;
/// others take one run each.
fn slices(ticks: u64, fused: bool) -> Vec<std::ops::Range<u64>> {
    if !fused {
        return (0..ticks).map(|t| t..t + 1).collect();
    }
    [0..ticks / 2, ticks / 2..ticks].into_iter().filter(|r| !r.is_empty()).collect()
}

/// Sets the stop key to the launch's limit. False: the launch was cancelled before it began.
fn arm(cancel: &CancelToken, limit: Key) -> bool {
    let word = cancel.stop_key();
    word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |old| (old != Key::CANCEL.0).then_some(limit.0)).is_ok()
}

/// `struct TrapRecord` of the prelude.
#[repr(C)]
struct Record {
    lock: u64,
    key: u64,
    site: u64,
    words: [u64; TRAP_WORDS],
}

impl Record {
    fn new() -> Self {
        Self { lock: 0, key: Key::NONE.0, site: 0, words: [0; TRAP_WORDS] }
    }
    fn outcome(&self, cancel: &CancelToken) -> Outcome {
        if cancel.is_cancelled() {
            return Outcome::Cancelled;
        }
        Outcome::recorded(self.key, self.site, self.words)
    }
}

fn internal(detail: String) -> Error {
    Error::Internal { stage: "cuda-shim", detail }
}

/// A directory of this user to which nobody else can write.
fn private_directory() -> Result<PathBuf> {
    // SAFETY: geteuid has no preconditions.
    let user = unsafe { libc::geteuid() };
    let path = std::env::temp_dir().join(format!("ikra-shim-{user}"));
    let fail = |cause: String| Error::Device { what: format!("making {}", path.display()), cause };
    match fs::DirBuilder::new().mode(0o700).create(&path) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(fail(e.to_string())),
        _ => {}
    }
    let facts = fs::symlink_metadata(&path).map_err(|e| fail(e.to_string()))?;
    if facts.is_dir() && facts.uid() == user && facts.mode() & 0o077 == 0 {
        Ok(path)
    } else {
        Err(fail("it exists and is not a directory of this user's alone".to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUMS: &str = "
struct Args { const i64 *in; i64 *out; u64 n; };
extern \"C\" __global__ void sums(__grid_constant__ const Args args) {
  __shared__ i64 warps[32];
  const u32 warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  i64 sum = i < args.n ? args.in[i] : 0;
  for (u32 d = 16; d; d /= 2) sum += __shfl_down_sync(~0u, sum, d);
  if (lane == 0) warps[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < blockDim.x / 32 ? warps[lane] : 0;
    for (u32 d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
    const u32 odd = __ballot_sync(~0u, lane % 2);
    if (lane == 0) args.out[blockIdx.x] = sum + (odd == 0xaaaaaaaa ? 0 : 1);
  }
}
IKRA_LAUNCHER(launch_0, sums)
";

    #[test]
    fn threads_of_a_block_meet_at_barriers_and_exchange_within_warps() {
        let shim = CudaShim::new().expect("a C++ compiler is installed");
        let (library, _) =
            shim.library(&format!("{SHIM}\n{}\n{SUMS}", emit::PRELUDE), true).unwrap_or_else(|e| panic!("{e}"));
        // SAFETY: the text above defines the symbol with this signature.
        let launch = unsafe { library.get::<Entry>(b"launch_0\0") }.expect("it is defined");
        let (input, mut sums): (Vec<i64>, _) = ((1..=1000).collect(), [0i64; 4]);
        let args = [input.as_ptr() as u64, sums.as_mut_ptr() as u64, 1000];
        // SAFETY: `args` has the words of `Args`, and the memory to which they point outlives the call.
        unsafe { launch(4, 256, args.as_ptr().cast()) };
        let block = |b: i64| (b * 256 + 1..=(b * 256 + 256).min(1000)).sum::<i64>();
        assert_eq!(sums, [0, 1, 2, 3].map(block));
    }

    #[test]
    fn what_the_compiler_refuses_is_shown_with_its_line() {
        let shim = CudaShim::new().expect("a C++ compiler is installed");
        let message = shim.library("int x;\noops;", false).expect_err("that is no program").to_string();
        assert!(message.contains("'oops' does not name a type") && message.contains("   2 oops;"), "{message}");
    }
}
