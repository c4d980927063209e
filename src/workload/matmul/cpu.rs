//! Products on the CPU.

use std::fmt;
use std::rc::Rc;

use crate::workload::matmul::blocks::Library;
use crate::workload::matmul::candidates;
use crate::workload::matmul::cpu_ways;
use crate::workload::matmul::method::Method;
use crate::workload::matmul::problem::Matmul;
use crate::workload::matmul::rectangular;
use crate::workload::matmul::shape::Shape;
use crate::workload::prepare::threads::Threads;
use crate::workload::routine::{Made, Routine};

#[cfg(feature = "blas")]
pub use crate::workload::matmul::blas::blas;

/// Three nested loops on one thread, as a beginner writes them.
pub fn naive(problem: &Rc<Matmul>) -> Made {
    Ok(square(problem, Threads::One, Method::Naive, Vec::new()))
}

/// ndarray's product into an output that is allocated beforehand, on one thread. It calls
/// matrixmultiply.
pub fn ndarray(problem: &Rc<Matmul>) -> Made {
    let method = Method::OneThread(Library::Matrixmultiply);
    Ok(square(problem, Threads::One, method, Vec::new()))
}

/// matrixmultiply on one block of rows per thread, on all cores.
pub fn rayon(problem: &Rc<Matmul>) -> Made {
    let method = Method::row_blocks(rayon::current_num_threads());
    Ok(square(problem, Threads::Rayon, method, Vec::new()))
}

/// The fastest method at this order on this machine on up to `threads` threads. A short calibration
/// chooses between the loops, the crates gemm and matrixmultiply and multiply-adds without packing
/// on one thread, and these over grids of blocks of C that several threads share out. The threads
/// spin for a moment before they sleep. [`Routine::notes`] says which method it is.
pub fn best(problem: &Rc<Matmul>, threads: usize) -> Made {
    let threads = Threads::up_to(threads);
    let method = candidates::fastest(problem, &threads);
    let notes = vec![said(&method, method.threads(threads.count()))];
    // Threads that the method has no work for are not kept.
    let threads = match method.threads(threads.count()) {
        1 => Threads::One,
        _ => threads,
    };
    Ok(square(problem, threads, method, notes))
}

/// The note that says what was chosen.
fn said(method: &impl fmt::Display, threads: usize) -> String {
    let plural = if threads == 1 { "" } else { "s" };
    format!("{method} on {threads} thread{plural}, the fastest in calibration")
}

fn square(
    problem: &Rc<Matmul>,
    threads: Threads,
    method: Method,
    notes: Vec<String>,
) -> Box<dyn Routine> {
    let n = problem.order();
    let multiply = move |threads: &Threads, _: Shape, a: &[f32], b: &[f32], c: &mut [f32]| {
        method.multiply(threads, n, n, a, b, c);
    };
    rectangular::product(problem, threads, multiply, notes)
}

/// The fastest for a product of any shape, or a batch of them, on all cores, chosen as [`best`]
/// does.
pub fn best_of_shape(problem: &Rc<Matmul>) -> Made {
    let threads = Threads::all();
    let way = cpu_ways::fastest(problem, &threads);
    let notes = vec![said(&way, way.threads(problem.shape, threads.count()))];
    let threads = match way.threads(problem.shape, threads.count()) {
        1 => Threads::One,
        _ => threads,
    };
    let multiply = move |threads: &Threads, shape: Shape, a: &[f32], b: &[f32], c: &mut [f32]| {
        way.multiply(threads, shape, a, b, c);
    };
    Ok(rectangular::product(problem, threads, multiply, notes))
}

/// What the threads share out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The products of a batch, each on one thread.
    Products,
    /// Each product of a batch, one after the other, as the crate gemm itself does.
    EachProduct,
    /// Blocks of columns of one product, each on one thread.
    Columns,
}

/// A product of any shape, or a batch of them, by the crate gemm on all cores.
pub fn gemm(problem: &Rc<Matmul>, share: Share) -> Made {
    let threads = rayon::current_num_threads();
    let product = |multiply: fn(Shape, &[f32], &[f32], &mut [f32]), way| {
        let notes = vec![format!("gemm, {way}, {threads} threads")];
        let multiply = move |_: &Threads, shape: Shape, a: &[f32], b: &[f32], c: &mut [f32]| {
            multiply(shape, a, b, c);
        };
        Ok(rectangular::product(
            problem,
            Threads::Rayon,
            multiply,
            notes,
        ))
    };
    match share {
        Share::Products => product(rectangular::over_batch, "one product per thread"),
        Share::EachProduct if problem.shape.batch > 1 => {
            product(rectangular::within, "all threads in each product")
        }
        Share::EachProduct => product(rectangular::within, "all threads in the product"),
        Share::Columns => product(rectangular::by_columns, "one block of columns per thread"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::matmul::blocks::Grid;

    #[test]
    fn each_implementation_passes_its_check_and_repeats_itself() {
        for n in [1, 2, 3, 7, 16, 17, 63, 64, 65, 127, 257] {
            let problem = Rc::new(Matmul::new(n));
            for (name, make) in [
                ("naive", naive as fn(&Rc<Matmul>) -> _),
                ("ndarray", ndarray),
                ("rayon", rayon),
                ("best", |problem| {
                    best(problem, rayon::current_num_threads())
                }),
                ("best-1-thread", |problem| best(problem, 1)),
            ] {
                let mut routine: Box<dyn Routine> = make(&problem).unwrap();
                for _ in 0..2 {
                    routine.poison().unwrap();
                    assert!(!routine.check().unwrap().passed(), "{name}: poison passes");
                    routine.run().unwrap();
                    let verified = routine.check().unwrap();
                    assert!(verified.passed(), "{name} at {n}: {verified:?}");
                }
            }
        }
    }

    #[test]
    fn best_says_what_it_chose() {
        for n in [4, 64] {
            let threads = rayon::current_num_threads();
            let routine = best(&Rc::new(Matmul::new(n)), threads).unwrap();
            let notes = routine.notes();
            let said = notes[0].strip_suffix(", the fastest in calibration");
            let methods = candidates::candidates(n as usize, threads);
            let could: Vec<String> = methods.iter().map(Method::to_string).collect();
            let (said, _) = said.unwrap().split_once(" on ").unwrap();
            assert!(could.iter().any(|c| c == said), "{notes:?}, of {could:?}");
        }
    }

    /// The calibration of a large order multiplies corners.
    #[test]
    fn a_corner_is_multiplied_within_the_stride() {
        let problem = Matmul::new(40);
        let threads = Threads::up_to(2);
        for method in [
            Method::Naive,
            Method::OneThread(Library::Matrixmultiply),
            Method::OneThread(Library::Gemm),
            Method::Blocks(Library::Matrixmultiply, Grid::of(4)),
            Method::Blocks(Library::Gemm, Grid::of(6)),
        ] {
            let mut c = vec![f32::NAN; 40 * 40];
            method.multiply(&threads, 33, 40, problem.a(), problem.b(), &mut c);
            for (i, row) in c.chunks(40).enumerate() {
                for (j, &c) in row.iter().enumerate() {
                    if i >= 33 || j >= 33 {
                        assert!(c.is_nan(), "{method}: wrote ({i}, {j})");
                        continue;
                    }
                    let sum: f64 = (0..33)
                        .map(|k| {
                            f64::from(problem.a[i * 40 + k]) * f64::from(problem.b[k * 40 + j])
                        })
                        .sum();
                    assert!(
                        (f64::from(c) - sum).abs() < 1e-5,
                        "{method}: ({i}, {j}) is {c}, not {sum}"
                    );
                }
            }
        }
    }
}
