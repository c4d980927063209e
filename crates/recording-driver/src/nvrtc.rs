//! Stands in for NVRTC: looks a source up in the table of [kernels](crate::kernels), by its name.
//! <https://docs.nvidia.com/cuda/nvrtc/>

use std::ffi::{c_char, c_int};

use crate::call::{Library, Statuses, exported, get, put, put_bytes, text};
use crate::fault::Fault;
use crate::kernels::{COMPILED, of_source};
use crate::state::{Outcome, State, known, removed};

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
    /// The text in place of PTX and machine code.
    compiled: Option<String>,
    log: String,
}

/// A part of a program, as a string of C.
type Part = fn(&Program) -> Outcome<&str>;

fn code(program: &Program) -> Outcome<&str> {
    let missing = || Fault::new(INVALID_PROGRAM, "the program is not compiled");
    program.compiled.as_deref().ok_or_else(missing)
}

fn messages(program: &Program) -> Outcome<&str> {
    Ok(&program.log)
}

fn size(state: &mut State, program: u64, to: *mut usize, part: Part) -> Outcome {
    let program = known(&mut state.programs, program, "program")?;
    put(to, part(program)?.len() + 1)
}

fn bytes(state: &mut State, program: u64, to: *mut u8, part: Part) -> Outcome {
    let program = known(&mut state.programs, program, "program")?;
    put_bytes(to, part(program)?.bytes().chain([0]))
}

exported! { NVRTC:
    fn nvrtcVersion(major: *mut c_int, minor: *mut c_int) = |_state| {
        put(major, 13)?;
        put(minor, 0)
    };

    fn nvrtcCreateProgram(
        to: *mut u64, _source: *const c_char, name: *const c_char,
        headers: c_int, _texts: *const *const c_char, _names: *const *const c_char,
    ) = |state| {
        if headers != 0 {
            return Err(Fault::unknown("headers, and is given", headers));
        }
        let name = text(name)?;
        let handle = state.made();
        state.programs.insert(handle, Program { name, ..Program::default() });
        put(to, handle)
    };

    fn nvrtcDestroyProgram(program: *mut u64) = |state| {
        removed(&mut state.programs, get(program)?, "program").map(drop)
    };

    fn nvrtcCompileProgram(program: u64, count: c_int, options: *const *const c_char) = |state| {
        let options = (0..count as usize).map(|i| text(get(options.wrapping_add(i))?));
        let options: Vec<String> = options.collect::<Outcome<_>>()?;
        let program = known(&mut state.programs, program, "program")?;
        log!("compile {} {}", program.name, options.join(" "));
        if let Err(sentence) = of_source(&program.name) {
            program.log.clone_from(&sentence);
            return Err(Fault::new(COMPILATION, sentence));
        }
        program.compiled = Some(format!("{COMPILED}{}", program.name));
        Ok(())
    };

    fn nvrtcGetPTXSize(program: u64, to: *mut usize) = |state| size(state, program, to, code);
    fn nvrtcGetPTX(program: u64, to: *mut u8) = |state| bytes(state, program, to, code);
    fn nvrtcGetCUBINSize(program: u64, to: *mut usize) = |state| size(state, program, to, code);
    fn nvrtcGetCUBIN(program: u64, to: *mut u8) = |state| bytes(state, program, to, code);
    fn nvrtcGetProgramLogSize(program: u64, to: *mut usize) = |state| size(state, program, to, messages);
    fn nvrtcGetProgramLog(program: u64, to: *mut u8) = |state| bytes(state, program, to, messages);
}
