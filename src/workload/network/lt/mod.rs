//! Products by cuBLASLt, of row-major matrices that may be transposed, with what follows a
//! product of a linear layer done in it.

mod algorithm;
mod description;
mod product;

pub(in crate::workload) use algorithm::Algorithm;
pub(in crate::workload) use description::{Arithmetic, Epilogue, Operand, Product};
pub(in crate::workload) use product::{LtProduct, Workspace};
