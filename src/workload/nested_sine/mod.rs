//! y = sin(sin(sin(sin x))) on n float32: little arithmetic per element, so that memory, launches
//! and copies take most of the time.

pub mod cpu;
pub mod gpu;
mod problem;

pub use crossover_arithmetic::Isa;
pub(super) use gpu::FUSED;
pub(super) use problem::POISON;
pub use problem::{
    NESTED_SINE, NestedSine, cost, cost_per_kernel, cost_transfer, cost_transfer_per_kernel,
    cost_vector,
};

#[cfg(test)]
mod tests;
