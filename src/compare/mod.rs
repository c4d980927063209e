//! Two baselines in, verdicts and an exit code out: matched by id in `rows`, judged together in
//! `judge` on medians from `median` and a floor from `drift`, shown by `show` and `page`.
//! `docs/comparing.md` says what was chosen and why.

pub(crate) mod case;
pub(crate) mod class;
pub(crate) mod comparison;
pub(crate) mod drift;
pub(crate) mod environment;
pub(crate) mod judge;
pub(crate) mod median;
pub(crate) mod page;
pub(crate) mod rows;
pub(crate) mod show;

#[cfg(test)]
mod tests;
