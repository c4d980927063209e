//! The description of a group, made once: what its page, the first page, its charts and its plots show.

use serde_json::{Value, json};

use crate::answers::{self, GroupAnswer};
use crate::charts::{self, Chart, Shown};
use crate::decisions::{Decision, Decisions};
use crate::page::link;
use crate::report::Report;
use crossover_draw::ink::{CPU_HUES, Paint};
use crossover_draw::plot::Limit;
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::answer::crossover_answer::best_cpu;
use crossover_results::analysis::answer::kind::Speedup;
use crossover_results::analysis::limits;
use crossover_results::analysis::rate::{self, RateKind};
use crossover_results::analysis::telemetry;
use crossover_results::model::LinkBytes;
use crossover_results::model::group_info::{GroupInfo, Unit};
use crossover_results::model::id::Device;
use crossover_results::store::curves::{Benchmark, Group as Measured, Series};
use crossover_results::store::machine::{Limits, MachineResults};
use crossover_words::Clock;
use crossover_words::units;

/// One group.
pub(crate) struct GroupView<'a> {
    pub(crate) name: String,
    pub(crate) topic: GroupInfo,
    pub(crate) answers: &'a [GroupAnswer<'a>],
    /// The rows of this machine, and those of the machine whose GPU stands in.
    pub(crate) implementations: Vec<Implementation<'a>>,
    /// The time of the fastest CPU code by size.
    cpu_times: Vec<(f64, f64)>,
    /// Its name by size.
    pub(crate) best_cpu: Vec<(f64, String)>,
    pub(crate) work: Option<RateKind>,
    pub(crate) limits: Vec<Limit>,
    pub(crate) decision: Option<Decision>,
    /// The reason why its GPU code has no results.
    pub(crate) unmeasured: Option<String>,
}

/// One row.
pub(crate) struct Implementation<'a> {
    pub(crate) name: String,
    pub(crate) series: &'a Series,
    machine: &'a MachineResults,
    /// Index of its colour.
    pub(crate) hue: usize,
}

impl<'a> GroupView<'a> {
    pub(crate) fn of(
        report: &'a Report,
        name: &'a str,
        answers: &'a [GroupAnswer<'a>],
        decisions: Option<&Decisions>,
    ) -> Self {
        let rows = report.rows(name);
        let groups: Vec<&Measured> = report.machines().filter_map(|m| m.group(name)).collect();
        let work = rate::work(&groups);
        let own = report.machine.group(name);
        let best = own.map(best_cpu);
        let mut next = [0, CPU_HUES];
        let implementation = |(machine, series): &(&'a MachineResults, &'a Series)| {
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
        let (cpu_times, best_cpu) = best.map_or_else(Default::default, |(curve, names)| {
            let times = curve.points().iter().map(|at| (at.size, at.median));
            let names = names.into_iter();
            let names = names.map(|(size, name)| (size, format!("cpu/{name}")));
            (times.collect(), names.collect())
        });
        Self {
            name: name.to_owned(),
            topic: report.topic(name),
            answers: answers::of_group(answers, name),
            implementations: rows.iter().map(implementation).collect(),
            cpu_times,
            best_cpu,
            work,
            limits: work.map_or(Vec::new(), |work| roofs(report, &rows, work)),
            decision: decisions
                .zip(own)
                .and_then(|(all, group)| all.of_group(group)),
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

    /// Whether the first page offers it: there is an answer, or the reason why there is none.
    pub(crate) fn is_offered(&self) -> bool {
        self.decision.is_some() || self.unmeasured.is_some()
    }

    /// The GPU code of an answer.
    pub(crate) fn code_of(&self, answer: &GroupAnswer) -> Option<&Implementation<'a>> {
        let mut all = self.implementations.iter();
        all.find(|code| std::ptr::eq(code.series, answer.series))
    }

    /// The speedup of a benchmark over the best CPU code. For an answer's code it is that of several
    /// processes, so that the page shows one number.
    pub(crate) fn speedup(&self, code: &Implementation, b: &Benchmark) -> Option<Speedup> {
        if !self.topic.compares || !code.series.measures_work() {
            return None;
        }
        let size = b.size as f64;
        let is_it = |answer: &&GroupAnswer| std::ptr::eq(code.series, answer.series);
        let answer = self.answers.iter().find(is_it);
        let of_processes =
            answer.and_then(|answer| answer.speedup.iter().find(|at| at.size == size));
        let cpu = self.cpu_times.iter().find(|(at, _)| *at == size);
        of_processes.copied().or_else(|| {
            let ratio = cpu?.1 / b.median_ns;
            Some(Speedup {
                size,
                ratio,
                low: ratio,
                high: ratio,
                processes: 1,
            })
        })
    }

    /// The data of the first page's script.
    pub(crate) fn summary(&self) -> Value {
        let places = [charts::of_places(self, Shown::Speedup)];
        let [speedup] = places.map(|chart| chart.and_then(|chart| chart.json()));
        self.json(json!({"places": {"speedup": speedup}}), &[])
    }

    /// The data of its own page's script.
    pub(crate) fn details(&self) -> Value {
        let charts = |of: &dyn Fn(Shown) -> Option<Chart>| -> Value {
            let all = Shown::ALL.into_iter();
            let named = all.map(|shown| {
                (
                    shown.name().to_owned(),
                    of(shown).and_then(|c| c.json()).into(),
                )
            });
            Value::Object(named.collect())
        };
        let charts = json!({
            "places": charts(&|shown| charts::of_places(self, shown)),
            "all": charts(&|shown| charts::of_implementations(self, shown, self.implementations.iter())),
        });
        self.json(charts, &self.implementations)
    }

    fn json(&self, charts: Value, implementations: &[Implementation]) -> Value {
        let answer = |answer: &GroupAnswer| {
            let found = answer.found;
            json!({
                "place": found.question.name(),
                "wins": answer_in_words::wins(found),
                "cause": answer.cause(),
                "evidence": format!("{}#{}", link::of_group(&found.group), answer.anchor()),
            })
        };
        let topic = &self.topic;
        json!({
            "name": self.name,
            "title": topic.title,
            "symbol": topic.symbol,
            "axis": topic.axis,
            "unit": match topic.unit {
                Unit::Count => "count",
                Unit::Powers => "powers",
                Unit::Bytes => "bytes",
                Unit::Time => "time",
            },
            "page": link::of_group(&self.name),
            "unmeasured": self.unmeasured,
            "answers": self.answers.iter().map(answer).collect::<Vec<_>>(),
            "decision": self.decision.as_ref().map(|decision| &decision.json),
            "charts": charts,
            "implementations": implementations.iter().map(|code| self.row(code)).collect::<Vec<_>>(),
        })
    }

    /// An implementation for the script, with the texts of each of its cells.
    fn row(&self, code: &Implementation) -> Value {
        let series = code.series;
        let cells = |b: &Benchmark| {
            let share = limits::with_launches(series, b, code.machine);
            let speedup = self.speedup(code, b).map(|at| units::speedup(at.ratio));
            let slowed = telemetry::slowed(b).join(", ");
            let notes = [
                (!slowed.is_empty()).then(|| format!("▾ {slowed}")),
                b.unsteady.as_ref().map(|_| "± unsteady".to_owned()),
                (!series.measures_work()).then(|| "does not measure the work".to_owned()),
            ];
            json!({
                "size": b.size,
                "ns": units::significant(b.median_ns, 5),
                "time": units::time(b.median_ns),
                "speedup": speedup,
                "share": share.map(|share| share.words()),
                "notes": notes.into_iter().flatten().collect::<Vec<_>>(),
                "best": is_best(&self.topic, self.implementations.iter().map(|code| code.series), series, b),
            })
        };
        json!({
            "name": code.name,
            "device": series.device,
            "clock": series.clock_name(),
            "rows": series.points.iter().map(cells).collect::<Vec<_>>(),
        })
    }
}

/// Whether a benchmark is the fastest of its size and clock among these rows, or within its interval.
pub(crate) fn is_best<'a>(
    topic: &GroupInfo,
    rows: impl Iterator<Item = &'a Series>,
    of: &Series,
    b: &Benchmark,
) -> bool {
    let same = rows.filter(|row| row.measures_work() && row.clock == of.clock);
    let steady = same.filter_map(|row| row.at(b.size).filter(|b| b.unsteady.is_none()));
    let first = steady.min_by(|a, b| a.median_ns.total_cmp(&b.median_ns));
    let ties = first.is_some_and(|first| b.median_ns <= first.high_ns());
    topic.compares && of.measures_work() && b.unsteady.is_none() && ties
}
/// The limits that bound rates of these rows: in FLOP/s the peaks, in B/s memory and link.
fn roofs(report: &Report, rows: &[(&MachineResults, &Series)], work: RateKind) -> Vec<Limit> {
    let (host, gpu) = (&report.machine.limits, &report.gpu().limits);
    let on = |device| {
        rows.iter()
            .filter(move |(_, s)| s.device == device)
            .map(|(_, s)| *s)
    };
    let mut roofs: Vec<(Device, String, Option<f64>)> = Vec::new();
    match work {
        RateKind::Flop => {
            roofs.extend(peaks(on(Device::Gpu), gpu));
            for name in ["cpu_fma_all", "cpu_fma_1"] {
                roofs.push((
                    Device::Cpu,
                    limits::words(name).to_owned(),
                    host.ceiling(name),
                ));
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
    let limit = |(device, label, value): (Device, String, Option<f64>)| {
        let paint = match device {
            Device::Cpu => Paint::Cpu,
            Device::Gpu => Paint::Gpu,
        };
        let value = value?;
        Some(Limit {
            label,
            value,
            paint,
        })
    };
    there.filter_map(limit).collect()
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
