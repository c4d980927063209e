//! Products of row-major matrices by cuBLASLt. Operands may be transposed, and what follows the
//! product of a linear layer may be part of it.

mod algorithm;
mod description;
mod handles;
mod product;

pub(crate) use algorithm::Algorithm;
pub(crate) use description::{Arithmetic, Epilogue, Operand, Product};
pub(crate) use product::{CUBLAS_WORKSPACE, LtProduct, Workspace};
