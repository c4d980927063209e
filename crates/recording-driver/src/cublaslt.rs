//! Stands in for cuBLASLt. A description, a layout or a preference is what was set of it, and the
//! heuristic has the same algorithms for every product.
//! <https://docs.nvidia.com/cuda/cublas/#using-the-cublaslt-api>

use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};

use crate::call::{exported, get, put};
use crate::fault::Fault;
use crate::objects::Used;
use crate::product::{CUBLAS, Matrix, Product, element_bytes};
use crate::state::{Outcome, State, known, removed};

/// A description of a product, a layout of matrices, or a preference.
#[derive(Clone)]
pub(crate) struct Described {
    pub(crate) what: &'static str,
    /// By the library's numbers of the attributes; others are zero.
    attributes: BTreeMap<c_int, u64>,
}

const DESCRIPTION: &str = "matmul description";
const LAYOUT: &str = "layout";
const PREFERENCE: &str = "preference";

/// Numbers of `cublasLtMatmulDescAttributes_t`, `cublasLtMatrixLayoutAttribute_t` and
/// `cublasLtMatmulPreferenceAttributes_t`.
const COMPUTE: c_int = 0;
const TRANSPOSED: [c_int; 2] = [3, 4];
const EPILOGUE: c_int = 7;
const BIAS: c_int = 8;
const OF_LAYOUT: [c_int; 4] = [0, 2, 3, 4];
const BATCH: c_int = 5;
const STRIDE: c_int = 6;
const WORKSPACE: c_int = 1;

fn create(
    state: &mut State,
    what: &'static str,
    attributes: impl IntoIterator<Item = (c_int, u64)>,
) -> Outcome<u64> {
    let attributes = attributes.into_iter().collect();
    let handle = state.made();
    let described = Described { what, attributes };
    state.described.insert(handle, described);
    Ok(handle)
}

/// Sets an attribute of so many bytes, one of `known_here`.
fn set(
    state: &mut State,
    handle: u64,
    (which, known_here): (c_int, &[c_int]),
    (value, bytes): (*const c_void, usize),
) -> Outcome {
    let value = match bytes {
        4 => get(value.cast::<u32>())?.into(),
        _ => get(value.cast::<u64>())?,
    };
    let described = known(&mut state.described, handle, "description")?;
    if !known_here.contains(&which) {
        return Err(Fault::unknown(
            &format!("the attribute of a {}", described.what),
            which,
        ));
    }
    described.attributes.insert(which, value);
    Ok(())
}

/// Exports the functions that set an attribute and that destroy.
macro_rules! changes {
    ($($set:ident($known_here:expr), $destroy:ident;)*) => {
        exported! { CUBLAS: $(
            fn $set(state, handle: u64, which: c_int, value: *const c_void, bytes: usize) {
                set(state, handle, (which, &$known_here), (value, bytes))
            }

            fn $destroy(state, handle: u64) {
                removed(&mut state.described, handle, "description").map(drop)
            }
        )* }
    };
}

changes! {
    cublasLtMatmulDescSetAttribute([3, 4, EPILOGUE, BIAS]), cublasLtMatmulDescDestroy;
    cublasLtMatrixLayoutSetAttribute([BATCH, STRIDE]), cublasLtMatrixLayoutDestroy;
    cublasLtMatmulPreferenceSetAttribute([WORKSPACE]), cublasLtMatmulPreferenceDestroy;
}

impl Described {
    fn of(state: &mut State, handle: u64, what: &str) -> Outcome<Self> {
        let found = known(&mut state.described, handle, what)?;
        if found.what == what {
            Ok(found.clone())
        } else {
            Err(fault!(INVALID_VALUE, "a {} is no {what}", found.what))
        }
    }

    fn attribute(&self, which: c_int) -> u64 {
        self.attributes.get(&which).copied().unwrap_or(0)
    }
}

/// The product of a description, of A, B, C and D with these layouts at these addresses.
fn product(
    state: &mut State,
    description: u64,
    layouts: [u64; 4],
    addresses: [u64; 4],
    scalars: [*const c_void; 2],
) -> Outcome<Product> {
    let description = Described::of(state, description, DESCRIPTION)?;
    let transposed = TRANSPOSED.map(|which| description.attribute(which) != 0);
    let mut batches = Vec::new();
    let mut matrix = |at: usize| {
        let layout = Described::of(state, layouts[at], LAYOUT)?;
        batches.push(layout.attribute(BATCH).max(1));
        let [data_type, rows, columns, pitch] = OF_LAYOUT.map(|which| layout.attribute(which));
        Ok(Matrix {
            address: addresses[at],
            element_bytes: element_bytes(data_type as c_int)?,
            rows: rows as i64,
            columns: columns as i64,
            pitch: pitch as i64,
            stride: layout.attribute(STRIDE) as i64,
            transposed: transposed.get(at) == Some(&true),
        })
    };
    let matrices = [matrix(0)?, matrix(1)?, matrix(2)?, matrix(3)?];
    if batches.iter().any(|batch| *batch != batches[0]) {
        return Err(Fault::invalid("the batches of the layouts differ"));
    }
    let has_bias = match description.attribute(EPILOGUE) {
        0 | 1 => false,
        // The bias, and ReLU.
        4 | 6 => true,
        other => return Err(Fault::unknown("epilogue", other)),
    };
    // A value for each row of the result, of its type.
    let bias = Used {
        name: "bias",
        address: description.attribute(BIAS),
        bytes: matrices[3].rows as u64 * matrices[3].element_bytes,
    };
    Ok(Product {
        function: "cublasLtMatmul",
        matrices,
        batch: batches[0] as i64,
        compute: description.attribute(COMPUTE) as c_int,
        scalars,
        beside: has_bias.then_some(bias).into_iter().collect(),
    })
}

/// cublasLtMatmulAlgo_t, as the caller keeps it: the kernel's number, the tile's, the stages', and the
/// parts that the sum is divided into.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Algorithm([u64; 8]);

/// Tells an algorithm of the heuristic from other bytes.
const MARK: u64 = 0x7265_636f_7264_6564;

/// The answer of the heuristic, the best first.
const ALGORITHMS: [Algorithm; 3] = [
    Algorithm([66, 20, 11, 1, 0, 0, 0, MARK]),
    Algorithm([66, 15, 15, 1, 0, 0, 0, MARK]),
    Algorithm([66, 20, 11, 4, 0, 0, 0, MARK]),
];

impl Algorithm {
    /// # Errors
    /// The heuristic has not given it.
    fn check(&self) -> Outcome {
        if ALGORITHMS.contains(self) {
            Ok(())
        } else {
            Err(Fault::invalid("the heuristic gave no such algorithm"))
        }
    }

    /// Bytes of workspace: partial sums in f32.
    fn workspace(&self, product: &Product) -> u64 {
        let result = &product.matrices[3];
        let elements = (result.rows * result.columns * product.batch) as u64;
        match self.0[3] {
            1 => 0,
            parts => parts * elements * 4,
        }
    }
}

/// cublasLtMatmulHeuristicResult_t.
#[repr(C)]
pub(crate) struct HeuristicResult {
    algorithm: Algorithm,
    workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

exported! { CUBLAS:
    fn cublasLtMatmulDescCreate(state, compute: c_int, _scalars: c_int) -> u64 {
        create(state, DESCRIPTION, [(COMPUTE, compute as u64)])
    }

    fn cublasLtMatrixLayoutCreate(
        state, data_type: c_int, rows: u64, columns: u64, pitch: i64,
    ) -> u64 {
        let values = [data_type as u64, rows, columns, pitch as u64];
        create(state, LAYOUT, OF_LAYOUT.into_iter().zip(values))
    }

    fn cublasLtMatmulPreferenceCreate(state) -> u64 {
        create(state, PREFERENCE, [])
    }

    fn cublasLtMatmulAlgoGetHeuristic(
        state, _handle: u64, description: u64, a: u64, b: u64, c: u64, d: u64,
        preference: u64, asked: c_int, results: *mut HeuristicResult, count: *mut c_int,
    ) {
        put(count, 0)?;
        let product = product(state, description, [a, b, c, d], [0; 4], [std::ptr::null(); 2])?;
        product.check()?;
        let most = Described::of(state, preference, PREFERENCE)?.attribute(WORKSPACE);
        let fitting = ALGORITHMS.iter().filter(|algorithm| algorithm.workspace(&product) <= most);
        for (i, algorithm) in fitting.take(asked as usize).enumerate() {
            let result = HeuristicResult {
                algorithm: *algorithm,
                workspace: algorithm.workspace(&product) as usize,
                state: 0,
                waves: 1.0,
                reserved: [0; 4],
            };
            put(results.wrapping_add(i), result)?;
            put(count, i as c_int + 1)?;
        }
        Ok(())
    }

    fn cublasLtMatmulAlgoConfigGetAttribute(
        _state, algorithm: *const Algorithm, which: c_int,
        value: *mut c_void, bytes: usize,
    ) => usize {
        let algorithm = get(algorithm)?;
        algorithm.check()?;
        let [kernel, tile, stages, parts, ..] = algorithm.0;
        // Reduction, swizzle, option and shapes are zero. The shapes have two bytes.
        let number = match which {
            0 => kernel,
            1 => tile,
            2 => parts,
            6 => stages,
            _ => 0,
        };
        match bytes {
            2 => put(value.cast(), number as u16)?,
            _ => put(value.cast(), number as u32)?,
        }
        Ok(bytes)
    }

    fn cublasLtMatmul(
        state, _handle: u64, description: u64,
        alpha: *const c_void, a: u64, of_a: u64, b: u64, of_b: u64,
        beta: *const c_void, c: u64, of_c: u64, d: u64, of_d: u64,
        algorithm: *const Algorithm, workspace: u64, bytes: usize, stream: u64,
    ) {
        let layouts = [of_a, of_b, of_c, of_d];
        let mut product = product(state, description, layouts, [a, b, c, d], [alpha, beta])?;
        let algorithm = get(algorithm)?;
        algorithm.check()?;
        let (bytes, needed) = (bytes as u64, algorithm.workspace(&product));
        if bytes < needed || !workspace.is_multiple_of(16) {
            return Err(fault!(
                INVALID_VALUE,
                "a workspace of {bytes} B, aligned by 16, where {needed} B are needed"
            ));
        }
        // All of it, since the library may write anywhere in it.
        let name = "workspace";
        let used = Used { name, address: workspace, bytes };
        product.beside.extend((bytes > 0).then_some(used));
        product.enqueue(state, stream)
    }
}
