//! One training step of a multilayer perceptron: forward, softmax cross-entropy, backward, AdamW.

mod cost;
pub mod cpu;
pub mod forward;
pub mod gpu;
mod gradients;
mod loss;
mod model;
mod problem;
mod reference;
mod verify;

pub use cost::{cost, cost_bf16, cost_eager, cost_forward, link_bytes};
pub use model::tensor_bytes;
pub use problem::Training;

pub use crate::workload::network::format::Format;

#[cfg(test)]
mod tests;
