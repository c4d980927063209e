#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod advice;
#[cfg(feature = "calibration")]
pub mod calibration;
#[doc(hidden)]
pub mod curve;
mod decision;
mod host_match;
pub mod thresholds;
pub mod turns;

pub use advice::{Advice, Error};
pub use decision::{Answer, Estimate, Question, Reason, Size};
pub use host_match::{Concern, HostInfo};
pub use thresholds::{Choice, Residency, Thresholds};

#[cfg(test)]
mod tests {
    #[test]
    fn the_readme_names_each_dependency() {
        let manifest = include_str!("../Cargo.toml");
        let (_, rest) = manifest.split_once("[dependencies]\n").unwrap();
        let lines = rest.split("\n[").next().unwrap().lines();
        let name = |line: &'static str| Some(line.split_once(" = ")?.0);
        let required = lines.filter(|line| !line.contains("optional"));
        let names: Vec<&str> = required.filter_map(name).collect();
        assert_eq!(names, ["serde", "serde_json"]);
    }
}
