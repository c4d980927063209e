//! Products of row-major matrices by cuBLASLt. Operands may be transposed, and what follows the
//! product of a linear layer may be part of it.

mod handles;
mod product;

pub(crate) use product::{
    Algorithm, CUBLAS_WORKSPACE, Epilogue, LtProduct, Operand, Product, Workspace,
};
