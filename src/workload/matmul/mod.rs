//! Matrix product C = A B of row-major matrices of f32 or f64.

#[cfg(feature = "blas")]
mod blas;
pub mod cpu;
mod end_to_end;
mod family;
pub mod gpu;
pub mod precision;
mod problem;

#[cfg(feature = "blas")]
pub use blas::blas;
pub use family::{Batched, Family, Shaped, Skinny};
pub use problem::{LARGEST, Matmul, cost, cost_f64};
pub(super) use problem::{UNIT_ROUNDOFF, host_bytes, uniform};

pub use crate::workload::product::{Element, Shape};

#[cfg(test)]
mod tests;
