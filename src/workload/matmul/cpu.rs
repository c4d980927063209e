//! Products on the CPU.

use std::rc::Rc;

use crate::model::verified::Verified;
use crate::workload::matmul::blocks::Library;
use crate::workload::matmul::candidates;
use crate::workload::matmul::method::Method;
use crate::workload::matmul::problem::Matmul;
use crate::workload::routine::{Routine, RoutineError};

/// Three nested loops, one thread: what a newcomer writes.
pub fn naive(problem: &Rc<Matmul>) -> Result<Box<dyn Routine>, RoutineError> {
    Ok(Product::boxed(problem, Method::Naive))
}

/// ndarray's product into an output that is there already, one thread. It calls
/// matrixmultiply.
pub fn ndarray(problem: &Rc<Matmul>) -> Result<Box<dyn Routine>, RoutineError> {
    let method = Method::OneThread(Library::Matrixmultiply);
    Ok(Product::boxed(problem, method))
}

/// matrixmultiply on one block of rows a thread, all cores.
pub fn rayon(problem: &Rc<Matmul>) -> Result<Box<dyn Routine>, RoutineError> {
    let method = Method::row_blocks(rayon::current_num_threads());
    Ok(Product::boxed(problem, method))
}

/// The fastest at this order on this machine: a short calibration chooses between the loops,
/// the crates gemm and matrixmultiply on one thread, and both over grids of blocks of C that
/// the threads share out among them. [`Routine::notes`] says which.
pub fn best(problem: &Rc<Matmul>) -> Result<Box<dyn Routine>, RoutineError> {
    Ok(best_on(problem, rayon::current_num_threads()))
}

/// The fastest on one thread, to be held against what one core can do.
pub fn best_1_thread(problem: &Rc<Matmul>) -> Result<Box<dyn Routine>, RoutineError> {
    Ok(best_on(problem, 1))
}

fn best_on(problem: &Rc<Matmul>, threads: usize) -> Box<dyn Routine> {
    let mut product = Product::new(problem, Method::Naive);
    let methods = candidates::candidates(problem.order(), threads);
    product.method = candidates::fastest(&methods, problem, &mut product.output);
    product.notes = vec![format!("{}, the fastest in calibration", product.method)];
    Box::new(product)
}

/// `cblas_sgemm` of the BLAS that was linked, with the number of threads that it chooses.
#[cfg(feature = "blas")]
pub fn blas(problem: &Rc<Matmul>) -> Result<Box<dyn Routine>, RoutineError> {
    crate::workload::matmul::blas::blas(problem)
}

struct Product {
    problem: Rc<Matmul>,
    method: Method,
    output: Vec<f32>,
    notes: Vec<String>,
}

impl Product {
    fn new(problem: &Rc<Matmul>, method: Method) -> Self {
        Self {
            problem: Rc::clone(problem),
            method,
            output: vec![f32::NAN; problem.shape.c_len()],
            notes: Vec::new(),
        }
    }

    fn boxed(problem: &Rc<Matmul>, method: Method) -> Box<dyn Routine> {
        Box::new(Self::new(problem, method))
    }
}

impl Routine for Product {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.output.fill(f32::NAN);
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let Matmul { a, b, .. } = &*self.problem;
        let n = self.problem.order();
        self.method.multiply(n, n, a, b, &mut self.output);
        Ok(())
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let error = self.problem.error_of_rows(0, &self.output);
        Ok(self.problem.verified(error))
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
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
                ("best", best),
                ("best-1-thread", best_1_thread),
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
            let routine = best(&Rc::new(Matmul::new(n))).unwrap();
            let notes = routine.notes();
            let said = notes[0].strip_suffix(", the fastest in calibration");
            let methods = candidates::candidates(n as usize, rayon::current_num_threads());
            let could: Vec<String> = methods.iter().map(Method::to_string).collect();
            assert!(
                could.iter().any(|c| Some(c.as_str()) == said),
                "{notes:?}, of {could:?}"
            );
        }
    }

    /// The calibration of a large order multiplies corners.
    #[test]
    fn a_corner_is_multiplied_within_the_stride() {
        let problem = Matmul::new(40);
        for method in [
            Method::Naive,
            Method::OneThread(Library::Matrixmultiply),
            Method::OneThread(Library::Gemm),
            Method::Blocks(Library::Matrixmultiply, Grid::of(4)),
            Method::Blocks(Library::Gemm, Grid::of(6)),
        ] {
            let mut c = vec![f32::NAN; 40 * 40];
            method.multiply(33, 40, problem.a(), problem.b(), &mut c);
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
