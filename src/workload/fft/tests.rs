use std::f64::consts::TAU;

use crossover_fourier::Complex;

use super::cpu::inverse;
use super::problem::complex;
use super::*;
use crate::workload::routine::Workload;

fn spectra(problem: &std::rc::Rc<Fft>) -> Vec<f32> {
    let expected = problem.expected().iter().flatten();
    expected.flat_map(|x| [x.re as f32, x.im as f32]).collect()
}

#[test]
fn the_reference_is_the_sum_of_the_definition() {
    for n in [1, 2, 7, 64, 97, 1000] {
        let problem = Fft::new(n);
        let signal = &complex(&problem.x)[..n as usize];
        for (k, found) in problem.expected()[0].iter().enumerate() {
            let term = |(j, x): (usize, &Complex<f32>)| {
                let turns = (j as u64 * k as u64 % n) as f64 / n as f64;
                Complex::new(f64::from(x.re), f64::from(x.im)) * Complex::cis(-TAU * turns)
            };
            let sum: Complex<f64> = signal.iter().enumerate().map(term).sum();
            assert!((found - sum).norm() < 1e-12 * n as f64, "{k} of {n}");
        }
    }
}

#[test]
fn a_rounded_spectrum_passes_and_a_wrong_value_fails() {
    for n in [1, 8, 97, 1024] {
        let problem = std::rc::Rc::new(Fft::new(n));
        let right = spectra(&problem);
        let back = inverse(n as usize, &right);
        let verified = problem.check(&right, &back);
        assert!(verified.passed(), "{n}: {verified:?}");
        for at in [0, right.len() - 1] {
            let mut wrong = right.clone();
            wrong[at] = f32::NAN;
            assert!(!problem.check(&wrong, &back).passed());
            wrong[at] = right[at] + 1e-3 * (n as f32).sqrt();
            assert!(!problem.check(&wrong, &back).passed());
            let mut wrong = back.clone();
            wrong[at] = f32::NAN;
            assert!(!problem.check(&right, &wrong).passed());
        }
        assert!(!problem.check(&right, &[]).passed() || n == 0);
    }
}

/// In the last step of a transform by halves, a twiddle that is off by a thousandth of a turn.
#[test]
fn one_wrong_twiddle_is_found() {
    let n = 256;
    let problem = std::rc::Rc::new(Fft::new(n as u64));
    let right = spectra(&problem);
    for k in (0..n / 2).step_by(7) {
        let mut wrong = right.clone();
        let [low, high] = [k, k + n / 2].map(|at| Complex::new(right[2 * at], right[2 * at + 1]));
        // The values are the sum and the difference of an even and a turned odd one.
        let odd = (low - high) * 0.5;
        let off = odd * Complex::cis(TAU as f32 * 1e-3) - odd;
        for (at, value) in [(k, low + off), (k + n / 2, high - off)] {
            [wrong[2 * at], wrong[2 * at + 1]] = [value.re, value.im];
        }
        let verified = problem.check(&wrong, &inverse(n, &wrong));
        assert!(!verified.passed(), "twiddle {k}: {verified:?}");
    }
}
