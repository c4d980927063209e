//! Products on the CPU.

use std::rc::Rc;

use crate::workload::matmul::blocks::Library;
use crate::workload::matmul::element::Element;
use crate::workload::matmul::method::{
    Method, fastest_of_order, fastest_of_shape, loops, products,
};
use crate::workload::matmul::problem::Matmul;
use crate::workload::matmul::shape::Shape;
use crate::workload::prepare::Threads;
use crate::workload::routine::{Made, Routine};
use crate::workload::simple::OnCpu;

/// Three nested loops on one thread, as a beginner writes them.
pub fn naive<T: Element>(problem: &Rc<Matmul<T>>) -> Made {
    Ok(by(problem, Threads::One, Method::Naive, Vec::new()))
}

/// ndarray's product into an output that is allocated beforehand, on one thread. It calls
/// matrixmultiply.
pub fn ndarray<T: Element>(problem: &Rc<Matmul<T>>) -> Made {
    let method = Method::OneThread(Library::Matrixmultiply);
    Ok(by(problem, Threads::One, method, Vec::new()))
}

/// matrixmultiply on one block of rows per thread, on all cores.
pub fn rayon<T: Element>(problem: &Rc<Matmul<T>>) -> Made {
    let method = Method::row_blocks(rayon::current_num_threads());
    Ok(by(problem, Threads::Rayon, method, Vec::new()))
}

/// The fastest method at this order on this machine on up to `threads` threads. A short calibration
/// chooses between the loops, the crates gemm and matrixmultiply and multiply-adds without packing
/// on one thread, and these over grids of blocks of C that several threads share out. The threads
/// spin for a moment before they sleep. [`Routine::notes`] says which method it is.
pub fn best<T: Element>(problem: &Rc<Matmul<T>>, threads: usize) -> Made {
    Ok(chosen(problem, Threads::up_to(threads), fastest_of_order))
}

/// The fastest for a product of any shape, or a batch of them, on all cores, chosen as [`best`]
/// does.
pub fn best_of_shape(problem: &Rc<Matmul>) -> Made {
    Ok(chosen(problem, Threads::all(), fastest_of_shape))
}

fn chosen<T: Element>(
    problem: &Rc<Matmul<T>>,
    threads: Threads,
    fastest: fn(&Matmul<T>, &Threads) -> Method,
) -> Box<dyn Routine> {
    let method = fastest(problem, &threads);
    let count = method.threads(problem.shape, threads.count());
    let plural = if count == 1 { "" } else { "s" };
    let note = format!("{method} on {count} thread{plural}, the fastest in calibration");
    // Threads that the method has no work for are not kept.
    let threads = if count == 1 { Threads::One } else { threads };
    by(problem, threads, method, vec![note])
}

fn by<T: Element>(
    problem: &Rc<Matmul<T>>,
    threads: Threads,
    method: Method,
    notes: Vec<String>,
) -> Box<dyn Routine> {
    // Each method is compiled into its routine, because the smallest products take nanoseconds.
    match method {
        Method::Naive => {
            let multiply = |_: &Threads, Shape { n, .. }: Shape, a: &[T], b: &[T], c: &mut [T]| {
                loops(n, n, a, b, c);
            };
            product(problem, threads, multiply, notes)
        }
        Method::OneThread(library) => {
            let multiply = move |_: &Threads, shape: Shape, a: &[T], b: &[T], c: &mut [T]| {
                products(shape, shape, a, b, c).for_each(|(a, b, c)| library.multiply(a, b, c));
            };
            product(problem, threads, multiply, notes)
        }
        method => {
            let multiply = move |threads: &Threads, shape: Shape, a: &[T], b: &[T], c: &mut [T]| {
                method.multiply(threads, shape, shape, a, b, c);
            };
            product(problem, threads, multiply, notes)
        }
    }
}

/// A product by `multiply`, which gets the threads, the shape, A and B, and writes C. `notes` describe
/// how.
pub(super) fn product<T: Element>(
    problem: &Rc<Matmul<T>>,
    threads: Threads,
    multiply: impl Fn(&Threads, Shape, &[T], &[T], &mut [T]) + 'static,
    notes: Vec<String>,
) -> Box<dyn Routine> {
    let (input, judge) = (problem.clone(), problem.clone());
    Box::new(OnCpu {
        output: vec![T::NAN; problem.shape.c_len()],
        poison: T::NAN,
        threads,
        compute: move |threads: &Threads, c: &mut [T]| {
            multiply(threads, input.shape, &input.a, &input.b, c);
        },
        check: move |c: &[T]| Ok(judge.verified(judge.error_of_rows(0, c))),
        notes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::matmul::blocks::Grid;
    use crate::workload::matmul::method::of_order;

    #[test]
    fn best_says_what_it_chose() {
        for n in [4, 64] {
            let threads = rayon::current_num_threads();
            let routine = best(&Rc::new(Matmul::new(n)), threads).unwrap();
            let notes = routine.notes();
            let said = notes[0].strip_suffix(", the fastest in calibration");
            let methods = of_order::<f32>(n as usize, threads);
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
            let [part, whole] = [33, 40].map(Shape::square);
            method.multiply(&threads, part, whole, problem.a(), problem.b(), &mut c);
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
