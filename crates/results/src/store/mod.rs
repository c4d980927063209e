//! The files on disk: the one reader and the one writer of Criterion's files, our sidecars and the
//! records of runs.

pub mod baseline;
pub mod curves;
pub mod folder;
pub mod history;
pub mod layout;
pub mod machine_record;
pub mod machine_results;
#[cfg(any(test, feature = "planted"))]
pub mod planted;
pub mod profiles;
pub mod runs;
pub mod sampled;
pub mod stored_results;
pub mod whole_file;
