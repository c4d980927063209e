//! The report on planted results: what it reads, computes, says, writes and shows.

mod browser;
mod cdp;
mod findings;
mod fixture;
mod lessons;
mod page;
mod precision;
mod reading;
mod search;
mod strip;
mod summary;
