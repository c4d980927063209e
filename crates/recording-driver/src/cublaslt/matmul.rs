//! The heuristic, and the product itself.

use std::ffi::{c_int, c_void};

use super::algorithm::Algorithm;
use super::description::{Description, Epilogue, Layout};
use crate::call::{exported, get, put};
use crate::fault::Fault;
use crate::objects::Used;
use crate::product::{CUBLAS, Product};
use crate::state::{Outcome, State, known};

/// cublasLtMatmulHeuristicResult_t.
#[repr(C)]
pub(crate) struct HeuristicResult {
    pub(super) algorithm: Algorithm,
    pub(super) workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// The description behind the handles of a product.
pub(super) struct Described {
    pub(super) description: Description,
    /// Of a, b, c and d.
    pub(super) layouts: [Layout; 4],
}

impl Described {
    fn new(state: &mut State, description: u64, layouts: [u64; 4]) -> Outcome<Self> {
        let mut layout = |handle| known(&mut state.layouts, handle, "layout").copied();
        let [a, b, c, d] = layouts;
        let layouts = [layout(a)?, layout(b)?, layout(c)?, layout(d)?];
        let description = *known(&mut state.descriptions, description, "matmul description")?;
        Ok(Self {
            description,
            layouts,
        })
    }

    /// The product of matrices at these addresses, for an algorithm that is yet to be chosen.
    pub(super) fn product(&self, addresses: [u64; 4], scalars: [f64; 2]) -> Outcome<Product> {
        let Description {
            compute,
            transposed: [of_a, of_b],
            epilogue,
            bias,
        } = self.description;
        let batch = self.layouts[0].batch;
        if self.layouts.iter().any(|layout| layout.batch != batch) {
            return Err(Fault::invalid("the batches of the layouts differ"));
        }
        let matrix = |i: usize, transposed| self.layouts[i].matrix(addresses[i], transposed);
        let result = &self.layouts[3];
        // A value for each row of the result, of its type.
        let bias = Used {
            name: "bias",
            address: bias,
            bytes: result.rows as u64 * result.element.bytes(),
        };
        let has_bias = epilogue != Epilogue::Nothing;
        let product = Product {
            function: "cublasLtMatmul",
            a: matrix(0, of_a),
            b: matrix(1, of_b),
            c: matrix(2, false),
            d: matrix(3, false),
            batch: batch.into(),
            alpha: scalars[0],
            beta: scalars[1],
            compute,
            beside: has_bias.then_some(bias).into_iter().collect(),
            notes: epilogue.text().to_owned(),
        };
        product.check()?;
        Ok(product)
    }

    /// Elements of the result.
    fn elements(&self) -> u64 {
        let Layout {
            rows,
            columns,
            batch,
            ..
        } = self.layouts[3];
        rows as u64 * columns as u64 * batch as u64
    }
}

exported! { CUBLAS:
    fn cublasLtMatmulAlgoGetHeuristic(
        _handle: u64,
        description: u64,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        preference: u64,
        asked: c_int,
        results: *mut HeuristicResult,
        count: *mut c_int,
    ) = |state| {
        put(count, 0)?;
        let described = Described::new(state, description, [a, b, c, d])?;
        described.product([0; 4], [1.0, 0.0])?;
        let (most, elements) = (*known(&mut state.preferences, preference, "preference")?, described.elements());
        let all = Algorithm::all().into_iter();
        let fitting = all.filter(|algorithm| algorithm.workspace(elements) <= most);
        for (i, algorithm) in fitting.take(asked as usize).enumerate() {
            let result = HeuristicResult {
                algorithm,
                workspace: algorithm.workspace(elements) as usize,
                state: 0,
                waves: 1.0,
                reserved: [0; 4],
            };
            put(results.wrapping_add(i), result)?;
            put(count, i as c_int + 1)?;
        }
        Ok(())
    };

    fn cublasLtMatmul(
        _handle: u64,
        description: u64,
        alpha: *const c_void,
        a: u64,
        of_a: u64,
        b: u64,
        of_b: u64,
        beta: *const c_void,
        c: u64,
        of_c: u64,
        d: u64,
        of_d: u64,
        algorithm: *const Algorithm,
        workspace: u64,
        bytes: usize,
        stream: u64,
    ) = |state| {
        let described = Described::new(state, description, [of_a, of_b, of_c, of_d])?;
        let compute = described.description.compute;
        let scalars = [compute.scalar(alpha)?, compute.scalar(beta)?];
        let mut product = described.product([a, b, c, d], scalars)?;
        let algorithm = get(algorithm)?;
        algorithm.check()?;
        product.notes += &algorithm.text();
        let (bytes, needed) = (bytes as u64, algorithm.workspace(described.elements()));
        if bytes < needed || !workspace.is_multiple_of(16) {
            let why = format!("a workspace of {bytes} B, aligned by 16, where {needed} B are needed");
            return Err(Fault::invalid(why));
        }
        // All of it, since the library may write anywhere in it.
        let name = "workspace";
        let used = Used { name, address: workspace, bytes };
        product.beside.extend((bytes > 0).then_some(used));
        product.enqueue(state, stream)
    };
}
