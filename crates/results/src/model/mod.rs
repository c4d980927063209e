//! Plain data: ids, costs, roles, verification and machines of benchmarks, and the form of the files
//! that the suite writes beside Criterion's. Nothing here reads a file, opens a device or prints.
//!
//! A group of your own uses [`Cost`], [`Verified`], [`Unit`] and the words for its rows ([`Residency`],
//! [`Launches`], [`Format`] and so on). [`Sidecar`] and [`RunRecord`] are the files, for tools that
//! read results.

pub mod cost;
pub mod environment;
pub mod group_info;
pub mod id;
pub mod record;
pub mod role;

pub use cost::{Cost, LinkBytes};
pub use environment::{Cpu, Environment, FurtherGpu, GpuInfo, GpuLink, PcieLink};
pub use group_info::{GroupInfo, Truth, Unit};
pub use record::{
    BandwidthCurve, BandwidthPoint, Confirmation, DeviceState, Energy, Failure, MeasuredLimit,
    PairedTimes, RunRecord, SCHEMA, Sidecar, Skip, Telemetry, TelemetryEvent, TelemetryEventKind,
    Verified,
};
pub use role::{
    Allocator, CopyDirection, Devices, Exchange, Format, Launches, Library, Measures, Phase,
    Residency, Role, Split, Threads,
};
