//! Stands in for cuBLASLt: descriptions of products, a fixed list of algorithms, and products with
//! an epilogue. <https://docs.nvidia.com/cuda/cublas/#using-the-cublaslt-api>

mod algorithm;
mod description;
mod matmul;

pub(crate) use description::{Description, Layout};
