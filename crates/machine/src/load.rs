//! Background load: the use of processors and memory by other programs, from `/proc`. Without `/proc`
//! it is unknown.

use std::fs;
use std::time::{Duration, Instant};

use crossover_system::usable_cores;

/// Ticks per second in `/proc`, on every architecture.
const TICKS: f64 = 100.0;
/// A shorter time has too few ticks.
const SHORTEST_SPAN: Duration = Duration::from_millis(200);
/// Background load on fewer cores than the first, or than the second as a share of all cores, does not
/// matter.
const NEGLIGIBLE_CORES: (f64, f64) = (0.2, 0.05);
/// Waiting of threads for memory does not matter below this share of the time.
const NEGLIGIBLE_MEMORY_WAIT: f64 = 0.05;
/// A calibration was disturbed if some thread waited for a processor for this share of the time or
/// longer. Its own threads are no more than the processors, so they do not wait for each other.
const DISTURBING_WAIT: f64 = 0.25;
/// The shortest time over which pressure is known: the kernel updates it every few milliseconds.
const SHORTEST_PRESSURE_SPAN: Duration = Duration::from_millis(10);

/// Counters of the machine at a moment, in seconds.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    at: Instant,
    /// Processor time of all programs, including time that the hypervisor took away.
    all: f64,
    /// Processor time of this process, and of its children that have ended.
    own: f64,
    /// Time in which some thread waited for a processor; `None` if the kernel does not count it.
    waited: Option<f64>,
    /// Time in which some thread waited for memory.
    waited_for_memory: Option<f64>,
}

/// The activity of other programs in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Background {
    /// Cores that they used, including those that the hypervisor took away.
    pub cores: f64,
    /// Share of the time in which some thread waited for memory.
    waited_for_memory: f64,
}

impl Load {
    /// Reads the counters; `None` if the system has none.
    pub fn now() -> Option<Self> {
        let read = |file: &str| fs::read_to_string(format!("/proc/{file}")).ok();
        Some(Self {
            at: Instant::now(),
            all: busy(&read("stat")?, &usable_cores())?,
            own: own(&read("self/stat")?)?,
            waited: read("pressure/cpu").and_then(|text| waited(&text)),
            waited_for_memory: read("pressure/memory").and_then(|text| waited(&text)),
        })
    }

    /// The activity of other programs since `earlier`; `None` for less time than `SHORTEST_SPAN`.
    pub fn background_since(self, earlier: Self) -> Option<Background> {
        let time = (self.at - earlier.at).as_secs_f64();
        let cores = (self.all - earlier.all - (self.own - earlier.own)) / time;
        let memory = share(self.waited_for_memory, earlier.waited_for_memory, time);
        (time >= SHORTEST_SPAN.as_secs_f64()).then(|| Background {
            cores: cores.max(0.0),
            waited_for_memory: memory.unwrap_or(0.0),
        })
    }

    /// Whether background load disturbed a calibration of this process that began at `earlier`. Most
    /// calibrations are too short for `/proc/stat`; only pressure is fine enough.
    pub fn is_disturbed_since(self, earlier: Self) -> bool {
        let time = self.at - earlier.at;
        let waited = share(self.waited, earlier.waited, time.as_secs_f64());
        time >= SHORTEST_PRESSURE_SPAN && waited.is_some_and(|it| it >= DISTURBING_WAIT)
    }

    /// Waits until `SHORTEST_SPAN` has passed since then.
    pub fn wait(self) {
        std::thread::sleep(SHORTEST_SPAN.saturating_sub(self.at.elapsed()));
    }
}

impl Background {
    /// The larger of both, fact by fact.
    pub fn max(self, other: Self) -> Self {
        Self {
            cores: self.cores.max(other.cores),
            waited_for_memory: self.waited_for_memory.max(other.waited_for_memory),
        }
    }

    /// Whether the used cores matter on this number of processors.
    pub fn is_busy(self, processors: usize) -> bool {
        let (cores, share) = NEGLIGIBLE_CORES;
        self.cores >= cores.max(share * processors as f64)
    }

    /// The parts that matter, each in a sentence with its remedy.
    pub fn disturbances(self, processors: usize) -> Vec<String> {
        let mut found = Vec::new();
        if self.is_busy(processors) {
            found.push(format!(
                "background load: other programs, or the host of a virtual machine, used up to {:.1} of {processors} \
                 cores: end them, or run again later",
                self.cores
            ));
        }
        if self.waited_for_memory > NEGLIGIBLE_MEMORY_WAIT {
            found.push(format!(
                "memory pressure: programs waited for memory {:.0} % of the time: end those that need the most",
                100.0 * self.waited_for_memory
            ));
        }
        found
    }
}

/// By what share of `time` a counter grew.
fn share(now: Option<f64>, earlier: Option<f64>, time: f64) -> Option<f64> {
    Some(((now? - earlier?) / time).clamp(0.0, 1.0))
}

/// Seconds in which these processors were busy or taken away, from `/proc/stat`. `None` if it counts
/// nothing, as in some sandboxes.
fn busy(stat: &str, allowed: &[usize]) -> Option<f64> {
    let of_cpu = |line: &str| {
        let (cpu, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
        let ticks: Vec<f64> = ticks.split(' ').map_while(|t| t.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal
        let &[user, nice, system, _, _, irq, softirq, steal, ..] = &ticks[..] else {
            return None;
        };
        let busy = user + nice + system + irq + softirq + steal;
        (allowed.contains(&cpu.parse().ok()?)).then_some(busy)
    };
    let ticks: f64 = stat.lines().filter_map(of_cpu).sum();
    (ticks > 0.0).then_some(ticks / TICKS)
}

/// Seconds from `/proc/self/stat`: user and system time, and those of children.
fn own(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(11).take(4);
    let ticks: Vec<f64> = ticks.map_while(|field| field.parse().ok()).collect();
    (ticks.len() == 4).then(|| ticks.iter().sum::<f64>() / TICKS)
}

/// Seconds in which some thread waited, from a file in `/proc/pressure`.
fn waited(pressure: &str) -> Option<f64> {
    let some = pressure.lines().find(|line| line.starts_with("some "))?;
    let (_, micros) = some.rsplit_once("total=")?;
    Some(micros.trim().parse::<u64>().ok()? as f64 * 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "\
cpu  109073 0 14590 34197 439 0 92 71 0 0
cpu0 100 10 30 9000 500 5 5 50 7 7
cpu1 55473 0 7578 15755 308 0 86 35 0 0
intr 786493 0 0
";

    #[test]
    fn counters_are_read() {
        assert_eq!(busy(STAT, &[0]), Some(2.0));
        assert_eq!(busy(STAT, &[2]), None);
        assert_eq!(busy("cpu  0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\n", &[0]), None);
        let stat = "7 (a ) b) R 1 7 7 0 -1 4194304 98 0 0 0 100 20 3 7 20 0 1 0 79681";
        assert_eq!(own(stat), Some(1.3));
        assert_eq!(own("7 (a) R 1"), None);
        let text = "some avg10=89.50 avg60=69.58 avg300=26.15 total=99673935\nfull total=7\n";
        assert_eq!(waited(text), Some(99.673935));
        for text in ["", "some avg10=1.00\n", "full total=7\n", "some total=x"] {
            assert_eq!(waited(text), None, "{text:?}");
        }
    }

    #[test]
    fn background_load_is_what_this_process_did_not_do() {
        let at = Instant::now();
        let load = |millis, all, own, waited| Load {
            at: at + Duration::from_millis(millis),
            all,
            own,
            waited: Some(waited),
            waited_for_memory: Some(waited),
        };
        let earlier = load(0, 10.0, 5.0, 1.0);
        let later = load(2_000, 14.0, 7.0, 1.5);
        let since = |later: Load| later.background_since(earlier);
        let background = since(later).unwrap();
        assert_eq!(
            (background.cores, background.waited_for_memory),
            (1.0, 0.25)
        );
        assert_eq!(since(earlier), None);
        for (millis, waited, disturbed) in [(20, 1.01, true), (20, 1.001, false), (5, 1.005, false)]
        {
            let later = load(millis, 10.0, 5.0, waited);
            assert_eq!(later.is_disturbed_since(earlier), disturbed, "{waited}");
        }
    }

    #[test]
    fn facts_above_their_threshold_are_reported() {
        let cores = |cores| Background {
            cores,
            ..Background::default()
        };
        assert_eq!(cores(0.1).disturbances(2), [""; 0]);
        assert_eq!(cores(0.5).disturbances(16), [""; 0]);
        let busiest = cores(0.1).max(cores(1.04));
        assert!(busiest.disturbances(2)[0].contains("used up to 1.0 of 2 cores"));
        let short_of_memory = Background {
            cores: 0.0,
            waited_for_memory: 0.2,
        };
        let found = short_of_memory.disturbances(2);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("waited for memory 20 %"), "{found:?}");
    }
}
