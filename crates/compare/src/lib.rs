//! Two baselines in, verdicts and an exit code out: matched by id in `rows` to a `case` each, judged together in
//! `judge` on medians from `median`, by how much processes of the same code differ, which `learn` and
//! `drift` find, and shown as `sheet` and `show` word it, by `terminal`,
//! `markdown`, `page` and `json`. `docs/comparing.md` says what was chosen and why.

mod case;
pub mod comparison;
mod drift;
mod environment;
mod estimate;
mod json;
pub mod judge;
mod learn;
mod markdown;
pub mod median;
mod page;
mod power;
mod rows;
mod sheet;
mod show;
mod terminal;

#[cfg(test)]
mod tests;
