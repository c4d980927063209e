//! An opened GPU: its context and stream, kernels compiled and loaded for it, graphs captured
//! from it, and why any of these cannot be had.

pub(crate) mod copies_and_events;
pub(crate) mod gpu;
pub mod graph;
pub mod kernel;

pub use crossover_machine::absence::{self, Absence};
pub use crossover_machine::libraries::{self, NO_CUBLAS};
pub use gpu::Gpu;
