//! Matrix product C = A B of row-major f32 matrices.

#[cfg(feature = "blas")]
mod blas;
mod blocks;
mod candidates;
pub mod cpu;
pub mod gpu;
mod method;
mod operands;
mod output;
mod overlap;
pub mod precision;
mod problem;
mod rectangular;
mod reference;
mod schedule;
mod sgemm;
mod shape;
mod shaped;
mod transfer;

pub use problem::{LARGEST, Matmul, cost, cost_transfer};
pub(super) use problem::{device_bytes, host_bytes};
pub use shape::Shape;
pub use shaped::{Batched, Family, Shaped, Skinny};

#[cfg(test)]
mod tests;
