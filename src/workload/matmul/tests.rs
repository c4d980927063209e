//! The check of a product: what it accepts and what it finds.

use std::rc::Rc;

use crate::workload::matmul::cpu;
use crate::workload::matmul::problem::{LARGEST, Matmul, Reference, bound};
use crate::workload::network::tensor::rounded::to_nearest;
use crate::workload::prepare::Threads;
use crate::workload::product::{CpuPlan, Library, Shape, loops};
use crate::workload::routine::Workload;
use crossover_arithmetic::error::worse;

type Make = fn(Shape, &[f32], &[f32]) -> Reference;
const BOTH: [(Make, &str); 2] = [
    (Reference::full, "full"),
    (Reference::freivalds, "freivalds"),
];

fn product(shape: Shape, a: &[f32], b: &[f32]) -> Vec<f32> {
    let mut c = vec![f32::NAN; shape.c_len()];
    CpuPlan::OneThread(Library::Gemm).multiply_each(&Threads::One, shape, a, b, &mut c);
    c
}

/// A few orders below and above the switch, odd ones included.
fn each(check: impl Fn(&Matmul, &Reference, &[f32], &str)) {
    for n in [2, 7, 64, 127, 257, 512] {
        let problem = Matmul::new(n);
        let c = product(problem.shape(), problem.a(), problem.b());
        for (make, name) in BOTH {
            let reference = make(problem.shape(), problem.a(), problem.b());
            check(&problem, &reference, &c, &format!("{name} at {n}"));
        }
    }
}

fn transposed(values: &[f32], n: usize) -> Vec<f32> {
    (0..n * n).map(|i| values[i % n * n + i / n]).collect()
}

#[test]
fn a_right_product_passes_with_room_also_in_blocks_of_rows() {
    each(|problem, reference, c, what| {
        let n = problem.order();
        let error = reference.error_of_rows(0, c);
        assert!(error <= bound(n) / 2.0, "{what}: {error}");
        let blocks = c.chunks(3 * n).enumerate();
        let errors = blocks.map(|(i, rows)| reference.error_of_rows(3 * i, rows));
        assert_eq!(errors.fold(0.0, worse), error, "{what}");
    });
}

#[test]
fn one_value_that_is_wrong_or_unwritten_is_rejected() {
    each(|problem, reference, c, what| {
        let off = 0.01 * (problem.order() as f32).sqrt();
        for (i, off) in [0, c.len() / 2, c.len() - 1]
            .map(|i| [(i, off), (i, f32::NAN)])
            .concat()
        {
            let mut c = c.to_vec();
            c[i] += off;
            let verified = problem.verified(reference.error_of_rows(0, &c));
            assert!(!verified.passed(), "{what}: {off} at {i}");
        }
    });
}

/// The error of TF32 does not shrink with the order, and even at the largest it lies above the bound.
#[test]
fn operands_that_are_transposed_swapped_or_rounded_to_tf32_are_rejected() {
    each(|problem, reference, _, what| {
        let (n, a, b) = (problem.order(), problem.a(), problem.b());
        // TF32 keeps 10 of the 23 bits of the fraction.
        let rounded = |values: &[f32]| values.iter().map(|&v| to_nearest(v, 10)).collect();
        let of_tf32 = if n >= 64 {
            3.0 * bound(LARGEST as usize)
        } else {
            bound(n)
        };
        for (a, b, bound) in [
            (transposed(a, n), b.to_vec(), bound(n)),
            (a.to_vec(), transposed(b, n), bound(n)),
            (b.to_vec(), a.to_vec(), bound(n)),
            (rounded(a), rounded(b), of_tf32.max(bound(n))),
        ] {
            let error = reference.error_of_rows(0, &product(problem.shape(), &a, &b));
            assert!(error > bound, "{what}: {error}");
        }
    });
}

#[test]
fn rectangular_products_and_batches() {
    let shapes = [(1, 1, 9, 40), (1, 3, 17, 5), (4, 2, 6, 3), (3, 8, 5, 64)];
    for (batch, m, n, k) in shapes {
        let problem = Matmul::of(Shape { batch, m, n, k });
        let c = product(problem.shape(), problem.a(), problem.b());
        for (make, name) in BOTH {
            let reference = make(problem.shape(), problem.a(), problem.b());
            let error = reference.error_of_rows(0, &c);
            assert!(
                error < bound(k),
                "{name} of {batch}, {m}, {n}, {k}: {error}"
            );
            let last = c.len() - 1;
            let mut wrong = c.clone();
            wrong[last] += 0.5;
            assert!(reference.error_of_rows(0, &wrong) > bound(k), "{name}");
        }
    }
}

/// Known answers: of matrices that cancel but for what float64 rounds off, the two float64 of the references
/// keep it; a product by gemm and one of operands of f32 are told apart by a factor of 10^6.
#[test]
fn products_in_float64_are_held_to_its_roundings() {
    for n in [1, 7, 64, 257] {
        let problem: Rc<Matmul<f64>> = Rc::new(Workload::new(n));
        let mut routine = cpu::best(&problem, 2).unwrap();
        let chosen = routine.notes()[0].clone();
        assert!(chosen.ends_with(", the fastest in calibration"), "{chosen}");
        routine.poison().unwrap();
        assert!(!routine.check().unwrap().passed(), "poison passes at {n}");
        routine.run().unwrap();
        let verified = routine.check().unwrap();
        assert!(
            verified.passed() && verified.bound < 2e-14,
            "{n}: {verified:?}"
        );

        let shape = problem.shape();
        let narrow = |m: &[f64]| -> Vec<f64> { m.iter().map(|&v| f64::from(v as f32)).collect() };
        let (a, b) = (narrow(problem.a()), narrow(problem.b()));
        let mut c = vec![f64::NAN; shape.c_len()];
        loops(shape.n, &a, &b, &mut c);
        let verified = problem.verified(problem.error_of_rows(0, &c));
        assert!(verified.error > 1e5 * verified.bound, "{n}: {verified:?}");
    }
    // (1 + u)(1 - u) - 1 = -u², which is nothing in float64.
    let u = f64::EPSILON;
    let (a, b) = ([1.0 + u, 1.0], [1.0 - u, -1.0]);
    let shape = Shape {
        k: 2,
        ..Shape::square(1)
    };
    for make in [Reference::full, Reference::freivalds] {
        let reference = make(shape, &a, &b);
        assert_eq!(reference.error_of_rows(0, &[-u * u]), 0.0);
        assert_eq!(reference.error_of_rows(0, &[0.0]), 1.0);
    }
}
