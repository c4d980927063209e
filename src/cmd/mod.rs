//! One file a subcommand.

pub(crate) mod ab;
pub(crate) mod compare;
pub(crate) mod verdict;
