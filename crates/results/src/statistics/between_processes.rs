//! What two processes of the same code differ by: the classes of benchmarks, and their spreads.
//!
//! A confidence interval from the samples of one process covers only the median of that process. The
//! next process has its memory elsewhere, other threads beside it, another launch constant. How much
//! that makes depends on the class: clock, device and duration. There are two uses:
//!
//! - Intervals and answers *predict another run*. Their spread (`BetweenProcesses`) is that of the
//!   run's own processes if they answered questions of the same class, with the spread of the
//!   committed machines as a prior. This prior also depends on where the data are.
//! - Verdicts *estimate a mean* over pairs of processes. `crossover-compare` learns the spread of a class
//!   from the compared runs, without assumptions.
//!
//! A few processes say little about how much the next one differs, so their spread is pooled with that
//! of their class, which counts for some degrees of freedom: the moderated variance of Smyth, "Linear
//! models and empirical Bayes methods for assessing differential expression in microarray experiments",
//! Statistical Applications in Genetics and Molecular Biology 3 (2004). Code whose time has two modes
//! keeps its wide interval, and does not widen those of the others.

use std::collections::BTreeMap;
use std::fmt;

use statrs::distribution::{ContinuousCDF, StudentsT};

use crossover_words::Clock;

use crate::model::id::Device;
use crate::model::record::Confirmation;
use crate::model::role::Residency;

/// A benchmark that takes less than this per launch, in nanoseconds, drifts more than longer ones:
/// fixed costs (the place of a buffer, the alignment of a loop, the timing of a launch in the
/// queue) are a larger share of it.
///
/// On an H200 each launch behind a gate costs up to 150 ns more in one process than in the
/// next: 5 % of an empty kernel, 0.5 % of one that takes 20 µs.
const SHORT_NS: f64 = 20_000.0;

/// Standard deviation between processes of the time that each launch adds to a gated time, in nanoseconds:
/// 120 in three runs on an H100 (23cdf577), less on an H200.
const LAUNCH_NS: f64 = 100.0;

/// Standard deviation between processes of the time that each node of a graph adds after the first.
const NODE_NS: f64 = 10.0;

/// Standard deviation of the logarithm of a gated time between processes, apart from its launches.
const GATED: f64 = 0.003;

/// Degrees of freedom that the assumption on a class counts for: five processes may all have met a
/// quiet host, and the next one another.
const ASSUMED_FREEDOM: f64 = 24.0;

/// Benchmarks whose spread is learnt together: one clock, one device, short or long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Class {
    /// The clock, `None` for results without a sidecar.
    pub clock: Option<Clock>,
    /// Where it runs; `None` where the id names no device.
    pub device: Option<Device>,
    /// The median lies under 20 µs per launch.
    pub short: bool,
    /// Whether the measurement is known not to be a time.
    pub is_count: bool,
}

impl Class {
    /// The class of a benchmark with this median and number of launches.
    pub fn of(
        device: Option<Device>,
        clock: Option<Clock>,
        median_ns: f64,
        launches: Option<u32>,
    ) -> Self {
        let launches = f64::from(launches.unwrap_or(1).max(1));
        Self {
            clock,
            device,
            short: median_ns / launches < SHORT_NS,
            is_count: false,
        }
    }

    pub(crate) fn is_gated(self) -> bool {
        matches!(self.clock, Some(Clock::EventsGated | Clock::EventsCold))
    }

    /// Standard deviation of the logarithm of a process's median: what the processes of three runs
    /// each on an H200 and on four H100, all on shared hosts, showed together; that of CPU code, with
    /// 10 to 25 % by host, is in between. [`of_gated`] has that of gated times.
    fn assumed(self, data: Residency) -> f64 {
        match (data, self.short) {
            _ if self.device != Some(Device::Gpu) => 0.16,
            (Residency::Ordinary, _) => 0.14,
            (Residency::Pinned, true) => 0.035,
            (Residency::Pinned, false) => 0.04,
            (Residency::Awaited, true) => 0.07,
            (Residency::Awaited, false) => 0.05,
            (Residency::Queued, true) => 0.12,
            (Residency::Queued, false) => 0.006,
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(device) = self.device {
            write!(f, "{device} ")?;
        }
        match self.clock {
            Some(clock) => write!(f, "{clock}")?,
            None if self.is_count => f.write_str("counts")?,
            None => f.write_str("benchmarks")?,
        }
        let limit = match self.clock {
            None if self.is_count => "20,000",
            None | Some(Clock::Wall) => "20 µs",
            Some(_) => "20 µs per launch",
        };
        if self.short {
            write!(f, " under {limit}")
        } else {
            write!(f, " from {limit} on")
        }
    }
}

/// Standard deviation of the logarithm of a gated time between processes. Each launch takes a constant of
/// its process, and each node of a graph after the first a little.
pub(crate) fn of_gated(median_ns: f64, launches: f64, nodes: f64) -> f64 {
    let constants = LAUNCH_NS * launches + NODE_NS * (nodes - 1.0);
    // A file may name any number of launches.
    (constants / median_ns).hypot(GATED).min(1.0)
}

/// The spread between processes of a machine, by class and place of the data, as far as its own
/// processes showed it.
#[derive(Clone, Debug, Default)]
pub(crate) struct BetweenProcesses(BTreeMap<(Class, Residency), f64>);

impl BetweenProcesses {
    /// The spread by the processes' times.
    pub(crate) fn of(confirmations: &[Confirmation]) -> Self {
        let pooled = pooled(confirmations).into_iter();
        let known = pooled.map(|((class, data), spread)| {
            let assumed = Spread::known(class.assumed(data).powi(2), ASSUMED_FREEDOM);
            let variance = spread.and(assumed).variance().unwrap_or_default();
            ((class, data), variance.sqrt())
        });
        Self(known.collect())
    }

    /// Standard deviation of the logarithm of another process's median of a class.
    pub(crate) fn deviation(&self, class: Class, data: Residency) -> f64 {
        let known = self.0.get(&key(class, data)).copied();
        known.unwrap_or_else(|| class.assumed(data))
    }
}

/// The place of the GPU's data makes no difference to CPU code. It tells how the processes of a run
/// time the GPU, so the clock does not count.
fn key(class: Class, data: Residency) -> (Class, Residency) {
    let is_gpu = class.device == Some(Device::Gpu);
    let data = if is_gpu { data } else { Residency::Queued };
    let class = Class {
        clock: None,
        ..class
    };
    (class, data)
}

/// The spread of each class, by the processes' times.
fn pooled(confirmations: &[Confirmation]) -> BTreeMap<(Class, Residency), Spread> {
    /// Group, implementation, size and device.
    type Benchmark<'a> = (&'a str, &'a str, u64, Device);
    // Several questions may share a measurement of one process: equal times count once.
    let mut medians: BTreeMap<Benchmark<'_>, (_, BTreeMap<u64, f64>)> = BTreeMap::new();
    for asked in confirmations {
        let mut add = |name, size, device, clock, ns: f64| {
            // By the time of an iteration: of the committed records, those of many launches that take more than
            // 20 µs together and less each differ by 0.9 % between processes (data on the device, calls queued),
            // as longer kernels do (0.4 %), and shorter iterations by 12 %.
            let class = Class::of(Some(device), clock, ns, None);
            // Their spread is not learnt: see `of_gated`.
            if class.is_gated() {
                return;
            }
            let benchmark = (asked.group.as_str(), name, size, device);
            let of_class = (key(class, asked.question), BTreeMap::new());
            let (_, logs) = medians.entry(benchmark).or_insert(of_class);
            if ns.ln().is_finite() {
                logs.insert(ns.to_bits(), ns.ln());
            }
        };
        for pair in asked.processes.iter().flatten() {
            add(&pair.cpu, pair.size, Device::Cpu, None, pair.cpu_ns);
            if asked.gpu_machine.is_none() {
                let clock = Some(asked.clock);
                add(&asked.gpu, pair.size, Device::Gpu, clock, pair.gpu_ns);
            }
        }
    }
    let mut pooled: BTreeMap<_, Spread> = BTreeMap::new();
    for (class, logs) in medians.into_values() {
        let logs: Vec<f64> = logs.into_values().collect();
        let of_class = pooled.entry(class).or_default();
        *of_class = of_class.and(Spread::of(&logs));
    }
    pooled
}

/// Degrees of freedom that the spread of a class counts for beside a benchmark's own, where the
/// class does not tell how alike its benchmarks are.
pub const CLASS_FREEDOM: f64 = 4.0;

/// The quantile of Student's t with [`CLASS_FREEDOM`] that an interval of 95 % reaches: some benchmarks of a
/// class spread more than others.
pub(crate) const TWO_SIDED_95: f64 = 2.776;

/// A sum of squares, and its degrees of freedom.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Sum of the squared distances from what was expected.
    pub squares: f64,
    /// How many of them are free.
    pub freedom: f64,
}

impl Spread {
    /// The spread of values around their mean.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n.max(1.0);
        Self {
            squares: values.iter().map(|v| (v - mean).powi(2)).sum(),
            freedom: (n - 1.0).max(0.0),
        }
    }

    /// A variance that counts for these degrees of freedom.
    pub fn known(variance: f64, freedom: f64) -> Self {
        Self {
            squares: variance * freedom,
            freedom,
        }
    }

    /// Both pooled.
    pub fn and(self, other: Self) -> Self {
        Self {
            squares: self.squares + other.squares,
            freedom: self.freedom + other.freedom,
        }
    }

    /// The mean square; `None` without any degree of freedom.
    pub fn variance(self) -> Option<f64> {
        (self.freedom > 0.0).then(|| self.squares / self.freedom)
    }
}

/// Degrees of freedom of a sum of variances, each with its own (Satterthwaite, "An approximate
/// distribution of estimates of variance components", Biometrics Bulletin 2, 1946); infinite where
/// all are certain.
pub fn freedom_of_sum(parts: &[(f64, f64)]) -> f64 {
    let sum: f64 = parts.iter().map(|(variance, _)| variance).sum();
    // In shares, because the square of a large variance overflows.
    let doubt = parts
        .iter()
        .map(|(variance, freedom)| (variance / sum).powi(2) / freedom);
    doubt.sum::<f64>().recip()
}

/// The value that a fraction `probability` of Student's t around zero, of scale 1, lies below.
pub fn quantile(freedom: f64, probability: f64) -> f64 {
    student(freedom).inverse_cdf(probability)
}

/// Probability that Student's t is more than `t`.
pub fn upper_tail(freedom: f64, t: f64) -> f64 {
    student(freedom).sf(t)
}

fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("the degrees of freedom are above zero")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::answer::tests::{asked, pair};
    use crate::analysis::tests::machines;
    use crate::store::machine_record;

    fn measured(gpu_ns: [f64; 5]) -> Confirmation {
        let process = |gpu_ns: f64| {
            let cpu_ns = 1e6 + gpu_ns.max(0.0) * 1e-6;
            [1, 2, 64].map(|size| pair(size, cpu_ns, gpu_ns)).into()
        };
        asked(gpu_ns.map(process).into())
    }

    fn known(asked: Confirmation) -> BetweenProcesses {
        BetweenProcesses::of(&[asked])
    }

    #[test]
    fn a_class_names_its_device_its_clock_and_its_duration_per_launch() {
        let name = |device, clock, ns, launches| Class::of(device, clock, ns, launches).to_string();
        let gpu = |ns, launches| name(Some(Device::Gpu), Some(Clock::Events), ns, launches);
        assert_eq!(gpu(19_999.0, None), "gpu events under 20 µs per launch");
        assert_eq!(gpu(190_000.0, Some(10)), gpu(19_999.0, None));
        assert_eq!(gpu(200_000.0, Some(10)), gpu(20_000.0, None));
        let mut criterion = Class::of(None, None, 20_000.0, None);
        assert_eq!(criterion.to_string(), "benchmarks from 20 µs on");
        criterion.is_count = true;
        assert_eq!(criterion.to_string(), "counts from 20,000 on");
    }

    #[test]
    fn a_class_has_the_spread_that_its_processes_show_beside_what_is_assumed() {
        // 30 % from process to process, where 12 % are assumed.
        let times = [5e3, 7e3, 5e3, 7e3, 9e3];
        let spread = known(measured(times));
        let short = Class::of(Some(Device::Gpu), Some(Clock::Events), 5e3, None);
        // Three sizes with logarithms around their mean, six degrees of freedom; 24 are assumed.
        let squares: f64 = [5e3_f64, 7e3, 9e3]
            .map(|ns| (ns / 315e9_f64.cbrt()).ln().powi(2))
            .iter()
            .sum();
        let wanted = ((3.0 * squares + 24.0 * 0.12_f64.powi(2)) / 30.0).sqrt();
        let deviation = spread.deviation(short, Residency::Queued);
        assert!((deviation / wanted - 1.0).abs() < 1e-6);
        let gated = Confirmation {
            clock: Clock::EventsGated,
            ..measured(times)
        };
        assert_eq!(known(gated).deviation(short, Residency::Queued), 0.12);
        // As quiet as it was, the next process may meet another host.
        let cpu = Class::of(Some(Device::Cpu), None, 1e6, None);
        let quiet = spread.0[&(cpu, Residency::Queued)];
        let wanted = 0.16 * (24.0_f64 / 30.0).sqrt();
        assert!((quiet / wanted - 1.0).abs() < 1e-3, "{quiet}");
        assert_eq!(spread.deviation(cpu, Residency::Pinned), quiet);
        // A class that no question was about has the assumed one.
        let pinned = Class::of(Some(Device::Gpu), Some(Clock::Wall), 5e3, None);
        assert_eq!(spread.deviation(pinned, Residency::Pinned), 0.035);
        let of_another = Confirmation {
            gpu_machine: Some("another".into()),
            ..measured([5e3; 5])
        };
        let spread = known(of_another).0;
        let is_cpu = |(class, _): &(Class, _)| class.device == Some(Device::Cpu);
        assert!(spread.keys().all(is_cpu));
        let absurd = known(measured([f64::NAN, 0.0, -1.0, 5e3, 5e3]));
        assert!(absurd.0.values().all(|deviation| deviation.is_finite()));
    }

    #[test]
    fn the_assumed_spread_is_that_of_the_committed_machines() {
        let mut showed: BTreeMap<(Class, Residency), Spread> = BTreeMap::new();
        // Older records too: one run meets one host.
        let files = walkdir::WalkDir::new(machines()).into_iter().flatten();
        for file in files.filter(|entry| entry.file_type().is_file()) {
            let runs = machine_record::read(file.path()).unwrap().runs;
            // Work on several GPUs varies more: it is assumed to vary like that on one, and shows its own spread.
            let of_one = (runs.into_iter()).filter(|r| r.environment.further_gpus.is_empty());
            let confirmations: Vec<_> = of_one.flat_map(|r| r.confirmations).collect();
            for (class, spread) in pooled(&confirmations) {
                let of_class = showed.entry(class).or_default();
                *of_class = of_class.and(spread);
            }
        }
        assert!(showed.len() >= 9, "{showed:?}");
        for ((class, data), spread) in showed {
            let ratio = spread.variance().unwrap().sqrt() / class.assumed(data);
            assert!((0.8..1.3).contains(&ratio), "{class}, {data:?}: {ratio}");
        }
    }

    #[test]
    fn the_variance_of_a_class_moderates_that_of_a_few_values() {
        let own = Spread::of(&[1.0, 2.0, 3.0]);
        assert_eq!((own.variance(), own.freedom), (Some(1.0), 2.0));
        let moderated = own.and(Spread::known(4.0, CLASS_FREEDOM));
        assert_eq!(moderated.variance(), Some((2.0 + 16.0) / 6.0));
        assert_eq!(Spread::of(&[5.0]).variance(), None);
        assert_eq!(Spread::default().variance(), None);
    }

    #[test]
    fn a_sum_of_variances_is_as_free_as_its_parts_allow() {
        assert_eq!(freedom_of_sum(&[(3.0, 7.0)]), 7.0);
        // Two equal ones of equal freedom have that of both.
        assert_eq!(freedom_of_sum(&[(2.0, 5.0), (2.0, 5.0)]), 10.0);
        assert_eq!(freedom_of_sum(&[(1e300, 5.0), (1e-300, 1.0)]), 5.0);
        let certain = freedom_of_sum(&[(1.0, 4.0), (3.0, f64::INFINITY)]);
        assert!((certain - 64.0).abs() < 1e-9);
    }
    #[test]
    fn the_interval_reaches_as_far_as_students_t() {
        assert!((quantile(CLASS_FREEDOM, 0.975) - TWO_SIDED_95).abs() < 1e-3);
        assert!((upper_tail(CLASS_FREEDOM, TWO_SIDED_95) - 0.025).abs() < 1e-4);
    }
}
