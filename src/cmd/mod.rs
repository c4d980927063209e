//! One file a subcommand: `Args` and `run`.

pub(crate) mod report;
