//! The error of a result against float64, and its bound.

use crossover_words::units;
use serde::{Deserialize, Serialize};

/// The error of an implementation against the float64 reference, and its bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verified {
    /// The measured error, in the metric that `method` names.
    pub error: f64,
    /// The largest error accepted.
    pub bound: f64,
    /// The metric and how much of the output was compared, for example
    /// `max error relative to the rms of the reference, every element`.
    pub method: String,
}

impl Verified {
    /// Whether the error lies within its bound. NaN never passes.
    pub fn passed(&self) -> bool {
        self.error <= self.bound
    }

    /// The error with its unit, as the metric has it: `1.2 ulp`, `3.4e-7 relative`.
    pub fn words(&self) -> String {
        let is = |metric: &str| self.method.contains(metric);
        match self.error {
            error if is("in ulp") => format!("{} ulp", units::number(error)),
            error if is("nanoseconds") => units::time(error),
            error if is("relative") => format!("{error:.1e} relative"),
            error if is("absolute") => format!("{error:.1e} absolute"),
            error => units::number(error),
        }
    }

    /// What is wrong, in words; `None` where it passed.
    pub fn failure(&self) -> Option<String> {
        (!self.passed()).then(|| {
            format!(
                "wrong result: error {:.3e} is over the bound {:.3e} ({})",
                self.error, self.bound, self.method
            )
        })
    }
}
