//! Inference with a small transformer: embedding, encoder layers, logits of each position.

mod attention;
mod cost;
pub mod cpu;
mod model;
mod problem;
mod reference;
mod rows;
mod verify;

pub use cost::cost;
pub use problem::Inference;

#[cfg(test)]
mod tests;
