//! One executable for all tests that need no process of their own: each is linked with the crate.

mod allocations;
#[cfg(feature = "calibration")]
mod calibration;
mod decisions;
mod look_up;
mod planted;
