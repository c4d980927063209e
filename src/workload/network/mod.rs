//! What the workloads of neural networks are built of: linear layers on the CPU, by cuBLASLt and by
//! kernels of our own; the small steps between them; values in device memory.

pub(super) mod chosen;
pub(super) mod compared;
pub(super) mod cpu;
pub(super) mod format;
pub(super) mod gpu;
pub(super) mod kernels;
pub(super) mod linear;
pub(super) mod operations;
pub(super) mod product;
pub(super) mod tensor;
pub(super) mod tile;
pub(super) mod transpose;
