//! Products of any shape on the CPU, by the crate gemm.

use std::rc::Rc;

use gemm::Parallelism;
use rayon::prelude::*;

use super::{Matmul, Shape};
use crate::record::Verified;
use crate::workload::{Routine, RoutineError};

/// Writes C given the shape, A and B.
pub(super) type Multiply = fn(Shape, &[f32], &[f32], &mut [f32]);

/// `way`, and the number of threads there are.
pub(super) fn on_all_threads(way: &str) -> String {
    format!("{way}, {} threads", rayon::current_num_threads())
}

/// A product by `multiply`, with a remark on how.
pub(super) fn product(problem: &Rc<Matmul>, multiply: Multiply, note: String) -> Box<dyn Routine> {
    Box::new(Product {
        problem: Rc::clone(problem),
        multiply,
        output: vec![f32::NAN; problem.shape.c_len()],
        note,
    })
}

struct Product {
    problem: Rc<Matmul>,
    multiply: Multiply,
    output: Vec<f32>,
    note: String,
}

impl Routine for Product {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.output.fill(f32::NAN);
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let Matmul { shape, a, b, .. } = &*self.problem;
        (self.multiply)(*shape, a, b, &mut self.output);
        Ok(())
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let error = self.problem.error_of_rows(0, &self.output);
        Ok(self.problem.verified(error))
    }

    fn notes(&self) -> Vec<String> {
        vec![self.note.clone()]
    }
}

/// The products of a batch shared out among all cores, each on one thread.
pub(super) fn over_batch(shape: Shape, a: &[f32], b: &[f32], c: &mut [f32]) {
    let Shape { m, n, k, .. } = shape;
    c.par_chunks_mut(m * n)
        .zip(a.par_chunks(m * k).zip(b.par_chunks(k * n)))
        .for_each(|(c, (a, b))| {
            assert_eq!(c.len(), m * n);
            // SAFETY: `c` is one whole product, borrowed for writing.
            unsafe { gemm((m, n, k), a, (b, n), (c.as_mut_ptr(), n), Parallelism::None) };
        });
}

/// The products of a batch one after the other, each on all cores.
pub(super) fn within(shape: Shape, a: &[f32], b: &[f32], c: &mut [f32]) {
    let Shape { m, n, k, .. } = shape;
    let all = match rayon::current_num_threads() {
        1 => Parallelism::None,
        threads => Parallelism::Rayon(threads),
    };
    c.chunks_mut(m * n)
        .zip(a.chunks(m * k).zip(b.chunks(k * n)))
        .for_each(|(c, (a, b))| {
            assert_eq!(c.len(), m * n);
            // SAFETY: `c` is one whole product, borrowed for writing.
            unsafe { gemm((m, n, k), a, (b, n), (c.as_mut_ptr(), n), all) };
        });
}

/// Blocks of columns of one product shared out among all cores, each on one thread: every
/// core reads its own part of B.
pub(super) fn by_columns(shape: Shape, a: &[f32], b: &[f32], c: &mut [f32]) {
    let Shape { batch, m, n, k } = shape;
    assert!(batch == 1 && c.len() == m * n);
    // In steps of a cache line, so that no two cores write the same one.
    let width = n
        .div_ceil(rayon::current_num_threads())
        .next_multiple_of(16);
    let c = Columns(c.as_mut_ptr());
    (0..n.div_ceil(width)).into_par_iter().for_each(|i| {
        let first = i * width;
        let columns = width.min(n - first);
        // SAFETY: C has m x n elements; the columns from `first` on are this block's alone.
        unsafe {
            let c = (c.at(first), n);
            gemm((m, columns, k), a, (&b[first..], n), c, Parallelism::None);
        }
    });
}

/// C, whose columns several threads write, each its own.
struct Columns(*mut f32);

// SAFETY: the threads write disjoint elements.
unsafe impl Sync for Columns {}

impl Columns {
    /// # Safety
    /// `column` must lie within C.
    unsafe fn at(&self, column: usize) -> *mut f32 {
        // SAFETY: the caller's promise.
        unsafe { self.0.add(column) }
    }
}

/// C = A B with a whole A, and a B and a C whose rows are a pitch apart.
///
/// # Safety
/// `c` must be `m` rows of `n` elements at its pitch, which nothing else touches meanwhile.
unsafe fn gemm(
    (m, n, k): (usize, usize, usize),
    a: &[f32],
    (b, b_pitch): (&[f32], usize),
    (c, c_pitch): (*mut f32, usize),
    parallelism: Parallelism,
) {
    assert!(a.len() == m * k && b.len() >= (k - 1) * b_pitch + n);
    // SAFETY: A and B have these sizes and pitches, as was found above; C has by the
    // caller's promise.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c,
            1,
            c_pitch as isize,
            false,
            a.as_ptr(),
            1,
            k as isize,
            b.as_ptr(),
            1,
            b_pitch as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_passes_its_check_at_every_shape_that_it_takes() {
        let ways: [(&str, Multiply, bool); 3] = [
            ("over batch", over_batch, true),
            ("within", within, true),
            ("by columns", by_columns, false),
        ];
        for (batch, m, n, k) in [
            (1, 1, 1, 1),
            (1, 1, 300, 70),
            (1, 16, 257, 129),
            (1, 64, 512, 512),
            (5, 7, 9, 11),
            (64, 17, 17, 17),
        ] {
            let problem = Rc::new(Matmul::of(Shape { batch, m, n, k }));
            for (name, way, takes_batches) in ways {
                if batch > 1 && !takes_batches {
                    continue;
                }
                let mut routine = product(&problem, way, name.to_owned());
                for _ in 0..2 {
                    routine.poison().unwrap();
                    assert!(!routine.check().unwrap().passed(), "{name}: poison passes");
                    routine.run().unwrap();
                    let verified = routine.check().unwrap();
                    assert!(verified.passed(), "{name} of {:?}", problem.shape());
                }
            }
        }
    }
}
