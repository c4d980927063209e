//! How busy other work keeps the processors that this process may use, from `/proc/stat`, with what the
//! hypervisor takes away, and how often a thread had to wait for one, from `/proc/pressure/cpu`.

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
/// Fewer processors are none in a sentence.
const SHOWN: f64 = 0.05;
/// A calibration in which some thread waited for a processor for this share of the time, or longer,
/// was disturbed: its own threads are no more than the processors.
const WAITED: f64 = 0.25;
/// The least time whose pressure tells something. The kernel adds to it every few milliseconds.
const GLANCE: Duration = Duration::from_millis(10);
/// A machine that is suspended for less is not told from the rounding of both clocks.
const ASLEEP: f64 = 1.0;
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
    /// Of it, taken away: what another machine of the same host worked meanwhile.
    taken: f64,
    /// By this process, and its children that have ended.
    own: f64,
    /// Seconds in which some thread of the machine waited for a processor; `None` where the kernel
    /// does not count them.
    waited: Option<f64>,
    /// Seconds since the machine was started. Unlike `at`, they go on while it is suspended.
    uptime: Option<f64>,
}

/// What other work did in a span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Others {
    /// How many processors it kept busy.
    pub processors: f64,
    /// Of these, how many the hypervisor took away.
    taken: f64,
    /// Share of the time in which some thread waited for a processor, of this process or of others.
    waited: Option<f64>,
}

impl Load {
    /// Reads it; `None` where the system does not tell.
    pub fn now() -> Option<Self> {
        let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
        let allowed = |cpu| allowed.is_set(cpu).unwrap_or(false);
        let at = Instant::now();
        let (all, taken) = busy(&fs::read_to_string("/proc/stat").ok()?, allowed)?;
        Some(Self {
            at,
            all,
            taken,
            own: own(&fs::read_to_string("/proc/self/stat").ok()?)?,
            waited: fs::read_to_string("/proc/pressure/cpu")
                .ok()
                .and_then(|text| waited(&text)),
            uptime: fs::read_to_string("/proc/uptime")
                .ok()
                .and_then(|text| text.split(' ').next()?.parse().ok()),
        })
    }

    /// What others did since `earlier`; `None` of less time than `LOOK`.
    pub fn of_others_since(self, earlier: Self) -> Option<Others> {
        let time = self.at - earlier.at;
        let others = (self.all - earlier.all) - (self.own - earlier.own);
        (time >= LOOK).then(|| Others {
            processors: (others / time.as_secs_f64()).max(0.0),
            taken: (self.taken - earlier.taken) / time.as_secs_f64(),
            waited: self.waited_since(earlier),
        })
    }

    fn waited_since(self, earlier: Self) -> Option<f64> {
        let time = (self.at - earlier.at).as_secs_f64();
        Some(((self.waited? - earlier.waited?) / time).clamp(0.0, 1.0))
    }

    /// Whether other work disturbed a calibration of this process that began at `earlier`. Most are
    /// shorter than what `/proc/stat` tells of, and only the pressure is finer.
    pub fn is_disturbed_since(self, earlier: Self) -> bool {
        let waited = || self.waited_since(earlier).is_some_and(|it| it >= WAITED);
        self.at - earlier.at >= GLANCE && waited()
    }

    /// That the machine was suspended since `earlier`, in a sentence with its remedy. Times do not contain
    /// it: their clock stands still meanwhile.
    pub fn suspended_since(self, earlier: Self) -> Option<String> {
        let asleep = self.uptime? - earlier.uptime? - (self.at - earlier.at).as_secs_f64();
        (asleep >= ASLEEP).then(|| {
            format!(
                "the machine was suspended for {asleep:.0} s during the run, after which clocks, caches and the GPU \
                 begin anew: keep it awake (`systemd-inhibit`) and run again"
            )
        })
    }

    /// Waits until `LOOK` is over since then.
    pub fn wait(self) {
        std::thread::sleep(LOOK.saturating_sub(self.at.elapsed()));
    }
}

/// Seconds that these processors were busy for or taken away, and of it those taken away, from
/// `/proc/stat`. `None` where it counts nothing, as in some sandboxes.
fn busy(stat: &str, allowed: impl Fn(usize) -> bool) -> Option<(f64, f64)> {
    let of_cpu = |line: &str| {
        let (cpu, ticks) = line.strip_prefix("cpu")?.split_once(' ')?;
        let ticks: Vec<f64> = ticks.split(' ').map_while(|t| t.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal
        let &[user, nice, system, _, _, irq, softirq, steal, ..] = &ticks[..] else {
            return None;
        };
        let busy = user + nice + system + irq + softirq + steal;
        allowed(cpu.parse().ok()?).then_some((busy / TICKS, steal / TICKS))
    };
    let of_cpus = stat.lines().filter_map(of_cpu);
    let (all, taken) = of_cpus.fold((0.0, 0.0), |sum, cpu| (sum.0 + cpu.0, sum.1 + cpu.1));
    (all > 0.0).then_some((all, taken))
}

/// Seconds from `/proc/self/stat`: user and system time, and those of children.
fn own(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks = fields.split(' ').skip(11).take(4);
    let ticks: Vec<f64> = ticks.map_while(|field| field.parse().ok()).collect();
    (ticks.len() == 4).then(|| ticks.iter().sum::<f64>() / TICKS)
}

/// Seconds from `/proc/pressure/cpu`, in which some thread waited.
fn waited(pressure: &str) -> Option<f64> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "));
    let (_, micros) = some?.rsplit_once("total=")?;
    Some(micros.parse::<u64>().ok()? as f64 * 1e-6)
}

/// Whether others kept so many of the processors busy that it shows.
pub fn is_busy(others: Others, processors: usize) -> bool {
    others.processors >= QUIET.0.max(QUIET.1 * processors as f64)
}

/// What other work kept busy before, during and after a run, as far as it is known, in a sentence with
/// its remedy; `None` where that was little.
pub fn disturbance(others: &[Others], processors: usize) -> Option<String> {
    // Nobody can end what runs beside this machine on its host.
    let is_here = |it: &Others| is_busy(*it, processors) && it.taken < 0.5 * it.processors;
    let remedy = match others.iter().any(is_here) {
        true => "end it and run again",
        false => "run again when the host has less to do",
    };
    let figures = others.iter().zip(WHEN).map(|(others, when)| {
        let taken = match others.taken >= SHOWN {
            true => format!(", {:.1} of it by the hypervisor,", others.taken),
            false => String::new(),
        };
        let waited = others.waited.map_or(String::new(), |share| {
            format!(
                " while a thread waited for one {:.0} % of the time",
                100.0 * share
            )
        });
        format!("{:.1} {when}{taken}{waited}", others.processors)
    });
    others.iter().any(|it| is_busy(*it, processors)).then(|| {
        format!(
            "other work kept some of the {processors} processors busy ({}): {remedy}",
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
        assert_eq!(busy(STAT, |cpu| cpu == 0), Some((2.0, 0.5)));
        assert_eq!(busy(STAT, |cpu| cpu == 2), None);
        assert_eq!(busy("cpu  0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\n", |_| true), None);
        let stat = "7 (a ) b) R 1 7 7 0 -1 4194304 98 0 0 0 100 20 3 7 20 0 1 0 79681";
        assert_eq!(own(stat), Some(1.3));
        assert_eq!(own("7 (a) R 1"), None);
    }

    #[test]
    fn pressure_is_read_where_there_is_some() {
        let text = "some avg10=89.50 avg60=69.58 avg300=26.15 total=99673935\n\
                    full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
        assert_eq!(waited(text), Some(99.673935));
        for text in [
            "",
            "some avg10=1.00\n",
            "full avg10=0.00 total=7\n",
            "some total=x",
        ] {
            assert_eq!(waited(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_others_did_is_what_this_process_did_not() {
        let at = Instant::now();
        let load = |millis, all, own, waited| Load {
            at: at + Duration::from_millis(millis),
            all,
            taken: 0.0,
            own,
            waited,
            uptime: Some(100.0),
        };
        let earlier = load(0, 10.0, 5.0, Some(1.0));
        let since = |later: Load| later.of_others_since(earlier);
        let others = |processors, waited| Others {
            processors,
            taken: 0.0,
            waited,
        };
        let later = load(2_000, 14.0, 7.0, Some(1.5));
        assert_eq!(since(later), Some(others(1.0, Some(0.25))));
        let untold = load(2_000, 14.0, 7.0, None);
        assert_eq!(since(untold), Some(others(1.0, None)));
        assert_eq!(since(earlier), None);
        for (millis, waited, disturbed) in [
            (20, Some(1.01), true),
            (20, Some(1.001), false),
            (5, Some(1.005), false),
            (20, None, false),
        ] {
            let later = load(millis, 10.0, 5.0, waited);
            assert_eq!(later.is_disturbed_since(earlier), disturbed, "{waited:?}");
        }
        assert_eq!(later.suspended_since(earlier), None);
        let woken = Load {
            uptime: Some(139.0),
            ..later
        };
        let told = woken.suspended_since(earlier).unwrap();
        assert!(told.starts_with("the machine was suspended for 37 s during the run"));
        let quiet = others(0.1, Some(0.9));
        assert_eq!(disturbance(&[quiet, others(0.0, None)], 2), None);
        assert_eq!(disturbance(&[others(0.5, None)], 16), None);
        assert_eq!(
            disturbance(&[quiet, others(1.04, None)], 2).unwrap(),
            "other work kept some of the 2 processors busy (0.1 before the first benchmark while a thread \
             waited for one 90 % of the time, 1.0 during the run): end it and run again"
        );
        // While the run itself is busy on all of them, a neighbour of the machine takes some.
        let taken = since(Load {
            taken: 2.0,
            ..later
        })
        .unwrap();
        assert_eq!(
            disturbance(&[quiet, quiet, taken], 2).unwrap(),
            "other work kept some of the 2 processors busy (0.1 before the first benchmark while a thread \
             waited for one 90 % of the time, 0.1 during the run while a thread waited for one 90 % of the \
             time, 1.0 after the last benchmark, 1.0 of it by the hypervisor, while a thread waited for one \
             25 % of the time): run again when the host has less to do"
        );
    }
}
