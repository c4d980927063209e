//! The report on planted results: what it reads, computes, says, writes and shows.

mod browser;
mod cdp;
mod findings;
mod fixture;
mod lessons;
mod page;
mod reading;
mod search;
mod summary;
mod strip;
