//! The fixed list of algorithms, which is the same for every product.

use std::ffi::{c_int, c_void};

use crate::call::{exported, get, put};
use crate::fault::Fault;
use crate::product::CUBLAS;
use crate::real;
use crate::state::Outcome;

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

/// Numbers of `cublasLtMatmulAlgoConfigAttributes_t`.
const TILE: c_int = 1;
const PARTS: c_int = 2;
const STAGES: c_int = 6;

/// Which word of an algorithm of this library has a setting.
fn word(which: c_int) -> Option<usize> {
    match which {
        0 => Some(0),
        TILE => Some(1),
        STAGES => Some(2),
        PARTS => Some(3),
        _ => None,
    }
}

impl Algorithm {
    /// All of them.
    pub(super) fn all() -> [Self; 3] {
        ALGORITHMS.map(|[tile, stages, parts]| Self {
            data: [ID, tile, stages, parts, 0, 0, 0, MARK],
        })
    }

    /// # Errors
    /// The heuristic has not given it.
    pub(super) fn check(&self) -> Outcome {
        match real::passes() || Self::all().contains(self) {
            true => Ok(()),
            false => Err(Fault::invalid(
                "the algorithm is none that the heuristic gave",
            )),
        }
    }

    /// Bytes of workspace for a result of `elements`: partial sums in f32.
    pub(super) fn workspace(&self, elements: u64) -> u64 {
        match self.data[3] {
            // The real library checks the needs of real algorithms.
            _ if real::passes() => 0,
            1 => 0,
            parts => parts * elements * 4,
        }
    }

    /// Tile, stages or parts, by the library's number of the setting.
    fn setting(&self, which: c_int) -> u32 {
        type Get =
            unsafe extern "C" fn(*const Algorithm, c_int, *mut u32, usize, *mut usize) -> c_int;
        let (mut value, mut written) = (0, 0);
        match real::function::<Get>("cublasLtMatmulAlgoConfigGetAttribute") {
            // SAFETY: an algorithm of that library, and room for a number of four bytes.
            Some(get) => drop(unsafe { get(self, which, &mut value, 4, &mut written) }),
            None => value = self.data[word(which).unwrap_or(0)] as u32,
        }
        value
    }

    pub(super) fn text(&self) -> String {
        let [tile, stages, parts] = [TILE, STAGES, PARTS].map(|which| self.setting(which));
        format!(", algorithm tile {tile} stages {stages} pieces {parts}")
    }
}

exported! { CUBLAS:
    fn cublasLtMatmulAlgoConfigGetAttribute(
        algorithm: *const Algorithm,
        which: c_int,
        value: *mut c_void,
        bytes: usize,
        written: *mut usize,
    ) = |_state| {
        let algorithm = get(algorithm)?;
        algorithm.check()?;
        let (size, value_of) = match (word(which), which) {
            (Some(word), _) => (4, algorithm.data[word] as u32),
            // Reduction, swizzle and option; the shapes inside and of a cluster.
            (None, 3..=5) => (4, 0),
            (None, 7 | 8) => (2, 0),
            (None, other) => return Err(Fault::unknown("the setting of an algorithm", other)),
        };
        if bytes != size {
            return Err(Fault::invalid(format!("a setting of {size} B has room for {bytes}")));
        }
        match size {
            2 => put(value.cast(), value_of as u16)?,
            _ => put(value.cast(), value_of)?,
        }
        put(written, bytes)
    };
}
