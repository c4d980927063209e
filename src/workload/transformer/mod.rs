//! Inference with a small transformer: embedding, encoder layers, logits of each position.

pub mod cpu;
pub mod gpu;
mod problem;

pub use problem::{Inference, cost, link_bytes};

#[cfg(test)]
mod tests;
