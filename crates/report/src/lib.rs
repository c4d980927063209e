//! Says what the results show: the page with its plots, `results.csv`, the table in the
//! terminal and the text in a README. Nothing here opens a GPU or changes a result.

pub mod assemble;
mod claims;
mod csv;
mod page;
pub mod profile;
pub mod readme;
mod reference_banner;
mod small_table;
mod static_plots;
mod terminal;
pub mod thresholds;
mod visible_curves;
pub mod write;

#[cfg(test)]
mod tests;
