//! One training step of a multilayer perceptron: forward, softmax cross-entropy, backward, AdamW.

pub mod cpu;
pub mod gpu;
mod problem;
mod verify;

pub use problem::{Training, cost, cost_forward, link_bytes, tensor_bytes};

#[cfg(test)]
mod tests;
