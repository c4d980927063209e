//! Files and results that could not be read, in the form that the report, the comparison and the export
//! print.

use std::fmt;

use serde::{Deserialize, Serialize};

use crossover_words::text::visible;

/// Something that was left out while reading, and why. Both texts are safe to show, whatever the
/// name of the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// The file, folder or id.
    pub what: String,
    /// The cause, and the remedy where there is one.
    pub reason: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.reason)
    }
}

impl Unreadable {
    /// A file or result that could not be read, and why.
    pub fn new(what: impl ToString, reason: impl ToString) -> Self {
        Self {
            what: visible(&what.to_string()),
            reason: visible(&reason.to_string()),
        }
    }
}
