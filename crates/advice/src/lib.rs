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
