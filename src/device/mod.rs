//! An opened GPU: its context and stream, kernels compiled and loaded for it, graphs captured
//! from it, and why any of these cannot be had.

pub(crate) mod absence;
pub(crate) mod calls;
pub(crate) mod compiled;
pub(crate) mod gpu;
pub mod graph;
pub mod kernel;
pub mod libraries;
pub(crate) mod recorded;
mod resources;

pub use absence::Absence;
pub use gpu::{Gpu, NO_CUBLAS};
