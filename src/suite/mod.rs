//! Running benchmark groups: which sizes fit, verified before and after timing, each result
//! written with its sidecar, and what was left out named with its reason.
//!
//! A bench executable makes [`Group`]s and hands them to [`bench`](bench()).

pub(crate) mod arguments;
mod bench;
mod benchmark;
pub(crate) mod confirm;
mod criterion_lines;
pub(crate) mod group;
mod guarded;
pub(crate) mod host;
mod instance;
pub(crate) mod journal;
pub(crate) mod missing;
pub(crate) mod preflight;
pub(crate) mod profiles;
pub(crate) mod progress;
mod run;
mod sampler;
pub(crate) mod sampling_plan;
pub(crate) mod turns;
mod verify;

pub use bench::bench;
pub use crossover_protocol::settings::Profile;
pub use group::{AnyGroup, Group, Implementation, Memory, Planned, Sizes};
