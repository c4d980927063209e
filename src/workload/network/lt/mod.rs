//! Products of row-major matrices by cuBLASLt. Operands may be transposed, and what follows the
//! product of a linear layer may be part of it.

mod algorithm;
mod description;
mod product;

pub(in crate::workload) use algorithm::Algorithm;
pub(in crate::workload) use description::{Arithmetic, Epilogue, Operand, Product};
pub(in crate::workload) use product::{LtProduct, Workspace};
