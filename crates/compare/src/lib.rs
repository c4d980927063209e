//! Two baselines in, verdicts and an exit code out: matched by id in `rows`, judged together in
//! `judge` on medians from `median`, by what `learn` finds of how processes of the same code
//! differ, and shown by `show` and `page`. `docs/comparing.md` says what was chosen and why.

pub mod case;
pub mod class;
pub mod comparison;
pub mod environment;
pub mod estimate;
pub mod judge;
pub mod learn;
pub mod median;
pub mod multiple;
pub mod page;
pub mod plan;
pub mod rows;
pub mod show;
pub mod verdict;

#[cfg(test)]
mod tests;
