//! Benchmark results: what they are ([`model`]), where they lie ([`store`], the one reader and the
//! one writer of Criterion's files, the sidecars beside them and the records of runs), how far two
//! processes of the same code differ ([`statistics`]), and what follows from them ([`analysis`]).
//! [`export`] puts all of a machine into one file. Nothing here opens a GPU, measures or draws.

pub mod analysis;
pub mod export;
pub mod model;
pub mod statistics;
pub mod store;
