//! The data that everything else speaks of: what a benchmark is called, what it costs, how it
//! was verified, its role, on which machine, and the records of it. A leaf: nothing here reads a file,
//! opens a device or prints.

pub(crate) mod clock;
pub(crate) mod cost;
pub(crate) mod environment;
pub(crate) mod id;
pub(crate) mod median;
pub(crate) mod record;
pub(crate) mod role;
pub(crate) mod telemetry;
pub(crate) mod topic;
pub(crate) mod verified;

pub use cost::Cost;
pub use environment::{Cpu, Environment, GpuInfo, PcieLink};
pub use record::{
    BandwidthCurve, BandwidthPoint, Ceiling, Confirmation, Duel, Failure, RunRecord, SCHEMA,
    Sidecar, Skip,
};
pub use role::{
    Allocator, Data, Does, Format, Launches, Library, Phase, Role, Split, Threads, Way,
};
pub use telemetry::{DeviceState, Energy, Telemetry, TelemetryEvent, TelemetryEventKind};
pub use topic::{Topic, Truth, Unit};
pub use verified::Verified;
