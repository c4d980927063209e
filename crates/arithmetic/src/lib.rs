//! Arithmetic on slices, independent of operations and devices: [numbers](number) with random values
//! and the wider sums for checking results, their [`error`] and the reference of [`adamw`], and vector
//! code for several [instruction sets](isa): a [`sine`], the [exponentials](exponential) of softmax,
//! [`direct`] products of small matrices, loops over [`rows`], and loops that measure a core's [`limits`].
//!
//! Code that runs for each element of an array belongs here: this crate is optimised in every profile,
//! an operation's own code is not optimised in the profile `dev`.

#![warn(missing_docs)]

pub mod adamw;
pub mod direct;
pub mod error;
pub mod exponential;
pub mod isa;
pub mod limits;
pub mod number;
pub mod rows;
pub mod sine;
mod wide;

pub use isa::Isa;
pub use number::{DoubleDouble, Number, Wide};
