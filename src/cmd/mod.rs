//! The subcommands, one file each: its arguments and a function that runs it and gives the
//! exit code.

pub(crate) mod ab;
pub(crate) mod compare;
pub(crate) mod env;
pub(crate) mod export;
pub(crate) mod report;
pub(crate) mod verdict;
