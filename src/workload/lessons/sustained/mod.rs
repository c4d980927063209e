//! A product repeated without a pause, from an idle device on: the rate in the first 100 ms, before
//! the power cap and the temperature have an effect, is not the rate that it holds for seconds.
//!
//! The size is the time since the product began, in nanoseconds on the device. Every row is
//! recorded once, for as long as the largest size, and all sizes are read from that recording: a
//! recording for each size would heat the device for the next. The samples of a size are the last
//! ten groups of products up to that time, each group about 10 ms between two CUDA events. Beside
//! them stand the SM clock and the power that NVML read then.

mod curve;
mod recording;

pub use recording::{LONGEST, ORDER, Recording, SHORTEST, Sustained, window};
