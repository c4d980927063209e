//! Running benchmark groups: which sizes fit, verified before and after timing, each result
//! written with its sidecar, and what was left out named with its reason.
//!
//! A bench executable makes [`Group`]s and hands them to [`bench`](bench()).

pub(crate) mod arguments;
mod bench;
mod benchmark;
pub(crate) mod confirm;
mod criterion_instance;
pub(crate) mod group;
mod guarded;
pub(crate) mod host;
pub(crate) mod journal;
mod limits_and_load;
pub(crate) mod preflight;
pub(crate) mod profiles;
pub(crate) mod progress;
mod run;
mod sampler;
pub(crate) mod sampling_plan;
mod sizes;
mod verify;

pub use bench::bench;
pub use crossover_protocol::settings::SizeSet;
pub use group::{AnyGroup, Group, Implementation};
pub use sizes::{MachineMemory, Planned, Sizes};
