//! From which size on the GPU wins. `crossover_answer` chooses the curves to compare and makes the
//! answer. `estimate` estimates a crossing from the curves of one process (`curve`) or the times of
//! several (`confirmations`); `root` finds that of each process. `kind` defines the kinds of answers. `time_table`
//! makes answers from any two programs' times. `answer_in_words` has the words.

pub mod answer_in_words;
pub mod confirmations;
pub mod crossover_answer;
pub mod curve;
pub mod estimate;
pub mod kind;
pub mod time_table;

#[cfg(test)]
mod committed_tests;
#[cfg(test)]
mod pattern_tests;
#[cfg(test)]
pub(crate) mod tests;
