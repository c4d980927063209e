//! Says what the results show: the page with its plots, `summary.json`, the table in the
//! terminal and the text in a README. Nothing here opens a GPU or changes a result.

pub mod assemble;
mod beside;
mod charts;
mod front;
mod page;
pub mod profile;
pub mod readme;
mod summary;
mod terminal;
pub mod thresholds;
pub mod write;

#[cfg(test)]
mod tests;
