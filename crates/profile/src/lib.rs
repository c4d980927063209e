//! Where the time of a benchmark goes: a [`Profile`], which the profiler of `crossover-timing` records
//! and writes to `profile.json` beside the benchmark's results. Needs no GPU: `serde` reads a profile
//! from the file. The feature `analysis` makes a profile from a recording.
//!
//! Times are nanoseconds: durations, unless a field's name says start or end.

#[cfg(feature = "analysis")]
mod activity;
#[cfg(feature = "analysis")]
mod analyse;
#[cfg(feature = "analysis")]
mod intervals;
#[cfg(feature = "analysis")]
mod lanes;
#[cfg(feature = "analysis")]
pub mod name;
#[cfg(feature = "analysis")]
pub mod recording;
mod report;
#[cfg(feature = "analysis")]
mod rows;
#[cfg(feature = "analysis")]
mod sentence;
mod table;
#[cfg(all(test, feature = "analysis"))]
mod tests;

#[cfg(feature = "analysis")]
pub use activity::Activity;
#[cfg(feature = "analysis")]
pub use analyse::analyse;
#[cfg(feature = "analysis")]
pub use lanes::trace;
pub use report::{
    CallRow, DeviceRow, Lane, LaneKind, Place, Profile, RangeRow, SCHEMA, Span, Summary, Timeline,
    Work,
};
pub use table::Table;
