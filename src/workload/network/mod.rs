//! Networks: their description, cost and float64 reference; their layers on the CPU and the GPU; the
//! small steps between the products; tensors in device memory.

pub(super) mod cpu;
pub(super) mod gpu;
pub(super) mod layers;
pub(super) mod model;
pub(super) mod operations;
pub(super) mod products;
pub(super) mod reference;
pub(super) mod tensor;

pub(crate) use cpu::{CpuRoutine, OnCpu};
pub(crate) use gpu::{Network, fused_and_replayed};
pub(crate) use reference::{Compared, largest, rms, unit};
pub(crate) use tensor::Tensor;
