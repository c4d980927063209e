//! A group's own description: its heading, its question, the meaning of its sizes, and the words for
//! its work.

use crossover_words::units::{binary, bytes, count, power, size, time};
use serde::{Deserialize, Serialize};

/// The description of a group, stored with the run so that a report needs no group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupInfo {
    /// The group's name, the first part of its ids.
    pub group: String,
    /// Heading.
    pub title: String,
    /// The question of the group, a sentence.
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
    /// The true time, if each row times the same work on another clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub truth: Option<Truth>,
}

impl GroupInfo {
    /// A group with only a name.
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

/// The unit of the size in an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// A number of things.
    Count,
    /// A count whose sizes go so far that powers of two are written as such. It is stored as a
    /// count, and readers tell by the sizes.
    #[serde(rename = "count", skip_deserializing)]
    Powers,
    /// Bytes.
    Bytes,
    /// Nanoseconds.
    Time,
}

/// The true time that a clock's time is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Truth {
    /// The size, which is the true time in nanoseconds.
    Size,
}

impl Unit {
    /// A size in words: `1,024`, `256 MiB`, `10.0 ms`.
    pub fn write(self, of: u64) -> String {
        match self {
            Unit::Count => size(of),
            Unit::Powers => power(of),
            Unit::Bytes => binary(of),
            Unit::Time => time(of as f64),
        }
    }

    /// A size between measured ones: the first whole one from it on, to three digits.
    pub fn from(self, size: f64) -> String {
        match self {
            Unit::Count | Unit::Powers => count(size.ceil()),
            Unit::Bytes => bytes(size.ceil()),
            Unit::Time => time(size),
        }
    }

    /// The whole sizes around an interval.
    pub fn range(self, low: f64, high: f64) -> String {
        match self {
            Unit::Count | Unit::Powers => {
                format!("{} to {}", count(low.floor()), count(high.ceil()))
            }
            _ => format!("{} to {}", self.from(low), self.from(high)),
        }
    }
}

impl GroupInfo {
    /// `N = 64`, `size = 256 MiB`.
    pub fn at(&self, size: u64) -> String {
        format!("{} = {}", self.symbol, self.unit.write(size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_between_measured_ones_are_rounded_outwards() {
        let rounded = [181.4, 64.0].map(|size| Unit::Count.from(size));
        assert_eq!(rounded, ["182", "64"]);
        assert_eq!(Unit::Count.range(87.5, 88.3), "87 to 89");
        assert_eq!(Unit::Bytes.range(1.5e6, 2e6), "1.50 MB to 2.00 MB");
        for unit in [Unit::Count, Unit::Powers, Unit::Bytes, Unit::Time] {
            assert!(unit.write(u64::MAX - 1).chars().count() <= 32);
            assert!(unit.range(1e-300, 1e308).chars().count() <= 32);
        }
    }
}
