use std::fmt;

/// What a measured time means. Every result carries its clock, because two times taken on
/// different clocks answer different questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "suite", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "suite", serde(rename_all = "kebab-case"))]
pub enum Clock {
    /// The host clock; the device is idle at the start and synchronised at the end.
    Wall,
    /// CUDA events around a batch of asynchronous launches: the longer of launch rate and
    /// device time.
    Events,
    /// CUDA events, the stream held at a gate until the whole batch is queued: device time
    /// alone.
    EventsGated,
    /// One event pair an iteration, the L2 cache flushed before it: device time when the
    /// data comes from memory.
    EventsCold,
    /// The host clock without synchronising: what queueing costs, and nothing else. It shows
    /// why such a time is wrong and never takes part in a speedup.
    Submit,
}

impl Clock {
    /// The name used in results, tables and plots, such as `events-gated`.
    pub fn name(self) -> &'static str {
        match self {
            Clock::Wall => "wall",
            Clock::Events => "events",
            Clock::EventsGated => "events-gated",
            Clock::EventsCold => "events-cold",
            Clock::Submit => "submit",
        }
    }

    /// One sentence for a reader who meets the clock for the first time.
    pub fn meaning(self) -> &'static str {
        match self {
            Clock::Wall => "host clock, device idle before and synchronised after",
            Clock::Events => {
                "CUDA events around a batch of launches: the longer of launch rate and device time"
            }
            Clock::EventsGated => {
                "CUDA events around a batch queued behind a gate: device time without launch latency"
            }
            Clock::EventsCold => {
                "one CUDA event pair an iteration after an L2 flush: device time from memory"
            }
            Clock::Submit => "host clock without synchronising: queueing only, not the work",
        }
    }

    /// Whether a time on this clock says how long the work took, so that it may take part in
    /// a speedup or a crossover. `submit` does not.
    pub fn measures_work(self) -> bool {
        self != Clock::Submit
    }
}

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
