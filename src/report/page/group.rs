//! The section of one group: plots, answers, break-even and tables.

use std::path::Path;

use maud::{Markup, PreEscaped, html};

use crate::analysis::crossover::pairs::Found;
use crate::analysis::crossover::words;
use crate::analysis::rate::{self, Work};
use crate::analysis::reuse::Reuse;
use crate::analysis::{limits, telemetry};
use crate::model::id::Device;
use crate::presentation::ink::Role;
use crate::presentation::units;
use crate::report::assemble::Assembled;
use crate::report::charts;
use crate::report::page::runs::earlier_run;
use crate::report::page::{link, profile};
use crate::results::curves::{Benchmark, Group, Series};
use crate::results::machine::Machine;

/// One plot in the two shapes a page needs, and as a file.
pub(in crate::report) struct Drawn {
    /// File name under `plots/`.
    pub(in crate::report) file: String,
    /// With size and background.
    pub(in crate::report) svg: String,
    wide: String,
    narrow: String,
}

/// One group of any machine, drawn.
pub(in crate::report) struct Section {
    /// Name of the group.
    pub(in crate::report) group: String,
    /// Time first, then the rate where there is one.
    pub(in crate::report) plots: Vec<Drawn>,
}

impl Section {
    /// Draws a group.
    pub(in crate::report) fn draw(report: &Assembled, group: &str) -> Self {
        use crate::presentation::plot::figure::Shape::{Narrow, Wide};
        if one_size(report, group) {
            // A curve of one point is none: the section has bars instead.
            return Self {
                group: group.into(),
                plots: Vec::new(),
            };
        }
        let plots = charts::charts(report, group)
            .into_iter()
            .filter_map(|(kind, plot)| {
                Some(Drawn {
                    file: format!("{}-{kind}.svg", safe(group)),
                    svg: plot.file()?,
                    wide: plot.svg(Wide)?,
                    narrow: plot.svg(Narrow)?,
                })
            })
            .collect();
        Self {
            group: group.into(),
            plots,
        }
    }

    pub(super) fn anchor(&self) -> String {
        format!("group-{}", safe(&self.group))
    }
}

/// Whether a group was measured at one size alone.
pub(super) fn one_size(report: &Assembled, name: &str) -> bool {
    let mut sizes = report
        .groups(name)
        .flat_map(Group::benchmarks)
        .map(|b| b.size);
    let first = sizes.next();
    sizes.all(|size| Some(size) == first)
}

/// A group's name as part of a file name.
fn safe(name: &str) -> String {
    let keep = |c: char| match c {
        c if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') => c,
        _ => '_',
    };
    name.chars().map(keep).collect()
}

pub(super) fn section(report: &Assembled, section: &Section, out: &Path) -> Markup {
    let name = &section.group;
    let own: Vec<&Found> = report.found.iter().filter(|f| f.group == *name).collect();
    let others = report.others.iter().flat_map(|(m, found)| {
        found
            .iter()
            .filter(|f| f.group == *name)
            .map(move |f| (m, f))
    });
    let others: Vec<_> = others.collect();
    let topic = report.topic(name);
    html! {
        section.group id=(section.anchor()) {
            h2 { (topic.title) code.id { (name) } }
            @if !topic.question.is_empty() { p { (topic.question) } }
            @if !section.plots.is_empty() {
                div.plots {
                    @for plot in &section.plots {
                        figure {
                            div.wide { (PreEscaped(&plot.wide)) }
                            div.narrow { (PreEscaped(&plot.narrow)) }
                        }
                    }
                }
            }
            @if !own.is_empty() || !others.is_empty() {
                h3 { "Where the GPU overtakes the best CPU code" }
                div.scroll {
                    table.plain {
                        thead { tr { th { "GPU code" } th { "clock" } th { "question" } th { "GPU wins" } th { "interval" } th { "best CPU code" } th { "at the largest size" } } }
                        tbody {
                            @for f in own { (answer(f, None)) }
                            @for (machine, f) in others { (answer(f, Some(machine))) }
                        }
                    }
                }
            }
            (break_even(report, name))
            @if let Some(group) = report.machine.group(name) {
                @if one_size(report, name) { (bars(report, group, &report.machine, out)) }
                @else { (times(report, group, &report.machine, out)) }
            }
            (profile::profiles(report, name, out))
            @for machine in report.machines() {
                @if let Some(group) = machine.group(name) {
                    (details(report, group, machine, out))
                }
            }
        }
    }
}

fn answer(f: &Found, machine: Option<&Machine>) -> Markup {
    let interval = f
        .crossing
        .for_good()
        .map_or("".to_owned(), |c| f.topic.unit.range(c.low, c.high));
    html! {
        tr.headline[f.headline] {
            td.gpu { (f.gpu_label()) @if let Some(machine) = machine { ", " (machine.hardware()) } }
            td { (f.clock) }
            td { (f.question.phrase()) }
            td { (words::wins(f)) }
            td { (interval) }
            td.cpu { "cpu/" (f.cpu) }
            td { (words::at_largest(f)) }
        }
    }
}

fn break_even(report: &Assembled, group: &str) -> Markup {
    let tables: Vec<&Reuse> = report.reuse.iter().filter(|r| r.group == group).collect();
    let Some(first) = tables.first() else {
        return html! {};
    };
    let mut sizes: Vec<u64> = tables
        .iter()
        .flat_map(|t| t.rows.iter().map(|r| r.size))
        .collect();
    sizes.sort_unstable();
    sizes.dedup();
    let topic = report.topic(group);
    let row = |t: &Reuse, size: u64| t.rows.iter().find(|r| r.size == size).copied();
    let calls = tables
        .iter()
        .any(|t| t.rows.iter().any(|r| r.calls.is_some()));
    html! {
        h3 { "How often data must be used to pay for moving it" }
        p.note {
            "Operations by gpu/" (first.resident) " on data moved once, until the GPU is ahead of the \
             best CPU code. 1 means that a single operation pays."
        }
        div.scroll {
            table.matrix {
                thead { tr {
                    th { (topic.symbol) }
                    @for size in &sizes { th.n { (topic.unit.write(*size)) } }
                } }
                tbody {
                    @for t in &tables {
                        tr {
                            th { "moved as by gpu/" (t.transfer) }
                            @for size in &sizes {
                                td.n { (row(t, *size).map_or("".into(), |r| operations(r.operations))) }
                            }
                        }
                    }
                    @if calls {
                        tr {
                            th { "calls that pay for the cold start" }
                            @for size in &sizes {
                                td.n { (tables.iter().find_map(|t| row(t, *size)?.calls).map_or("".into(), operations)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn operations(n: f64) -> String {
    match n {
        n if n.is_infinite() => "never".into(),
        n => units::count(n.ceil().max(1.0)),
    }
}

/// Link to Criterion's own page where it is there.
fn linked(text: &str, benchmark: &Benchmark, machine: &Machine, out: &Path) -> Markup {
    let page = benchmark.dir.join("report").join("index.html");
    let link = (!machine.other)
        .then(|| link::relative(out, &page))
        .flatten();
    html! {
        @match link {
            Some(link) => { a href=(link) title={ "Criterion's page of " (benchmark.id) } { (text) } }
            None => { (text) }
        }
    }
}

fn swatch(group: &Group, series: &Series) -> Markup {
    let role = Role::Shade(
        charts::family(group, series.device),
        charts::index(group, series),
    );
    html! {
        svg.swatch viewBox="0 0 10 10" aria-hidden="true" {
            circle cx="5" cy="5" r="5" class={ "f-" (role.class()) } fill=(role.light());
        }
    }
}

/// Medians: a row a size, a column an implementation, the fastest of a row marked.
fn times(report: &Assembled, group: &Group, machine: &Machine, out: &Path) -> Markup {
    let mut sizes: Vec<u64> = group.benchmarks().map(|b| b.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let topic = &group.topic;
    // None where something unsteady may be faster, or something that was not run at this size.
    let fastest = |size: u64| {
        let work = group.series.iter().filter(|s| s.measures_work());
        if work.clone().any(|s| s.skips(size)) {
            return None;
        }
        let here: Vec<&Benchmark> = work.filter_map(|s| s.at(size)).collect();
        let shortest = |times: &mut dyn Iterator<Item = f64>| times.fold(f64::INFINITY, f64::min);
        let unsteady = |b: &&&Benchmark| b.unsteady.is_some();
        let steady = shortest(&mut here.iter().filter(|b| !unsteady(b)).map(|b| b.median_ns));
        let doubt = shortest(&mut here.iter().filter(unsteady).map(|b| b.low_ns()));
        (steady <= doubt).then_some(steady)
    };
    html! {
        h3 { "Times" @if !report.others.is_empty() { ", " (machine.hardware()) } }
        p.note {
            "Medians of one iteration"
            @if topic.compares { "; the fastest of each size is marked" }
            "." (any_slowed(group)) (any_unsteady(group))
        }
        div.scroll {
            table.matrix {
                thead { tr {
                    th { (topic.symbol) }
                    @for s in &group.series {
                        th.n { (swatch(group, s)) (s.name()) small { (s.clock_name()) } }
                    }
                } }
                tbody {
                    @for size in sizes {
                        @let best = fastest(size);
                        tr {
                            th { (topic.unit.write(size)) }
                            @for s in &group.series {
                                @match s.at(size) {
                                    Some(b) => {
                                        td.n.best[topic.compares && s.measures_work() && b.unsteady.is_none() && best == Some(b.median_ns)] {
                                            (linked(&units::time(b.median_ns), b, machine, out))
                                            (slowed(b, machine)) (unsteady(b))
                                            @if let Some(run) = earlier_run(b, machine) {
                                                small title={ "of the run of " (run) } { "↶" }
                                            }
                                        }
                                    }
                                    None => { td.n.none { "·" } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Medians at the only size, longest first, as bars on a logarithmic scale.
fn bars(report: &Assembled, group: &Group, machine: &Machine, out: &Path) -> Markup {
    let mut all: Vec<(&Series, &Benchmark)> = group
        .series
        .iter()
        .flat_map(|s| s.points.iter().map(move |b| (s, b)))
        .collect();
    all.sort_by(|a, b| b.1.median_ns.total_cmp(&a.1.median_ns));
    let decades = |b: &Benchmark| b.median_ns.log10();
    let (Some(longest), Some(shortest)) = (all.first(), all.last()) else {
        return html! {};
    };
    // The shortest keeps a bar, and equal ones fill the width.
    let from = decades(shortest.1).floor() - 0.2;
    let span = decades(longest.1) - from;
    html! {
        h3 { "Times" @if !report.others.is_empty() { ", " (machine.hardware()) } }
        p.note { "Medians of one iteration, longest first; the bars are logarithmic." (any_slowed(group)) (any_unsteady(group)) }
        table.bars {
            tbody {
                @for (s, b) in all {
                    tr {
                        th { (s.name()) small { (s.clock_name()) } }
                        td.n { (linked(&units::time(b.median_ns), b, machine, out)) (slowed(b, machine)) (unsteady(b)) }
                        td.bar {
                            @let role = Role::Shade(charts::family(group, s.device), 0);
                            svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true" {
                                rect width=(format!("{:.1}", 100.0 * (decades(b) - from) / span)) height="6"
                                    class={ "f-" (role.class()) } fill=(role.light());
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Every figure of every benchmark, folded away.
fn details(report: &Assembled, group: &Group, machine: &Machine, out: &Path) -> Markup {
    let work = rate::work(&[group]);
    let counted = group.benchmarks().any(|b| telemetry::energy_j(b).is_some());
    html! {
        details.all {
            summary {
                "All figures: " (group.benchmarks().count()) " benchmarks"
                @if !std::ptr::eq(machine, &report.machine) { ", " (machine.hardware()) " (another machine)" }
            }
            div.scroll {
                table.plain.figures {
                    thead { tr {
                        th { "benchmark" } th { "clock" } th.n { "median" } th.n { "interval" } th.n { "spread" }
                        th.n { "rate" } th.n { "share of the limit" }
                        @if counted { th.n { "energy" } }
                        th.n { "error" } th.n { "samples" } th { "remarks" }
                    } }
                    tbody {
                        @for series in &group.series {
                            @for (i, b) in series.points.iter().enumerate() {
                                tr {
                                    td class=(if series.device == Device::Gpu { "gpu" } else { "cpu" }) {
                                        (linked(&b.id, b, machine, out))
                                    }
                                    td { (series.clock_name()) }
                                    td.n { (units::time(b.median_ns)) }
                                    td.n { (units::time(b.low_ns())) " to " (units::time(b.high_ns())) }
                                    td.n { @if let Some(spread) = b.spread { (units::percent(spread)) } }
                                    td.n {
                                        @if let Some(work) = work.filter(|_| series.measures_work())
                                            && let Some(amount) = work.amount(series, i) {
                                            (units::rate(b.rate(amount), work.unit()))
                                        }
                                    }
                                    td.n {
                                        @if let Some(share) = limits::share(series, b, machine) {
                                            (share.words())
                                        }
                                    }
                                    @if counted { td.n { (energy(series, i, work)) } }
                                    td.n { @if let Some(v) = &b.verified { (format!("{:.1e}", v.error)) } }
                                    td.n { @if let Some(n) = b.samples { (n) } }
                                    td.how {
                                        @if let Some(run) = earlier_run(b, machine) { "of the run of " (run) "; " }
                                        (b.unsteady.iter().map(|why| format!("unsteady: {why}")).chain(happened(b, machine)).chain(remarks(b)).collect::<Vec<_>>().join("; "))
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Of an iteration, and what a joule of it computes.
fn energy(series: &Series, index: usize, work: Option<Work>) -> String {
    let Some(joules) = telemetry::energy_j(&series.points[index]) else {
        return String::new();
    };
    let flop = work.filter(|w| *w == Work::Flop);
    let of_work = flop.and_then(|w| w.amount(series, index));
    let each = of_work.map_or(String::new(), |flop| {
        format!(", {}", units::rate(flop / joules, "FLOP/J"))
    });
    units::energy(joules) + &each
}

/// The mark of a benchmark whose clock was held down, and what did it.
fn slowed(b: &Benchmark, machine: &Machine) -> Markup {
    let words = telemetry::slowed(b);
    let capped = telemetry::capped(b, machine.environment.as_ref());
    html! {
        @if !words.is_empty() {
            small.slowed title=[capped.map(|c| c.words())] {
                "▾ " (words.join(", "))
                @if let Some(capped) = capped { (capped.short()) }
            }
        }
    }
}

fn any_slowed(group: &Group) -> Markup {
    let count = group
        .benchmarks()
        .filter(|b| !telemetry::slowed(b).is_empty());
    html! {
        @match count.count() {
            0 => {}
            n => {
                " ▾ The GPU's clock was held down in " (n) " of " (group.benchmarks().count())
                "; all figures below say when and why."
            }
        }
    }
}

/// The mark of a benchmark that decides nothing, and why.
fn unsteady(b: &Benchmark) -> Markup {
    html! { @if let Some(why) = &b.unsteady { small.unsteady title=(why) { "± unsteady" } } }
}

fn any_unsteady(group: &Group) -> Markup {
    let count = group.benchmarks().filter(|b| b.unsteady.is_some()).count();
    html! {
        @if count > 0 {
            " ± The samples of " (count) " are unsteady: such times are shown, and left out of \
             answers and findings."
        }
    }
}

/// What happened to the clock while a benchmark ran, and when.
fn happened(b: &Benchmark, machine: &Machine) -> Vec<String> {
    let mut words: Vec<String> = telemetry::events(b)
        .map(|e| format!("at {} ms {}", e.time_ms, telemetry::words(e)))
        .collect();
    if words.is_empty() {
        words.extend(telemetry::slowed(b).into_iter().map(str::to_owned));
    }
    let capped = telemetry::capped(b, machine.environment.as_ref());
    words.extend(capped.map(|c| c.words()));
    words
}

/// Figures beside the time, and notes.
pub(super) fn remarks(b: &Benchmark) -> Vec<String> {
    let figures = b
        .extra
        .iter()
        .map(|(key, value)| units::figure(key, *value));
    figures.chain(b.notes.iter().cloned()).collect()
}
