//! How far a result may be from float64, and how far it is.

use serde::{Deserialize, Serialize};

/// How far an implementation was from the float64 reference, and how far it may be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
