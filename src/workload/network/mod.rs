//! What the workloads of neural networks are built of: linear layers on the CPU, by cuBLASLt and by
//! kernels of our own; the small steps between them; values in device memory.

pub(super) mod chosen;
pub(super) mod compared;
pub(super) mod format;
pub(super) mod gpu;
pub(super) mod kernels;
pub(super) mod linear;
pub(super) mod operations;
pub(super) mod product;
pub(super) mod tensor;
pub(super) mod tile;

pub(crate) use compared::{Part, largest, largest_of, relative, rms};
pub(crate) use format::Format;
pub(crate) use gpu::{Network, Order, Then, fused_and_replayed, operand};
pub(crate) use linear::Linear;
pub(crate) use operations::transpose;
pub(crate) use product::{Products, matrix, matrix_mut};
pub(crate) use tensor::{Element, Tensor, bytes_of};
pub(crate) use tile::LINEAR;
