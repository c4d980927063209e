//! Benchmark results: their types ([`model`]), their files ([`store`], the one reader and writer of
//! Criterion's files, the sidecars beside them and the records of runs), the spread between processes
//! of the same code ([`statistics`]), and the conclusions ([`analysis`]). [`export`] puts all of a
//! machine into one file. Nothing here opens a GPU, measures or draws.

pub mod analysis;
pub mod export;
pub mod model;
pub mod statistics;
pub mod store;
