//! Kernels: compiled by NVRTC, loaded, and shared between the processes of a run.

mod compile;
pub(crate) mod shared;

pub use compile::{ARCHITECTURES, CompileError, Cubin, Module, Source};
