//! The traits of an operation and its implementations, and one module per operation of the suite: its
//! inputs, its CPU and GPU implementations, its float64 reference and tolerance, and its cost.
//!
//! An operation is a [`Workload`], an implementation a [`Routine`]. [`simple`] makes routines of
//! closures. `prepare` is shared by all operations; `lessons` has those about one technique each.

pub mod devices;
pub mod fft;
mod lessons;
pub mod matmul;
pub mod mlp_training;
pub mod nested_sine;
mod network;
mod prepare;
mod product;
pub mod reduction;
pub(crate) mod routine;
pub mod simple;
pub mod transformer;

pub use crate::device::Value;
pub use lessons::{
    cold_start, graph_replay, host_sync, loader, memory, product_chain, run_child, streams,
    timing_methods, transfer, warming_up,
};
pub use prepare::{Device, HostMemory, Memory, Prepared, seed, uniform};
pub(crate) use prepare::{choices, in_version};
pub use routine::{
    Alteration, DoubleDouble, Number, Result, Routine, RoutineError, Wide, Workload, visit_f32,
};
