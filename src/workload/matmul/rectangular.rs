//! Products of any shape on the CPU, and the ways in which the crate gemm computes them.

use std::rc::Rc;

use gemm_common::Parallelism;
use ndarray::{ArrayView2, ArrayViewMut2};
use rayon::prelude::*;

use crate::model::verified::Verified;
use crate::workload::matmul::blocks::{Grid, Library, gemm};
use crate::workload::matmul::problem::Matmul;
use crate::workload::matmul::shape::Shape;
use crate::workload::prepare::threads::Threads;
use crate::workload::routine::{Routine, RoutineError};

/// A product by `multiply`, which is given the threads, the shape, A and B, and writes C. `notes`
/// are remarks on how.
pub(super) fn product(
    problem: &Rc<Matmul>,
    threads: Threads,
    multiply: impl Fn(&Threads, Shape, &[f32], &[f32], &mut [f32]) + 'static,
    notes: Vec<String>,
) -> Box<dyn Routine> {
    Box::new(Product {
        problem: Rc::clone(problem),
        threads,
        multiply,
        output: vec![f32::NAN; problem.shape.c_len()],
        notes,
    })
}

struct Product<M> {
    problem: Rc<Matmul>,
    threads: Threads,
    multiply: M,
    output: Vec<f32>,
    notes: Vec<String>,
}

impl<M: Fn(&Threads, Shape, &[f32], &[f32], &mut [f32])> Routine for Product<M> {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.output.fill(f32::NAN);
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let Matmul { shape, a, b, .. } = &*self.problem;
        (self.multiply)(&self.threads, *shape, a, b, &mut self.output);
        Ok(())
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let error = self.problem.error_of_rows(0, &self.output);
        Ok(self.problem.verified(error))
    }

    fn park(&mut self) {
        self.threads.park();
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}

/// The products of a batch, each on one thread, on all cores.
pub(super) fn over_batch(shape: Shape, a: &[f32], b: &[f32], c: &mut [f32]) {
    let Shape { m, n, k, .. } = shape;
    c.par_chunks_mut(m * n)
        .zip(a.par_chunks(m * k).zip(b.par_chunks(k * n)))
        .for_each(|(c, (a, b))| {
            let (a, b, c) = views(shape, a, b, c);
            Library::Gemm.multiply(a, b, c);
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
            let (a, b, c) = views(shape, a, b, c);
            gemm(a, b, c, all);
        });
}

/// Blocks of columns of one product, each on one thread, on all cores: every core reads its own
/// part of B.
pub(super) fn by_columns(shape: Shape, a: &[f32], b: &[f32], c: &mut [f32]) {
    let (a, b, c) = views(shape, a, b, c);
    let blocks = Grid {
        rows: 1,
        columns: rayon::current_num_threads(),
    };
    blocks.multiply(Library::Gemm, &Threads::Rayon, a, b, c);
}

/// One product's A, B and C.
///
/// # Panics
/// Where a slice is not as long as one product has elements.
pub(super) fn views<'a, 'c>(
    Shape { m, n, k, .. }: Shape,
    a: &'a [f32],
    b: &'a [f32],
    c: &'c mut [f32],
) -> (
    ArrayView2<'a, f32>,
    ArrayView2<'a, f32>,
    ArrayViewMut2<'c, f32>,
) {
    assert!(a.len() == m * k && b.len() == k * n && c.len() == m * n);
    let fits = "the lengths were found right above";
    (
        ArrayView2::from_shape((m, k), a).expect(fits),
        ArrayView2::from_shape((k, n), b).expect(fits),
        ArrayViewMut2::from_shape((m, n), c).expect(fits),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_passes_its_check_at_every_shape_that_it_takes() {
        type Multiply = fn(Shape, &[f32], &[f32], &mut [f32]);
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
                let way = move |_: &Threads, shape: Shape, a: &[f32], b: &[f32], c: &mut [f32]| {
                    way(shape, a, b, c);
                };
                let mut routine = product(&problem, Threads::Rayon, way, Vec::new());
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
