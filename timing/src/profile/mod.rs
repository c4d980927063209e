//! Where the time of a benchmark goes: what was recorded of it, and what that says.

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
pub(crate) mod write;

#[cfg(feature = "profiler")]
pub(crate) use analyse::{About, analyse};
pub use report::{
    CallRow, DeviceRow, Lane, LaneKind, Place, Profile, RangeRow, SCHEMA, Span, Summary, Timeline,
    Work,
};
#[cfg(feature = "profiler")]
pub(crate) use trace::trace;
