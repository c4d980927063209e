//! Stands in for NVRTC: looks a source up in the table of [kernels](crate::kernels), by its name.
//! <https://docs.nvidia.com/cuda/nvrtc/>

use std::ffi::{c_char, c_int};

use crate::call::{Library, exported, get, put, put_bytes, text};
use crate::fault::Fault;
use crate::kernels::{COMPILED, of_source};
use crate::state::{Outcome, State, known, removed};

/// `NVRTC_ERROR_INVALID_PROGRAM` and `_COMPILATION`.
const INVALID_PROGRAM: i32 = 4;
const COMPILATION: i32 = 6;

/// Numbers of nvrtcResult.
const NVRTC: Library = Library {
    all: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    invalid: 3,
    no_memory: 1,
    failed: 11,
};

#[derive(Default)]
pub(crate) struct Program {
    name: String,
    /// The text in place of PTX and machine code.
    compiled: Option<String>,
    log: String,
}

impl State {
    fn compiled(&mut self, program: u64) -> Outcome<&str> {
        let program = known(&mut self.programs, program, "program")?;
        let missing = || Fault::new(INVALID_PROGRAM, "the program is not compiled");
        program.compiled.as_deref().ok_or_else(missing)
    }

    fn messages(&mut self, program: u64) -> Outcome<&str> {
        Ok(&known(&mut self.programs, program, "program")?.log)
    }
}

/// Exports a part of a program as a string of C, and its size.
macro_rules! parts {
    ($($size:ident, $bytes:ident = $part:ident;)*) => {
        exported! { NVRTC: $(
            fn $size(state, program: u64) => usize {
                Ok(state.$part(program)?.len() + 1)
            }

            fn $bytes(state, program: u64, to: *mut u8) {
                put_bytes(to, state.$part(program)?.bytes().chain([0]))
            }
        )* }
    };
}

parts! {
    nvrtcGetPTXSize, nvrtcGetPTX = compiled;
    nvrtcGetCUBINSize, nvrtcGetCUBIN = compiled;
    nvrtcGetProgramLogSize, nvrtcGetProgramLog = messages;
}

exported! { NVRTC:
    fn nvrtcVersion(_state, major: *mut c_int, minor: *mut c_int) {
        put(major, 13)?;
        put(minor, 0)
    }

    fn nvrtcCreateProgram(
        state, _source: *const c_char, name: *const c_char,
        headers: c_int, _texts: *const *const c_char, _names: *const *const c_char,
    ) -> u64 {
        if headers != 0 {
            return Err(Fault::unknown("headers, and is given", headers));
        }
        let name = text(name)?;
        let handle = state.made();
        state.programs.insert(handle, Program { name, ..Program::default() });
        Ok(handle)
    }

    fn nvrtcDestroyProgram(state, program: *mut u64) {
        removed(&mut state.programs, get(program)?, "program").map(drop)
    }

    fn nvrtcCompileProgram(
        state, program: u64, count: c_int, options: *const *const c_char,
    ) {
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
    }
}
