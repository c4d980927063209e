//! The pages: `index.html`, which is one self-contained file, a page for each group from the same
//! template, and the pages of limits and claims. None of them fetches anything.

mod claims;
mod data;
mod evidence;
mod findings;
mod limits;
pub(crate) mod link;
mod map;
mod profile;
mod table;
mod tables;
mod timeline;
mod verdict;

use std::path::Path;

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use crate::decisions::{Decision, Decisions};
use crate::group::{GroupView, Shown};
use crate::page::data::{STYLES, scripts};
use crate::page::table::{number, scroll, text};
use crate::report::Report;
use crossover_draw::page::shell;
use crossover_results::analysis::telemetry;
use crossover_results::export::BESIDE_THE_PAGE;
use crossover_results::store::machine_results::{MachineResults, NOT_REACHED};
use crossover_words::Clock;

/// Hides elements that need scripts, if there are none.
const NO_SCRIPTS: &str = ".scripted{display:none!important}";

/// The content of all pages.
pub(crate) struct Parts<'a> {
    pub(crate) report: &'a Report,
    pub(crate) groups: &'a [GroupView<'a>],
    pub(crate) decisions: Option<&'a Decisions>,
    /// Whether the record of this machine is written beside the page.
    pub(crate) has_record: bool,
}

impl Parts<'_> {
    /// The first page. It offers each group that has an answer, or the reason why it has none.
    pub(crate) fn index(&self, root: &Path, out: &Path) -> String {
        let report = self.report;
        let machine = &report.machine;
        let is_offered =
            |group: &&GroupView| self.decision(group).is_some() || group.unmeasured.is_some();
        let offered: Vec<&GroupView> = self.groups.iter().filter(is_offered).collect();
        let map = map::section(report, self.groups);
        let changes = findings::techniques(report);
        let nav = html! {
            @if !map.0.is_empty() { a href="#map" { "Map" } a.scripted href="#chart" { "Chart" } }
            @if !offered.is_empty() && !changes.0.is_empty() { a href="#findings" { "What to change" } }
            a href="#groups" { "Operations" }
        };
        let content = html! {
            @if !offered.is_empty() { (verdict::section(report, &offered, self.decisions)) }
            @if machine.other {
                p.notice {
                    "Nothing was measured here yet. These are the committed figures of another \
                     machine, " strong { (machine.hardware()) } ". Run " code { "cargo bench" }
                    " for the figures of this machine."
                }
            }
            @if let Some(words) = report.whose_gpu() { p.banner role="note" { (words) } }
            @if let Some(result) = map::several_gpus(report) { p { (result) } }
            @if offered.is_empty() { (verdict::disturbances(report)) }
            @else {
                (map)
                @if !map.0.is_empty() { (chart(None)) }
                (changes)
            }
            (further(self.groups, root, out, machine.other))
            (reading(report))
            (left_out(report, ""))
        };
        let title = format!("crossover: {}", machine.hardware());
        let data = offered.iter();
        let data = data.map(|group| data::summary(group, self.decision(group)));
        self.page(&title, "", nav, content, &data.collect::<Vec<_>>())
    }

    /// The page of a group in the folder `folder`. `plots` are the files of its plots.
    pub(crate) fn of_group(
        &self,
        group: &GroupView,
        plots: &[String],
        root: &Path,
        folder: &Path,
    ) -> String {
        let topic = &group.topic;
        let criterion = root.join(group.name).join("report").join("index.html");
        let criterion = link::relative(folder, &criterion).filter(|_| !self.report.machine.other);
        let drawn = if group.one_size() { &[][..] } else { &[group] };
        let content = html! {
            h1 { (topic.title) code.id { (group.name) } }
            p {
                (topic.question)
                @if let Some(link) = criterion { " " a href=(link) { "Criterion's report of this group" } }
            }
            @if drawn.is_empty() { (verdict::disturbances(self.report)) }
            @else {
                (verdict::section(self.report, drawn, self.decisions))
                noscript { div.plots {
                    @for plot in plots { img src={ "../plots/" (plot) } alt={ "Plot of " (topic.title) }; }
                } }
                (chart(Some(group)))
                (implementations(group))
            }
            @if let Some(words) = self.report.whose_gpu() { p.banner role="note" { (words) } }
            (tables::section(self.report, group, folder))
            (left_out(self.report, &format!("{}/", group.name)))
        };
        let title = format!("crossover: {}", topic.title);
        let nav = html! { a href="../index.html" { "← All operations" } };
        let data = drawn.iter();
        let data = data.map(|group| data::details(group, self.decision(group)));
        self.page(&title, "../", nav, content, &data.collect::<Vec<_>>())
    }

    fn decision(&self, group: &GroupView) -> Option<&Decision> {
        self.decisions?.of_group(group.name)
    }

    /// The frame of pages with a chart. `base` is the way to the first page's folder; the script gets the
    /// data of these groups.
    fn page(
        &self,
        title: &str,
        base: &str,
        nav: Markup,
        content: Markup,
        groups: &[impl Serialize],
    ) -> String {
        let report = self.report;
        let scripts = (!groups.is_empty()).then(|| {
            let words = verdict::words(self.decisions, base);
            scripts(&data::of_page(groups, words))
        });
        let body = html! {
            a.skip href="#main" { "To the content" }
            noscript { style { (PreEscaped(NO_SCRIPTS)) } }
            (masthead(report))
            nav { div.wrap { (nav) } }
            main #main { (content) }
            footer {
                "Made by " code { "crossover report" } ". The figures as data: "
                a href={ (base) "results.csv" } { "results.csv" } " (every benchmark)"
                @if self.has_record {
                    ", " a href={ (base) (BESIDE_THE_PAGE) } { (BESIDE_THE_PAGE) } " (with answers and findings)"
                }
                "; each plot as a file: " code { "plots/" }
                span.scripted { ". " a #view-link href="#" { "A link to exactly this view" } } "."
            }
            @if let Some(scripts) = scripts { (scripts) }
        };
        shell(title, &STYLES, body).into_string()
    }
}

/// The page of the measured limits.
pub(crate) fn limits(report: &Report) -> String {
    beside("Measured limits", limits::section(report))
}

/// The page of texts' claims.
pub(crate) fn claims(report: &Report) -> String {
    beside(
        "What texts claim, and what was measured",
        claims::claims(report),
    )
}

/// A page beside the first one.
fn beside(title: &str, body: Markup) -> String {
    let body = html! {
        nav { div.wrap { a href="index.html" { "← All operations" } } }
        main { h1 { (title) } (body) }
    };
    shell(&format!("crossover: {title}"), &STYLES[1..], body).into_string()
}

/// Links to everything else.
fn further(groups: &[GroupView], root: &Path, out: &Path, is_other: bool) -> Markup {
    let criterion = link::relative(out, &root.join("report").join("index.html"));
    html! {
        section #groups {
            h2 { "Everything that was measured" }
            ul.pages {
                @for group in groups {
                    li { a href=(link::of_group(group.name)) { (group.topic.title) } }
                }
                li { a href="limits.html" { "Measured limits of the machine" } }
                li { a href="claims.html" { "What texts claim" } }
                @if let Some(link) = criterion.filter(|_| !is_other) {
                    li { a href=(link) { "Criterion's report" } }
                }
            }
        }
    }
}

/// The chart of a group; that of the first page shows the speedup of the places alone.
fn chart(group: Option<&GroupView>) -> Markup {
    let with_controls = group.is_some();
    html! {
        section #chart.scripted {
            h2 { "Along the sizes" }
            @if with_controls {
                div.controls {
                    (choice("show", "Show", &Shown::ALL.map(|shown| (shown.name(), shown.name()))))
                    (choice("rows", "Curves", &[("places", "places of the data"), ("all", "all implementations")]))
                }
            }
            p.note {
                @if group.is_some_and(GroupView::is_on_several) {
                    "A speedup is over one GPU: above 1× several are faster."
                } @else {
                    "A speedup is over the best CPU code: above 1× the GPU is faster. In the speedup of places, bands \
                     span other processes and each small dot is one process."
                }
            }
            div #c-plot role="slider" tabindex="0" aria-label="Size that everything on this page is about" aria-describedby="c-legend"
                aria-valuemin="0" aria-valuemax="1" aria-valuenow="0" {}
            p.note #c-at {}
            ul #c-legend {}
            @if !with_controls { p.note { a #c-link href="#" { "Time, throughput and every implementation of this operation" } } }
        }
    }
}

fn choice(name: &str, label: &str, options: &[(&str, &str)]) -> Markup {
    html! {
        fieldset id={ "c-" (name) } {
            legend { (label) }
            @for (i, (value, words)) in options.iter().enumerate() {
                label { input type="radio" name=(name) value=(value) checked[i == 0]; span { (words) } }
            }
        }
    }
}

/// All implementations at the chosen size.
fn implementations(group: &GroupView) -> Markup {
    let columns = [
        text("implementation"),
        number("time"),
        number(format!("against {}", group.baseline())),
        text("nearest limit"),
        text("clock"),
        text("time, logarithmic"),
    ];
    html! {
        section #implementations.scripted {
            h2 { "Every implementation at this size" }
            p.note { span #i-at {} ". The fastest time of each clock is marked, and those within its interval. Speedups compare these times; a verdict compares several processes. " a href="#all" { "All figures of each" } }
            (scroll("Implementations at this size", "ranked", &columns, html! { tbody #i-rows {} }))
        }
    }
}

fn masthead(report: &Report) -> Markup {
    let machine = &report.machine;
    let gpu = machine.environment.as_ref().and_then(|e| e.gpu.as_ref());
    html! {
        header {
            div.wrap {
                h1 { span.brand { "crossover" } " When does the GPU win?" }
                p.machine {
                    @match (&machine.environment, gpu) {
                        (Some(e), Some(gpu)) => { b.gpu { (gpu.name) } " against " b.cpu { (e.cpu.model) } @if machine.other { " (another machine)" } }
                        (Some(e), None) => {
                            b.cpu { (e.cpu.model) } ", no GPU"
                            @if let Some(why) = &e.gpu_absent { " (" (why) ")" }
                        }
                        (None, _) => { "an unknown machine: these results carry no run record" }
                    }
                }
                details.environment {
                    summary { "The machine and the run" }
                    (environment(machine))
                }
            }
        }
    }
}

fn environment(machine: &MachineResults) -> Markup {
    let Some(e) = &machine.environment else {
        return html! {};
    };
    let mut facts: Vec<(&str, String)> = Vec::new();
    if let Some(run) = &machine.run {
        facts.push((
            "measured",
            format!("{}, size set {}", evidence::when(run), run.size_set),
        ));
        if run.finished.is_none() {
            facts.push(("run", "interrupted, or not finished yet".into()));
        }
    }
    facts.extend(e.facts());
    facts.push(("code", e.code()));
    facts.extend(evidence::runs(machine));
    html! {
        dl.facts { @for (name, fact) in facts { div { dt { (name) } dd { (fact) } } } }
    }
}

fn reading(report: &Report) -> Markup {
    let counted = |m: &MachineResults| m.benchmarks().any(|b| telemetry::energy_j(b).is_some());
    html! {
        section #reading {
            h2 { "How to read this" }
            details { summary { "Clocks, intervals, marks and energy" }
            dl.clocks {
                @for clock in Clock::ALL.iter().copied() {
                    div { dt { (clock.name()) } dd { (clock.meaning()) } }
                }
                div { dt { "unknown" } dd { "the result has no crossover.json, so its clock is unknown; no answer uses such a GPU time" } }
            }
            p {
                "Times are medians with Criterion's confidence interval. The CPU side of an answer is the \
                 fastest CPU code at each size. If the data are on the device, answers use times that \
                 include the launch; gated times are device time alone. \
                 At a given size one side counts as faster if the interval of the ratio excludes 1 and the medians \
                 differ by 2 % or more. Between sizes, curves are interpolated linearly on logarithmic axes."
            }
            p {
                "A benchmark whose samples have two modes, or whose median has an interval wider than 10 %, \
                 is measured again, unless an iteration on a GPU takes 25 ms; if it is still unsteady (±), no answer \
                 and no finding uses it. On the clock submit, which often has two modes, the interval may span a \
                 factor of 4. "
                em { "Partly from the L2 cache" }
                " replaces a share if a kernel finds data of the previous kernel in the L2 cache, so that no \
                 single bandwidth is its limit."
            }
            @if report.machines().any(counted) {
                p {
                    "The energy of an iteration is that of the whole device, read from the device's own counter \
                     over at least 0.3 s of iterations; it is absent if something else ran between them. \
                     Some devices update the counter only ten times per second, so it may be off by a third."
                }
            } }
        }
    }
}

/// Reasons for leaving out the benchmarks whose ids begin with `of`.
fn left_out(report: &Report, of: &str) -> Markup {
    let machine = &report.machine;
    let failed = machine.failed().iter().map(|f| (&*f.id, &*f.error));
    let problems = report.problems().map(|p| (&*p.what, &*p.reason));
    let not_reached = machine.not_reached().into_iter();
    let unsteady = machine.benchmarks();
    let unsteady = unsteady.filter_map(|b| Some((&*b.id, b.unsteady.as_deref()?)));
    let skipped = machine.skipped().iter().map(|s| (&*s.id, &*s.reason));
    let mut kinds = [
        ("Failed", Vec::from_iter(failed)),
        ("Not shown", problems.collect()),
        (
            "Not reached",
            not_reached.map(|id| (id, NOT_REACHED)).collect(),
        ),
        ("Unsteady, so left out of answers", unsteady.collect()),
        ("Skipped", skipped.collect()),
    ];
    for (_, items) in &mut kinds {
        items.retain(|(id, _)| id.starts_with(of));
    }
    html! {
        @if kinds.iter().any(|(_, items)| !items.is_empty()) {
            section #left-out {
                h2 { "What was left out" }
                @for (heading, items) in &kinds {
                    @if !items.is_empty() {
                        details open[*heading != "Skipped" && items.len() <= 12] {
                            summary { (heading) ": " (items.len()) }
                            dl.out { @for (what, reason) in items { div { dt { code { (what) } } dd { (reason) } } } }
                        }
                    }
                }
            }
        }
    }
}
