//! The heuristic, and the product itself.

use std::ffi::{c_int, c_void};

use super::algorithm::Algorithm;
use super::description::{DESCRIPTIONS, Description, Epilogue, LAYOUTS, Layout, PREFERENCES};
use crate::cublas;
use crate::library::library;
use crate::objects::Used;
use crate::product::{CUBLAS, Product};
use crate::state::Answer;

/// cublasLtMatmulHeuristicResult_t.
#[repr(C)]
pub(crate) struct HeuristicResult {
    pub(super) algorithm: Algorithm,
    pub(super) workspace: usize,
    state: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

/// What the handles of a product say.
pub(super) struct Described {
    pub(super) description: Description,
    /// Of a, b, c and d.
    pub(super) layouts: [Layout; 4],
}

impl Described {
    /// A handle of cuBLAS is one of cuBLASLt as well.
    pub(super) fn new(handle: u64, description: u64, [a, b, c, d]: [u64; 4]) -> Answer<Self> {
        cublas::HANDLES.copy(handle)?;
        let layout = |handle| LAYOUTS.copy(handle);
        Ok(Self {
            description: DESCRIPTIONS.copy(description)?,
            layouts: [layout(a)?, layout(b)?, layout(c)?, layout(d)?],
        })
    }

    /// The product of matrices at these addresses, for an algorithm that is yet to be chosen.
    pub(super) fn product(&self, addresses: [u64; 4], scalars: [f64; 2]) -> Answer<Product> {
        let Description {
            compute,
            transposed: [of_a, of_b],
            epilogue,
            bias,
        } = self.description;
        let batch = self.layouts[0].batch;
        if self.layouts.iter().any(|layout| layout.batch != batch) {
            return Err(CUBLAS.invalid("the batches of the layouts differ"));
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

library! { CUBLAS:
    fn cublasLtMatmulAlgoGetHeuristic(
        handle: u64,
        description: u64,
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        preference: u64,
        asked: c_int,
        results: *mut HeuristicResult,
        count: *mut c_int,
    ) = {
        if asked < 1 {
            return Err(CUBLAS.invalid(format!("{asked} algorithms are asked for")));
        }
        CUBLAS.put(count, 0)?;
        let described = Described::new(handle, description, [a, b, c, d])?;
        described.product([0; 4], [1.0, 0.0])?;
        let (most, elements) = (PREFERENCES.copy(preference)?, described.elements());
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
            CUBLAS.put(results.wrapping_add(i), result)?;
            CUBLAS.put(count, i as c_int + 1)?;
        }
        Ok(())
    };

    fn cublasLtMatmul(
        handle: u64,
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
    ) = {
        let described = Described::new(handle, description, [of_a, of_b, of_c, of_d])?;
        let Description { compute, epilogue, bias, .. } = described.description;
        let scalars = [compute.scalar(alpha)?, compute.scalar(beta)?];
        let mut product = described.product([a, b, c, d], scalars)?;
        if epilogue != Epilogue::Nothing && bias == 0 {
            return Err(CUBLAS.invalid("the epilogue has no bias"));
        }
        let algorithm = CUBLAS.get(algorithm)?;
        algorithm.check()?;
        product.notes += &algorithm.text();
        let (bytes, needed) = (bytes as u64, algorithm.workspace(described.elements()));
        if bytes < needed || !workspace.is_multiple_of(16) {
            let why = format!("a workspace of {bytes} B, aligned by 16, where {needed} B are needed");
            return Err(CUBLAS.invalid(why));
        }
        // All of it, since the library may write anywhere in it.
        let name = "workspace";
        let used = Used { name, address: workspace, bytes };
        product.beside.extend((bytes > 0).then_some(used));
        product.enqueue(stream)
    };
}
