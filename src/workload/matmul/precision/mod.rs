//! The same square product in ever fewer bits, and in f32 emulated by products of BF16: what each
//! halving gains and what it costs in error.

mod converted;
mod problem;
mod split;

pub use converted::product;
pub use problem::{PRECISION, Precision, cost};
pub use split::{cost_split, split};
