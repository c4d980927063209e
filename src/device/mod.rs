//! An opened GPU: its context and stream, compiled kernels, captured graphs, and the reasons why any of
//! these is absent.

#![warn(clippy::multiple_unsafe_ops_per_block)]

pub(crate) mod collectives;
pub(crate) mod copies_and_events;
pub(crate) mod gpu;
pub mod kernel;

pub use crate::timing::Graph;
pub use crossover_machine::libraries::{self, Absence, NO_CUBLAS};
pub use gpu::{Gpu, Value};
