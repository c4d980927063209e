//! y = sin(sin(sin(sin x))) on n float32: little arithmetic per element, so that memory, launches
//! and copies take most of the time.

pub mod cpu;
mod end_to_end;
pub mod gpu;
mod input;
mod isa;
mod problem;
mod sine;
pub mod unfused;
mod vector;
mod verify;

pub use crate::machine::isa::Isa;
pub use end_to_end::{
    transfer_pinned, transfer_pinned_ways, transfer_staged, transfer_staged_ways,
};
pub use problem::{
    NESTED_SINE, NestedSine, cost, cost_per_kernel, cost_transfer, cost_transfer_per_kernel,
    cost_vector,
};
pub(super) use verify::POISON;

#[cfg(test)]
mod tests;
