//! From which size on the GPU wins. `crossover_answer` begins here: it says which curves are compared, and
//! puts the answer together, its size by `crossing`, from one pair of curves of the run itself, or by
//! `several_processes`, where the run put the question to processes of their own; `confirming_process` is
//! what one of those saw, and what it was asked. `speedup_curve` is by how much the GPU is ahead along the
//! sizes, `answer_in_words` the answer in words, and `row` the answer as it is stored.

pub mod answer_in_words;
pub mod confirming_process;
pub mod crossing;
pub mod crossover_answer;
pub mod row;
pub mod several_processes;
pub mod speedup_curve;

#[cfg(test)]
mod committed;
#[cfg(test)]
mod tests;
