//! The spread between processes of the same code: more than the samples of one process show.
//!
//! A confidence interval from the samples of one process covers only the median of that process. The
//! next process has its memory elsewhere, other threads beside it, another launch constant. So shown
//! intervals include the spread between processes: measured by the run's own processes if they answered
//! questions of the same class, otherwise by those of the committed machines.

use std::collections::BTreeMap;

use crate::model::id::Device;
use crate::model::record::Confirmation;
use crate::model::role::{Measures, Residency};
use crate::statistics::spread::{SHORT_NS, Spread};
use crate::store::curves::Benchmark;
use crossover_words::Clock;

/// Degrees of freedom that the assumption on a class counts for: five processes may all have met a
/// quiet host, and the next one another.
const ASSUMED_FREEDOM: f64 = 24.0;

/// Benchmarks whose spread is learnt together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Cpu {
        short: bool,
    },
    Gpu {
        data: Residency,
        gated: bool,
        short: bool,
    },
}

impl Class {
    fn of(device: Device, data: Residency, clock: Option<Clock>, median_ns: f64) -> Self {
        let short = median_ns < SHORT_NS;
        match device {
            Device::Cpu => Class::Cpu { short },
            Device::Gpu => Class::Gpu {
                data,
                gated: matches!(clock, Some(Clock::EventsGated | Clock::EventsCold)),
                short,
            },
        }
    }

    /// Standard deviation of the logarithm of a process's median: what the processes of three runs
    /// each on an H200 and on three H100, all on shared hosts, showed together; that of CPU code, with
    /// 10 to 25 % by host, is in between. No process confirms a gated time: those are from six pairs of
    /// processes one after the other on an H200.
    fn assumed(self) -> f64 {
        match self {
            Class::Cpu { .. } => 0.16,
            Class::Gpu { data, gated, short } => match (gated, data, short) {
                (true, _, true) => 0.03,
                (true, _, false) => 0.002,
                (false, Residency::Ordinary, _) => 0.14,
                (false, Residency::Pinned, true) => 0.035,
                (false, Residency::Pinned, false) => 0.03,
                (false, Residency::Awaited, true) => 0.07,
                (false, Residency::Awaited, false) => 0.05,
                (false, Residency::Queued, true) => 0.12,
                (false, Residency::Queued, false) => 0.006,
            },
        }
    }
}

/// The spread between processes of a machine, by class, as far as its own processes showed it.
#[derive(Clone, Debug, Default)]
pub(super) struct BetweenProcesses(BTreeMap<Class, f64>);

impl BetweenProcesses {
    /// The spread by the processes' times.
    pub(super) fn of(confirmations: &[Confirmation]) -> Self {
        let known = pooled(confirmations).into_iter().map(|(class, spread)| {
            let assumed = Spread::known(class.assumed().powi(2), ASSUMED_FREEDOM);
            let variance = spread.and(assumed).variance().unwrap_or_default();
            (class, variance.sqrt())
        });
        Self(known.collect())
    }

    /// Standard deviation of the logarithm of another process's median of this benchmark.
    pub(super) fn deviation(&self, benchmark: &Benchmark) -> f64 {
        // Each of its samples is a process.
        if matches!(benchmark.role.does, Measures::Starts(_)) {
            return 0.0;
        }
        let class = Class::of(
            benchmark.device,
            benchmark.role.data,
            benchmark.clock,
            benchmark.median_ns,
        );
        let known = self.0.get(&class).copied();
        known.unwrap_or_else(|| class.assumed())
    }
}

/// The spread of each class, by the processes' times.
fn pooled(confirmations: &[Confirmation]) -> BTreeMap<Class, Spread> {
    /// Group, implementation, size, and whether it is the GPU's.
    type Benchmark<'a> = (&'a str, &'a str, u64, bool);
    // Several questions may share a measurement of one process: equal times count once.
    let mut medians: BTreeMap<Benchmark<'_>, (Class, BTreeMap<u64, f64>)> = BTreeMap::new();
    for asked in confirmations {
        for paired_times in &asked.processes {
            let mut add = |name, size, device, clock, ns: f64| {
                let class = Class::of(device, asked.question, clock, ns);
                let key = (asked.group.as_str(), name, size, device == Device::Gpu);
                let (_, logs) = medians.entry(key).or_insert((class, BTreeMap::new()));
                if ns.ln().is_finite() {
                    logs.insert(ns.to_bits(), ns.ln());
                }
            };
            for pair in paired_times {
                add(&pair.cpu, pair.size, Device::Cpu, None, pair.cpu_ns);
                if asked.gpu_machine.is_none() {
                    let clock = Some(asked.clock);
                    add(&asked.gpu, pair.size, Device::Gpu, clock, pair.gpu_ns);
                }
            }
        }
    }
    let mut pooled: BTreeMap<Class, Spread> = BTreeMap::new();
    for (class, logs) in medians.into_values() {
        let logs: Vec<f64> = logs.into_values().collect();
        let of_class = pooled.entry(class).or_default();
        *of_class = of_class.and(Spread::of(&logs));
    }
    pooled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::answer::tests::asked;
    use crate::analysis::tests::machines;
    use crate::model::record::PairedTimes;
    use crate::store::machine_record;

    fn measured(gpu_ns: [f64; 5]) -> Confirmation {
        let process = |gpu_ns: f64| {
            let pair = |size| PairedTimes {
                size,
                cpu: "c".into(),
                cpu_ns: 1e6 + gpu_ns.max(0.0) * 1e-6,
                gpu_ns,
            };
            [1, 2, 64].map(pair).into()
        };
        asked(gpu_ns.map(process).into())
    }

    #[test]
    fn a_class_has_the_spread_that_its_processes_show_beside_what_is_assumed() {
        let gated = |gpu_ns| Confirmation {
            clock: Clock::EventsGated,
            ..measured(gpu_ns)
        };
        // 30 % from process to process, where 3 % are assumed.
        let spread = BetweenProcesses::of(&[gated([5e3, 7e3, 5e3, 7e3, 9e3])]);
        let clock = Some(Clock::EventsGated);
        let short = Class::of(Device::Gpu, Residency::Queued, clock, 5e3);
        // Three sizes with logarithms around their mean, six degrees of freedom; 24 are assumed.
        let squares: f64 = [5e3_f64, 7e3, 9e3]
            .map(|ns| (ns / 315e9_f64.cbrt()).ln().powi(2))
            .iter()
            .sum();
        let wanted = ((3.0 * squares + 24.0 * 0.03_f64.powi(2)) / 30.0).sqrt();
        assert!((spread.0[&short] / wanted - 1.0).abs() < 1e-6);
        // As quiet as it was, the next process may meet another host.
        let quiet = spread.0[&Class::Cpu { short: false }];
        let wanted = 0.16 * (24.0_f64 / 30.0).sqrt();
        assert!((quiet / wanted - 1.0).abs() < 1e-3, "{quiet}");
        let pinned = Class::of(Device::Gpu, Residency::Pinned, Some(Clock::Wall), 5e3);
        assert!(!spread.0.contains_key(&pinned));
        let of_another = Confirmation {
            gpu_machine: Some("another".into()),
            ..measured([5e3; 5])
        };
        let spread = BetweenProcesses::of(&[of_another]).0;
        let is_cpu = |class: &Class| matches!(class, Class::Cpu { .. });
        assert!(spread.keys().all(is_cpu));
        let absurd = BetweenProcesses::of(&[measured([f64::NAN, 0.0, -1.0, 5e3, 5e3])]);
        assert!(absurd.0.values().all(|deviation| deviation.is_finite()));
    }

    #[test]
    fn the_assumed_spread_is_that_of_the_committed_machines() {
        let mut showed: BTreeMap<Class, Spread> = BTreeMap::new();
        // Older records too: one run meets one host.
        let files = walkdir::WalkDir::new(machines()).into_iter().flatten();
        for file in files.filter(|entry| entry.file_type().is_file()) {
            let runs = machine_record::read(file.path()).unwrap().runs;
            let confirmations: Vec<_> = runs.into_iter().flat_map(|r| r.confirmations).collect();
            for (class, spread) in pooled(&confirmations) {
                let of_class = showed.entry(class).or_default();
                *of_class = of_class.and(spread);
            }
        }
        assert!(showed.len() >= 9, "{showed:?}");
        for (class, spread) in showed {
            let ratio = spread.variance().unwrap().sqrt() / class.assumed();
            assert!((0.8..1.3).contains(&ratio), "{class:?}: {ratio}");
        }
    }
}
