//! The machine's limits, and how near code comes to them, for work that was not measured.

use std::collections::BTreeMap;

use crossover_advice::thresholds::{Bandwidth, Limits, Link, OneWay, Reached, Residency};
use crossover_advice::{Range, Work};

use super::rounded;
use crossover_results::analysis::{cold_start, limits};
use crossover_results::model::id::Device;
use crossover_results::model::role::{CopyDirection, Format, Measures, Phase, Role};
use crossover_results::store::curves::{Benchmark, Series};
use crossover_results::store::machine::{self, MachineResults};
use crossover_words::Clock;

/// Quantile of the best code.
const BEST: f64 = 0.10;
/// Quantile of typical code.
const TYPICAL: f64 = 0.85;
/// Fewer benchmarks are no basis for a quantile.
const FEWEST: usize = 3;

/// The limits of a CPU and of a GPU, which may be another machine's; `None` where one of them was
/// not measured.
pub(super) fn limits(cpu: &MachineResults, gpu: &MachineResults) -> Option<Limits> {
    let (ours, theirs) = (&cpu.limits, &gpu.limits);
    let launch = cold_start::phase(gpu, Phase::WarmLaunch)?;
    let rounded_ceiling = |limits: &machine::Limits, name| limits.ceiling(name).map(rounded);
    let mut limits = Limits {
        gpu_flop: rounded(limits::peak(&Role::gpu(), None, theirs)?),
        cpu_flop: rounded_ceiling(ours, "cpu_fma_all")?,
        core_flop: rounded_ceiling(ours, "cpu_fma_1")?,
        gpu_bandwidth: bandwidth(theirs, Device::Gpu)?,
        cpu_bandwidth: bandwidth(ours, Device::Cpu)?,
        launch_ns: rounded_ceiling(theirs, "launch_latency")?,
        kernel_ns: rounded_ceiling(theirs, "empty_kernel")?,
        awaited_ns: rounded(launch.median_ns),
        links: links(gpu),
        reached: Vec::new(),
    };
    let mut samples = samples(cpu, Device::Cpu);
    samples.extend(self::samples(gpu, Device::Gpu));
    limits.reached = reached(&samples, &limits);
    Some(limits)
}

fn bandwidth(limits: &machine::Limits, device: Device) -> Option<Vec<Bandwidth>> {
    let name = match device {
        Device::Cpu => "cpu_read",
        Device::Gpu => "gpu_read",
    };
    let points = limits.curves.get(name)?.points.iter();
    points
        .map(|point| {
            let rate = limits::bandwidth(limits, device, point.bytes as f64)?;
            let (bytes, rate) = (point.bytes as f64, rounded(rate));
            Some(Bandwidth { bytes, rate })
        })
        .collect()
}

/// Copies of whole buffers by one plain call.
fn links(gpu: &MachineResults) -> Vec<Link> {
    let series = || gpu.groups.iter().flat_map(|group| &group.series);
    let one_way = |at: Residency, way: CopyDirection| {
        let is_it = |s: &&Series| {
            let plain = s.role.method.is_none() && s.role.pieces == 1;
            s.role.does == Measures::Copies(way) && s.role.data == at && plain
        };
        let series = series().find(|s| is_it(s) && s.clock == Some(Clock::Wall))?;
        let (small, large) = (series.points.first()?, series.points.last()?);
        Some(OneWay {
            latency_ns: rounded(small.median_ns),
            rate: rounded(large.rate(large.size as f64)),
        })
    };
    let link = |data| {
        Some(Link {
            data,
            upload: one_way(data, CopyDirection::ToDevice)?,
            download: one_way(data, CopyDirection::ToHost)?,
        })
    };
    let places = [Residency::Pinned, Residency::Ordinary];
    places.into_iter().filter_map(link).collect()
}

/// A benchmark with its work: the fastest of its group with its data there.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The group.
    pub group: String,
    /// Where the data are; `None` on the CPU.
    pub data: Option<Residency>,
    /// Its size.
    pub size: u64,
    /// The measured time.
    pub ns: f64,
    /// Its amounts.
    pub work: Work,
}

/// For each group of work, place of the data and size, the fastest code that may be an answer, on a
/// clock that a caller sees.
pub(crate) fn samples(machine: &MachineResults, device: Device) -> Vec<Sample> {
    let mut fastest: BTreeMap<_, Sample> = BTreeMap::new();
    // Rows that time the same work on several clocks measure the clocks, not the work.
    let groups = machine
        .groups
        .iter()
        .filter(|group| group.topic.truth.is_none());
    for series in groups.flat_map(|group| group.on(device)) {
        let seen = series
            .clock
            .is_none_or(|clock| matches!(clock, Clock::Wall | Clock::Events));
        let is_work = series.answers() && series.role.format == Format::F32;
        if !seen || !is_work {
            continue;
        }
        for benchmark in series.steady_points() {
            let Some(sample) = sample(series, benchmark) else {
                continue;
            };
            let key = (sample.group.clone(), sample.data, sample.size);
            let best = fastest.entry(key).or_insert_with(|| sample.clone());
            if sample.ns < best.ns {
                *best = sample;
            }
        }
    }
    fastest.into_values().collect()
}

fn sample(series: &Series, benchmark: &Benchmark) -> Option<Sample> {
    let cost = benchmark.cost;
    let link = cost.link_bytes.unwrap_or_default();
    let amount = |n: Option<f64>| n.filter(|n| n.is_finite() && *n >= 0.0).unwrap_or(0.0);
    cost.flop.or(cost.bytes)?;
    Some(Sample {
        group: benchmark.group.clone(),
        data: (series.device == Device::Gpu).then_some(series.role.data),
        size: benchmark.size,
        ns: benchmark.median_ns,
        work: Work {
            flop: amount(cost.flop),
            bytes: amount(cost.bytes),
            upload: amount(Some(link.to_device)),
            download: amount(Some(link.to_host)),
            launches: cost.launches.unwrap_or(1),
            cpu_ns: None,
        },
    })
}

/// The times of these benchmarks, relative to the limits.
pub(crate) fn reached(samples: &[Sample], limits: &Limits) -> Vec<Reached> {
    let of = |data: Option<Residency>| {
        let here = samples.iter().filter(|sample| sample.data == data);
        let over = here.filter_map(|sample| {
            let Range { best, typical } = limits.bounds(data, &sample.work)?;
            let shares = (sample.ns / best, sample.ns / typical);
            (shares.0.is_finite() && shares.1.is_finite()).then_some(shares)
        });
        let (best, typical): (Vec<f64>, Vec<f64>) = over.unzip();
        if best.len() < FEWEST {
            return None;
        }
        Some(Reached {
            data,
            // A limit gives the least time, unless code is faster.
            best: rounded(quantile(best, BEST)?.min(1.0)),
            typical: rounded(quantile(typical, TYPICAL)?.max(1.0)),
        })
    };
    let places = std::iter::once(None).chain(Residency::ALL.map(Some));
    places.filter_map(of).collect()
}

/// The smallest value that this share of the values does not exceed; `None` if there are none.
pub(super) fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let rank = (share * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied()
}
