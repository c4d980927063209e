//! Benchmarks that drift alike.

use std::fmt;

use crate::model::id::{self, Device};
use crate::timing::Clock;

/// A benchmark is short where it takes less than this per launch, in nanoseconds: fixed costs (the
/// place of a buffer, the alignment of a loop, the timing of a launch in the queue) are a larger
/// share of it, so it drifts more, and is judged together with other short ones.
///
/// On an H200 each launch behind a gate costs up to 150 ns more in one process than in the
/// next: 5 % of an empty kernel, 0.5 % of one that takes 20 µs.
pub(crate) const SHORT_NS: f64 = 20_000.0;

/// Benchmarks whose drift is learnt together: one clock, one device, short or long.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Class {
    /// The clock, `None` for results without a sidecar.
    pub clock: Option<Clock>,
    /// Second part of the id; `None` where it names no device.
    pub device: Option<Device>,
    /// The median lies under [`SHORT_NS`] per launch.
    pub short: bool,
}

impl Class {
    /// Class of the benchmark `id` with that median, divided by its launches, on that clock.
    pub(crate) fn of(id: &str, clock: Option<Clock>, ns_per_launch: f64) -> Self {
        Self {
            clock,
            device: id::device(id),
            short: ns_per_launch < SHORT_NS,
        }
    }

    /// Whether its time is mostly what launches and waits cost the host, which one process does at
    /// another speed than the next.
    pub(crate) fn is_launch_bound(&self) -> bool {
        match self.clock {
            Some(Clock::Submit) => true,
            Some(Clock::Events) => self.short,
            Some(Clock::Wall) => self.short && self.device == Some(Device::Gpu),
            _ => false,
        }
    }

    /// The drift that is assumed without evidence: the standard deviation of the change between two
    /// processes that run the same code. It may be wrong by a factor of three, and counts for less
    /// as evidence arrives.
    ///
    /// The figures of a GPU are about those of an H200 on a shared host, in turns; that of a CPU is
    /// a guess. Short device times behind a gate carry what a launch costs the device, which
    /// differs by up to 150 ns from process to process.
    pub(crate) fn assumed_drift(&self) -> f64 {
        match (self.clock, self.short) {
            (Some(Clock::EventsGated | Clock::EventsCold), false) => 0.002,
            (Some(Clock::EventsGated | Clock::EventsCold), true) => 0.02,
            (Some(Clock::Events), false) => 0.003,
            (Some(Clock::Events | Clock::Submit), _) => 0.02,
            _ => 0.015,
        }
    }

    /// As `drift.json` and the JSON of a comparison name it, which hold what they held: `gpu events
    /// under 20 µs a launch`.
    pub(crate) fn name(&self) -> String {
        self.to_string().replace(" per launch", " a launch")
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(device) = self.device {
            write!(f, "{device} ")?;
        }
        match self.clock {
            Some(clock) => write!(f, "{clock}")?,
            None => f.write_str("unknown clock")?,
        }
        f.write_str(if self.short {
            " under 20 µs per launch"
        } else {
            " from 20 µs per launch"
        })
    }
}
