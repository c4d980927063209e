//! What a group says of itself: its heading, its question, what its sizes count, and the words
//! for its work.

use serde::{Deserialize, Serialize};

/// What a group is about, stored with the run so that a report has it without the group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Topic {
    /// The group's name, the first part of its ids.
    pub group: String,
    /// Heading.
    pub title: String,
    /// What it asks, in a sentence.
    pub question: String,
    /// Symbol of the size, such as `N`.
    pub symbol: String,
    /// Label of the axis of sizes: what the size counts.
    pub axis: String,
    /// Unit of the size.
    pub unit: Unit,
    /// Whether all implementations do the same work, so that one of them is the fastest.
    pub compares: bool,
    /// Whether a rate (FLOP/s or B/s) is meaningful.
    pub rated: bool,
    /// Words for the work of an iteration, inside a sentence: `the chain`.
    pub work: String,
    /// The word for one of the things that the work is made of: `kernel`.
    pub part: String,
    /// Where each row times the same work on another clock: what the times are compared with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<Truth>,
}

impl Topic {
    /// A group that says nothing but its name.
    pub fn of(group: &str) -> Self {
        Self {
            group: group.to_owned(),
            title: group.to_owned(),
            question: String::new(),
            symbol: "n".to_owned(),
            axis: "size".to_owned(),
            unit: Unit::Count,
            compares: true,
            rated: true,
            work: "the work".to_owned(),
            part: "kernel".to_owned(),
            truth: None,
        }
    }
}

/// What the size in an id counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A number of things.
    Count,
    /// A count whose sizes go so far that powers of two are written as such. It is stored as a
    /// count, and readers tell by the sizes.
    #[serde(rename = "count", skip_deserializing)]
    #[cfg_attr(test, schemars(skip))]
    Powers,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Time,
}

/// What a clock's time is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Truth {
    /// The size, which is the true time in nanoseconds.
    Size,
    /// The time of the row whose clock is gated.
    Gated,
}
