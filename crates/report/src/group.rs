//! The data of one group, from which its charts, plots and tables are made.

use serde::Serialize;

use crate::page::answers::{self, GroupAnswer};
use crate::page::gpu_or_cpu::{GroupVerdict, Verdicts};
use crate::page::link;
use crate::report::Report;
use crossover_draw::ink::CPU_HUES;
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::answer::crossover_answer::best_cpu;
use crossover_results::analysis::limits;
use crossover_results::analysis::rate::{self, Work};
use crossover_results::analysis::telemetry;
use crossover_results::model::LinkBytes;
use crossover_results::model::group_info::{GroupInfo, Unit};
use crossover_results::model::id::Device;
use crossover_results::store::curves::{Benchmark, Group as Measured, Series};
use crossover_results::store::machine::{Limits, MachineResults};
use crossover_words::Clock;
use crossover_words::units::significant;

/// The best CPU code at a size: the size, its time with the interval, its name.
type Best = (f64, f64, f64, f64, String);

/// A size, a median with its interval, the amount of work, and further facts.
type Row = (u64, f64, f64, f64, Option<f64>, Facts);

/// A size with a speedup, its interval, and the number of its processes.
type Speedup = (f64, f64, f64, f64, usize);

/// One group.
#[derive(Debug, Serialize)]
pub(crate) struct Group {
    pub(crate) answers: Vec<Answer>,
    axis: String,
    compares: bool,
    pub(crate) host: Vec<Best>,
    pub(crate) limits: Vec<Roof>,
    pub(crate) name: String,
    page: String,
    pub(crate) series: Vec<Curve>,
    /// The unit of sizes, as in the tables.
    sizes: &'static str,
    symbol: String,
    title: String,
    pub(crate) unit: Option<&'static str>,
    /// The reason why its GPU code has no results.
    unmeasured: Option<String>,
    verdict: Option<GroupVerdict>,
    #[serde(skip)]
    pub(crate) topic: GroupInfo,
}

/// The answer for one place of the data.
#[derive(Debug, Serialize)]
pub(crate) struct Answer {
    cause: String,
    /// The results of each process.
    dots: Vec<(u64, f64)>,
    evidence: String,
    from: String,
    high: Option<f64>,
    low: Option<f64>,
    pub(crate) question: &'static str,
    pub(crate) series: Option<usize>,
    size: Option<f64>,
    pub(crate) speedup: Vec<Speedup>,
}

/// A limit as a line.
#[derive(Debug, Serialize)]
pub(crate) struct Roof {
    pub(crate) cpu: bool,
    pub(crate) label: String,
    pub(crate) value: f64,
}

/// One implementation.
#[derive(Debug, Serialize)]
pub(crate) struct Curve {
    clock: &'static str,
    /// Index of its hue.
    pub(crate) colour: usize,
    pub(crate) counts: bool,
    pub(crate) device: Device,
    pub(crate) name: String,
    pub(crate) rows: Vec<Row>,
}

/// Further facts of a benchmark; absent ones are left out, to keep the page small.
#[derive(Debug, Serialize)]
pub(crate) struct Facts {
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slowed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsteady: Option<String>,
}

/// Rounds to five digits, more than are shown, to keep the page small.
fn short(value: f64) -> f64 {
    significant(value, 5)
}

impl Group {
    pub(crate) fn of(
        report: &Report,
        name: &str,
        answers: &[GroupAnswer],
        verdicts: Option<&Verdicts>,
    ) -> Self {
        let rows = report.rows(name);
        let groups: Vec<&Measured> = report.machines().filter_map(|m| m.group(name)).collect();
        let topic = report.topic(name);
        let work = rate::work(&groups);
        let own = report.machine.group(name);
        let place = |series: &Series| rows.iter().position(|(_, s)| std::ptr::eq(*s, series));
        let mut seen = [0, CPU_HUES];
        let series = rows.iter().map(|(machine, series)| {
            let next = &mut seen[usize::from(series.device == Device::Gpu)];
            let colour = *next;
            *next += 1;
            curve(machine, series, colour, work)
        });
        Self {
            series: series.collect(),
            answers: (answers::of_group(answers, name).iter())
                .map(|a| answer(a, place(a.series)))
                .collect(),
            axis: topic.axis.clone(),
            compares: topic.compares,
            host: own.map_or(Vec::new(), best),
            limits: work.map_or(Vec::new(), |work| roofs(report, &rows, work)),
            name: name.to_owned(),
            page: link::of_group(name),
            sizes: match topic.unit {
                Unit::Count => "count",
                Unit::Powers => "powers",
                Unit::Bytes => "bytes",
                Unit::Time => "time",
            },
            symbol: topic.symbol.clone(),
            title: topic.title.clone(),
            unit: work.map(Work::unit),
            unmeasured: report
                .is_unmeasured(name)
                .then(|| crate::report::unknown(&[name])),
            verdict: verdicts.zip(own).and_then(|(v, group)| v.of_group(group)),
            topic,
        }
    }

    /// Whether it was measured at only one size, which makes no curve.
    pub(crate) fn one_size(&self) -> bool {
        let mut sizes = self.series.iter().flat_map(|s| &s.rows).map(|row| row.0);
        let first = sizes.next();
        sizes.all(|size| Some(size) == first)
    }

    /// The form that the page's script reads.
    pub(crate) fn json(&self) -> String {
        // No value in it can fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

fn curve(machine: &MachineResults, series: &Series, colour: usize, work: Option<Work>) -> Curve {
    let row = |(i, b): (usize, &Benchmark)| {
        let share = limits::with_launches(series, b, machine);
        let facts = Facts {
            share: share.map(|share| share.words()),
            slowed: Some(telemetry::slowed(b).join(", ")).filter(|s| !s.is_empty()),
            unsteady: b.unsteady.clone(),
        };
        let amount = work.and_then(|w| w.amount(series, i)).map(short);
        let [median, low, high] = [b.median_ns, b.low_ns(), b.high_ns()].map(short);
        (b.size, median, low, high, amount, facts)
    };
    Curve {
        clock: series.clock_name(),
        colour,
        counts: series.measures_work(),
        device: series.device,
        name: series.name(),
        rows: series.points.iter().enumerate().map(row).collect(),
    }
}

fn best(group: &Measured) -> Vec<Best> {
    let (curve, names) = best_cpu(group);
    let points = curve.points().iter().zip(names);
    let best = points.map(|(at, (_, name))| {
        let [median, low, high] = [at.median, at.low, at.high].map(short);
        (at.size, median, low, high, name)
    });
    best.collect()
}

fn answer(answer: &GroupAnswer, series: Option<usize>) -> Answer {
    let f = answer.found;
    let change = f.crossing.for_good();
    let speedup = answer.speedup.iter().map(|at| {
        let [ratio, low, high] = [at.ratio, at.low, at.high].map(short);
        (at.size, ratio, low, high, at.processes)
    });
    let paired_times = f.processes.iter().flatten().filter(|pair| pair.size > 0);
    let dots = paired_times.map(|pair| (pair.size, short(pair.cpu_ns / pair.gpu_ns)));
    Answer {
        cause: answer.cause(),
        dots: dots
            .filter(|(_, ratio)| ratio.is_normal() && *ratio > 0.0)
            .collect(),
        evidence: format!("{}#{}", link::of_group(&f.group), answer.anchor()),
        from: answer_in_words::size(f),
        high: change.map(|c| c.high),
        low: change.map(|c| c.low),
        question: f.question.name(),
        series,
        size: change.map(|c| c.size),
        speedup: speedup.collect(),
    }
}

/// The limits that bound rates of these rows: in FLOP/s the peaks, in B/s memory and link.
fn roofs(report: &Report, rows: &[(&MachineResults, &Series)], work: Work) -> Vec<Roof> {
    let (host, gpu) = (&report.machine.limits, &report.gpu().limits);
    let on = |device| {
        rows.iter()
            .filter(move |(_, s)| s.device == device)
            .map(|(_, s)| *s)
    };
    let mut roofs: Vec<(Device, String, Option<f64>)> = Vec::new();
    match work {
        Work::Flop => {
            roofs.extend(peaks(on(Device::Gpu), gpu));
            for name in ["cpu_fma_all", "cpu_fma_1"] {
                roofs.push((
                    Device::Cpu,
                    limits::words(name).to_owned(),
                    host.ceiling(name),
                ));
            }
        }
        Work::Bytes => {
            // If every byte crosses the link, the GPU's memory is no limit.
            if on(Device::Gpu).any(|s| !s.crosses_link()) {
                let l2 = gpu.gpu.as_ref().and_then(|gpu| gpu.l2_bytes);
                // Half of the cache, which the data surely fit.
                let l2 = l2.map_or(f64::INFINITY, |bytes| bytes as f64 / 2.0);
                for (label, set) in [("GPU L2 cache", l2), ("GPU memory", f64::INFINITY)] {
                    let rate = limits::bandwidth(gpu, Device::Gpu, set);
                    roofs.push((Device::Gpu, label.to_owned(), rate));
                }
            }
            let rate = limits::bandwidth(host, Device::Cpu, f64::INFINITY);
            roofs.push((Device::Cpu, "CPU memory".to_owned(), rate));
            if on(Device::Gpu).any(|s| s.crosses_link() && s.clock == Some(Clock::Wall)) {
                let bytes = LinkBytes::new(1.0, 0.0);
                let rate = limits::link_ns(bytes, gpu).map(|ns| bytes.sum() / ns * 1e9);
                roofs.push((Device::Gpu, "PCIe, pinned".to_owned(), rate));
            }
        }
    }
    let there = roofs
        .into_iter()
        .filter(|(device, ..)| on(*device).next().is_some());
    let roof = there.filter_map(|(device, label, value)| {
        let cpu = device == Device::Cpu;
        Some(Roof {
            cpu,
            label,
            value: value?,
        })
    });
    roof.collect()
}

/// The peaks of the number formats of these rows, at the highest clock; formats with one peak share a line.
fn peaks<'a>(
    rows: impl Iterator<Item = &'a Series>,
    limits: &Limits,
) -> Vec<(Device, String, Option<f64>)> {
    let mut roles: Vec<_> = rows.map(|series| &series.role).collect();
    roles.sort_by_key(|role| role.format);
    let mut peaks: Vec<(f64, Vec<&str>)> = Vec::new();
    for role in roles {
        let Some(peak) = limits::peak(role, None, limits) else {
            continue;
        };
        let name = role.format.name();
        match peaks.iter_mut().find(|(value, _)| *value == peak) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => peaks.push((peak, vec![name])),
        }
    }
    let label = |names: Vec<&str>| format!("GPU {} peak", names.join(" and "));
    let line = |(peak, names)| (Device::Gpu, label(names), Some(peak));
    peaks.into_iter().map(line).collect()
}
