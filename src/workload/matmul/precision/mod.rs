//! The same square product in ever fewer bits, and in f32 put together from fewer: what each
//! halving buys and what it costs.

mod convert;
mod converted;
mod format;
mod gemm_ex;
mod lt;
mod problem;
mod split;

pub use converted::product;
pub use format::Format;
pub use problem::{PRECISION, Precision, cost_half, cost_quarter};
pub use split::{Scheme, split};
