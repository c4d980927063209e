//! y = sin(sin(sin(sin x))) on n float32 or float64: little arithmetic per element, so that memory, launches
//! and copies take most of the time.

pub mod cpu;
mod format;
pub mod gpu;
mod kernel;
mod problem;
mod verify;

pub use crossover_arithmetic::Isa;
pub(super) use format::POISON;
pub use format::Sine;
pub use kernel::NESTED_SINE;
pub use problem::{
    NestedSine, cost, cost_f64, cost_per_kernel, cost_transfer, cost_transfer_per_kernel,
    cost_vector, cost_vector_f64,
};

#[cfg(test)]
mod tests;
