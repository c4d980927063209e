//! y = sin(sin(sin(sin x))) on n float32: little arithmetic per element, so that memory, launches
//! and copies take most of the time.

pub mod cpu;
pub mod gpu;
mod input;
mod isa;
mod pinned;
mod problem;
mod sine;
mod staged;
mod vector;
mod verify;

pub use crate::machine::isa::Isa;
pub(super) use pinned::cut;
pub use pinned::{transfer_pinned, transfer_pinned_ways};
pub use problem::{NESTED_SINE, NestedSine, cost, cost_per_kernel, cost_transfer, cost_vector};
pub use staged::{transfer_staged, transfer_staged_ways};
pub(super) use verify::POISON;

#[cfg(test)]
mod tests;
