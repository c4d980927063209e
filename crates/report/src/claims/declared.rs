//! The form of `claims.json`: the texts' claims, and the rows that measure them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use crossover_results::model::id::Device;
use crossover_results::model::role::Residency;

/// The whole file.
#[derive(Deserialize)]
pub(crate) struct Texts {
    /// Rows by their names in claims.
    pub(crate) rows: BTreeMap<String, Row>,
    pub(super) questions: Vec<Question>,
}

pub(crate) static TEXTS: LazyLock<Texts> =
    LazyLock::new(|| serde_json::from_str(include_str!("claims.json")).expect("claims are sound"));

/// A reader's question, and the claims about it.
#[derive(Deserialize)]
pub(crate) struct Question {
    pub(crate) question: String,
    pub(super) claims: Vec<Claim>,
}

/// One statement of a text.
#[derive(Deserialize)]
pub(crate) struct Claim {
    /// In our words.
    pub(crate) text: String,
    /// Title of the text.
    pub(super) source: String,
    pub(super) says: Statement,
    /// Names in other libraries by which readers look a claim up.
    pub(crate) words: Vec<String>,
    pub(super) by: Evidence,
}

/// A text's statement about a quantity.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Statement {
    /// A figure between these two.
    About(f64, f64),
    /// The factor is above 1, which is a gain.
    Faster,
    /// The factor is above 1, which is a loss.
    Slower,
    /// The factor is 1 or less.
    NotFaster,
    /// More at a larger size.
    Grows,
    /// The GPU wins from some size on.
    FromASize,
    /// The GPU wins at no size.
    AtNoSize,
    /// A statement without a figure.
    NoFigure,
}

/// Smallest and largest size; `None` for all that were measured.
pub(super) type Sizes = Option<(u64, u64)>;

/// The quantity that tests a claim.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Evidence {
    /// The time of an iteration, ns.
    Time(String, Sizes),
    /// The time of the first over that of the second.
    Ratio(String, String, Sizes),
    /// The share of the first one's time that the second does not take.
    Rest(String, String, Sizes),
    /// The time at the largest size over that at the smallest.
    Growth(String, Sizes),
    /// A figure of `extra`, by its key.
    Figure(String, String, Sizes),
    /// The ratio of such a figure of two rows.
    FigureRatio(String, String, String, Sizes),
    /// From which size on the GPU wins in a group.
    Crossover(String, Residency),
    /// The share of the range that takes most of the device's time, in the profile of the first of these
    /// rows that has one.
    LargestRange(Vec<String>),
    /// No result tests it, for this reason.
    Unmeasured(String),
}

/// The fastest implementation of a group, on a clock, whose role has these fields.
#[derive(Deserialize)]
pub(crate) struct Row {
    pub(crate) group: String,
    pub(crate) device: Device,
    /// By its name.
    pub(crate) clock: String,
    /// Fields as stored. `null` requires a field's default, which is not stored, and `true` any other
    /// value.
    pub(super) role: BTreeMap<String, Value>,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Quantity {
    Time,
    Factor,
    Share,
    Bytes,
}
