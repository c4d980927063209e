//! One training step of a multilayer perceptron: forward, softmax cross-entropy, backward, AdamW.

mod adamw;
mod compared;
mod cost;
pub mod cpu;
mod format;
pub mod gpu;
mod gradients;
mod loss;
mod model;
mod problem;
mod reference;
mod source;
mod verify;

pub use cost::{cost, cost_bf16, cost_eager, cost_transfer};
pub use format::Format;
pub use problem::Training;

#[cfg(test)]
mod tests;
