//! Presents results: the page with its plots, `results.csv`, the table in the terminal and the text in
//! a README. Nothing here opens a GPU or changes a result.

mod claims;
mod decisions;
mod group;
mod page;
pub mod profile;
pub mod readme;
pub mod report;
mod terminal;
pub mod thresholds;
pub mod write;

#[cfg(test)]
mod tests;
