//! The reference in float64, and how far each implementation may be from it.

use std::convert::Infallible;
use std::ops::Range;

use rayon::prelude::*;

use crate::model::Verified;
use crate::workload::nested_sine::problem::{NestedSine, PASSES};
use crossover_arithmetic::number::ulp_error;

/// Accuracy of every pass of the polynomials, in ulp, as tested, and of CUDA's `sinf`:
/// <https://docs.nvidia.com/cuda/cuda-c-programming-guide/#mathematical-functions-appendix>
pub(super) const ACCURATE: f64 = 2.0;

impl NestedSine {
    /// sin(sin(sin(sin x))) of the elements in the windows, one after the other.
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

    /// Compares an output in host memory with the reference, each pass accurate to [`ACCURATE`]. Outside the
    /// windows too, each element must be written.
    pub(crate) fn check_output(&self, y: &[f32]) -> Verified {
        self.check_to(ACCURATE, y)
    }

    /// As [`check_output`](Self::check_output), each pass accurate to `ulp`.
    pub(super) fn check_to(&self, ulp: f64, y: &[f32]) -> Verified {
        let read = |window: Range<usize>| Ok::<_, Infallible>(y[window].to_vec());
        let Ok(mut verified) = self.compare(ulp, read);
        // Rounded, a sine may lie above 1.
        let is_sine = |(x, y): (&f32, &f32)| y.abs() <= 1.001 || y.is_nan() && !x.is_finite();
        if !self.x.par_iter().zip(y).all(is_sine) {
            verified.error = f64::INFINITY;
        }
        verified
    }

    /// Compares an output with the reference, each pass accurate to `ulp` for every input; `read`
    /// fetches a window of it.
    ///
    /// A later pass does not magnify a relative error, since |x cos x / sin x| ≤ 1 on
    /// [-1, 1]. An ulp is 2^-24 to 2^-23 of a value, so an error of e ulp grows to at most
    /// 2e ulp of the final result: over four passes 2e + 2e + 2e + e = 7e.
    pub(super) fn compare<E>(
        &self,
        ulp: f64,
        mut read: impl FnMut(Range<usize>) -> Result<Vec<f32>, E>,
    ) -> Result<Verified, E> {
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
            let found = read(window)?;
            let compared = found.par_iter().zip(here);
            let errors = compared.map(|(&y, &expected)| ulp_error(y, expected));
            error = error.max(errors.reduce(|| 0.0, f64::max));
        }
        Ok(Verified {
            error,
            bound: 7.0 * ulp,
            method: format!("max error in ulp of the float32 result, {how_much}"),
        })
    }
}
