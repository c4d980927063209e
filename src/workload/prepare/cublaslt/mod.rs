//! Products of row-major matrices by cuBLASLt, of operands that may be transposed, with the epilogue of
//! a linear layer.

mod handles;
mod product;

pub(crate) use product::{
    Algorithm, CUBLAS_WORKSPACE, Epilogue, LtProduct, Operand, Product, Workspace,
};
