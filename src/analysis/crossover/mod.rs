//! From which size on the GPU wins: `search` answers it for one pair of curves, `pairs` says which
//! curves are compared, `one_process` has the answer of one process, `confirm` that of several
//! together, `speedup` by how much the GPU is ahead along the sizes, and `words` the answer in
//! words.

pub(crate) mod confirm;
pub(crate) mod one_process;
pub(crate) mod pairs;
pub(crate) mod search;
pub(crate) mod speedup;
pub(crate) mod words;

#[cfg(test)]
mod tests;
