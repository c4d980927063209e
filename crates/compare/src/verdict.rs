//! What can be said of a benchmark.

use serde::Serialize;

/// What can be said of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// A process of `ab` that ran it failed.
    Failed,
    /// A change is shown, upwards and by the threshold or more.
    Slower,
    /// A change is shown, downwards and by the threshold or more.
    Faster,
    /// Neither shown: too noisy, or not comparable.
    Unsure,
    /// Equivalence is shown: the whole interval lies within the threshold.
    Same,
    /// Only the base has it.
    Gone,
    /// Only the new side has it.
    New,
}

impl Verdict {
    /// The word that is shown.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Failed => "failed",
            Verdict::Slower => "slower",
            Verdict::Faster => "faster",
            Verdict::Unsure => "unsure",
            Verdict::Same => "same",
            Verdict::Gone => "gone",
            Verdict::New => "new",
        }
    }
}
