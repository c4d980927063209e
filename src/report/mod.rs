//! Reads results, finds crossovers, draws plots, writes the page and `summary.json`.
//!
//! One way through: [`read`] makes a [`model::Machine`] of a results root, [`crossover`],
//! [`reuse`], [`limits`] and [`findings`] compute on it, [`summary`], [`page`] and
//! [`terminal`] say it. Nothing here opens a GPU or changes a result.

pub mod cold_start;
pub mod crossover;
pub mod findings;
pub mod limits;
pub mod model;
pub mod page;
pub mod plot;
pub mod read;
pub mod readme;
pub mod reuse;
pub mod strip;
pub mod summary;
pub mod terminal;
pub mod topics;
pub mod units;

mod assemble;

pub use assemble::{Assembled, Options, ReportError, Written, assemble, refresh};
