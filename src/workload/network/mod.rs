//! Networks: their description, cost and float64 reference; linear layers on the CPU, by cuBLASLt and
//! by kernels of our own; the small steps between them; tensors in device memory.

pub(super) mod attention;
pub(super) mod chosen;
pub(super) mod compared;
pub(super) mod cost;
pub(super) mod cpu;
pub(super) mod format;
pub(super) mod gpu;
pub(super) mod kernels;
pub(super) mod layers;
pub(super) mod model;
pub(super) mod operations;
pub(super) mod product;
pub(super) mod reference;
pub(super) mod rows;
pub(super) mod tensor;
pub(super) mod tile;

pub(crate) use compared::{Part, largest, rms};
pub(crate) use cpu::OnCpu;
pub(crate) use format::Format;
pub(crate) use gpu::{Network, Order, fused_and_replayed};
pub(crate) use tensor::{Element, Tensor};
pub(crate) use tile::LINEAR;
