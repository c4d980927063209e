//! What the chart at the top works on, as JSON. The fields are in the order of the alphabet.

use serde::Serialize;
use serde_json::{Value, json};

use crate::assemble::Assembled;
use crate::page::answers::{self, Answered};
use crate::page::gpu_or_cpu::{GroupVerdict, Verdicts};
use crate::page::group::Section;
use crate::page::link;
use crate::static_plots::Curves;
use crossover_draw::ink::{self, Family};
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::answer::crossover_answer::best_cpu;
use crossover_results::analysis::bottleneck;
use crossover_results::analysis::limits::Kind;
use crossover_results::analysis::rate::{self, Work};
use crossover_results::analysis::telemetry;
use crossover_results::model::group_info::Unit;
use crossover_results::model::id::Device;
use crossover_results::store::curves::{Benchmark, Group, Series};
use crossover_results::store::machine::MachineResults;
use crossover_words::units::significant;

/// The data of the groups, each as [`group`] has it.
pub(super) fn json(groups: &[String], said: &Value) -> String {
    let kinds: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
    let groups = groups.join(",");
    format!(
        "{{\"groups\":[{groups}],\"kinds\":{},\"said\":{said}}}",
        json!(kinds)
    )
}

/// To six digits, which is more than is shown and keeps the page small.
fn short(value: f64) -> f64 {
    significant(value, 6)
}

/// The best CPU code at a size: the size, its time with the interval, its name.
type Best = (f64, f64, f64, f64, String);

#[derive(Serialize)]
struct GroupData<'a> {
    answers: Vec<AnswerData<'a>>,
    axis: &'a str,
    compares: bool,
    host: Option<Vec<Best>>,
    limits: Vec<Roof>,
    name: &'a str,
    page: String,
    series: Vec<SeriesData<'a>>,
    /// How sizes are written, as the tables do.
    sizes: &'static str,
    symbol: &'a str,
    title: &'a str,
    unit: Option<&'static str>,
    verdict: Option<GroupVerdict<'a>>,
}

#[derive(Serialize)]
struct AnswerData<'a> {
    cause: String,
    dots: Vec<(u64, f64)>,
    evidence: String,
    from: String,
    high: Option<f64>,
    low: Option<f64>,
    machine: Option<&'a str>,
    question: &'static str,
    series: Option<usize>,
    size: Option<f64>,
    speedup: Vec<(f64, f64, f64, f64, usize)>,
}

#[derive(Serialize)]
struct Roof {
    cpu: bool,
    label: String,
    value: f64,
}

#[derive(Serialize)]
struct SeriesData<'a> {
    class: Option<String>,
    clock: &'static str,
    counts: bool,
    dash: Option<&'static [u32]>,
    device: Device,
    machine: Option<String>,
    name: String,
    own: bool,
    rows: Vec<(u64, f64, f64, f64, Option<f64>, Facts<'a>)>,
}

/// What else is known of a benchmark; what is not is left out, to keep the page small.
#[derive(Serialize)]
struct Facts<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    share: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slowed: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsteady: Option<&'a str>,
}

/// What a chart shows of a group; `None` where it was measured at one size alone.
pub(crate) fn group(
    report: &Assembled,
    section: &Section,
    answers: &[Answered],
    verdicts: Option<&Verdicts>,
) -> Option<String> {
    let curves = section.curves.as_ref()?;
    let name = section.group;
    let groups: Vec<&Group> = report.of_machines(name).collect();
    let own = report.machine.group(name);
    let topic = report.topic(name);
    let work = rate::work(&groups);
    // Each curve with its machine, in the order in which the script counts them.
    let mut all: Vec<(&MachineResults, &Series)> = Vec::new();
    for machine in report.machines() {
        if let Some(group) = machine.group(name) {
            all.extend(group.series.iter().map(|series| (machine, series)));
        }
    }
    let place = |series: &Series| all.iter().position(|(_, s)| std::ptr::eq(*s, series));
    let here = answers::of_group(answers, name).iter();
    let data = GroupData {
        answers: here.map(|a| answer(a, place(a.series))).collect(),
        axis: &topic.axis,
        compares: topic.compares,
        host: own.map(best),
        limits: work.map_or(Vec::new(), |work| roofs(report, curves, work)),
        name,
        page: link::of_group(name),
        series: all
            .iter()
            .map(|(machine, s)| series(report, machine, s, curves, work))
            .collect(),
        sizes: match topic.unit {
            Unit::Count => "count",
            Unit::Powers => "powers",
            Unit::Bytes => "bytes",
            Unit::Time => "time",
        },
        symbol: &topic.symbol,
        title: &topic.title,
        unit: work.map(Work::unit),
        verdict: verdicts.zip(own).and_then(|(v, group)| v.of_group(group)),
    };
    // Nothing in it can fail.
    serde_json::to_string(&data).ok()
}

fn roofs(report: &Assembled, curves: &Curves, work: Work) -> Vec<Roof> {
    let limits = curves.limits(report, work).into_iter();
    let roof = limits.map(|limit| Roof {
        cpu: limit.family == Family::Cpu,
        label: limit.label,
        value: limit.value,
    });
    roof.collect()
}

fn series<'a>(
    report: &Assembled,
    machine: &MachineResults,
    series: &'a Series,
    curves: &Curves,
    work: Option<Work>,
) -> SeriesData<'a> {
    let own = std::ptr::eq(machine, &report.machine);
    let row = |(i, b): (usize, &'a Benchmark)| {
        let amount = work.and_then(|w| w.amount(series, i));
        let bottleneck = bottleneck::of(series, b, machine);
        let kind = bottleneck.as_ref().map(|found| found.kind);
        let facts = Facts {
            kind: kind.and_then(|kind| Kind::ALL.iter().position(|k| *k == kind)),
            share: bottleneck.map(|found| found.words),
            slowed: Some(telemetry::slowed(b).join(", ")).filter(|s| !s.is_empty()),
            unsteady: b.unsteady.as_deref(),
        };
        (
            b.size,
            short(b.median_ns),
            short(b.low_ns()),
            short(b.high_ns()),
            amount.map(short),
            facts,
        )
    };
    SeriesData {
        class: curves.colour(series).map(|colour| colour.class()),
        clock: series.clock_name(),
        counts: series.measures_work(),
        dash: ink::dash(series.clock),
        device: series.device,
        machine: (!own).then(|| machine.hardware()),
        name: series.name(),
        own,
        rows: series.points.iter().enumerate().map(row).collect(),
    }
}

fn best(group: &Group) -> Vec<Best> {
    let (curve, names) = best_cpu(group);
    let points = curve.points().iter().zip(names);
    points
        .map(|(at, (_, name))| {
            (
                at.size,
                short(at.median),
                short(at.low),
                short(at.high),
                name,
            )
        })
        .collect()
}

fn answer<'a>(answer: &Answered<'a>, series: Option<usize>) -> AnswerData<'a> {
    let f = answer.found;
    let change = f.crossing.for_good();
    let speedup = answer.speedup.iter().map(|at| {
        (
            at.size,
            short(at.ratio),
            short(at.low),
            short(at.high),
            at.processes,
        )
    });
    let duels = f.processes.iter().flatten().filter(|duel| duel.size > 0);
    let dots = duels.map(|duel| (duel.size, duel.cpu_ns / duel.gpu_ns));
    let dots = dots.filter(|(_, ratio)| ratio.is_normal() && *ratio > 0.0);
    AnswerData {
        cause: answer.cause(),
        dots: dots.map(|(size, ratio)| (size, short(ratio))).collect(),
        evidence: format!("{}#{}", link::of_group(&f.group), answer.anchor()),
        from: answer_in_words::size(f),
        high: change.map(|c| c.high),
        low: change.map(|c| c.low),
        machine: f.gpu_machine.as_deref(),
        question: f.question.name(),
        series,
        size: change.map(|c| c.size),
        speedup: speedup.collect(),
    }
}
