//! Benchmarks, gathered into curves and groups.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::model::cost::Cost;
use crate::model::group_info::{GroupInfo, Unit};
use crate::model::id::{self, Device, Id, NotAnId};
use crate::model::record::{Sidecar, Telemetry, Verified};
use crate::model::role::{Devices, Launches, Measures, Residency, Role};
use crate::statistics::between_processes::{BetweenProcesses, Class, TWO_SIDED_95, of_gated};
use crate::statistics::median::{interval_of_sorted, median, median_of_sorted};
use crate::statistics::positive;
use crate::store::sampled::Sampled;
use crate::store::whole_file::Unreadable;
use crossover_words::Clock;

/// One result of Criterion with what our sidecar knows about it. The record of a machine holds it in
/// this form.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Benchmark {
    /// `<group>/<cpu|gpu>/<implementation>/<size>`.
    pub id: String,
    /// First part of the id.
    pub group: String,
    /// Second part of the id.
    pub device: Device,
    /// Third part of the id.
    pub implementation: String,
    /// Last part of the id.
    pub size: u64,
    /// The clock; `None` without a sound sidecar.
    pub clock: Option<Clock>,
    /// Median time of one iteration, ns: finite and above zero.
    pub median_ns: f64,
    /// Confidence interval (95 %) of the median, ns; `None` of fewer than six samples.
    pub interval_ns: Option<(f64, f64)>,
    /// Standard deviation of the logarithm of the median between processes of its class.
    #[serde(skip)]
    pub(crate) between_processes: f64,
    /// Spread of the samples: 1.4826 times the median absolute deviation, over the median.
    pub spread: Option<f64>,
    /// Why its samples are unsteady, in words. Such a result is shown, but no answer and no finding
    /// uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsteady: Option<String>,
    /// Number of samples.
    pub samples: Option<usize>,
    /// Cost of one iteration.
    pub cost: Cost,
    /// The work of its implementation, and the way that it is done.
    pub role: Role,
    /// The check against float64.
    pub verified: Option<Verified>,
    /// Why the GPU's clock was low right after the samples; `None` if it was not read.
    pub throttle_reasons: Option<Vec<String>>,
    /// The readings of NVML while it was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telemetry: Option<Telemetry>,
    /// Figures beside the time, by name: [`Sidecar::extra`](crate::model::record::Sidecar::extra).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, f64>,
    /// Calibrated choices, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub choices: BTreeMap<String, String>,
    /// Remarks of the suite.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The run it comes from.
    pub run: Option<String>,
    /// Folder of the result, the parent of `new/`; empty in a record.
    #[serde(skip)]
    pub dir: PathBuf,
}

/// If queued kernels that the host launches one by one take less than this each, the host often takes longer
/// than the kernels. Most such chains differed by 4 to 26 % between three processes on an H100 and fourteen
/// on an H200; chains of longer kernels, graphs and fused kernels by 1 %.
const HOST_BOUND_NS: f64 = 10_000.0;

impl Benchmark {
    /// A result of this suite's form, from its folder.
    pub(crate) fn of(id: &str, dir: PathBuf, sampled: &Sampled) -> Result<Self, Unreadable> {
        let parsed: Result<Id, NotAnId> = id.parse();
        let parsed = parsed.map_err(|not| {
            let reason = format!("its id {not}; name a benchmark so to have it in the report");
            Unreadable::new(dir.display(), reason)
        })?;
        let (device, implementation) = id::function(&parsed.function).expect("an id has both");
        let mut ns = sampled.ns.clone();
        ns.sort_unstable_by(f64::total_cmp);
        let median_ns = median_of_sorted(&ns).expect("no samples are an error of their file");
        let deviation = median(ns.iter().map(|ns| (ns - median_ns).abs()));
        let known = sampled.sidecar.as_ref();
        let sidecar = known.map_or_else(|| Sidecar::of(id, Clock::Wall), Sidecar::clone);
        Ok(Self {
            id: id.to_owned(),
            device,
            implementation: implementation.to_owned(),
            size: parsed.size,
            group: parsed.group,
            clock: known.map(|sidecar| sidecar.clock),
            median_ns,
            interval_ns: interval_of_sorted(&ns),
            between_processes: 0.0,
            spread: deviation.map(|ns| 1.4826 * ns / median_ns),
            unsteady: sidecar.unsteady,
            samples: Some(ns.len()),
            cost: sidecar.cost,
            role: sidecar.role,
            verified: sidecar.verified,
            throttle_reasons: sidecar.device_state.and_then(|s| s.throttle_reasons),
            telemetry: sidecar.monitor,
            extra: sidecar.extra,
            choices: sidecar.choices,
            notes: sidecar.notes,
            run: known.map(|sidecar| sidecar.run.clone()),
            dir,
        })
    }

    /// Standard deviation of the logarithm of another process's median, as it is known of GPU code like this;
    /// `None` of CPU code, which differs by the machine, and of results without a sidecar of the suite.
    pub fn known_deviation(id: &str, sampled: &Sampled) -> Option<f64> {
        sampled.sidecar.as_ref()?;
        let benchmark = Self::of(id, PathBuf::new(), sampled).ok()?;
        let is_known = benchmark.device == Device::Gpu;
        is_known.then(|| benchmark.deviation(&BetweenProcesses::default()))
    }

    /// The flaw of a stored result, in words.
    pub(super) fn flaw(&self) -> Option<&'static str> {
        let sound = |n: f64| positive(n).is_some();
        let function = id::function_of(self.device, &self.implementation);
        let id = Id::new(&self.group, &function, self.size);
        let around = |(low, high): (f64, f64)| {
            sound(low) && (low..=high).contains(&self.median_ns) && high.is_finite()
        };
        if !(self.id.parse().as_ref() == Ok(&id)) {
            return Some("its id does not match its group, device, implementation and size");
        }
        if !sound(self.median_ns) {
            return Some("its time is not a positive number");
        }
        if !self.interval_ns.is_none_or(around) {
            return Some("the interval of its median does not hold it");
        }
        if self.spread.is_some_and(|spread| spread < 0.0) {
            return Some("its spread is not a number from zero on");
        }
        None
    }

    /// Standard deviation of the logarithm of another process's median, where processes differ by `spread`.
    pub(crate) fn deviation(&self, spread: &BetweenProcesses) -> f64 {
        // Each of its samples is a process.
        if let Measures::Starts(_) = self.role.measures {
            return 0.0;
        }
        let (launched, kernels) = (self.role.launches, self.cost.launches);
        let kernels = kernels.map_or(1.0, f64::from);
        let mut class = Class::of(Some(self.device), self.clock, self.median_ns, None);
        if class.is_gated() {
            // Older results lack what a capture counted.
            let counted = self.extra.get("launches").copied().unwrap_or(kernels);
            return match launched {
                Some(Launches::Graph) => of_gated(self.median_ns, 1.0, kernels),
                _ => of_gated(self.median_ns, counted, 1.0),
            };
        }
        let one_by_one = !matches!(launched, None | Some(Launches::Graph | Launches::Fused));
        class.short |= one_by_one && kernels > 1.0 && self.median_ns / kernels < HOST_BOUND_NS;
        // What the host spends on a launch, however long the work takes.
        class.short |= self.clock == Some(Clock::Submit);
        // Kernels that the host waits for differ as awaited calls do.
        let data = match (launched, self.role.data) {
            (Some(Launches::Synchronised | Launches::ReadBack), Residency::Queued) => {
                Residency::Awaited
            }
            (_, data) => data,
        };
        let deviation = spread.deviation(class, data);
        // The host waits once for all iterations of a sample.
        if self.clock == Some(Clock::Wall) && data == Residency::Queued {
            return deviation.max(spread.deviation(class, Residency::Awaited));
        }
        deviation
    }

    /// Lower end of the interval in which the median of another process lies with a probability of
    /// 95 %, ns.
    pub fn low_ns(&self) -> f64 {
        self.median_ns * (-self.half_width(|(low, _)| self.median_ns / low)).exp()
    }

    /// Upper end of that interval, ns.
    pub fn high_ns(&self) -> f64 {
        self.median_ns * self.half_width(|(_, high)| high / self.median_ns).exp()
    }

    /// Half of the interval's width as a logarithm: the uncertainty of the samples on one side, and
    /// the spread between processes.
    fn half_width(&self, of_samples: impl Fn((f64, f64)) -> f64) -> f64 {
        let samples = self.interval_ns.map_or(0.0, |i| of_samples(i).ln());
        samples.hypot(TWO_SIDED_95 * self.between_processes)
    }

    /// `amount` of one iteration as a rate per second.
    pub fn rate(&self, amount: f64) -> f64 {
        amount / (self.median_ns * 1e-9)
    }
}

/// All sizes of one implementation on one clock, smallest first: a curve. A gate that had
/// to stay off at some sizes makes two curves of one implementation, since their times
/// answer different questions.
#[derive(Clone, Debug)]
pub struct Series {
    /// Where it runs.
    pub device: Device,
    /// Name of the implementation.
    pub implementation: String,
    /// The clock of each of its points.
    pub clock: Option<Clock>,
    /// The work of the implementation, and the way that it is done.
    pub role: Role,
    /// At least one, sizes ascending and distinct.
    pub points: Vec<Benchmark>,
}

impl Series {
    /// The curve of at least one result. Its role is that of the newest, since a declaration may have been
    /// corrected and not every size run again.
    pub fn of(mut points: Vec<Benchmark>) -> Self {
        points.sort_by_key(|b| b.size);
        points.dedup_by_key(|b| b.size);
        let newest = points.iter().max_by_key(|b| &b.run);
        let newest = newest.expect("a curve has a point");
        Self {
            device: newest.device,
            implementation: newest.implementation.clone(),
            clock: newest.clock,
            role: newest.role.clone(),
            points,
        }
    }

    /// `gpu/cublas`.
    pub fn name(&self) -> String {
        id::function_of(self.device, &self.implementation)
    }

    /// The result at exactly this size.
    pub fn at(&self, size: u64) -> Option<&Benchmark> {
        self.points
            .binary_search_by_key(&size, |b| b.size)
            .ok()
            .map(|i| &self.points[i])
    }

    /// The clock's name, `unknown` without one.
    pub fn clock_name(&self) -> &'static str {
        self.clock.map_or("unknown", Clock::name)
    }

    /// Whether a speedup may use its times. A GPU time on an unknown clock may be queueing alone, so it
    /// may not; CPU code has no such trap.
    pub fn measures_work(&self) -> bool {
        self.remark().is_none()
    }

    /// The remark beside times that no speedup may use; `None` for other times.
    pub fn remark(&self) -> Option<&'static str> {
        match self.clock {
            Some(clock) => clock.remark(),
            None => (self.device == Device::Gpu).then_some("its clock is unknown"),
        }
    }

    /// Whether it may be an answer.
    pub fn answers(&self) -> bool {
        self.measures_work() && self.role.answers && self.computes()
    }

    /// Whether a time includes what a caller pays to launch the work.
    pub fn includes_launch(&self) -> bool {
        self.clock.is_some_and(Clock::includes_launch)
    }

    /// Whether it computes, and does not only copy, allocate or start something.
    pub fn computes(&self) -> bool {
        self.role.measures == Measures::Computes
    }

    /// Whether it is on the side that the GPU is compared with: of the CPU, or of one GPU of several.
    pub fn is_baseline(&self) -> bool {
        match self.role.devices {
            None => self.device == Device::Cpu,
            Some(devices) => devices == Devices::One,
        }
    }

    /// The steady points.
    pub fn steady_points(&self) -> impl Iterator<Item = &Benchmark> {
        self.points.iter().filter(|b| b.unsteady.is_none())
    }

    /// The curve of some of its points, with the role of the whole curve; `None` where it has none of them.
    fn only(&self, keep: &impl Fn(&Benchmark) -> bool) -> Option<Self> {
        let points: Vec<Benchmark> = self.points.iter().filter(|b| keep(b)).cloned().collect();
        (!points.is_empty()).then(|| Self {
            role: self.role.clone(),
            ..Self::of(points)
        })
    }

    /// Whether bytes cross the link between host and device.
    pub fn crosses_link(&self) -> bool {
        let moves = |b: &Benchmark| b.cost.link_bytes.is_some_and(|bytes| bytes.sum() > 0.0);
        self.device == Device::Gpu && (!self.role.data.on_device() || self.points.iter().any(moves))
    }
}

/// All curves of one group, CPU first, then by name with numbers in their order.
#[derive(Clone, Debug)]
pub struct Group {
    /// First part of the ids.
    pub name: String,
    /// Description of the group.
    pub topic: GroupInfo,
    /// Place among the groups: those of the newest run first.
    pub place: (usize, usize),
    /// At least one.
    pub series: Vec<Series>,
}

impl Group {
    /// The curve of that name, `gpu/cublas`; the first of several clocks.
    pub fn find(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|s| s.name() == name)
    }

    /// All curves of a device.
    pub fn on(&self, device: Device) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(move |s| s.device == device)
    }

    /// The side that the GPU is compared with: the CPU, or one GPU of several.
    pub fn baseline(&self) -> Device {
        if self.series.iter().any(|s| s.role.devices.is_some()) {
            Device::Gpu
        } else {
            Device::Cpu
        }
    }

    /// The curves of a side that may be an answer: the CPU's, or those of one GPU of several, and the GPU's.
    pub(crate) fn answering(&self, side: Device) -> impl Iterator<Item = &Series> {
        let series = self.series.iter();
        series.filter(move |s| s.answers() && s.is_baseline() == (side == Device::Cpu))
    }

    /// The curves on the GPU that move their data from host memory and back.
    pub(crate) fn moving(&self) -> impl Iterator<Item = &Series> {
        let curves = self.answering(Device::Gpu);
        curves.filter(|s| !s.role.data.on_device())
    }

    /// The group with all points treated as steady, for processes that measure them again.
    pub fn with_unsteady(&self) -> Self {
        let mut group = self.clone();
        for benchmark in (group.series.iter_mut()).flat_map(|series| &mut series.points) {
            benchmark.unsteady = None;
        }
        group
    }

    /// The group with some of its benchmarks; `None` where nothing is left.
    pub(super) fn only(&self, keep: &impl Fn(&Benchmark) -> bool) -> Option<Self> {
        let series: Vec<Series> = self.series.iter().filter_map(|s| s.only(keep)).collect();
        (!series.is_empty()).then(|| Self {
            name: self.name.clone(),
            topic: self.topic.clone(),
            place: self.place,
            series,
        })
    }

    /// All benchmarks.
    pub fn benchmarks(&self) -> impl Iterator<Item = &Benchmark> {
        self.series.iter().flat_map(|s| &s.points)
    }
}

/// From this size on a group has its powers of two written as such: all their digits would exceed a
/// column of a table.
const LARGE: u64 = 1 << 20;

/// Curves and groups of loose benchmarks. `topic` knows a group and its place.
pub fn gather(
    benchmarks: Vec<Benchmark>,
    topic: impl Fn(&str) -> ((usize, usize), GroupInfo),
) -> Vec<Group> {
    let mut groups: BTreeMap<String, BTreeMap<_, Vec<Benchmark>>> = BTreeMap::new();
    for b in benchmarks {
        let name = b.implementation.clone();
        let curve = (b.device, numbered(&name), name, b.clock);
        let curves = groups.entry(b.group.clone()).or_default();
        curves.entry(curve).or_default().push(b);
    }
    let group = |(name, curves): (String, BTreeMap<_, _>)| {
        let series: Vec<Series> = curves.into_values().map(Series::of).collect();
        let (place, mut topic) = topic(&name);
        let sizes = series.iter().flat_map(|s| &s.points).map(|b| b.size);
        // One notation in a group: not 8,192 beside 2^14.
        if topic.unit == Unit::Count && sizes.max() >= Some(LARGE) {
            topic.unit = Unit::Powers;
        }
        Group {
            name,
            topic,
            place,
            series,
        }
    };
    groups.into_iter().map(group).collect()
}

/// A name and the number at its end, so that `chunks-8` comes before `chunks-16`.
fn numbered(name: &str) -> (String, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match name[stem.len()..].parse() {
        Ok(number) => (stem.into(), number),
        Err(_) => (name.into(), 0),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn benchmark(id: &str, ns: &[f64], sidecar: Option<Sidecar>) -> Benchmark {
        let sampled = Sampled {
            ns: ns.to_vec(),
            clock: sidecar.as_ref().map(|sidecar| sidecar.clock),
            sidecar,
            ..Sampled::default()
        };
        Benchmark::of(id, PathBuf::new(), &sampled).unwrap()
    }

    #[test]
    fn the_interval_has_the_spread_of_samples_and_of_processes() {
        let mut benchmark = benchmark("a/cpu/b/1", &[95.0, 100.0, 110.0], None);
        assert!((benchmark.spread.unwrap() / 0.07413 - 1.0).abs() < 1e-9);
        benchmark.interval_ns = Some((90.0, 120.0));
        benchmark.between_processes = 0.1;
        let [below, above] = [100.0_f64 / 90.0, 1.2].map(|ratio| ratio.ln().hypot(0.2776));
        assert!((benchmark.low_ns() / (100.0 * (-below).exp()) - 1.0).abs() < 1e-9);
        assert!((benchmark.high_ns() / (100.0 * above.exp()) - 1.0).abs() < 1e-9);
        assert_eq!(benchmark.flaw(), None);
        benchmark.interval_ns = Some((101.0, 120.0));
        assert!(benchmark.flaw().is_some());
    }

    #[test]
    fn launches_tell_how_far_another_process_is() {
        let deviation = |clock, launches, kernels, median_ns: f64, counted: Option<f64>| {
            let mut sidecar = Sidecar::of("a/gpu/b/1", clock);
            sidecar.cost.launches = Some(kernels);
            sidecar.role.launches = Some(launches);
            let counted = counted.map(|n| ("launches".to_owned(), n));
            sidecar.extra = counted.into_iter().collect();
            let benchmark = benchmark("a/gpu/b/1", &[median_ns], Some(sidecar));
            let deviation = benchmark.deviation(&BetweenProcesses::default());
            (deviation * 1e4).round() / 1e4
        };
        use Clock::{Events, EventsGated, Wall};
        use Launches::{Fused, Graph, OneByOne, Synchronised};
        // Thirty launches of 3 µs differ as one does; longer ones, and a graph of thirty, as a long kernel.
        assert_eq!(deviation(Events, OneByOne, 30, 9e4, None), 0.12);
        assert_eq!(deviation(Events, OneByOne, 1, 3e3, None), 0.12);
        assert_eq!(deviation(Events, OneByOne, 1, 9e4, None), 0.006);
        assert_eq!(deviation(Events, OneByOne, 30, 3e5, None), 0.006);
        assert_eq!(deviation(Wall, Synchronised, 30, 2.9e5, None), 0.07);
        assert_eq!(deviation(Events, Graph, 30, 9e4, None), 0.006);
        assert_eq!(deviation(Events, Fused, 30, 9e4, None), 0.006);
        // Behind a gate: 0.3 %, 100 ns per launch that was counted, 10 ns per further node of a graph.
        assert_eq!(deviation(EventsGated, OneByOne, 1, 1e8, None), 0.003);
        assert_eq!(deviation(EventsGated, OneByOne, 1, 4e3, Some(2.0)), 0.0501);
        assert_eq!(deviation(EventsGated, OneByOne, 30, 3e5, None), 0.0104);
        assert_eq!(deviation(EventsGated, Graph, 31, 1e5, None), 0.005);
        assert_eq!(deviation(EventsGated, Graph, u32::MAX, 1e5, None), 1.0);
    }

    #[test]
    fn a_part_of_a_curve_has_the_role_of_the_newest_result() {
        let mut points = [1, 2].map(|run| {
            let id = format!("a/cpu/b/{run}");
            let mut sidecar = Sidecar::of(&id, Clock::Wall);
            sidecar.run = format!("run {run}");
            sidecar.role.answers = run == 2;
            benchmark(&id, &[1.0], Some(sidecar))
        });
        points.reverse();
        let first = Series::of(points.into()).only(&|b| b.size == 1).unwrap();
        assert_eq!((first.points.len(), first.role.answers), (1, true));
    }
}
