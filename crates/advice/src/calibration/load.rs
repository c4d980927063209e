//! The load of the machine by other programs, on Linux.

use std::fs;
use std::time::{Duration, Instant};

/// Shorter than this, the clock ticks of `/proc` (10 ms) tell nothing.
const LEAST: Duration = Duration::from_millis(100);

/// Clock ticks per second, which Linux has fixed for programs.
const TICKS: f64 = 100.0;

/// The load that other programs may take from the threads of the closures, in cores.
const TOLERATED: f64 = 0.3;

/// The beginning of a measurement.
pub(super) struct Load(Instant, Option<Ticks>);

/// Clock ticks since the machine started.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ticks {
    /// All processors, busy or not.
    all: f64,
    /// Busy ticks of all programs.
    busy: f64,
    /// Ticks of this process and of its children that ended.
    own: f64,
}

impl Load {
    pub(super) fn begin() -> Self {
        Self(Instant::now(), Ticks::now())
    }

    /// The cores that other programs used, if they left fewer idle than `threads` threads need.
    pub(super) fn too_high(self, threads: usize) -> Option<f64> {
        let seconds = self.0.elapsed();
        let (before, after) = (self.1?, Ticks::now()?);
        (seconds >= LEAST).then_some(())?;
        too_high(before, after, seconds.as_secs_f64(), threads)
    }
}

fn too_high(before: Ticks, after: Ticks, seconds: f64, threads: usize) -> Option<f64> {
    let cores = |of: fn(Ticks) -> f64| (of(after) - of(before)) / (TICKS * seconds);
    let others = cores(|ticks| ticks.busy) - cores(|ticks| ticks.own);
    let left = cores(|ticks| ticks.all) - others;
    (left < threads as f64 - TOLERATED).then_some(others)
}

impl Ticks {
    fn now() -> Option<Self> {
        let read = |path| fs::read_to_string(path).ok();
        Self::parse(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    /// From the first line of `/proc/stat`, whose fourth and fifth numbers are idle, and from the numbers of
    /// `/proc/self/stat` behind the name of the program.
    fn parse(machine: &str, process: &str) -> Option<Self> {
        let line = machine.lines().next()?.strip_prefix("cpu ")?;
        let numbers: Vec<f64> = line
            .split_whitespace()
            .map_while(|n| n.parse().ok())
            .collect();
        let all: f64 = numbers.get(..8)?.iter().sum();
        let (_, behind) = process.rsplit_once(')')?;
        let own = behind.split_whitespace().skip(11).take(4);
        Some(Self {
            all,
            busy: all - numbers[3] - numbers[4],
            own: own.map_while(|n| n.parse::<f64>().ok()).sum(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_disturb_if_they_leave_too_few_cores() {
        let ticks = |user: u32, idle: u32, own: u32| {
            let machine = format!("cpu  {user} 0 0 {idle} 0 0 0 0 7 7\ncpu0 1 1 1\n");
            let process = format!("1 (a) b) R 1 1 1 0 -1 4 1 1 1 1 {own} 0 0 0 20 0\n");
            Ticks::parse(&machine, &process).unwrap()
        };
        // One second on two cores, in which this process used 0.9 of them.
        let others = |busy: u32, threads| {
            let (before, after) = (ticks(100, 500, 10), ticks(100 + busy, 700 - busy, 100));
            too_high(before, after, 1.0, threads).map(|cores| (10.0 * cores).round())
        };
        assert_eq!(others(90, 2), None);
        assert_eq!(others(110, 2), None);
        assert_eq!(others(190, 2), Some(10.0));
        assert_eq!(others(190, 1), None);
        assert_eq!(Ticks::parse("cpu  1", "1 (a) R"), None);
    }
}
