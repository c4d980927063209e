//! Stands in for NVRTC: reads the kernels out of a source and hands them to the recording driver as
//! an [`Image`]. <https://docs.nvidia.com/cuda/nvrtc/>
//!
//! Where calls are passed through ([`crate::real`]) the real one compiles, and the image of the same
//! source is what a module of its code stands for.

use std::ffi::{c_char, c_int};
use std::sync::{Mutex, PoisonError};

use crate::fault::Fault;
use crate::image::{Image, Kernel, REGISTERS};
use crate::library::{Handles, Library, library, unknown};
use crate::log;
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
    passes: true,
};

#[derive(Clone, Debug, Default)]
struct Program {
    name: String,
    source: String,
    compiled: Option<Compiled>,
    log: String,
    /// Bytes of the code that the real library was last asked for.
    real: usize,
}

#[derive(Clone, Debug)]
struct Compiled {
    image: Image,
    /// Whether for a real architecture, such as `sm_90`, and not for `compute_90`.
    machine_code: bool,
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
    let options = options(given);
    let kernels = signature::parse(&program.source, options.architecture).map_err(|sentence| {
        let sentence = format!("{}: error: {sentence}", program.name);
        program.compiled = None;
        program.log = format!("{sentence}\n");
        Fault::new(status::COMPILATION, sentence)
    })?;
    let said = kernels.iter().filter(|_| options.verbose);
    program.log = said
        .map(|kernel| resources(kernel, options.architecture))
        .collect();
    let source = program.name.clone();
    program.compiled = Some(Compiled {
        image: Image { source, kernels },
        machine_code: options.machine_code,
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
    Ok(compiled(program)?.image.to_bytes())
}

fn cubin(program: &Program) -> Answer<Vec<u8>> {
    match compiled(program)?.machine_code {
        true => ptx(program),
        false => Ok(Vec::new()),
    }
}

fn log_text(program: &Program) -> Answer<Vec<u8>> {
    Ok([program.log.as_bytes(), &[0]].concat())
}

/// Gives the number of the bytes that `of` takes from a program.
fn size(program: u64, to: *mut usize, of: fn(&Program) -> Answer<Vec<u8>>) -> Answer {
    let bytes = PROGRAMS.with(program, |program| of(program))??;
    NVRTC.put(to, bytes.len())?;
    let size = NVRTC.get(to)?;
    PROGRAMS.with(program, |program| program.real = size)
}

/// Gives these bytes themselves, or notes the code that the real library has written.
fn bytes(program: u64, to: *mut u8, of: fn(&Program) -> Answer<Vec<u8>>) -> Answer {
    let bytes = PROGRAMS.with(program, |program| of(program))??;
    if NVRTC.follows() {
        let Program { real, compiled, .. } = PROGRAMS.copy(program)?;
        // SAFETY: the real library has written as many bytes as it said before.
        let code = unsafe { std::slice::from_raw_parts(to, real) }.to_vec();
        let text = compiled.map(|compiled| compiled.image.to_text());
        let mut all = FOR_REAL.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend(text.filter(|_| real > 0).map(|text| (code, text)));
        return Ok(());
    }
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
    fn nvrtcDestroyProgram(program: *mut u64) = match NVRTC.follows() {
        // The real library has, and what it makes next may have the same handle.
        true => Ok(()),
        false => PROGRAMS.remove(NVRTC.get(program)?).map(drop),
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
    fn nvrtcGetProgramLog(program: u64, to: *mut u8) = match NVRTC.follows() {
        true => Ok(()),
        false => bytes(program, to, log_text),
    };
}
