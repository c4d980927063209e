//! Two baselines in, verdicts and an exit code out: matched by id in `rows` to a `case` each, judged together in
//! `judge` on medians from `median`, by what `learn` finds of how processes of the same code
//! differ, and shown by `show`, `page` and `json`. `docs/comparing.md` says what was chosen and why.

mod case;
pub mod comparison;
mod environment;
mod estimate;
mod json;
pub mod judge;
mod learn;
pub mod median;
mod page;
mod rows;
mod show;

#[cfg(test)]
mod tests;
