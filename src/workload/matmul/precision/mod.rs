//! The same square product in ever fewer bits, and in f32 emulated by products of BF16: what each
//! halving gains and what it costs in error.

mod gpu;
mod problem;

pub use gpu::{cost_split, product, split};
pub use problem::{PRECISION, Precision, cost};
