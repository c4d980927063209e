//! The signals, the cost of transforming them, and the accepted error of a spectrum.

use std::sync::OnceLock;

use crossover_fourier::Complex;
use rayon::prelude::*;

use crate::model::{Cost, Verified};
use crate::workload::matmul::{UNIT_ROUNDOFF, uniform};
use crate::workload::routine::{Workload, visit_f32};
use crossover_arithmetic::error::worse;

/// Signals that are transformed at once.
pub const BATCH: usize = 64;

/// [`BATCH`] complex signals of N values, both parts uniform in [-1, 1), the same in every run.
pub struct Fft {
    pub(super) n: usize,
    /// One signal after the other, the real part of each value before its imaginary one.
    pub(super) x: Vec<f32>,
    expected: OnceLock<Vec<Vec<Complex<f64>>>>,
}

/// Interleaved real and imaginary parts as complex numbers.
pub(super) fn complex(pairs: &[f32]) -> &[Complex<f32>] {
    bytemuck::cast_slice(pairs)
}

/// As [`complex`], to write to.
pub(super) fn complex_mut(pairs: &mut [f32]) -> &mut [Complex<f32>] {
    bytemuck::cast_slice_mut(pairs)
}

impl Fft {
    /// The signals whose spectra are compared with float64: all of up to 2^20 values together, else
    /// every ninth, the first and the last among them.
    fn compared(&self) -> impl Iterator<Item = usize> {
        let step = if self.n * BATCH <= 1 << 20 { 1 } else { 9 };
        (0..BATCH).step_by(step)
    }

    /// Their spectra in float64. Tests compare these with sums by the definition.
    pub(super) fn expected(&self) -> &[Vec<Complex<f64>>] {
        self.expected.get_or_init(|| {
            let fft = crossover_fourier::plan_f64(self.n);
            let signals: Vec<usize> = self.compared().collect();
            let spectrum = |&signal: &usize| {
                let x = complex(&self.x)[signal * self.n..][..self.n].iter();
                let mut x: Vec<_> = x.map(|x| Complex::new(x.re.into(), x.im.into())).collect();
                fft.process(&mut x);
                x
            };
            signals.par_iter().map(spectrum).collect()
        })
    }

    /// Compares every value of the spectra with float64, and of `back`, their inverse transforms, with
    /// the signals. The inverse divides by N.
    ///
    /// The error is the largest of any value, relative to the root mean square of the expected values.
    /// Roundings are independent, and each of the log2 N steps adds some 0.6 u to the root mean square
    /// of the error, u = 2^-24 (J. C. Schatzman, SIAM J. Sci. Comput. 17, 1996). The largest of 2^26
    /// values is some 6 times that. A length that is no power of two is a convolution: three transforms
    /// of up to four times the length. Twice the sum is accepted; the inverse has the steps of both
    /// transforms.
    pub(super) fn check(&self, spectra: &[f32], back: &[f32]) -> Verified {
        let squares = self
            .x
            .par_iter()
            .map(|x| f64::from(*x).powi(2))
            .sum::<f64>();
        let of_signal = (squares / (self.n * BATCH) as f64).sqrt();
        let of_spectrum = of_signal * (self.n as f64).sqrt();
        let wide = |x: &Complex<f32>| Complex::new(f64::from(x.re), f64::from(x.im));
        let whole = spectra.len() == self.x.len() && back.len() == self.x.len();
        let mut errors = vec![if whole { 0.0 } else { f64::INFINITY }];
        let spectra = complex(spectra).chunks(self.n);
        for (signal, expected) in self.compared().zip(self.expected()) {
            let spectrum = spectra.clone().nth(signal).unwrap_or_default();
            let found = spectrum.par_iter().zip(expected);
            let error = found.map(|(found, expected)| (wide(found) - expected).norm());
            errors.push(error.reduce(|| 0.0, worse) / of_spectrum);
        }
        let found = complex(back).par_iter().zip(complex(&self.x));
        let error = found.map(|(found, x)| (wide(found) - wide(x)).norm());
        errors.push(error.reduce(|| 0.0, worse) / of_signal);
        Verified {
            error: errors.into_iter().fold(0.0, worse),
            bound: bound(self.n),
            method: "largest error of spectrum and inverse, relative to the root mean square"
                .to_owned(),
        }
    }
}

fn bound(n: usize) -> f64 {
    let log = |n: usize| (n as f64).log2();
    let steps = if n.is_power_of_two() {
        log(n)
    } else {
        3.0 * log(4 * n)
    };
    2.0 * 6.0 * 0.6 * UNIT_ROUNDOFF * (2.0 * steps + 1.0).sqrt()
}

impl Workload for Fft {
    fn new(n: u64) -> Self {
        let n = n as usize;
        Self {
            n,
            x: uniform(2 * n * BATCH, 0x40),
            expected: OnceLock::new(),
        }
    }

    fn host_bytes(n: u64) -> u64 {
        // Signals and spectra, once more in pinned memory, the inverse, and eight or more in float64.
        (5 * 8 + 8) * n * BATCH as u64
    }

    fn device_bytes(n: u64) -> u64 {
        // Signals, spectra, the inverse, and what two plans of the library keep for themselves.
        (3 + 8) * 8 * n * BATCH as u64
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit_f32(&self.x, visit);
    }
}

/// Cost of the transforms where they are computed: the usual 5 N log2 N FLOP of each, whatever an
/// algorithm needs, and each value read and written once.
pub fn cost(n: u64) -> Cost {
    let n = n as f64;
    Cost::default()
        .flop(5.0 * n * n.log2() * BATCH as f64)
        .bytes(16.0 * n * BATCH as f64)
        .written(8.0 * n * BATCH as f64)
        .launches(1)
}
