//! The algorithms that the library has for a product.

use std::fmt;
use std::mem::MaybeUninit;

use cudarc::cublaslt::result::CublasError;
use cudarc::cublaslt::sys;

use crate::workload::prepare::cublaslt::handles::{Description, Layout, Preference};

/// Number of algorithms that the library is asked for.
const ALGORITHMS: usize = 24;

/// An algorithm with all its settings.
#[derive(Clone, Copy)]
pub(crate) struct Algorithm {
    pub(super) algo: sys::cublasLtMatmulAlgo_t,
}

impl Algorithm {
    /// A setting of four bytes; `None` where the library does not say.
    fn setting(&self, which: sys::cublasLtMatmulAlgoConfigAttributes_t) -> Option<u32> {
        let (mut value, mut written) = (0u32, 0usize);
        // SAFETY: the algorithm is one that the library gave; the buffer has the size that is
        // named.
        let status = unsafe {
            sys::cublasLtMatmulAlgoConfigGetAttribute(
                &raw const self.algo,
                which,
                (&raw mut value).cast(),
                size_of::<u32>(),
                &raw mut written,
            )
        };
        (status == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS && written == size_of::<u32>())
            .then_some(value)
    }

    /// Distinguishes it from any other: FNV-1a over the library's own description of it.
    /// <http://www.isthe.com/chongo/tech/comp/fnv/>
    fn digest(&self) -> u64 {
        let bytes = self.algo.data.iter().flat_map(|word| word.to_le_bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use sys::cublasLtMatmulAlgoConfigAttributes_t as Setting;
        write!(f, "algorithm")?;
        for (name, which) in [
            ("", Setting::CUBLASLT_ALGO_CONFIG_ID),
            ("tile ", Setting::CUBLASLT_ALGO_CONFIG_TILE_ID),
            ("stages ", Setting::CUBLASLT_ALGO_CONFIG_STAGES_ID),
            ("pieces ", Setting::CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
        ] {
            if let Some(value) = self.setting(which) {
                write!(f, " {name}{value}")?;
            }
        }
        write!(f, " ({:016x})", self.digest())
    }
}

/// The algorithms that the library proposes with at most `workspace` bytes of workspace, the best
/// by its own estimate first; empty where it has none.
pub(super) fn algorithms(
    handle: sys::cublasLtHandle_t,
    workspace: usize,
    description: &Description,
    [a, b, c]: &[Layout; 3],
) -> Result<Vec<Algorithm>, CublasError> {
    let preference = Preference::new(workspace)?;
    let mut found =
        [const { MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::uninit() }; ALGORITHMS];
    let mut count = 0;
    // SAFETY: everything was made and lives to the end of the call, which writes at most as many
    // results as there is room for.
    let status = unsafe {
        sys::cublasLtMatmulAlgoGetHeuristic(
            handle,
            description.handle(),
            b.handle(),
            a.handle(),
            c.handle(),
            c.handle(),
            preference.handle(),
            ALGORITHMS as i32,
            found.as_mut_ptr().cast(),
            &raw mut count,
        )
    };
    match status {
        sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED => return Ok(Vec::new()),
        status => status.result()?,
    }
    let found = found.iter().take(count as usize);
    // SAFETY: the call wrote as many results as it says.
    let found = found.map(|result| unsafe { result.assume_init_ref() });
    Ok(found
        .filter(|result| result.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS)
        .map(|result| Algorithm { algo: result.algo })
        .collect())
}
