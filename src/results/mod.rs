//! What is on disk: the one reader and the one writer of Criterion's files, our sidecars and
//! the records of runs. Under the results root lie
//!
//! ```text
//! <group>/<function>/<size>/new/         Criterion's files of the newest result
//! <group>/<function>/<size>/<baseline>/  those of a saved baseline
//!     crossover.json                     our sidecar, in each of them
//! runs/<run>.json                        the record of a run
//! crossings.json                         sizes around crossings that later runs measure
//! ```

pub(crate) mod baseline;
pub(crate) mod crossings;
pub(crate) mod curves;
pub(crate) mod export;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod machine;
pub(crate) mod runs;
pub(crate) mod sidecar;
pub(crate) mod source;
pub(crate) mod stored;
