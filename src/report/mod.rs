//! Says what the results show: the page with its plots, `summary.json`, the table in the
//! terminal and the text in a README. Nothing here opens a GPU or changes a result.

pub(crate) mod assemble;
mod beside;
mod charts;
mod front;
mod page;
pub(crate) mod profile;
pub(crate) mod readme;
mod summary;
mod terminal;
pub(crate) mod thresholds;
pub(crate) mod write;

#[cfg(test)]
mod tests;
