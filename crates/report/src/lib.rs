//! Presents results: the page with its plots, `results.csv`, the table in the terminal and the text in
//! a README. Nothing here opens a GPU or changes a result.

mod claims;
mod csv;
mod group;
mod page;
mod plots;
pub mod profile;
pub mod readme;
pub mod report;
mod small_table;
mod terminal;
pub mod thresholds;
pub mod write;

#[cfg(test)]
mod tests;
