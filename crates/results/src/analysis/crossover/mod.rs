//! From which size on the GPU wins: `search` answers it for one pair of curves, `pairs` says which
//! curves are compared, `one_process` has the answer of one process, `confirm` that of several
//! together, `speedup` by how much the GPU is ahead along the sizes, and `words` the answer in
//! words.

pub mod confirm;
pub mod one_process;
pub mod pairs;
pub mod search;
pub mod speedup;
pub mod words;

#[cfg(test)]
mod tests;
