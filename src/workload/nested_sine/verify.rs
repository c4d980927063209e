//! The float64 reference, and how far each implementation may be from it.

use std::ops::Range;

use rayon::prelude::*;

use crate::model::Verified;
use crate::workload::nested_sine::problem::{NestedSine, PASSES};
use crate::workload::routine::RoutineError;

/// Bytes of the value that outputs are filled with before a run: 3.004 as float32, which no
/// sine is. NaN would not do, since some results are NaN.
pub(super) const POISON_BYTE: u8 = 0x40;
/// [`POISON_BYTE`] four times.
pub(crate) const POISON: f32 = f32::from_bits(u32::from_ne_bytes([POISON_BYTE; 4]));

/// The error that is accepted of an implementation.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tolerance {
    /// Each pass is within this many ulp for every input.
    ///
    /// A later pass does not magnify a relative error, since |x cos x / sin x| ≤ 1 on
    /// [-1, 1]. An ulp is 2^-24 to 2^-23 of a value, so an error of e ulp grows to at most
    /// 2e ulp of the final result: over four passes 2e + 2e + 2e + e = 7e.
    UlpPerPass(f64),
    /// Each pass is within this distance of the sine on [-π, π]. Elsewhere all that is required is a
    /// value in [-1, 1], and NaN where the input is infinite or NaN. A later pass does not magnify
    /// an absolute error, since |cos x| ≤ 1, so the errors of the four passes add up. The reference
    /// is not rounded to float32 and adds none.
    AbsolutePerPass(f64),
}

impl Tolerance {
    fn bound(self) -> f64 {
        match self {
            Self::UlpPerPass(e) => 7.0 * e,
            Self::AbsolutePerPass(e) => f64::from(PASSES) * e,
        }
    }

    fn error(self, x: f32, y: f32, expected: f64) -> f64 {
        match self {
            Self::UlpPerPass(_) => ulp_error(y, expected),
            Self::AbsolutePerPass(_) if f64::from(x).abs() <= std::f64::consts::PI => {
                let error = (f64::from(y) - expected).abs();
                if error.is_nan() { f64::INFINITY } else { error }
            }
            Self::AbsolutePerPass(_) if y.is_nan() != expected.is_nan() || y.abs() > 1.0 => {
                f64::INFINITY
            }
            Self::AbsolutePerPass(_) => 0.0,
        }
    }
}

/// Distance of `y` from `expected` in ulp, the spacing of float32 at the expected value.
/// 0 where both are NaN, infinite where one is.
pub(super) fn ulp_error(y: f32, expected: f64) -> f64 {
    match (y.is_nan(), expected.is_nan()) {
        (true, true) => 0.0,
        (false, false) => (f64::from(y) - expected).abs() / ulp(expected),
        _ => f64::INFINITY,
    }
}

/// Spacing of float32 at |x| ≤ 1, in the binade below where x is a power of two.
fn ulp(x: f64) -> f64 {
    // The exponent of the float64, so that a value that only rounds up to a power of two
    // counts by the finer spacing that it lies in.
    let exponent = (x.abs().to_bits() >> 52) as i32 - 1023;
    2f64.powi(exponent.max(-126) - 23)
}

impl NestedSine {
    /// sin(sin(sin(sin x))) in float64 of the elements in the windows, one after the other.
    fn expected(&self) -> &[f64] {
        self.expected.get_or_init(|| {
            let nested = |&x: &f32| (0..PASSES).fold(f64::from(x), |x, _| x.sin());
            let mut expected = Vec::new();
            for window in self.windows() {
                expected.par_extend(self.x[window].par_iter().map(nested));
            }
            expected
        })
    }

    /// Compares an output in host memory with float64, each pass accurate to 2 ulp.
    pub(crate) fn check_output(&self, y: &[f32]) -> Result<Verified, RoutineError> {
        self.compare(Tolerance::UlpPerPass(2.0), |window| Ok(y[window].to_vec()))
    }

    /// Compares an output with float64; `read` fetches a window of it.
    pub(super) fn compare(
        &self,
        tolerance: Tolerance,
        mut read: impl FnMut(Range<usize>) -> Result<Vec<f32>, RoutineError>,
    ) -> Result<Verified, RoutineError> {
        let mut expected = self.expected();
        let mut error = 0f64;
        let windows = self.windows();
        let how_much = match windows.len() {
            1 => "every element".to_owned(),
            n => format!("{n} windows of the output"),
        };
        for window in windows {
            let (here, after) = expected.split_at(window.len());
            expected = after;
            for ((&x, y), &expected) in self.x[window.clone()].iter().zip(read(window)?).zip(here) {
                error = error.max(tolerance.error(x, y, expected));
            }
        }
        let metric = match tolerance {
            Tolerance::UlpPerPass(_) => "max error in ulp of the float32 result",
            Tolerance::AbsolutePerPass(_) => "max absolute error over inputs in [-π, π]",
        };
        Ok(Verified {
            error,
            bound: tolerance.bound(),
            method: format!("{metric}, {how_much}"),
        })
    }
}
