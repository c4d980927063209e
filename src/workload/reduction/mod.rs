//! The sum of n f32: one addition per four bytes, and a result that the host reads.

pub mod cpu;
pub mod gpu;
mod problem;

pub use problem::{Sum, cost};

#[cfg(test)]
mod tests;
