//! Where the time of a benchmark goes: a [`Profile`], as the feature `profiler` records it and
//! `profile.json` beside the benchmark's results holds it. This module needs the feature `profile`
//! alone, and no GPU: `serde` reads a profile from the file.
//!
//! Times are nanoseconds: durations, unless a field's name says start or end.

#[cfg(feature = "profiler")]
mod analyse;
#[cfg(feature = "profiler")]
mod intervals;
#[cfg(feature = "profiler")]
pub(crate) mod name;
#[cfg(feature = "profiler")]
pub(crate) mod recording;
mod report;
#[cfg(feature = "profiler")]
mod rows;
#[cfg(feature = "profiler")]
mod sentence;
mod table;
#[cfg(feature = "profiler")]
mod timeline;
#[cfg(feature = "profiler")]
mod trace;

#[cfg(feature = "profiler")]
pub(crate) use analyse::{About, analyse};
pub use report::{
    CallRow, DeviceRow, Lane, LaneKind, Place, Profile, RangeRow, SCHEMA, Span, Summary, Timeline,
    Work,
};
#[cfg(feature = "profiler")]
pub(crate) use trace::{SPANS as TRACE_SPANS, trace};
