//! The same square product in ever fewer bits, and in f32 emulated by products of BF16: what each
//! halving gains and what it costs in error.

mod converted;
mod format;
mod problem;
mod split;

pub use converted::product;
pub use format::Format;
pub use problem::{PRECISION, Precision, cost_half, cost_quarter};
pub use split::split;
