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

/// The last step of a transform by halves, whose twiddle at `wrong` is off by a thousandth of a turn.
fn last_step(even: &[Complex<f64>], odd: &[Complex<f64>], wrong: Option<usize>) -> Vec<f32> {
    let half = even.len();
    let twiddle = |k: usize| {
        let off = if wrong == Some(k) { 1e-3 } else { 0.0 };
        Complex::cis(-TAU * (k as f64 / (2 * half) as f64 + off))
    };
    let (low, high): (Vec<_>, Vec<_>) = (0..half)
        .map(|k| (even[k] + twiddle(k) * odd[k], even[k] - twiddle(k) * odd[k]))
        .unzip();
    let spectrum = low.into_iter().chain(high);
    spectrum.flat_map(|x| [x.re as f32, x.im as f32]).collect()
}

#[test]
fn one_wrong_twiddle_is_found() {
    let n = 256;
    let problem = std::rc::Rc::new(Fft::new(n as u64));
    let half = crossover_fourier::plan_f64(n / 2);
    let half_spectrum = |parity: usize| {
        let signal = complex(&problem.x)[..n].iter().skip(parity).step_by(2);
        let mut x: Vec<_> = signal
            .map(|x| Complex::new(f64::from(x.re), f64::from(x.im)))
            .collect();
        half.process(&mut x);
        x
    };
    let (even, odd) = (half_spectrum(0), half_spectrum(1));
    let check = |wrong| {
        let mut spectra = spectra(&problem);
        spectra[..2 * n].copy_from_slice(&last_step(&even, &odd, wrong));
        problem.check(&spectra, &inverse(n, &spectra))
    };
    assert!(check(None).passed(), "{:?}", check(None));
    for wrong in 0..n / 2 {
        assert!(!check(Some(wrong)).passed(), "twiddle {wrong}");
    }
}
