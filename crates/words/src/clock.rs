//! The clocks and their meanings.

use std::fmt;

/// The meaning of a measured time. Every result carries its clock, because two times taken on
/// different clocks answer different questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Clock {
    /// The host clock; the device is idle at the start, and the work of each iteration is awaited, by
    /// the clock or by the code.
    Wall,
    /// CUDA events around a batch of asynchronous launches: the longer of launch rate and
    /// device time.
    Events,
    /// CUDA events, the stream held at a gate until the whole batch is queued: device time
    /// alone.
    EventsGated,
    /// One event pair per iteration, the L2 cache flushed before it: device time when the
    /// data come from memory. Where the gate is off, it includes the wait for the launch.
    EventsCold,
    /// The host clock without synchronising: the cost of queueing, and nothing else. Such a time shows
    /// a common mistake, and is never used for a speedup.
    Submit,
    /// CUPTI's records: the time during which a device works, by whatever library, on all streams of the process.
    /// It leaves out launches and gaps, so it is compared with itself alone, and never used for a speedup.
    Activity,
}

impl Clock {
    /// Every clock.
    pub const ALL: &[Clock] = &[
        Clock::Wall,
        Clock::Events,
        Clock::EventsGated,
        Clock::EventsCold,
        Clock::Submit,
        Clock::Activity,
    ];

    /// The clocks of one stream, on which the work must be.
    pub const OF_STREAM: &[Clock] = &[
        Clock::Wall,
        Clock::Events,
        Clock::EventsGated,
        Clock::EventsCold,
        Clock::Submit,
    ];

    /// The name used in results, tables and plots, such as `events-gated`.
    pub const fn name(self) -> &'static str {
        match self {
            Clock::Wall => "wall",
            Clock::Events => "events",
            Clock::EventsGated => "events-gated",
            Clock::EventsCold => "events-cold",
            Clock::Submit => "submit",
            Clock::Activity => "activity",
        }
    }

    /// The clock with this name.
    pub fn named(name: &str) -> Option<Self> {
        (Self::ALL.iter().copied()).find(|clock| clock.name() == name)
    }

    /// One sentence for a reader who meets the clock for the first time.
    pub const fn meaning(self) -> &'static str {
        match self {
            Clock::Wall => "host clock; the device is idle before and synchronised after",
            Clock::Events => {
                "CUDA events around a batch of launches: the longer of launching and device time"
            }
            Clock::EventsGated => {
                "CUDA events around a batch queued behind a gate: device time without launch latency"
            }
            Clock::EventsCold => {
                "one CUDA event pair per iteration after an L2 flush: device time with the data in memory"
            }
            Clock::Submit => {
                "host clock without synchronising: the time to queue the work, not to do it"
            }
            Clock::Activity => {
                "device busy: the time during which kernels, copies or memory sets ran, on any stream; \
                 launches and the gaps between kernels are not in it, but in the span beside it"
            }
        }
    }

    /// Whether a time on this clock tells how long the work took, so that a speedup may use it.
    pub const fn measures_work(self) -> bool {
        self.remark().is_none()
    }

    /// The remark beside a time that no speedup may use; `None` for other times.
    pub const fn remark(self) -> Option<&'static str> {
        match self {
            Clock::Submit => Some("does not measure the work"),
            Clock::Activity => Some("device busy, without launches and gaps"),
            _ => None,
        }
    }

    /// Whether a time on this clock comes from CUDA events.
    pub const fn is_of_events(self) -> bool {
        matches!(self, Clock::Events | Clock::EventsGated | Clock::EventsCold)
    }

    /// Whether a time on this clock includes the caller's cost of launching the work.
    pub const fn includes_launch(self) -> bool {
        matches!(self, Clock::Wall | Clock::Events)
    }

    /// The smallest step that this clock resolves, in nanoseconds. For CUDA events it is what NVIDIA
    /// documents, about 0.5 µs (`cuEventElapsedTime`), where the step of a device is not measured.
    /// <https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__EVENT.html>
    pub const fn resolution_ns(self) -> f64 {
        if self.is_of_events() { 500.0 } else { 1.0 }
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_every_clock_and_names_read_back() {
        for (i, clock) in Clock::ALL.iter().copied().enumerate() {
            // A new clock does not compile here until it has a place in the list.
            let place = match clock {
                Clock::Wall => 0,
                Clock::Events => 1,
                Clock::EventsGated => 2,
                Clock::EventsCold => 3,
                Clock::Submit => 4,
                Clock::Activity => 5,
            };
            assert_eq!(place, i);
            assert_eq!(clock.measures_work(), place < 4);
            let is_of_stream = Clock::OF_STREAM.contains(&clock);
            assert_eq!(is_of_stream, clock != Clock::Activity);
            assert_eq!(Clock::named(clock.name()), Some(clock));
        }
        assert_eq!(Clock::named("sundial"), None);
    }
}
