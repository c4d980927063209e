//! Arithmetic on slices, in every instruction set of this CPU: wider sums against numbers of more digits, AdamW
//! against its definition, products in place, and the loops of limits. The sine is tested beside its kernel, by the
//! package that has both.

use ndarray::{Array2, linalg::general_mat_mul, s};

use crossover_arithmetic::adamw::{Counter, Value};
use crossover_arithmetic::direct::{multiply_by, takes};
use crossover_arithmetic::exponential::exponentials;
use crossover_arithmetic::limits::{BLOCK_BYTES, CHAINS};
use crossover_arithmetic::{DoubleDouble, Isa, Wide};

/// Values that float64 cannot hold: 0.1², and its sum with -0.01.
#[test]
fn a_product_keeps_what_float64_rounds_off() {
    let square = DoubleDouble::from(0.0).plus_product(0.1, 0.1f64.into());
    let rest = square.minus(DoubleDouble::from(0.1 * 0.1));
    assert_eq!(rest, 0.1f64.mul_add(0.1, -(0.1 * 0.1)));
    assert!(rest != 0.0 && rest.abs() < 1e-18);
    let large = DoubleDouble::from(1e30).plus_product(1.0, 1f64.into());
    assert_eq!(large.minus(DoubleDouble::from(1e30)), 1.0);
}

/// The definition as PyTorch's page writes it down, step by step.
#[test]
fn an_update_is_that_of_the_definition() {
    let mut value = Value {
        w: 0.5,
        m: 0.0,
        v: 0.0,
    };
    let (mut counter, mut m, mut v, mut w) = (Counter::after(0), 0.0f64, 0.0f64, 0.5f64);
    for (t, g) in [(1, 0.1f64), (2, -0.2), (3, 0.3)] {
        counter = counter.next();
        value = value.updated(g, counter);
        m = 0.9 * m + 0.1 * g;
        v = 0.999 * v + 0.001 * g * g;
        let (m_hat, v_hat) = (m / (1.0 - 0.9f64.powi(t)), v / (1.0 - 0.999f64.powi(t)));
        w = w - 0.001 * 0.01 * w - 0.001 * m_hat / (v_hat.sqrt() + 1e-8);
        assert!((value.w - w).abs() < 1e-15 && (value.m - m).abs() < 1e-15);
        assert!((value.v - v).abs() < 1e-15, "{value:?}");
    }
}

#[test]
fn a_counter_that_counts_is_one_that_starts_later() {
    let counted = (0..10).fold(Counter::after(0), |counter, _| counter.next());
    let started = Counter::after(10).values();
    for (a, b) in counted.values().into_iter().zip(started) {
        assert!((a / b - 1.0).abs() < 1e-14 || a == b, "{a} {b}");
    }
}

#[test]
fn exponentials_are_right_within_two_ulp() {
    let step = if cfg!(miri) { 1_000 } else { 1 };
    for i in (0..=870_000).step_by(step) {
        let x = -1e-4 * i as f32;
        // e^x of the largest of a row is 1.
        let mut row = [x; 16];
        row[0] = 0.0;
        let (largest, sum) = exponentials(&mut row, 1.0);
        let expected = f64::from(x).exp();
        let error = (f64::from(row[1]) / expected - 1.0).abs();
        assert!(error <= 4.0 * 2f64.powi(-24), "{x}: {error:e}");
        let sum_error = (f64::from(sum) / (1.0 + 15.0 * expected) - 1.0).abs();
        assert!(largest == 0.0 && row[0] == 1.0 && sum_error < 1e-6);
    }
}

fn value((i, j): (usize, usize)) -> f32 {
    ((i * 7 + j * 3) % 11) as f32 - 5.0
}

#[test]
fn every_shape_and_stride_is_exact_and_nothing_beside_it_is_touched() {
    let lengths = [
        1, 2, 3, 7, 8, 12, 13, 15, 16, 17, 31, 33, 47, 48, 49, 64, 65, 97,
    ];
    // Miri takes hours for all of them.
    let lengths = if cfg!(miri) {
        &lengths[2..4]
    } else {
        &lengths[..]
    };
    for isa in Isa::available() {
        let name = isa.name();
        for &m in lengths {
            for &n in lengths {
                let k = (m * 5 + n * 3) % 150 + 1;
                // A transposed and a plain one; B and C parts of wider ones.
                for a in [
                    Array2::from_shape_fn((m, k), value),
                    Array2::from_shape_fn((k, m), value).reversed_axes(),
                ] {
                    let b = Array2::from_shape_fn((k, n + 5), value);
                    let mut c = Array2::from_elem((m + 1, n + 3), f32::NAN);
                    let mut expected = Array2::zeros((m, n));
                    general_mat_mul(1.0, &a, &b.slice(s![.., 2..n + 2]), 0.0, &mut expected);
                    multiply_by(
                        isa,
                        a.view(),
                        b.slice(s![.., 2..n + 2]),
                        c.slice_mut(s![..m, 1..=n]),
                    );
                    assert_eq!(c.slice(s![..m, 1..=n]), expected, "{name}, {m} x {n} x {k}");
                    c.slice_mut(s![..m, 1..=n]).fill(f32::NAN);
                    assert!(c.iter().all(|x| x.is_nan()), "{name}, {m} x {n} x {k}");
                }
            }
        }
    }
}

#[test]
fn no_terms_give_zeros() {
    for isa in Isa::available() {
        let (a, b) = (Array2::zeros((3, 0)), Array2::zeros((0, 20)));
        let mut c = Array2::from_elem((3, 20), f32::NAN);
        multiply_by(isa, a.view(), b.view(), c.view_mut());
        assert!(c.iter().all(|&x| x == 0.0));
    }
}

#[test]
fn columns_that_lie_apart_are_not_taken() {
    let matrix = Array2::<f32>::zeros((4, 6));
    let mut c = Array2::zeros((4, 6));
    assert!(takes(&matrix.view(), &c.view_mut()));
    assert!(!takes(&matrix.t(), &c.view_mut()));
    assert!(!takes(&matrix.view(), &c.view_mut().reversed_axes()));
}

#[test]
#[cfg_attr(miri, ignore = "Miri has no fence behind stores past the caches")]
fn every_instruction_set_writes_every_word() {
    #[repr(align(64))]
    struct Lines([u64; 2 * BLOCK_BYTES / 8]);
    for (isa, past_caches) in Isa::available()
        .into_iter()
        .flat_map(|isa| [(isa, false), (isa, true)])
    {
        let mut lines = Lines([0; 2 * BLOCK_BYTES / 8]);
        isa.write(&mut lines.0, past_caches);
        assert!(lines.0.iter().all(|word| *word == 1), "{}", isa.name());
    }
}

#[test]
fn every_instruction_set_counts_its_lanes() {
    assert_eq!(Isa::PORTABLE.multiply_add(10), 2.0 * CHAINS as f64 * 10.0);
    for isa in Isa::available() {
        let lanes = isa.multiply_add(10) / Isa::PORTABLE.multiply_add(10);
        let expected = match isa.name() {
            "AVX-512" => 16.0,
            "AVX2" => 8.0,
            "NEON" => 4.0,
            _ => 1.0,
        };
        assert_eq!(lanes, expected, "{}", isa.name());
    }
}
