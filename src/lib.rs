#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub use crossover_timing as timing;

pub mod model;

mod presentation;

pub mod device;

pub mod machine;

mod results;

mod analysis;

pub mod workload;

pub mod suite;

mod compare;
mod report;

pub mod command;
