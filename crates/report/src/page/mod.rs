//! `index.html`: one self-contained page, nothing fetched, and a page for each group beside it.

pub(super) mod answers;
mod claims;
mod costs;
pub(super) mod data;
mod evidence;
mod findings;
pub(super) mod gpu_or_cpu;
pub(super) mod group;
mod limits;
pub(super) mod link;
mod machines;
mod map;
pub(super) mod packed;
mod profile;
mod runs;
mod script;
mod scripted_sections;
mod table;

use std::path::Path;

use maud::{Markup, PreEscaped, html};

use crate::assemble::Assembled;
use crate::page::answers::Answered;
use crate::page::gpu_or_cpu::Verdicts;
use crate::page::group::Section;
use crate::reference_banner;
use crossover_draw::ink;
use crossover_draw::page::shell;
use crossover_results::analysis::telemetry;
use crossover_results::analysis::trust::Grade;
use crossover_results::export::BESIDE_THE_PAGE;
use crossover_results::store::machine::{MachineResults, NOT_REACHED};
use crossover_words::Clock;
use crossover_words::units;

/// Without scripts nothing is shown that needs them.
const NO_SCRIPTS: &str = ".scripted{display:none!important}";

/// The page of a group, whose folder is `folder`.
pub(super) fn of_group(
    report: &Assembled,
    section: &Section,
    answers: &[Answered],
    folder: &Path,
) -> String {
    let title = report.topic(section.group).title;
    beside(
        &title,
        "../",
        group::section(report, section, answers, folder),
    )
}

/// The page of the measured limits.
pub(super) fn limits(report: &Assembled) -> String {
    beside("Measured limits", "", limits::section(report))
}

/// Uncertain answers of which the terminal says why.
const MOST_DOUBTS: usize = 6;

/// How many answers are how sure, and below it why the uncertain ones are not.
pub(super) fn sure(answers: &[Answered]) -> String {
    let count = |grade| answers.iter().filter(|a| a.trust.grade() == grade).count();
    let (firm, doubtful, thin) = (
        count(Grade::Firm),
        count(Grade::Doubtful),
        count(Grade::Thin),
    );
    if answers.is_empty() {
        return String::new();
    }
    let mut lines = vec![format!(
        "{}: {firm} firm, {doubtful} uncertain, {thin} of one process",
        units::counted(answers.len(), "answer")
    )];
    let why = answers
        .iter()
        .filter(|a| a.trust.grade() == Grade::Doubtful);
    lines.extend(why.take(MOST_DOUBTS).map(|a| {
        let (title, asked) = (&a.found.topic.title, a.asked());
        let doubts = a.trust.doubts().join("; ");
        format!("  uncertain: {title}, {asked}: {doubts}")
    }));
    if doubtful > MOST_DOUBTS {
        lines.push(format!(
            "  and {} more; the page says why",
            doubtful - MOST_DOUBTS
        ));
    }
    lines.join("\n")
}

/// A page beside the first one, to which `back` leads.
fn beside(title: &str, back: &str, body: Markup) -> String {
    let body = html! {
        nav { div.wrap { a href={ (back) "index.html" } { "← All operations" } } }
        main { h1 { (title) } (body) }
        script { (PreEscaped(table::SCRIPT)) }
    };
    shell(
        &format!("crossover: {title}"),
        &scripted_sections::STYLES[1..],
        body,
    )
    .into_string()
}

/// The first page. `groups` are the data of the groups that its chart shows.
pub(super) fn first(
    report: &Assembled,
    groups: &[String],
    answers: &[Answered],
    verdicts: Option<&Verdicts>,
) -> String {
    let machine = &report.machine;
    let data = || packed::pack(&data::json(groups, &gpu_or_cpu::said(verdicts)));
    let body = || {
        html! {
            a.skip href="#verdict" { "To the answer" }
            noscript { style { (PreEscaped(NO_SCRIPTS)) } }
            (masthead(report))
            main {
                @if machine.other {
                    p.notice {
                        "Nothing was measured here yet. These are the committed figures of another \
                         machine, " strong { (machine.hardware()) } ". Run " code { "cargo bench" }
                        " to put this machine's own beside them."
                    }
                }
                @if let Some(words) = reference_banner::banner(report) { p.banner role="note" { (words) } }
                (gpu_or_cpu::section(report, verdicts))
                (map::section(report, answers, verdicts))
                (scripted_sections::section())
                (findings::techniques(report))
                (scripted_sections::implementations())
                (scripted_sections::processes())
                (costs::section(report, verdicts))
                (machines::section(report))
                (claims::claims(report))
                (operations(report))
                (reading(report))
                (left_out(machine))
            }
            footer {
                "Made by " code { "crossover report" } ". The figures as data: "
                a href="results.csv" { "results.csv" } " (every benchmark)"
                @if !machine.other { ", " a href=(BESIDE_THE_PAGE) { (BESIDE_THE_PAGE) } " (with answers and findings)" }
                "; each plot as a file: " code { "plots/" }
                span.scripted { ". " a #view-link href="#" { "A link to exactly this view" } } "."
            }
        }
    };
    let (data, body) = rayon::join(data, body);
    let body = html! {
        (body)
        (scripted_sections::scripts(&data))
        script { (PreEscaped(table::SCRIPT)) }
    };
    let title = format!("crossover: {}", machine.hardware());
    shell(&title, &scripted_sections::STYLES, body).into_string()
}

/// A link to the page of each group, which has its plots, all times, and what its answers rest on.
fn operations(report: &Assembled) -> Markup {
    html! {
        section #groups {
            h2 { "Everything that was measured" }
            ul.pages {
                @for name in &report.groups {
                    li { a href=(link::of_group(name)) { (report.topic(name).title) } }
                }
                li { a href="limits.html" { "Measured limits of the machine" } }
            }
        }
    }
}

fn masthead(report: &Assembled) -> Markup {
    let machine = &report.machine;
    let gpu = machine.environment.as_ref().and_then(|e| e.gpu.as_ref());
    html! {
        header {
            div.wrap {
                h1 { span.brand { "crossover" } " When does the GPU win?" }
                p.machine {
                    @match (&machine.environment, gpu) {
                        (Some(e), Some(gpu)) => { b.gpu { (gpu.name) } " against " b.cpu { (e.cpu.model) } }
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
                @for disturbance in machine.environment.iter().flat_map(|e| &e.disturbances) {
                    p.notice { (disturbance) }
                }
            }
        }
        nav {
            div.wrap {
                a href="#map" { "Map" }
                a.scripted href="#chart" { "Chart" }
                a href="#findings" { "What to change" }
                a href="#texts" { "Texts" }
                a href="#groups" { "Operations" }
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
            "Measured",
            format!("{}, profile {}", runs::when(run), run.profile),
        ));
        if run.finished.is_none() {
            facts.push(("Run", "interrupted, or not finished yet".into()));
        }
    }
    let memory = |bytes: Option<u64>| bytes.map(|b| format!(", {}", units::bytes(b as f64)));
    let cores = match e.cpu.usable_cores {
        0 => String::new(),
        1 => "1 usable processor".into(),
        n => format!("{n} usable processors"),
    };
    let quota = e.cpu.quota_cores.map_or(String::new(), |q| {
        format!(", quota {} cores", units::number(q))
    });
    facts.push((
        "CPU",
        format!(
            "{cores}{quota}{}; {}",
            memory(e.cpu.memory_bytes).unwrap_or_default(),
            e.cpu.vector_extensions.join(" ")
        ),
    ));
    if let Some(gpu) = &e.gpu {
        let (major, minor) = gpu.compute_capability;
        facts.push((
            "GPU",
            format!(
                "compute capability {major}.{minor}, {} SMs{}",
                gpu.multiprocessors,
                memory(Some(gpu.memory_bytes)).unwrap_or_default()
            ),
        ));
        let version = |name: &str, v: Option<(u32, u32)>| v.map(|(a, b)| format!("{name} {a}.{b}"));
        let software: Vec<String> = [
            gpu.driver.as_ref().map(|d| format!("driver {d}")),
            version("CUDA", gpu.cuda),
            version("NVRTC", gpu.nvrtc),
            gpu.cublas.as_ref().map(|c| format!("cuBLAS {c}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        facts.push(("Software", software.join(", ")));
    }
    let os = e.os.as_ref().map_or(String::new(), |os| format!(", {os}"));
    facts.push(("Code", e.code() + &os));
    html! {
        dl.facts { @for (name, fact) in facts { div { dt { (name) } dd { (fact) } } } }
        (runs::runs(machine))
    }
}

fn reading(report: &Assembled) -> Markup {
    let counted = |m: &MachineResults| m.benchmarks().any(|b| telemetry::energy_j(b).is_some());
    html! {
        section #reading {
            h2 { "How to read this" }
            dl.clocks {
                @for clock in Clock::ALL.iter().copied() {
                    div { dt { (clock_line(Some(clock))) (clock.name()) } dd { (clock.meaning()) } }
                }
                div { dt { (clock_line(None)) "unknown" } dd { "the result has no crossover.json, so its clock is unknown; a GPU time like this counts for no answer" } }
            }
            p {
                "Times are medians with Criterion's confidence interval. The CPU side of an answer is the \
                 fastest CPU code at each size. Where the data are on the device, answers rest on times that \
                 include the launch; gated times are device time alone. \
                 At a given size one side counts as faster if the interval of the ratio excludes 1 and the medians \
                 differ by 2 % or more. Between sizes, curves are interpolated linearly on logarithmic axes."
            }
            p {
                "A benchmark whose samples lie in two modes, or whose median has an interval wider than 10 % \
                 of it, is measured again; if it is still unsteady (±), no answer and no finding uses it. On the clock submit, \
                 which moves between modes, the ends of the interval may be a factor of 4 apart. "
                em { "Partly from the L2 cache" }
                " stands in place of a share where a kernel finds data in the L2 cache that the kernel before \
                 it left there, so that no single bandwidth is its limit."
            }
            @if report.machines().any(counted) {
                p {
                    "The energy of an iteration is that of the whole device, read from the device's own counter \
                     over at least 0.3 s of iterations; it is absent where something else ran between them. \
                     Some devices update the counter only ten times per second, so it may be off by a third."
                }
            }
        }
    }
}

/// A sample of a clock's line.
fn clock_line(clock: Option<Clock>) -> Markup {
    let dash = ink::dash(clock).map(|lengths| {
        let lengths: Vec<String> = lengths.iter().map(u32::to_string).collect();
        lengths.join(" ")
    });
    html! {
        svg.sample viewBox="0 0 34 8" aria-hidden="true" {
            line x1="0" x2="34" y1="4" y2="4" class="s-muted" stroke-width="2" stroke-dasharray=[dash];
        }
    }
}

fn left_out(machine: &MachineResults) -> Markup {
    let unsteady: Vec<_> = machine
        .benchmarks()
        .filter_map(|b| Some((&*b.id, b.unsteady.as_deref()?)))
        .collect();
    let none = machine.problems.is_empty()
        && machine.failed().is_empty()
        && machine.skipped().is_empty()
        && machine.not_reached().is_empty()
        && unsteady.is_empty();
    html! {
        @if !none {
            section #left-out {
                h2 { "What was left out" }
                @for (heading, items) in [
                    ("Failed", machine.failed().iter().map(|f| (&*f.id, &*f.error)).collect::<Vec<_>>()),
                    ("Not shown", machine.problems.iter().map(|p| (&*p.what, &*p.reason)).collect()),
                    ("Not reached", machine.not_reached().into_iter().map(|id| (id, NOT_REACHED)).collect()),
                    ("Unsteady, so left out of answers", unsteady),
                    ("Skipped", machine.skipped().iter().map(|s| (&*s.id, &*s.reason)).collect()),
                ] {
                    @if !items.is_empty() {
                        details open[heading != "Skipped" && items.len() <= 12] {
                            summary { (heading) ": " (items.len()) }
                            dl.out { @for (what, reason) in items { div { dt { code { (what) } } dd { (reason) } } } }
                        }
                    }
                }
            }
        }
    }
}
