//! What is on disk: the one reader and the one writer of Criterion's files, our sidecars and
//! the records of runs.

pub(crate) mod attempt;
pub(crate) mod baseline;
mod between_processes;
pub(crate) mod curves;
pub(crate) mod export;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod layout;
pub(crate) mod machine;
pub(crate) mod problem;
pub(crate) mod profiles;
pub(crate) mod runs;
pub(crate) mod sidecar;
pub(crate) mod source;
mod steadiness;
pub(crate) mod stored;
