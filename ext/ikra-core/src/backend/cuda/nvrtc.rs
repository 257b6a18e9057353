//! Compiles CUDA C++ to machine code with NVRTC, NVIDIA's run-time compiler.
//!
//! Here: finding libnvrtc, and [`compile`]. Not here: any device. NVRTC needs none to compile for an architecture that
//! it knows.
//!
//! The library is opened at the first compilation, or by [`load`]. If it is missing, that is an [`Error::Device`] that
//! lists the places searched. cudarc panics when it cannot open a library, so it is called only after [`load`] has
//! opened the same one.
#![allow(unsafe_code, reason = "calls into libnvrtc")]

use crate::config::CodeOptions;
use crate::error::{Error, Result};
use cudarc::nvrtc::{result, sys};
use libloading::Library;
use once_cell::sync::OnceCell;
use std::ffi::{CString, c_char};
use std::path::{Path, PathBuf};

/// The opened libnvrtc.
#[derive(Debug)]
pub struct Nvrtc {
    /// The name or path by which it was found.
    pub found: String,
    pub version: (i32, i32),
    /// The architectures for which it compiles, such as 90 for `sm_90`.
    pub architectures: Vec<u32>,
}

/// The code of a compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Code {
    /// Machine code of one architecture.
    Cubin(Vec<u8>),
    /// NVIDIA's portable assembly, ending with a zero, which the driver compiles. It is for devices that are newer than
    /// NVRTC.
    Ptx(Vec<u8>),
}

impl Code {
    pub fn bytes(&self) -> &[u8] {
        match self {
            Code::Cubin(bytes) | Code::Ptx(bytes) => bytes,
        }
    }

    /// The number of the kind, for files.
    pub fn kind(&self) -> u8 {
        match self {
            Code::Cubin(_) => 0,
            Code::Ptx(_) => 1,
        }
    }

    /// Code of the kind with this number; None for other numbers.
    pub fn of_kind(kind: u8, bytes: Vec<u8>) -> Option<Self> {
        match kind {
            0 => Some(Code::Cubin(bytes)),
            1 => Some(Code::Ptx(bytes)),
            _ => None,
        }
    }
}

/// A compiled kernel, and the compiler's log.
#[derive(Clone, Debug)]
pub struct Compiled {
    pub code: Code,
    pub log: String,
}

/// Opens the library, once per process.
///
/// # Errors
/// `Device` when it is not found.
pub fn load() -> Result<&'static Nvrtc> {
    static NVRTC: OnceCell<Nvrtc> = OnceCell::new();
    NVRTC.get_or_try_init(open)
}

/// Directories with a CUDA toolkit that the dynamic linker may not search.
fn toolkit_directories() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> =
        ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].iter().filter_map(std::env::var_os).map(PathBuf::from).collect();
    roots.push("/usr/local/cuda".into());
    roots.push("/opt/cuda".into());
    roots.iter().flat_map(|r| ["lib64", "lib"].map(|lib| r.join(lib))).filter(|d| d.is_dir()).collect()
}

/// Opens one of NVIDIA's libraries for the rest of the process, so that cudarc finds it among the loaded ones. `parts`:
/// how names of such libraries begin. Returns the name by which it was found.
pub(super) fn find(library: &str, parts: &str) -> Option<String> {
    let names = cudarc::get_lib_name_candidates(library);
    // SAFETY: initialisers of these libraries have no preconditions. The handle is never closed.
    let open = |path: &Path| unsafe { Library::new(path) }.map(std::mem::forget);
    if let Some(name) = names.iter().find(|n| open(Path::new(n)).is_ok()) {
        return Some(name.clone());
    }
    toolkit_directories().into_iter().find_map(|directory| {
        let there: Vec<PathBuf> = names.iter().map(|n| directory.join(n)).filter(|p| p.exists()).collect();
        if !there.is_empty() {
            let others = std::fs::read_dir(&directory).into_iter().flatten().flatten();
            for part in others.filter(|p| p.file_name().to_string_lossy().starts_with(parts)) {
                let _ = open(&part.path());
            }
        }
        there.iter().find(|path| open(path).is_ok()).map(|path| path.display().to_string())
    })
}

fn open() -> Result<Nvrtc> {
    let found = find("nvrtc", "libnvrtc-builtins.so.");
    // SAFETY: the call only tries to open the library by the names that were tried above.
    let usable = found.is_some() && unsafe { sys::is_culib_present() };
    let (Some(found), true) = (found, usable) else {
        return Err(Error::Device {
            what: "opening libnvrtc, NVIDIA's run-time compiler".to_string(),
            cause:
                "not found by the dynamic linker (LD_LIBRARY_PATH, ldconfig) nor under CUDA_HOME or /usr/local/cuda; \
                    it comes with the CUDA toolkit, or as the PyPI package nvidia-cuda-nvrtc"
                    .to_string(),
        });
    };
    let (mut major, mut minor, mut count) = (0, 0, 0);
    // SAFETY: the library is loaded, and the out-pointers are to live locals.
    call("nvrtcVersion", unsafe { sys::nvrtcVersion(&mut major, &mut minor) })?;
    // SAFETY: as above.
    call("nvrtcGetNumSupportedArchs", unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) })?;
    let mut architectures = vec![0i32; usize::try_from(count).unwrap_or(0)];
    // SAFETY: the buffer has as many elements as the library said it fills.
    call("nvrtcGetSupportedArchs", unsafe { sys::nvrtcGetSupportedArchs(architectures.as_mut_ptr()) })?;
    let architectures = architectures.into_iter().filter_map(|a| u32::try_from(a).ok()).collect();
    keep_freed_memory();
    Ok(Nvrtc { found, version: (major, minor), architectures })
}

/// Makes glibc's allocator keep the memory of a compilation for the next one. NVRTC allocates some seven megabytes for
/// a small kernel, and frees them at its end. glibc returns them to the system, and touching fresh pages is a tenth of
/// the next compilation. glibc learns from each free how much to keep: twice the largest freed block that was mapped
/// separately. So this frees such a block, half as large as what is to be kept, whose pages were never touched.
fn keep_freed_memory() {
    const KEPT: usize = 32 << 20;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(KEPT / 2)));
}

fn call(what: &str, status: sys::nvrtcResult) -> Result<()> {
    status.result().map_err(|e| Error::Device { what: what.to_string(), cause: format!("{e:?}") })
}

/// The compiler's options for an architecture and the options of the user.
pub fn flags(nvrtc: &Nvrtc, architecture: &str, options: &CodeOptions) -> Vec<String> {
    let mut flags = vec![
        format!("--gpu-architecture={architecture}"),
        "--std=c++17".to_string(),
        "--device-int128".to_string(),
        "--disable-warnings".to_string(),
    ];
    if options.fast_math {
        flags.push("--use_fast_math".to_string());
    } else {
        flags.push("--fmad=false".to_string());
    }
    // omits built-in features that no kernel uses, and starts faster
    if nvrtc.version >= (12, 8) {
        flags.push("--minimal".to_string());
    }
    // Ikra has a cache of its own, so one of the driver's is not needed
    if nvrtc.version >= (13, 0) {
        flags.push("--no-cache".to_string());
    }
    flags
}

/// How a source is compiled.
#[derive(Clone, Copy, Debug, Default)]
pub struct How {
    /// Whether the log says what each function needs.
    pub verbose: bool,
    /// Whether less is optimised, where the library allows that: for sources whose compilation would take long.
    pub quick: bool,
}

/// Compiles a kernel for a device with compute capability `capability`, such as 90.
///
/// # Errors `Device` when the compiler is missing or cannot work. `Internal`, with its log and the source, when it
/// rejects the source.
pub fn compile(source: &str, capability: u32, options: &CodeOptions, how: How) -> Result<Compiled> {
    let nvrtc = load()?;
    let known = nvrtc.architectures.contains(&capability);
    let architecture = if known { format!("sm_{capability}") } else { portable(nvrtc, capability)? };
    let mut flags = flags(nvrtc, &architecture, options);
    if how.verbose {
        flags.push("--ptxas-options=-v".to_string());
    }
    if how.quick && nvrtc.version >= (13, 0) {
        flags.push("--Ofast-compile=mid".to_string());
    }
    let text = CString::new(source).map_err(|e| internal(e.to_string(), source))?;
    let program = run(&text, source, &flags)?;
    let log = program.log();
    let code = if known {
        Code::Cubin(program.bytes(sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN)?)
    } else {
        Code::Ptx(program.bytes(sys::nvrtcGetPTXSize, sys::nvrtcGetPTX)?)
    };
    Ok(Compiled { code, log })
}

/// The newest architecture of portable assembly that a device with compute capability `capability` can run.
fn portable(nvrtc: &Nvrtc, capability: u32) -> Result<String> {
    let best = nvrtc.architectures.iter().copied().filter(|a| *a <= capability).max();
    let best = best.ok_or_else(|| Error::Device {
        what: format!("compiling for sm_{capability}"),
        cause: format!("{} ({:?}) knows only {:?}", nvrtc.found, nvrtc.version, nvrtc.architectures),
    })?;
    Ok(format!("compute_{best}"))
}

/// A source as portable assembly, for people to read.
///
/// # Errors
/// As [`compile`].
pub fn ptx(source: &str, capability: u32, options: &CodeOptions) -> Result<String> {
    let nvrtc = load()?;
    let flags = flags(nvrtc, &portable(nvrtc, capability)?, options);
    let text = CString::new(source).map_err(|e| internal(e.to_string(), source))?;
    let bytes = run(&text, source, &flags)?.bytes(sys::nvrtcGetPTXSize, sys::nvrtcGetPTX)?;
    Ok(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned())
}

/// Checks that a source can be compiled for a device with compute capability `capability`. That costs a fifteenth of a
/// compilation: it makes portable assembly, without optimisation if the library allows that.
///
/// # Errors
/// As [`compile`].
pub fn check(source: &str, capability: u32, options: &CodeOptions) -> Result<()> {
    let nvrtc = load()?;
    let mut flags = flags(nvrtc, &format!("compute_{capability}"), options);
    if nvrtc.version >= (13, 0) {
        flags.push("--Ofast-compile=max".to_string());
    }
    let text = CString::new(source).map_err(|e| internal(e.to_string(), source))?;
    run(&text, source, &flags).map(drop)
}

/// Runs the compiler. `text`: the source as a C string.
fn run<'a>(text: &'a CString, source: &str, flags: &[String]) -> Result<Handle<'a>> {
    let program = Handle::new(text)?;
    // SAFETY: the program is alive until the caller drops it.
    match unsafe { result::compile_program(program.0, flags) } {
        Ok(()) => Ok(program),
        Err(result::NvrtcError(sys::nvrtcResult::NVRTC_ERROR_COMPILATION)) => Err(internal(program.log(), source)),
        Err(e) => {
            let cause = format!("{e:?}\n{}", program.log());
            Err(Error::Device { what: format!("NVRTC with {}", flags.join(" ")), cause })
        }
    }
}

fn internal(log: String, source: &str) -> Error {
    let numbered: String = source.lines().enumerate().map(|(i, l)| format!("{:4} {l}\n", i + 1)).collect();
    Error::Internal { stage: "nvrtc", detail: format!("{log}\n{numbered}") }
}

/// An NVRTC program, destroyed when dropped.
struct Handle<'a>(sys::nvrtcProgram, std::marker::PhantomData<&'a CString>);

impl<'a> Handle<'a> {
    fn new(text: &'a CString) -> Result<Self> {
        let program = result::create_program(text, Some(c"ikra.cu"));
        let failed =
            |e: result::NvrtcError| Error::Device { what: "nvrtcCreateProgram".to_string(), cause: format!("{e:?}") };
        Ok(Self(program.map_err(failed)?, std::marker::PhantomData))
    }

    fn log(&self) -> String {
        // SAFETY: the program is alive.
        let bytes = unsafe { result::get_program_log(self.0) }.unwrap_or_default();
        let bytes: Vec<u8> = bytes.into_iter().map(|c| c.cast_unsigned()).take_while(|c| *c != 0).collect();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn bytes(
        &self,
        size: unsafe fn(sys::nvrtcProgram, *mut usize) -> sys::nvrtcResult,
        get: unsafe fn(sys::nvrtcProgram, *mut c_char) -> sys::nvrtcResult,
    ) -> Result<Vec<u8>> {
        let mut length = 0;
        // SAFETY: the program is alive and compiled; `length` is a live local.
        call("asking NVRTC for the code's size", unsafe { size(self.0, &mut length) })?;
        let mut bytes = vec![0u8; length];
        // SAFETY: as above, and the buffer has the length that NVRTC reported.
        call("taking the code from NVRTC", unsafe { get(self.0, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is alive and not used afterwards.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}
