//! The same square product in ever fewer bits, and in f32 put together from fewer: what each
//! halving buys and what it costs.

mod convert;
mod format;
mod gemm_ex;
pub mod gpu;
mod lt;
mod problem;
pub mod split;

pub use problem::{PRECISION, Precision, cost, cost_half, cost_quarter};
