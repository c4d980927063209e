//! The plots of a group: the speedup of each answer, time, and the rate with the limits, all by size.
//! They stand in the README, in print and where there is no script: few curves, each with its name.

use crate::assemble::Assembled;
use crate::visible_curves::{MOST, visible_curves};
use crossover_draw::ink::{self, Family, Paint};
use crossover_draw::plot::figure::{Curve, Dot, Limit, Mark, Plot, Quantity};
use crossover_results::analysis::answer::crossover_answer::{
    self, CrossoverAnswer, headlines, of_group,
};
use crossover_results::analysis::findings::finding::Finding;
use crossover_results::analysis::limits;
use crossover_results::analysis::rate::{self, Work};
use crossover_results::model::LinkBytes;
use crossover_results::model::id::Device;
use crossover_results::model::role::Role;
use crossover_results::store::curves::{Benchmark, Group, Series};
use crossover_results::store::machine::{Limits, MachineResults};
use crossover_words::Clock;

/// One curve: whose it is and its place in the palette.
struct Drawn<'a> {
    machine: &'a MachineResults,
    /// Another machine's, beside the one that the report is about.
    beside: bool,
    series: &'a Series,
    family: Family,
    index: usize,
}

/// The curves of a group, each in a colour. Those that the plots have come first, so that these have a
/// colour of their own, and the same one in the interactive chart.
pub(super) struct Curves<'a> {
    all: Vec<Drawn<'a>>,
    /// How many of them the plots have.
    plotted: usize,
}

impl<'a> Curves<'a> {
    /// Those of a group with these findings.
    pub(super) fn of(report: &'a Assembled, name: &str, findings: &[&Finding]) -> Self {
        let mut all = drawn(report, name, findings);
        let plotted = all.len();
        for (at, machine) in report.machines().enumerate() {
            let Some(group) = machine.group(name) else {
                continue;
            };
            for series in &group.series {
                if !all[..plotted]
                    .iter()
                    .any(|d| std::ptr::eq(d.series, series))
                {
                    add(&mut all, machine, group, at > 0, series);
                }
            }
        }
        Self { all, plotted }
    }

    /// Curves of the machine itself that no plot has.
    pub(super) fn left_out(&self) -> usize {
        self.all[self.plotted..]
            .iter()
            .filter(|d| !d.beside)
            .count()
    }

    /// The colour of a curve, in the plots and in the interactive chart.
    pub(super) fn colour(&self, series: &Series) -> Option<Paint> {
        let mut all = self.all.iter();
        let drawn = all.find(|d| std::ptr::eq(d.series, series))?;
        Some(Paint::Shade(drawn.family, drawn.index))
    }

    /// The limits that bound all of them in FLOP/s or in B/s, those that no plot has too.
    pub(super) fn limits(&self, report: &Assembled, work: Work) -> Vec<Limit> {
        ceilings(report, &self.all, work)
    }

    /// The plots of a group of the machine or of one beside it, each with the name of its file: the
    /// speedup where there are answers, the time, then the rate, unless no cost is known.
    pub(super) fn charts(&self, report: &Assembled, group: &str) -> Vec<(&'static str, Plot)> {
        let drawn = &self.all[..self.plotted];
        let topic = report.topic(group);
        let title = &topic.title;
        let groups: Vec<&Group> = report.of_machines(group).collect();
        let curves = |dots: &dyn Fn(&Series) -> Vec<Dot>| -> Vec<Curve> {
            drawn
                .iter()
                .map(|d| curve(d, dots(d.series)))
                .filter(|c| !c.dots.is_empty())
                .collect()
        };
        let marks = marks(report, group);
        let plot = |kind: &str, quantity, curves| Plot {
            rows: marks.len(),
            ..Plot::of(
                format!("{title}: {kind}"),
                (&topic.axis, topic.unit),
                quantity,
                curves,
            )
        };
        let speedup = Plot {
            clocks: false,
            marks: marks.clone(),
            limits: vec![Limit {
                label: "as fast as the CPU".to_owned(),
                value: 1.0,
                family: Family::Cpu,
            }],
            ..plot("speedup", Quantity::Speedup, speedups(report, group))
        };
        let time = plot("time", Quantity::Time, curves(&times));
        let rate = rate::work(&groups).map(|work| {
            let rates = curves(&|series: &Series| match series.measures_work() {
                true => rates(series, work),
                // A rate of queueing would be a rate of nothing.
                false => Vec::new(),
            });
            Plot {
                limits: ceilings(report, drawn, work),
                ..plot("throughput and limits", Quantity::Rate(work.unit()), rates)
            }
        });
        let rate = rate.filter(|plot| !plot.curves.is_empty());
        let speedup = Some(speedup).filter(|plot| !plot.curves.is_empty());
        [
            ("speedup", speedup),
            ("time", Some(time)),
            ("throughput", rate),
        ]
        .into_iter()
        .filter_map(|(name, plot)| Some((name, plot?)))
        .collect()
    }
}

/// The speedup of each answer at the sizes that both sides were measured at, or that lie between
/// such sizes of the CPU.
fn speedups(report: &Assembled, name: &str) -> Vec<Curve> {
    let Some(group) = report.machine.group(name) else {
        return Vec::new();
    };
    let (cpu, _) = crossover_answer::best_cpu(group);
    let answers = headlines(of_group(&report.found, name));
    let curve = |f: &CrossoverAnswer| {
        let (_, series) = report.gpu_of(f)?;
        let dots: Vec<Dot> = (crossover_answer::curve(series).points().iter())
            .filter_map(|gpu| {
                let cpu = cpu.at(gpu.size)?;
                Some(Dot {
                    size: gpu.size,
                    value: cpu.median / gpu.median,
                    low: cpu.low / gpu.high,
                    high: cpu.high / gpu.low,
                })
            })
            .filter(|d| d.size > 0.0)
            .filter(|d| [d.low, d.value, d.high].iter().all(|v| v.is_normal()))
            .collect();
        let question = f.question.words();
        (!dots.is_empty()).then(|| Curve {
            label: match &f.gpu_machine {
                Some(machine) => format!("{question}, {machine}"),
                None => question.to_owned(),
            },
            family: Family::Answer,
            index: ink::answer(f.question),
            clock: Some(Clock::Wall),
            other: f.gpu_machine.is_some(),
            joined: true,
            dots,
        })
    };
    answers.filter_map(curve).take(MOST).collect()
}

/// Adds a curve in the next colour of its family.
fn add<'a>(
    drawn: &mut Vec<Drawn<'a>>,
    machine: &'a MachineResults,
    group: &Group,
    beside: bool,
    series: &'a Series,
) {
    let family = family(group, series.device);
    let index = drawn.iter().filter(|d| d.family == family).count();
    drawn.push(Drawn {
        machine,
        beside,
        series,
        family,
        index,
    });
}

/// The curves that come first of the machine, and of each other machine those of its answers, or
/// what comes first of its GPU code where the machine itself has none in this group. At most
/// [`MOST`], each in a colour of its own.
fn drawn<'a>(report: &'a Assembled, name: &str, findings: &[&Finding]) -> Vec<Drawn<'a>> {
    let own = report.machine.group(name);
    let alone = own.is_none_or(|g| g.on(Device::Gpu).next().is_none());
    let mut all: Vec<(&MachineResults, &Group, bool, &Series)> = Vec::new();
    if let Some(group) = own {
        let front = visible_curves(group, of_group(&report.found, name), findings);
        all.extend(
            front
                .into_iter()
                .map(|s| (&report.machine, group, false, s)),
        );
    }
    let mut beside: Vec<(&MachineResults, &Group, bool, &Series)> = Vec::new();
    for (machine, found) in &report.others {
        let Some(group) = machine.group(name) else {
            continue;
        };
        let found = of_group(found, name);
        let is_answer = |s: &Series| headlines(found).any(|f| f.is_of(s));
        let front = visible_curves(group, found, &[]);
        let shown = front.into_iter().filter(|s| match s.device {
            Device::Cpu => own.is_none(),
            Device::Gpu if alone => s.measures_work(),
            Device::Gpu => is_answer(s),
        });
        beside.extend(shown.map(|s| (machine, group, true, s)));
    }
    // Each side has room.
    let room = match alone {
        true => MOST.saturating_sub(all.len()),
        false => 2,
    };
    beside.truncate(room);
    all.truncate(MOST - beside.len());
    all.extend(beside);
    let mut drawn: Vec<Drawn> = Vec::new();
    for (machine, group, beside, series) in all {
        add(&mut drawn, machine, group, beside, series);
    }
    drawn
}

fn curve(drawn: &Drawn, dots: Vec<Dot>) -> Curve {
    let name = drawn.series.name();
    Curve {
        label: match drawn.beside {
            true => format!("{name}, {}", drawn.machine.hardware()),
            false => name,
        },
        family: drawn.family,
        index: drawn.index,
        clock: drawn.series.clock,
        other: drawn.beside,
        joined: true,
        dots,
    }
}

/// The hues of a group's curves on a device.
pub(super) fn family(group: &Group, device: Device) -> Family {
    match device {
        Device::Cpu => Family::Cpu,
        Device::Gpu if group.on(Device::Cpu).next().is_none() => Family::Alone,
        Device::Gpu => Family::Gpu,
    }
}

fn times(series: &Series) -> Vec<Dot> {
    series
        .points
        .iter()
        .map(|b| Dot {
            size: b.size as f64,
            value: b.median_ns,
            low: b.low_ns(),
            high: b.high_ns(),
        })
        .filter(|d| d.size > 0.0)
        .collect()
}

fn rates(series: &Series, work: Work) -> Vec<Dot> {
    series
        .points
        .iter()
        .enumerate()
        .filter_map(|(i, b)| {
            let amount = work.amount(series, i)? * 1e9;
            Some(Dot {
                size: b.size as f64,
                value: amount / b.median_ns,
                low: amount / b.high_ns(),
                high: amount / b.low_ns(),
            })
        })
        .filter(|d| d.size > 0.0)
        .filter(|d| [d.low, d.value, d.high].iter().all(|v| v.is_normal()))
        .collect()
}

fn marks(report: &Assembled, group: &str) -> Vec<Mark> {
    let answers = headlines(of_group(&report.found, group));
    let mut marks: Vec<Mark> = answers.filter_map(|f| mark(report, f)).collect();
    marks.sort_by(|a, b| a.size.total_cmp(&b.size));
    marks
}

fn mark(report: &Assembled, f: &CrossoverAnswer) -> Option<Mark> {
    let change = f.crossing.for_good()?;
    report.gpu_of(f)?;
    let at = format!("{} = {}", f.topic.symbol, f.topic.unit.from(change.size));
    Some(Mark {
        size: change.size,
        value: Some(1.0),
        at,
        of: f.question.words().to_owned(),
    })
}

/// Limits of each machine with a curve on the plot, GPU limits of those with a GPU curve.
fn ceilings(report: &Assembled, drawn: &[Drawn], work: Work) -> Vec<Limit> {
    let mut lines = Vec::new();
    for (at, machine) in report.machines().enumerate() {
        let beside = at > 0;
        let on = |device| {
            drawn
                .iter()
                .any(|d| std::ptr::eq(d.machine, machine) && d.series.device == device)
        };
        let moves = drawn.iter().any(|d| {
            std::ptr::eq(d.machine, machine)
                && d.series.clock == Some(Clock::Wall)
                && d.series.crosses_link()
        });
        let mut add = |family, label: &str, value: Option<f64>| {
            if let Some(value) = value {
                let label = match beside {
                    true => format!("{label}, {}", machine.hardware()),
                    false => label.to_owned(),
                };
                lines.push(Limit {
                    label,
                    value,
                    family,
                });
            }
        };
        let limits = &machine.limits;
        let named = |device, name| {
            let value = limits.ceiling(name);
            let words = match limits::words(name) {
                // What it is stands in the table of limits; the margin is narrow.
                words if device == Device::Gpu => words.split(',').next().unwrap_or(words),
                words => words,
            };
            (device, words.to_owned(), value)
        };
        let roofs = match work {
            Work::Flop => {
                let mut roofs = peaks(machine, drawn);
                roofs.extend([
                    named(Device::Gpu, "gpu_sgemm"),
                    named(Device::Cpu, "cpu_fma_all"),
                    named(Device::Cpu, "cpu_fma_1"),
                ]);
                roofs
            }
            Work::Bytes => bandwidths(limits),
        };
        // Where every byte crosses the link, the GPU's memory bounds nothing.
        let resident = drawn
            .iter()
            .any(|d| std::ptr::eq(d.machine, machine) && !d.series.crosses_link());
        for (device, label, value) in roofs {
            if work == Work::Bytes && device == Device::Gpu && !resident {
                continue;
            }
            // Of another machine's CPU one curve is drawn, and no limit.
            if on(device) && !(beside && device == Device::Cpu) {
                let family = match device {
                    Device::Cpu => Family::Cpu,
                    Device::Gpu => Family::Gpu,
                };
                add(family, &label, value);
            }
        }
        if work == Work::Bytes && moves {
            let roof = |bytes: LinkBytes| Some(bytes.sum() / limits::link_ns(bytes, limits)? * 1e9);
            add(Family::Gpu, "PCIe, pinned", roof(LinkBytes::new(1.0, 0.0)));
            let both = |bytes: LinkBytes| bytes.to_device > 0.0 && bytes.to_host > 0.0;
            let goes_both = |b: &Benchmark| b.cost.link_bytes.is_some_and(both);
            let of_machine = drawn.iter().filter(|d| std::ptr::eq(d.machine, machine));
            if of_machine.flat_map(|d| &d.series.points).any(goes_both) {
                let rate = roof(LinkBytes::new(1.0, 1.0));
                add(Family::Gpu, "PCIe, pinned, both ways", rate);
            }
        }
    }
    lines
}

/// A line over a plot: whose it is, its label and where it lies, if known.
type Roof = (Device, String, Option<f64>);

/// The peaks of the number formats that are drawn, at the highest clock; formats with one peak
/// share a line.
fn peaks(machine: &MachineResults, drawn: &[Drawn]) -> Vec<Roof> {
    let gpu = drawn
        .iter()
        .filter(|d| std::ptr::eq(d.machine, machine) && d.series.device == Device::Gpu);
    let mut roles: Vec<&Role> = gpu.map(|d| &d.series.role).collect();
    roles.sort_by_key(|role| role.format);
    let mut roofs: Vec<(f64, Vec<&str>)> = Vec::new();
    for role in roles {
        let Some(peak) = limits::peak(role, None, &machine.limits) else {
            continue;
        };
        let name = role.format.name();
        match roofs.iter_mut().find(|(value, _)| *value == peak) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => roofs.push((peak, vec![name])),
        }
    }
    roofs
        .into_iter()
        .map(|(peak, names)| {
            let label = format!("GPU {} peak", names.join(" and "));
            (Device::Gpu, label, Some(peak))
        })
        .collect()
}

/// What the memories carry, and the GPU's L2 cache: by the curves, or by the copies of versions
/// before them.
fn bandwidths(limits: &Limits) -> Vec<Roof> {
    let memory = |device, words: &str, copy| {
        let measured = limits::bandwidth(limits, device, f64::INFINITY);
        match measured {
            Some(_) => (device, words.to_owned(), measured),
            None => (device, limits::words(copy).to_owned(), limits.ceiling(copy)),
        }
    };
    let cache = limits.gpu.as_ref().and_then(|gpu| gpu.l2_bytes);
    // Half of it, which the data surely fit.
    let cache = cache.and_then(|bytes| limits::bandwidth(limits, Device::Gpu, bytes as f64 / 2.0));
    vec![
        (Device::Gpu, "GPU L2 cache".to_owned(), cache),
        memory(Device::Gpu, "GPU memory", "gpu_copy"),
        memory(Device::Cpu, "CPU memory", "cpu_memory"),
    ]
}
