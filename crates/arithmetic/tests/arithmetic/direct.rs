//! Products in place, in every instruction set.

use ndarray::{Array2, linalg::general_mat_mul, s};

use crossover_arithmetic::Isa;
use crossover_arithmetic::direct::{multiply_by, takes};

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
