//! The data that everything else speaks of: what a benchmark is called, what it costs, how it
//! was verified, on which machine, and the records of it. A leaf: nothing here reads a file,
//! opens a device or prints.

pub(crate) mod clock;
pub(crate) mod cost;
pub(crate) mod environment;
pub(crate) mod id;
pub(crate) mod median;
pub(crate) mod record;
pub(crate) mod telemetry;
pub(crate) mod verified;

pub use cost::Cost;
pub use environment::{Cpu, Environment, GpuInfo, PcieLink};
pub use record::{Ceiling, Failure, RunRecord, SCHEMA, Sidecar, Skip};
pub use telemetry::{DeviceState, Energy, Telemetry, TelemetryEvent, TelemetryEventKind};
pub use verified::Verified;
