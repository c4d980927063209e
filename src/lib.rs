#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub use crossover_timing as timing;

pub mod device;

pub mod ceilings;
pub mod compare;
pub mod export;
pub mod record;
pub mod report;
pub mod settings;
pub mod suite;
pub mod workload;
