//! The product by the machine's own BLAS, with the number of threads that it chooses.

use std::rc::Rc;

use cblas_sys::{CBLAS_LAYOUT, CBLAS_TRANSPOSE, cblas_sgemm};

use crate::workload::matmul::cpu::product;
use crate::workload::matmul::problem::Matmul;
use crate::workload::prepare::Threads;
use crate::workload::product::products;
use crate::workload::routine::{Result, Routine};

/// `cblas_sgemm` of the BLAS that was linked, with the number of threads that it chooses.
pub fn blas(problem: &Rc<Matmul>) -> Result<Box<dyn Routine>> {
    let notes = vec!["cblas_sgemm on the threads that it chooses".to_owned()];
    Ok(product(problem, Threads::One, notes, |_, of, c| {
        let size = |value: usize| i32::try_from(value).expect("an order is at most 2^15");
        let [m, n, k] = [of.shape.m, of.shape.n, of.shape.k].map(size);
        let (by_rows, none) = (CBLAS_LAYOUT::CblasRowMajor, CBLAS_TRANSPOSE::CblasNoTrans);
        for (a, b, mut c) in products(of.shape, &of.a, &of.b, c) {
            let (a, b, c) = (a.as_ptr(), b.as_ptr(), c.as_mut_ptr());
            // SAFETY: the three matrices are of these sizes, and `c` is borrowed for writing.
            unsafe { cblas_sgemm(by_rows, none, none, m, n, k, 1.0, a, k, b, n, 0.0, c, n) };
        }
    }))
}
