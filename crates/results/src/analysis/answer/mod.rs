//! From which size on the GPU wins. `crossover_answer` begins here: it chooses the curves to compare and
//! puts the answer together. `estimate` is the engine: it makes one estimate of the curves of one process
//! (`curve`) or of the times of several (`confirmations`). `time_table` makes answers of any two programs'
//! times. `speedup_curve` is the speedup along the sizes,
//! and `answer_in_words` the answer in words.

pub mod answer_in_words;
pub mod confirmations;
pub mod crossover_answer;
pub mod curve;
pub mod estimate;
pub mod speedup_curve;
pub mod time_table;

#[cfg(test)]
mod committed_tests;
#[cfg(test)]
pub(crate) mod tests;
