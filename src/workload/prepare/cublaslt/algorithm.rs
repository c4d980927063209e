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
    /// A setting of this many bytes, at most four; `None` where the library does not say.
    fn setting(
        &self,
        which: sys::cublasLtMatmulAlgoConfigAttributes_t,
        bytes: usize,
    ) -> Option<u32> {
        let (mut value, mut written) = (0u32, 0usize);
        // SAFETY: the algorithm is one that the library gave; the buffer has the size that is named.
        let status = unsafe {
            sys::cublasLtMatmulAlgoConfigGetAttribute(
                &raw const self.algo,
                which,
                (&raw mut value).cast(),
                bytes.min(size_of::<u32>()),
                &raw mut written,
            )
        };
        (status == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS && written == bytes).then_some(value)
    }
}

/// Names all its settings but those that are zero, so that a choice is found again in another process.
/// The library's bytes of an algorithm do not tell: some of them differ from call to call.
impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use sys::cublasLtMatmulAlgoConfigAttributes_t as Setting;
        write!(f, "algorithm")?;
        for (name, which, bytes) in [
            ("", Setting::CUBLASLT_ALGO_CONFIG_ID, 4),
            ("tile ", Setting::CUBLASLT_ALGO_CONFIG_TILE_ID, 4),
            ("stages ", Setting::CUBLASLT_ALGO_CONFIG_STAGES_ID, 4),
            ("pieces ", Setting::CUBLASLT_ALGO_CONFIG_SPLITK_NUM, 4),
            (
                "reduction ",
                Setting::CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME,
                4,
            ),
            ("swizzle ", Setting::CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING, 4),
            ("option ", Setting::CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, 4),
            ("shape ", Setting::CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, 2),
            (
                "cluster ",
                Setting::CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID,
                2,
            ),
        ] {
            if let Some(value @ 1..) = self.setting(which, bytes) {
                write!(f, " {name}{value}")?;
            }
        }
        Ok(())
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
