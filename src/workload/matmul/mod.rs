//! Matrix product C = A B of row-major f32 matrices.

pub mod batched;
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
pub mod skinny;
mod transfer;

pub use problem::{
    LARGEST, Matmul, cost, cost_transfer, device_bytes, device_bytes_transfer, host_bytes,
    host_bytes_pinned,
};
pub use shape::Shape;

#[cfg(test)]
mod tests;
