//! What is measured: the traits of an operation and its implementations, and one module per
//! operation of the suite, with its inputs, its CPU and GPU implementations, its float64 reference
//! and tolerance, and its cost.
//!
//! An operation is a [`Workload`], an implementation a [`Routine`]. [`simple`] makes routines of
//! closures.

mod awaited;
pub(crate) mod calibrate;
mod child_process;
pub mod cold_start;
mod cublaslt;
mod elementwise;
pub mod graph_replay;
mod host_memory;
pub mod host_sync;
mod launches;
pub mod loader;
pub mod matmul;
pub mod memory;
pub mod mlp_training;
pub mod nested_sine;
mod network;
mod queue;
pub(crate) mod routine;
mod run_child;
pub mod simple;
mod source;
mod staging;
pub mod streams;
pub mod sustained;
mod threads;
pub mod timing_methods;
pub mod transfer;
pub mod transformer;
mod trial;

pub use awaited::awaited;
pub use host_memory::HostMemory;
pub use routine::{Routine, RoutineError, Workload, visit_f32};
pub use run_child::run_child;
