//! From which size on the GPU wins: `crossing` answers it for one pair of curves, `pairs` says which
//! curves are compared, `one_process` has the answer of one process, `several_processes` that of several
//! together, `speedup` by how much the GPU is ahead along the sizes, `answer_in_words` the
//! answer in words, and `row` the answer as it is stored.

pub mod answer_in_words;
pub mod crossing;
pub mod one_process;
pub mod pairs;
pub mod row;
pub mod several_processes;
pub mod speedup;

#[cfg(test)]
mod tests;
