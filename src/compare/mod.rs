//! Two baselines in, verdicts and an exit code out.
//!
//! The statistics are in [`judge`](mod@judge), on medians from [`median`] and a floor from
//! [`drift`]; `docs/comparing.md` says what was chosen and why.

pub mod class;
pub mod drift;
pub mod judge;
pub mod median;
