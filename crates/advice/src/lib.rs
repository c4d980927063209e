#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod advice;
#[cfg(feature = "calibration")]
pub mod calibration;
#[doc(hidden)]
pub mod curve;
mod decision;
mod machine;
mod prepared;
pub mod thresholds;
pub mod turns;
mod work;

pub use advice::{Advice, Error};
pub use decision::{Answer, Estimate, Question, Reason, Size};
pub use machine::{Concern, HostInfo};
pub use thresholds::{Choice, Residency, Thresholds};
pub use work::{Least, Limit, OffloadEstimate, Range, Work};

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

    #[cfg(feature = "schema")]
    #[test]
    fn the_schema_is_that_of_the_types() {
        use std::{env, fs};

        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/thresholds.schema.json");
        let schema = schemars::schema_for!(crate::Thresholds);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        if env::var_os("CROSSOVER_GOLDEN").is_some_and(|v| v == "write") {
            fs::write(path, text).unwrap();
            return;
        }
        let hint =
            "CROSSOVER_GOLDEN=write cargo test -p crossover-advice --features schema writes it";
        assert_eq!(fs::read_to_string(path).unwrap_or_default(), text, "{hint}");
    }
}
