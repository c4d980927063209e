//! Stands in for NVRTC: reads the kernels out of a source and hands them to the recording driver as
//! an [`Image`]. <https://docs.nvidia.com/cuda/nvrtc/>
//!
//! Where there is a real one ([`crate::real`]), each source is compiled by it too: its errors and its log
//! are returned, while the image stays the same, so that the log of the driver is the same on a
//! machine with a toolkit and on one without. The real machine code goes to a real driver alone.

use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Mutex, PoisonError};

use crate::fault::Fault;
use crate::image::{Image, Kernel, REGISTERS};
use crate::library::{Handles, Library, library, unknown};
use crate::log;
use crate::real::{self, function};
use crate::signature;
use crate::state::Answer;

/// nvrtcResult.
mod status {
    pub(super) const INVALID_INPUT: i32 = 3;
    pub(super) const INVALID_PROGRAM: i32 = 4;
    pub(super) const COMPILATION: i32 = 6;
}

const NVRTC: Library = Library {
    statuses: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    invalid: status::INVALID_INPUT,
    no_memory: 1,
    failed: 11,
    logged: true,
    passes: false,
};

#[derive(Clone, Debug, Default)]
struct Program {
    name: String,
    source: String,
    compiled: Option<Compiled>,
    log: String,
}

#[derive(Clone, Debug)]
struct Compiled {
    ptx: Vec<u8>,
    /// Empty for a virtual architecture, such as `compute_90`.
    cubin: Vec<u8>,
}

/// What the real library has made for a real driver, with the image of the same source.
static FOR_REAL: Mutex<Vec<(Vec<u8>, String)>> = Mutex::new(Vec::new());

/// The image of the source that the real library has compiled to what lies here.
pub(crate) fn source_of(module: *const c_char) -> Option<String> {
    let compiled = FOR_REAL.lock().unwrap_or_else(PoisonError::into_inner);
    let same = compiled.iter().find(|(code, _)| {
        // SAFETY: the caller's module ends no sooner than the first byte that differs.
        unsafe { libc::memcmp(code.as_ptr().cast(), module.cast(), code.len()) == 0 }
    });
    same.map(|(_, image)| image.clone())
}

static PROGRAMS: Handles<Program> = Handles::new("program", status::INVALID_PROGRAM, 0x9274_0000);

/// What the options say.
struct Options {
    architecture: u32,
    machine_code: bool,
    /// Whether the log has what the assembler gives each kernel.
    verbose: bool,
}

fn options(given: &[String]) -> Options {
    let architecture = given
        .iter()
        .find_map(|option| option.strip_prefix("--gpu-architecture="))
        .unwrap_or_default();
    let number = architecture.trim_matches(|c: char| !c.is_ascii_digit());
    Options {
        // The default of CUDA 13.0.
        architecture: number.parse().unwrap_or(75),
        machine_code: architecture.starts_with("sm_"),
        verbose: given.iter().any(|option| option == "--ptxas-options=-v"),
    }
}

fn compile(program: &mut Program, given: &[String]) -> Answer {
    let refused = |program: &mut Program, code, sentence: String| {
        program.compiled = None;
        program.log = format!("{sentence}\n");
        Err(Fault::new(code, sentence))
    };
    let options = options(given);
    let mut real = None;
    if let Some(library) = Real::new() {
        match library.compile(program, given) {
            Ok(made) => real = Some(made),
            Err((code, log)) => return refused(program, code, log),
        }
    }
    let kernels = match signature::parse(&program.source, options.architecture) {
        Ok(kernels) => kernels,
        Err(sentence) => {
            let sentence = format!("{}: error: {sentence}", program.name);
            return refused(program, status::COMPILATION, sentence);
        }
    };
    let stated = || {
        kernels
            .iter()
            .map(|kernel| resources(kernel, options.architecture))
    };
    program.log = match &real {
        Some(made) => made.log.clone(),
        None if options.verbose => stated().collect(),
        None => String::new(),
    };
    let image = Image {
        source: program.name.clone(),
        kernels,
    };
    let ptx = image.to_bytes();
    let cubin = match options.machine_code {
        true => ptx.clone(),
        false => Vec::new(),
    };
    program.compiled = Some(match real.filter(|_| real::passes()) {
        None => Compiled { ptx, cubin },
        Some(MadeForReal { ptx, cubin, .. }) => {
            let text = String::from_utf8_lossy(&image.to_bytes()).replace('\0', "");
            let mut all = FOR_REAL.lock().unwrap_or_else(PoisonError::into_inner);
            let codes = [&ptx, &cubin].into_iter().filter(|code| !code.is_empty());
            all.extend(codes.map(|code| (code.clone(), text.clone())));
            Compiled { ptx, cubin }
        }
    });
    Ok(())
}

/// The lines that the assembler writes of a kernel with `-v`.
fn resources(kernel: &Kernel, architecture: u32) -> String {
    let name = &kernel.name;
    format!(
        "ptxas info    : Compiling entry function '{name}' for 'sm_{architecture}'\n\
         ptxas info    : Function properties for {name}\n\
         ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
         ptxas info    : Used {REGISTERS} registers, 0 bytes smem\n"
    )
}

fn compiled(program: &Program) -> Answer<&Compiled> {
    let missing = || Fault::new(status::INVALID_PROGRAM, "the program is not compiled");
    program.compiled.as_ref().ok_or_else(missing)
}

fn ptx(program: &Program) -> Answer<Vec<u8>> {
    compiled(program).map(|compiled| compiled.ptx.clone())
}

fn cubin(program: &Program) -> Answer<Vec<u8>> {
    compiled(program).map(|compiled| compiled.cubin.clone())
}

fn log_text(program: &Program) -> Answer<Vec<u8>> {
    Ok([program.log.as_bytes(), &[0]].concat())
}

/// Gives the number of the bytes that `of` takes from a program.
fn size(program: u64, to: *mut usize, of: fn(&Program) -> Answer<Vec<u8>>) -> Answer {
    NVRTC.put(to, PROGRAMS.with(program, |program| of(program))??.len())
}

/// Gives these bytes themselves.
fn bytes(program: u64, to: *mut u8, of: fn(&Program) -> Answer<Vec<u8>>) -> Answer {
    let bytes = PROGRAMS.with(program, |program| of(program))??;
    let mut all = bytes.into_iter().enumerate();
    all.try_for_each(|(i, byte)| NVRTC.put(to.wrapping_add(i), byte))
}

library! { NVRTC:
    fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) = {
        NVRTC.put(major, 13)?;
        NVRTC.put(minor, 0)
    };

    fn nvrtcCreateProgram(
        program: *mut u64,
        source: *const c_char,
        name: *const c_char,
        headers: c_int,
        _texts: *const *const c_char,
        _names: *const *const c_char,
    ) = {
        if headers != 0 {
            return Err(unknown("headers, and is given", headers));
        }
        let name = if name.is_null() { c"default_program".as_ptr() } else { name };
        let new = Program {
            name: NVRTC.text(name)?,
            source: NVRTC.text(source)?,
            ..Program::default()
        };
        NVRTC.make(program, &PROGRAMS, new).map(drop)
    };

    // cudarc passes the address of a variable that is not to be written.
    fn nvrtcDestroyProgram(program: *mut u64) = {
        PROGRAMS.remove(NVRTC.get(program)?).map(drop)
    };

    fn nvrtcCompileProgram(program: u64, count: c_int, options: *const *const c_char) = {
        let count = usize::try_from(count).unwrap_or(0);
        let options = (0..count).map(|i| NVRTC.text(NVRTC.get(options.wrapping_add(i))?));
        let options: Vec<String> = options.collect::<Answer<_>>()?;
        let mut compiled = PROGRAMS.copy(program)?;
        log::call(format_args!("compile {} {}", compiled.name, options.join(" ")));
        let answer = compile(&mut compiled, &options);
        PROGRAMS.with(program, |program| *program = compiled)?;
        answer
    };

    fn nvrtcGetPTXSize(program: u64, to: *mut usize) = size(program, to, ptx);
    fn nvrtcGetPTX(program: u64, to: *mut u8) = bytes(program, to, ptx);
    fn nvrtcGetCUBINSize(program: u64, to: *mut usize) = size(program, to, cubin);
    fn nvrtcGetCUBIN(program: u64, to: *mut u8) = bytes(program, to, cubin);
    fn nvrtcGetProgramLogSize(program: u64, to: *mut usize) = size(program, to, log_text);
    fn nvrtcGetProgramLog(program: u64, to: *mut u8) = bytes(program, to, log_text);
}

/// Functions of the real library.
struct Real {
    create: Create,
    compile: unsafe extern "C" fn(*mut c_void, c_int, *const *const c_char) -> c_int,
    destroy: unsafe extern "C" fn(*mut *mut c_void) -> c_int,
}

type Create = unsafe extern "C" fn(
    *mut *mut c_void,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;

/// What the real library makes of a source.
struct MadeForReal {
    log: String,
    ptx: Vec<u8>,
    cubin: Vec<u8>,
}

/// What the two functions of these names give of a program.
///
/// # Safety
/// The program is one of the real library.
unsafe fn part(program: *mut c_void, size: &str, bytes: &str) -> Vec<u8> {
    type Size = unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int;
    type Bytes = unsafe extern "C" fn(*mut c_void, *mut u8) -> c_int;
    let (Some(size), Some(bytes)) = (function::<Size>(size), function::<Bytes>(bytes)) else {
        return Vec::new();
    };
    let mut length = 0;
    // SAFETY: the caller's promise, and room for as many bytes as the library says.
    unsafe {
        if size(program, &mut length) != 0 || length == 0 {
            return Vec::new();
        }
        let mut all = vec![0u8; length];
        match bytes(program, all.as_mut_ptr()) {
            0 => all,
            _ => Vec::new(),
        }
    }
}

impl Real {
    fn new() -> Option<Self> {
        Some(Self {
            create: function("nvrtcCreateProgram")?,
            compile: function("nvrtcCompileProgram")?,
            destroy: function("nvrtcDestroyProgram")?,
        })
    }

    /// What it makes, or the library's error and its log where the source is rejected.
    fn compile(&self, program: &Program, options: &[String]) -> Result<MadeForReal, (i32, String)> {
        let text = |text: &str| CString::new(text).unwrap_or_default();
        let (source, name) = (text(&program.source), text(&program.name));
        let options: Vec<CString> = options.iter().map(|option| text(option)).collect();
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let (null, mut real) = (std::ptr::null(), std::ptr::null_mut());
        // SAFETY: the strings live to the end of the calls, and the program is destroyed once.
        unsafe {
            let created = (self.create)(&mut real, source.as_ptr(), name.as_ptr(), 0, null, null);
            if created != 0 {
                return Err((created, format!("nvrtcCreateProgram returns {created}")));
            }
            let result = (self.compile)(real, options.len() as c_int, options.as_ptr());
            let log = part(real, "nvrtcGetProgramLogSize", "nvrtcGetProgramLog");
            let log = String::from_utf8_lossy(&log).replace('\0', "");
            let made = match result {
                0 => Ok(MadeForReal {
                    log,
                    ptx: part(real, "nvrtcGetPTXSize", "nvrtcGetPTX"),
                    cubin: part(real, "nvrtcGetCUBINSize", "nvrtcGetCUBIN"),
                }),
                code => Err((code, log)),
            };
            (self.destroy)(&mut real);
            made
        }
    }
}
