//! A chain of 32 small elementwise kernels, where the launches cost more than the work:
//! launched one by one, with the host waiting after each, as one graph, and fused into one kernel.
//!
//! Link k computes y = f_k y + t_k. The factors and terms differ, so that a link left out or
//! out of order gives another result.

mod chain;
mod gpu;
mod source;

pub use chain::{Chain, cost, cost_fused};
pub use gpu::chain;
pub(crate) use gpu::{compile_fused, prepared};
pub use source::{CHAIN, LINKS};
