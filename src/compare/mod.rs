//! Two baselines in, verdicts and an exit code out: matched by id in `rows`, judged together in
//! `judge` on medians from `median`, by what `learn` finds of how processes of the same code
//! differ, and shown by `show` and `page`. `docs/comparing.md` says what was chosen and why.

pub(crate) mod case;
pub(crate) mod class;
pub(crate) mod comparison;
pub(crate) mod environment;
pub(crate) mod estimate;
pub(crate) mod judge;
pub(crate) mod learn;
pub(crate) mod median;
pub(crate) mod multiple;
pub(crate) mod page;
pub(crate) mod plan;
pub(crate) mod rows;
pub(crate) mod show;
pub(crate) mod verdict;

#[cfg(test)]
mod tests;
