//! Arithmetic on slices, which knows no operation and no device: [numbers](number) with their random values
//! and the wider sums that results are checked with, their [`error`] and the reference of [`adamw`], and vector
//! code of several [instruction sets](isa): a [`sine`] and one [in float64](sine_f64), [`direct`] products of small
//! matrices, loops over [`rows`], and those that a core's [`limits`] are measured with.
//!
//! What runs for each element of an array is here, compiled once and optimised in every profile; in the one
//! for editing and tests an operation's own code is not.

#![warn(missing_docs)]

pub mod adamw;
pub mod direct;
pub mod error;
pub mod isa;
pub mod limits;
pub mod number;
pub mod rows;
pub mod sine;
pub mod sine_f64;
mod wide;

pub use isa::Isa;
pub use number::{DoubleDouble, Number, Wide};
