#![doc = include_str!("../README.md")]
#![warn(missing_docs)]

pub mod device;
pub mod timing;

#[cfg(feature = "suite")]
pub mod ceilings;
#[cfg(feature = "suite")]
pub mod compare;
#[cfg(feature = "suite")]
pub mod export;
#[cfg(feature = "suite")]
pub mod record;
#[cfg(feature = "suite")]
pub mod report;
#[cfg(feature = "suite")]
pub mod settings;
#[cfg(feature = "suite")]
pub mod suite;
#[cfg(feature = "suite")]
pub mod workload;
