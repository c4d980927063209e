//! The algorithms that every product has.

use std::ffi::{c_int, c_void};

use crate::library::{library, unknown};
use crate::product::CUBLAS;
use crate::state::Answer;

/// An algorithm as the caller keeps it: cublasLtMatmulAlgo_t.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Algorithm {
    pub(super) data: [u64; 8],
}

/// Tells an algorithm of the heuristic from any other bytes.
const MARK: u64 = 0x7265_636f_7264_6564;
/// The library's number of the kernels behind all of them.
const ID: u64 = 66;

/// What every product has, the best first: the tile's and the stages' numbers in the library's
/// enumerations, and the parts that the sum is divided into. They are the same on each device, so
/// that a choice between them is too.
const ALGORITHMS: [[u64; 3]; 3] = [[20, 11, 1], [15, 15, 1], [20, 11, 4]];

impl Algorithm {
    /// All of them.
    pub(super) fn all() -> [Self; 3] {
        ALGORITHMS.map(|[tile, stages, parts]| Self {
            data: [ID, tile, stages, parts, 0, 0, 0, MARK],
        })
    }

    /// # Errors
    /// The heuristic has not given it.
    pub(super) fn check(&self) -> Answer {
        match Self::all().contains(self) {
            true => Ok(()),
            false => Err(CUBLAS.invalid("the algorithm is none that the heuristic gave")),
        }
    }

    /// Bytes of workspace for a result of `elements`: partial sums in f32.
    pub(super) fn workspace(&self, elements: u64) -> u64 {
        match self.data[3] {
            1 => 0,
            parts => parts * elements * 4,
        }
    }

    pub(super) fn text(&self) -> String {
        let [_, tile, stages, parts, ..] = self.data;
        format!(", algorithm tile {tile} stages {stages} pieces {parts}")
    }
}

library! { CUBLAS:
    fn cublasLtMatmulAlgoConfigGetAttribute(
        algorithm: *const Algorithm,
        which: c_int,
        value: *mut c_void,
        bytes: usize,
        written: *mut usize,
    ) = {
        let algorithm = CUBLAS.get(algorithm)?;
        algorithm.check()?;
        let word = match which {
            0 => 0,
            1 => 1,
            2 => 3,
            6 => 2,
            other => return Err(unknown("the setting of an algorithm", other)),
        };
        if bytes != size_of::<u32>() {
            return Err(CUBLAS.invalid(format!("a setting of 4 B has room for {bytes}")));
        }
        CUBLAS.put(value.cast(), algorithm.data[word] as u32)?;
        CUBLAS.put(written, bytes)
    };
}
