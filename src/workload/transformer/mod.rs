//! Inference with a small transformer: embedding, encoder layers, logits of each position.

pub mod cpu;
pub mod gpu;
mod problem;

pub use problem::{Inference, cost, cost_bf16, cost_eager, link_bytes};

#[cfg(test)]
mod tests;
