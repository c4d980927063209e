//! The report on planted results: what it reads, computes, says and writes.

mod findings;
mod fixture;
mod reading;
mod search;
mod summary;
