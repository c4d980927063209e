//! How busy other work keeps the processors that this process may use.

use std::fs;
use std::time::{Duration, Instant};

use nix::sched::sched_getaffinity;
use nix::unistd::Pid;

/// Ticks per second in `/proc`, on every architecture.
const TICKS: f64 = 100.0;
/// The least time that tells something: many ticks.
const LOOK: Duration = Duration::from_millis(200);
/// Other work below this many processors, and this share of all, disturbs nothing that lasts.
const QUIET: (f64, f64) = (0.2, 0.05);
/// The times of a measurement that are looked at, in words.
const WHEN: [&str; 3] = [
    "before the first benchmark",
    "during the run",
    "after the last benchmark",
];

/// What was worked until a moment, in seconds of one processor.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    at: Instant,
    /// By all, or taken away by the hypervisor.
    all: f64,
    /// By this process, and its children that have ended.
    own: f64,
}

impl Load {
    /// Reads it; `None` where the system does not tell.
    pub fn now() -> Option<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let allowed = |cpu| allowed.is_set(cpu).unwrap_or(false);
        Some(Self {
            at: Instant::now(),
            all: busy(&fs::read_to_string("/proc/stat").ok()?, allowed)?,
            own: own(&fs::read_to_string("/proc/self/stat").ok()?)?,
        })
    }

    /// How many processors others kept busy since `earlier`; `None` of less time than `LOOK`.
    pub fn of_others_since(self, earlier: Self) -> Option<f64> {
        let time = self.at - earlier.at;
        let others = (self.all - earlier.all) - (self.own - earlier.own);
        (time >= LOOK).then(|| (others / time.as_secs_f64()).max(0.0))
    }

    /// Waits until `LOOK` is over since then.
    pub fn wait(self) {
        std::thread::sleep(LOOK.saturating_sub(self.at.elapsed()));
    }
}

/// Seconds that these processors were busy for, from `/proc/stat`. `None` where it counts nothing, as
/// in some sandboxes.
fn busy(stat: &str, allowed: impl Fn(usize) -> bool) -> Option<f64> {
    let of_cpu = |line: &str| {
        let (cpu, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
        let ticks: Vec<f64> = ticks.split(' ').map_while(|t| t.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal
        let &[user, nice, system, _, _, irq, softirq, steal, ..] = &ticks[..] else {
            return None;
        };
        let busy = user + nice + system + irq + softirq + steal;
        allowed(cpu.parse().ok()?).then_some(busy / TICKS)
    };
    let all: f64 = stat.lines().filter_map(of_cpu).sum();
    (all > 0.0).then_some(all)
}

/// Seconds from `/proc/self/stat`: user and system time, and those of children.
fn own(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(11).take(4);
    let ticks: Vec<f64> = ticks.map_while(|field| field.parse().ok()).collect();
    (ticks.len() == 4).then(|| ticks.iter().sum::<f64>() / TICKS)
}

/// Whether others kept so many of the processors busy that it shows.
pub fn is_busy(others: f64, processors: usize) -> bool {
    others >= QUIET.0.max(QUIET.1 * processors as f64)
}

/// What other work kept busy before, during and after a run, as far as it is known, in a sentence with
/// its remedy; `None` where that was little.
pub fn disturbance(others: &[f64], processors: usize) -> Option<String> {
    let figures = others.iter().zip(WHEN);
    let figures = figures.map(|(others, when)| format!("{others:.1} {when}"));
    others.iter().any(|it| is_busy(*it, processors)).then(|| {
        format!(
            "other work kept some of the {processors} processors busy ({}): end it and run again",
            figures.collect::<Vec<_>>().join(", ")
        )
    })
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
    fn the_processors_of_this_process_count() {
        assert_eq!(busy(STAT, |cpu| cpu == 0), Some(2.0));
        assert_eq!(busy(STAT, |cpu| cpu == 2), None);
        assert_eq!(busy("cpu  0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\n", |_| true), None);
        let stat = "7 (a ) b) R 1 7 7 0 -1 4194304 98 0 0 0 100 20 3 7 20 0 1 0 79681";
        assert_eq!(own(stat), Some(1.3));
        assert_eq!(own("7 (a) R 1"), None);
    }

    #[test]
    fn what_others_did_is_what_this_process_did_not() {
        let load = |all, own| Load {
            at: Instant::now(),
            all,
            own,
        };
        let earlier = load(10.0, 5.0);
        let later = Load {
            at: earlier.at + Duration::from_secs(2),
            ..load(14.0, 7.0)
        };
        assert_eq!(later.of_others_since(earlier), Some(1.0));
        assert_eq!(earlier.of_others_since(earlier), None);
        assert_eq!(disturbance(&[0.1, 0.0], 2), None);
        assert_eq!(disturbance(&[0.5], 16), None);
        assert_eq!(
            disturbance(&[0.1, 1.04], 2).unwrap(),
            "other work kept some of the 2 processors busy (0.1 before the first benchmark, 1.0 \
             during the run): end it and run again"
        );
    }
}
