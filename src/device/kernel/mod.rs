//! Kernels: compiled by NVRTC, loaded, and shared between the processes of a run.

mod compile;
mod shared;

pub use compile::{ARCHITECTURES, CompileError, Cubin, Module, Source};
pub(crate) use shared::SharedKernels;
