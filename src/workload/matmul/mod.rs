//! Matrix product C = A B of row-major matrices of f32 or f64.

#[cfg(feature = "blas")]
mod blas;
pub(crate) mod blocks;
pub mod cpu;
mod element;
mod end_to_end;
mod family;
mod gemm;
pub mod gpu;
mod method;
pub mod precision;
mod problem;
mod reference;
mod schedule;
mod shape;
mod tiles;
mod ways;

#[cfg(feature = "blas")]
pub use blas::blas;
pub use element::Element;
pub use family::{Batched, Family, Shaped, Skinny};
pub use problem::{LARGEST, Matmul, cost, cost_f64};
pub(super) use problem::{UNIT_ROUNDOFF, host_bytes, uniform};
pub use shape::Shape;

#[cfg(test)]
mod tests;
