//! One executable for all tests that need no process of their own: each is linked with the crate.

#[cfg(feature = "calibration")]
mod calibration;
mod decisions;
mod look_up;
#[path = "../planted/mod.rs"]
mod planted;
