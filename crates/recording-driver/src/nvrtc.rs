//! Stands in for NVRTC: extracts the kernels of a source and returns them to the recording driver as an
//! [`Image`]. <https://docs.nvidia.com/cuda/nvrtc/>
//!
//! If calls are passed through ([`crate::real`]), the real NVRTC compiles, and a module of its code is
//! represented by the image of the same source.

use std::ffi::{c_char, c_int};

use crate::call::{Library, Statuses, exported, get, make, put, put_bytes, text};
use crate::fault::Fault;
use crate::image::{Image, Kernel, REGISTERS};
use crate::log;
use crate::real;
use crate::signature;
use crate::state::{Outcome, State, known};

/// `NVRTC_ERROR_INVALID_PROGRAM` and `_COMPILATION`.
const INVALID_PROGRAM: i32 = 4;
const COMPILATION: i32 = 6;

/// Numbers of nvrtcResult.
const NVRTC: Library = Library {
    statuses: Some(Statuses {
        all: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        invalid: 3,
        no_memory: 1,
        failed: 11,
    }),
    logged: true,
};

#[derive(Default)]
pub(crate) struct Program {
    name: String,
    source: String,
    compiled: Option<Compiled>,
    log: String,
    /// Bytes of the code that the real library reported last.
    real: usize,
}

struct Compiled {
    image: Image,
    /// Whether for a real architecture, such as `sm_90`, and not for `compute_90`.
    machine_code: bool,
}

/// The image of the source from which the real library compiled this code.
pub(crate) fn source_of(state: &State, module: *const c_char) -> Option<String> {
    let mut compiled = state.compiled_for_real.iter();
    let same = compiled.find(|(code, _)| {
        // SAFETY: the caller's module ends no sooner than the first byte that differs.
        unsafe { libc::memcmp(code.as_ptr().cast(), module.cast(), code.len()) == 0 }
    });
    same.map(|(_, image)| image.clone())
}

/// The options of a compilation.
struct Options {
    architecture: u32,
    machine_code: bool,
    /// Whether the log has the assembler's figures of each kernel.
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

fn compile(program: &mut Program, given: &[String]) -> Outcome {
    let options = options(given);
    let kernels = signature::parse(&program.source, options.architecture).map_err(|sentence| {
        let sentence = format!("{}: error: {sentence}", program.name);
        program.compiled = None;
        program.log = format!("{sentence}\n");
        Fault::new(COMPILATION, sentence)
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

/// The assembler's lines of a kernel with `-v`.
fn resources(kernel: &Kernel, architecture: u32) -> String {
    let name = &kernel.name;
    format!(
        "ptxas info    : Compiling entry function '{name}' for 'sm_{architecture}'\n\
         ptxas info    : Function properties for {name}\n\
         ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n\
         ptxas info    : Used {REGISTERS} registers, 0 bytes smem\n"
    )
}

fn compiled(program: &Program) -> Outcome<&Compiled> {
    let missing = || Fault::new(INVALID_PROGRAM, "the program is not compiled");
    program.compiled.as_ref().ok_or_else(missing)
}

fn ptx(program: &Program) -> Outcome<Vec<u8>> {
    Ok(compiled(program)?.image.to_bytes())
}

fn cubin(program: &Program) -> Outcome<Vec<u8>> {
    match compiled(program)?.machine_code {
        true => ptx(program),
        false => Ok(Vec::new()),
    }
}

fn log_text(program: &Program) -> Outcome<Vec<u8>> {
    Ok([program.log.as_bytes(), &[0]].concat())
}

/// A part of a program as bytes.
type Part = fn(&Program) -> Outcome<Vec<u8>>;

/// Gives the number of the bytes of a part.
fn size(state: &mut State, program: u64, to: *mut usize, part: Part) -> Outcome {
    let program = known(&mut state.programs, program, "program")?;
    put(to, part(program)?.len())?;
    program.real = get(to)?;
    Ok(())
}

/// Writes these bytes, or records the code that the real library has written.
fn bytes(state: &mut State, program: u64, to: *mut u8, part: Part) -> Outcome {
    let program = known(&mut state.programs, program, "program")?;
    let bytes = part(program)?;
    if !real::passes() {
        return put_bytes(to, bytes);
    }
    // SAFETY: the real library has written as many bytes as it said before.
    let code = unsafe { std::slice::from_raw_parts(to, program.real) }.to_vec();
    let image = program.compiled.as_ref().filter(|_| program.real > 0);
    let compiled = image.map(|compiled| (code, compiled.image.to_text()));
    state.compiled_for_real.extend(compiled);
    Ok(())
}

exported! { NVRTC:
    fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) = |_state| {
        put(major, 13)?;
        put(minor, 0)
    };

    fn nvrtcCreateProgram(
        to: *mut u64,
        source: *const c_char,
        name: *const c_char,
        headers: c_int,
        _texts: *const *const c_char,
        _names: *const *const c_char,
    ) = |state| make(state, to, |state| {
        if headers != 0 {
            return Err(Fault::unknown("headers, and is given", headers));
        }
        let name = if name.is_null() { c"default_program".as_ptr() } else { name };
        let new = Program {
            name: text(name)?,
            source: text(source)?,
            ..Program::default()
        };
        let handle = state.made();
        state.programs.insert(handle, new);
        Ok(handle)
    });

    // cudarc passes the address of a variable that is not to be written.
    fn nvrtcDestroyProgram(program: *mut u64) = |state| {
        // The real library has destroyed it, and may reuse its handle.
        if !real::passes() {
            let program = get(program)?;
            known(&mut state.programs, program, "program")?;
            state.programs.remove(&program);
        }
        Ok(())
    };

    fn nvrtcCompileProgram(program: u64, count: c_int, options: *const *const c_char) = |state| {
        let options = (0..count as usize).map(|i| text(get(options.wrapping_add(i))?));
        let options: Vec<String> = options.collect::<Outcome<_>>()?;
        let program = known(&mut state.programs, program, "program")?;
        log::call(format_args!("compile {} {}", program.name, options.join(" ")));
        compile(program, &options)
    };

    fn nvrtcGetPTXSize(program: u64, to: *mut usize) = |state| size(state, program, to, ptx);
    fn nvrtcGetPTX(program: u64, to: *mut u8) = |state| bytes(state, program, to, ptx);
    fn nvrtcGetCUBINSize(program: u64, to: *mut usize) = |state| size(state, program, to, cubin);
    fn nvrtcGetCUBIN(program: u64, to: *mut u8) = |state| bytes(state, program, to, cubin);
    fn nvrtcGetProgramLogSize(program: u64, to: *mut usize) = |state| size(state, program, to, log_text);
    fn nvrtcGetProgramLog(program: u64, to: *mut u8) = |state| match real::passes() {
        true => Ok(()),
        false => bytes(state, program, to, log_text),
    };
}
