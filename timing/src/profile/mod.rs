//! Where the time of a benchmark goes: what was recorded of it, and what that says.

mod report;

pub use report::{
    CallRow, DeviceRow, Lane, LaneKind, Place, Profile, RangeRow, SCHEMA, Span, Summary, Timeline,
    Work,
};
