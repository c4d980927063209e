//! The description of each group with its charts, made once: what all pages, plots, tables and the thresholds for
//! programs show.

use rayon::prelude::*;

use crate::page::link::safe;
use crate::report::Report;
use crossover_draw::ink::{CPU_HUES, Paint};
use crossover_draw::plot::{Curve as Plotted, Dot, Limit, Plot, Quantity};
use crossover_results::analysis::answer::confirmations::{RunAnswer, of_runs};
use crossover_results::analysis::answer::crossover_answer::{
    self, CrossoverAnswer, best_cpu, curve, headlines,
};
use crossover_results::analysis::answer::curve::Curve;
use crossover_results::analysis::answer::kind::Speedup;
use crossover_results::analysis::limits::{self, Share};
use crossover_results::analysis::rate::{self, RateKind};
use crossover_results::analysis::trust::{self, Grade, Trust};
use crossover_results::model::LinkBytes;
use crossover_results::model::group_info::GroupInfo;
use crossover_results::model::id::Device;
use crossover_results::model::role::Residency;
use crossover_results::store::curves::{Benchmark, Group as Measured, Series};
use crossover_results::store::machine_results::{Limits, MachineResults};
use crossover_words::{Clock, units};

/// One group.
pub(crate) struct GroupView<'a> {
    pub(crate) name: &'a str,
    pub(crate) topic: GroupInfo,
    /// The results of this machine.
    pub(crate) own: Option<&'a Measured>,
    /// One for each place of the data, in their order.
    pub(crate) answers: Vec<GroupAnswer<'a>>,
    /// The rows of this machine, and those of the machine whose GPU stands in.
    pub(crate) implementations: Vec<Implementation<'a>>,
    /// The time of the fastest CPU code.
    pub(crate) best_cpu: Curve,
    /// Name of the fastest CPU code at each size.
    pub(crate) best_names: Vec<(f64, String)>,
    pub(crate) work: Option<RateKind>,
    pub(crate) limits: Vec<Limit>,
    /// The reason why its GPU code has no results.
    pub(crate) unmeasured: Option<String>,
}

/// One row.
pub(crate) struct Implementation<'a> {
    pub(crate) name: String,
    pub(crate) series: &'a Series,
    pub(crate) machine: &'a MachineResults,
    /// Index of its colour.
    pub(crate) hue: usize,
}

/// The answer to one question of a group.
pub(crate) struct GroupAnswer<'a> {
    pub(crate) found: &'a CrossoverAnswer,
    /// The machine of its GPU code.
    pub(crate) machine: &'a MachineResults,
    /// The GPU code.
    pub(crate) series: &'a Series,
    /// The speedup along the sizes.
    pub(crate) speedup: Vec<Speedup>,
    /// The limit at the crossing and at the largest size.
    pub(crate) limits: Vec<(u64, Share)>,
    pub(crate) trust: Trust,
}

impl<'a> GroupAnswer<'a> {
    /// The answer with its evidence; `None` if its GPU code has no results any more.
    pub(crate) fn of(
        report: &'a Report,
        found: &'a CrossoverAnswer,
        best_cpu: &Curve,
        of_runs: &[RunAnswer],
    ) -> Option<Self> {
        let (machine, series) = (report.gpu(), report.gpu_of(found)?);
        let crossing = found.crossing.for_good().map(|change| change.size.ceil());
        let sizes = crossing.into_iter().chain([found.crossing.largest]);
        let gpu = curve(series);
        let limit = |size: f64| {
            let ns = gpu.at(size)?.median;
            Some((size as u64, limits::at(series, size as u64, ns, machine)?))
        };
        let mut limits: Vec<(u64, Share)> = sizes.filter_map(limit).collect();
        limits.dedup_by_key(|(size, _)| *size);
        Some(Self {
            found,
            machine,
            series,
            speedup: found.speedups(best_cpu, series),
            limits,
            trust: trust::of(found, &report.machine, machine, of_runs),
        })
    }

    /// The speedup that each process measured at each of its sizes.
    pub(crate) fn of_processes(&self) -> Vec<(u64, f64)> {
        let pairs = self.found.processes.iter().flatten();
        let ratios = pairs.map(|pair| (pair.size, pair.cpu_ns / pair.gpu_ns));
        let sound = ratios.filter(|(size, ratio)| *size > 0 && ratio.is_normal() && *ratio > 0.0);
        sound.collect()
    }

    /// How sure it is, and why, in a sentence.
    pub(crate) fn cause(&self) -> String {
        match self.trust.grade() {
            Grade::Firm => format!("Firm: {} processes agree.", self.found.crossing.processes),
            Grade::Doubtful => format!("Uncertain: {}.", self.trust.doubts().join("; ")),
            Grade::Thin => "Unconfirmed: measured by one process.".to_owned(),
        }
    }
}

/// The groups of a report, in its order.
pub(crate) fn describe(report: &Report) -> Vec<GroupView<'_>> {
    let of_runs = of_runs(&report.machine);
    let names = report.groups.par_iter();
    names
        .map(|name| GroupView::of(report, name, &of_runs))
        .collect()
}

impl<'a> GroupView<'a> {
    fn of(report: &'a Report, name: &'a str, of_runs: &[RunAnswer]) -> Self {
        let rows = report.rows(name);
        let groups: Vec<&Measured> = report.machines().filter_map(|m| m.group(name)).collect();
        let work = rate::work(&groups);
        let own = report.machine.group(name);
        let (best_cpu, best_names) = own.map_or_else(Default::default, best_cpu);
        let found = headlines(crossover_answer::of_group(&report.found, name));
        let answers = found.filter_map(|f| GroupAnswer::of(report, f, &best_cpu, of_runs));
        let mut answers: Vec<GroupAnswer> = answers.collect();
        answers.sort_by_key(|answer| answer.found.question);
        let limits = work.map_or(Vec::new(), |work| roofs(report, &rows, work));
        let mut next = [0, CPU_HUES];
        let implementation = |(machine, series): (&'a MachineResults, &'a Series)| {
            let next = &mut next[usize::from(series.device == Device::Gpu)];
            *next += 1;
            Implementation {
                name: series.name(),
                series,
                machine,
                hue: *next - 1,
            }
        };
        let is_unmeasured = report.is_unmeasured(name);
        Self {
            name,
            topic: report.topic(name),
            own,
            answers,
            implementations: rows.into_iter().map(implementation).collect(),
            best_cpu,
            best_names,
            work,
            limits,
            unmeasured: is_unmeasured.then(|| crate::report::unknown(&[name])),
        }
    }

    /// Whether it was measured at only one size, which makes no curve.
    pub(crate) fn one_size(&self) -> bool {
        let series = self.implementations.iter().map(|code| code.series);
        let mut sizes = series.flat_map(|series| &series.points).map(|b| b.size);
        let first = sizes.next();
        sizes.all(|size| Some(size) == first)
    }

    /// The answer for data in that place.
    pub(crate) fn answer(&self, place: Residency) -> Option<&GroupAnswer<'a>> {
        let mut answers = self.answers.iter();
        answers.find(|answer| answer.found.question == place)
    }

    /// `2.6× faster`, at the largest size of an answer, which is named where the group was measured at a larger
    /// one, or another answer has another; `None` where it is not known which side wins.
    pub(crate) fn speedup_at_the_largest(&self, answer: &GroupAnswer) -> Option<String> {
        let crossing = &answer.found.crossing;
        let differs = |other: &GroupAnswer| {
            let is_larger = |at: &Speedup| at.size > crossing.largest && at.processes > 0;
            other.found.crossing.largest != crossing.largest || other.speedup.iter().any(is_larger)
        };
        let at = if self.answers.iter().any(differs) {
            format!(" at {}", self.topic.unit.write(crossing.largest as u64))
        } else {
            String::new()
        };
        let speedup = units::speedup(crossing.speedup);
        crossing.shows_speedup().then(|| speedup + &at)
    }

    /// Whether several GPUs are compared with one, and not a GPU with the CPU.
    pub(crate) fn is_on_several(&self) -> bool {
        let mut implementations = self.implementations.iter();
        implementations.any(|code| code.series.role.devices.is_some())
    }

    /// The side that speedups are over.
    pub(crate) fn baseline(&self) -> &'static str {
        if self.is_on_several() {
            "one GPU"
        } else {
            "the CPU"
        }
    }

    /// The speedup of a benchmark over the best CPU code, by their times: speedups of several processes
    /// would rank it differently.
    pub(crate) fn speedup(&self, series: &Series, b: &Benchmark) -> Option<f64> {
        if !self.topic.compares || !series.measures_work() {
            return None;
        }
        let cpu = self.best_cpu.at(b.size as f64)?;
        cpu.measured.then(|| cpu.median / b.median_ns)
    }
}

/// The limits that bound rates of these rows: in FLOP/s the peaks, in B/s memory and link.
fn roofs(report: &Report, rows: &[(&MachineResults, &Series)], work: RateKind) -> Vec<Limit> {
    let (host, gpu) = (&report.machine.limits, &report.gpu().limits);
    let on = |device| {
        let rows = rows.iter().map(|(_, series)| *series);
        rows.filter(move |series| series.device == device)
    };
    let mut roofs = Vec::new();
    let mut add = |device: Device, label: &str, value: Option<f64>| {
        let value = value.filter(|_| on(device).next().is_some());
        roofs.extend(value.map(|value| Limit {
            label: label.to_owned(),
            value,
            paint: match device {
                Device::Cpu => Paint::Cpu,
                Device::Gpu => Paint::Gpu,
            },
        }));
    };
    match work {
        RateKind::Flop => {
            for (formats, peak) in peaks(on(Device::Gpu), gpu) {
                let label = format!("GPU {} peak", formats.join(" and "));
                add(Device::Gpu, &label, Some(peak));
            }
            for name in ["cpu_fma_all", "cpu_fma_1"] {
                add(Device::Cpu, limits::words(name), host.limit(name));
            }
        }
        RateKind::Bytes => {
            // If every byte crosses the link, the GPU's memory is no limit.
            if on(Device::Gpu).any(|s| !s.crosses_link()) {
                let l2 = gpu.gpu.as_ref().and_then(|gpu| gpu.l2_bytes);
                // Half of the cache, which the data surely fit.
                let l2 = l2.map_or(f64::INFINITY, |bytes| bytes as f64 / 2.0);
                for (label, set) in [("GPU L2 cache", l2), ("GPU memory", f64::INFINITY)] {
                    let rate = limits::bandwidth(gpu, Device::Gpu, set);
                    add(Device::Gpu, label, rate);
                }
            }
            let rate = limits::bandwidth(host, Device::Cpu, f64::INFINITY);
            add(Device::Cpu, "CPU memory", rate);
            if on(Device::Gpu).any(|s| s.crosses_link() && s.clock == Some(Clock::Wall)) {
                let bytes = LinkBytes::new(1.0, 0.0);
                let rate = limits::link_ns(bytes, gpu).map(|ns| bytes.sum() / ns * 1e9);
                add(Device::Gpu, "PCIe, pinned", rate);
            }
        }
    }
    roofs
}

/// The peaks of the number formats of these rows, at the highest clock; formats with one peak share a line.
fn peaks<'a>(
    rows: impl Iterator<Item = &'a Series>,
    limits: &Limits,
) -> Vec<(Vec<&'static str>, f64)> {
    let mut roles: Vec<_> = rows.map(|series| &series.role).collect();
    roles.sort_by_key(|role| role.format);
    let mut peaks: Vec<(Vec<&str>, f64)> = Vec::new();
    for role in roles {
        let Some(peak) = limits::peak(role, None, limits) else {
            continue;
        };
        let name = role.format.name();
        match peaks.iter_mut().find(|(_, value)| *value == peak) {
            Some((names, _)) if names.contains(&name) => {}
            Some((names, _)) => names.push(name),
            None => peaks.push((vec![name], peak)),
        }
    }
    peaks
}

/// Number of curves that can be told apart in a file.
const MOST: usize = 6;
/// The decades above every curve within which a limit is drawn: one further up would press them flat.
const NEAR: f64 = 1.6;

/// One chart.
pub(crate) struct Chart<'a> {
    pub(crate) plot: Plot,
    /// For each curve what a file does not show.
    pub(crate) more: Vec<More<'a>>,
}

/// The properties of a curve that only the page shows.
#[derive(Default)]
pub(crate) struct More<'a> {
    /// The answer that it is the curve of.
    pub(crate) answer: Option<&'a CrossoverAnswer>,
    pub(crate) clock: &'static str,
    /// The speedups that single processes measured.
    pub(crate) single: Vec<(u64, f64)>,
}

/// The quantity of a chart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Speedup,
    Time,
    Throughput,
}

impl Shown {
    pub(crate) const ALL: [Self; 3] = [Self::Speedup, Self::Time, Self::Throughput];

    /// In the names of files and of options.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Speedup => "speedup",
            Self::Time => "time",
            Self::Throughput => "throughput",
        }
    }
}

/// The charts of a group: speedup, time and throughput by size. The page's script draws them; those of the places
/// are files too, for a README and for readers without scripts.
impl GroupView<'_> {
    /// The chart of the places of the data, with the best CPU code; `None` if there is nothing to show.
    pub(crate) fn chart_of_places(&self, shown: Shown) -> Option<Chart<'_>> {
        let mut curves: Vec<(Plotted, More)> = Vec::new();
        for answer in &self.answers {
            let place = answer.found.question;
            let (dots, single) = match shown {
                Shown::Speedup => {
                    let along = answer.speedup.iter().filter(|at| at.processes > 0);
                    let dots = along.map(|at| Dot::new(at.size, at.ratio, at.low, at.high));
                    (dots.collect(), answer.of_processes())
                }
                _ => (self.dots(answer.series, shown), Vec::new()),
            };
            let more = More {
                answer: Some(answer.found),
                single,
                ..More::default()
            };
            curves.push((
                Plotted::joined(place.words(), Paint::Place(place), dots),
                more,
            ));
        }
        if shown != Shown::Speedup && !curves.is_empty() {
            let best = self.best_names.iter().filter_map(|(size, name)| {
                let mut codes = self.own?.on(Device::Cpu);
                let code = codes.find(|code| code.implementation == *name)?;
                let mut dots = self.dots(code, shown).into_iter();
                dots.find(|dot| dot.size == *size)
            });
            let best = Plotted::joined("best CPU code", Paint::Cpu, best.collect());
            curves.push((best, More::default()));
        }
        self.chart(shown, curves)
    }

    /// The chart of all implementations, or of some.
    pub(crate) fn chart_of_implementations<'i>(
        &self,
        shown: Shown,
        implementations: impl Iterator<Item = &'i Implementation<'i>>,
    ) -> Option<Chart<'static>> {
        let one = |code: &Implementation| {
            let more = More {
                clock: code.series.clock_name(),
                ..More::default()
            };
            let dots = self.dots(code.series, shown);
            (
                Plotted::joined(&code.name, Paint::Hue(code.hue), dots),
                more,
            )
        };
        self.chart(shown, implementations.map(one).collect())
    }

    /// A chart as a file, its name and its SVG; `None` for a group of one size. If nothing is compared, it shows
    /// the first rows.
    pub(crate) fn chart_file(&self, shown: Shown) -> Option<(String, String)> {
        if self.one_size() {
            return None;
        }
        let mut chart = if self.answers.is_empty() {
            let codes = (self.implementations.iter()).filter(|code| code.series.measures_work());
            self.chart_of_implementations(shown, codes)?
        } else {
            self.chart_of_places(shown)?
        };
        chart.plot.curves.truncate(MOST);
        let name = format!("{}-{}.svg", safe(self.name), shown.name());
        Some((name, chart.plot.svg()?))
    }

    fn chart<'c>(&self, shown: Shown, mut curves: Vec<(Plotted, More<'c>)>) -> Option<Chart<'c>> {
        for (curve, _) in &mut curves {
            curve.dots.retain(Dot::is_sound);
        }
        curves.retain(|(curve, _)| !curve.dots.is_empty());
        let values = curves.iter().flat_map(|(curve, _)| &curve.dots);
        let highest = values.map(|dot| dot.value.log10()).reduce(f64::max)?;
        let (words, quantity, limits) = match shown {
            Shown::Speedup => {
                let even = Limit {
                    label: format!("as fast as {}", self.baseline()),
                    value: 1.0,
                    paint: Paint::Cpu,
                };
                ("speedup", Quantity::Speedup, vec![even])
            }
            Shown::Time => ("time", Quantity::Time, Vec::new()),
            Shown::Throughput => {
                let near = |limit: &&Limit| limit.value.log10() <= highest + NEAR;
                let limits = self.limits.iter().filter(near).cloned();
                let quantity = Quantity::Rate(self.work?.unit());
                ("throughput and limits", quantity, limits.collect())
            }
        };
        let (curves, more) = curves.into_iter().unzip();
        let plot = Plot {
            title: format!("{}: {words}", self.topic.title),
            size_label: self.topic.axis.clone(),
            size_unit: self.topic.unit,
            quantity,
            curves,
            limits,
        };
        Some(Chart { plot, more })
    }

    /// The points of an implementation.
    fn dots(&self, series: &Series, shown: Shown) -> Vec<Dot> {
        // A rate of queueing would mean nothing, and neither would its speedup.
        if shown != Shown::Time && !series.measures_work() {
            return Vec::new();
        }
        let points = series.points.iter().enumerate();
        let dot = |(i, b): (usize, &Benchmark)| {
            let [value, low, high] = match shown {
                Shown::Time => [b.median_ns, b.low_ns(), b.high_ns()],
                Shown::Throughput => {
                    let amount = self.work?.amount(series, i)? * 1e9;
                    [b.median_ns, b.high_ns(), b.low_ns()].map(|ns| amount / ns)
                }
                Shown::Speedup => [self.speedup(series, b)?; 3],
            };
            Some(Dot::new(b.size as f64, value, low, high))
        };
        points.filter_map(dot).collect()
    }
}
