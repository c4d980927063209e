//! Inference with a small transformer: embedding, encoder layers, logits of each position.

mod cost;
pub mod cpu;
pub mod gpu;
mod model;
mod problem;
mod verify;

pub use cost::{cost, cost_bf16, cost_eager, link_bytes};
pub use problem::Inference;

pub use crate::workload::network::format::Format;

#[cfg(test)]
mod tests;
