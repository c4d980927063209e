//! Two baselines in, verdicts and an exit code out: matched by id in `rows` to a `case` each (with the `steps` of
//! their clocks), judged together in
//! `judge` on medians from `median` and the `evidence` at planned `analyses`, corrected for the launch `constant`, by how much
//! processes of the same code differ, which `learn` and `drift` find, and shown as `sheet` and `show` word it, by `terminal`,
//! `markdown`, `page` and `json`. `docs/comparing.md` says what was chosen and why.

mod analyses;
mod case;
pub mod comparison;
mod constant;
mod drift;
mod environment;
mod estimate;
mod evidence;
mod json;
mod judge;
mod learn;
mod markdown;
pub mod median;
mod page;
mod power;
mod rows;
mod sheet;
mod show;
mod steps;
mod terminal;
pub mod verdict;

#[cfg(test)]
mod tests;
