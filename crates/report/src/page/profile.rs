//! Where the time goes: one iteration of each profiled benchmark of a group as a timeline, and its
//! table.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use maud::{Markup, Render, html};

use crate::page::table::{named, table};
use crate::page::{link, timeline};
use crate::profile::{source, summary, tables};
use crate::report::Report;
use crossover_profile::Table;
use crossover_results::store::machine_results::MachineResults;
use crossover_results::store::profiles::Profiled;

/// Profiles of one group and machine that are drawn: each adds some ten kilobytes to the page.
const MOST: usize = 24;

/// Rows of a table that are shown; further ones are counted.
const MOST_ROWS: usize = 12;

/// The profiles of a group, for each machine that has any.
pub(super) fn profiles(report: &Report, group: &str, out: &Path) -> Markup {
    html! {
        @for machine in report.machines() {
            @let (sizes, left_out) = of_group(machine, group);
            @if !sizes.is_empty() {
                h3 { "Where the time goes" @if report.reference.is_some() { ", " (machine.hardware()) } }
                p.note {
                    "One iteration, from an idle device until it is idle again, and below it the totals of \
                     many iterations back to back. CUPTI recorded them, which makes every call longer, and \
                     without a gate: where the host launches kernels one by one, the device looks idler \
                     than it is."
                }
                @for (size, profiled) in &sizes { (of_size(report, group, *size, profiled, machine, out)) }
                @if left_out > 0 {
                    p.note { (left_out) " older profiles are not drawn; each lies in its benchmark's folder as profile.json." }
                }
            }
        }
    }
}

type BySize<'a> = BTreeMap<u64, Vec<&'a Profiled>>;

/// The newest profiles of a group by size, in the order of its rows, and how many more there are.
fn of_group<'a>(machine: &'a MachineResults, group: &str) -> (BySize<'a>, usize) {
    let is_one = |p: &&Arc<Profiled>| p.id.group == group;
    let mut profiles: Vec<&Profiled> = machine
        .profiles
        .iter()
        .filter(is_one)
        .map(|p| &**p)
        .collect();
    profiles.sort_by_key(|p| Reverse(&p.profile.recorded));
    let left_out = profiles.len().saturating_sub(MOST);
    profiles.truncate(MOST);
    let rows = machine.group(group).map_or(&[][..], |group| &group.series);
    let place = |p: &Profiled| rows.iter().position(|row| row.name() == p.id.function);
    profiles.sort_by_key(|p| (place(p).unwrap_or(usize::MAX), &p.id.function));
    let mut sizes = BySize::new();
    for profiled in profiles {
        sizes.entry(profiled.id.size).or_default().push(profiled);
    }
    (sizes, left_out)
}

fn of_size(
    report: &Report,
    group: &str,
    size: u64,
    profiled: &[&Profiled],
    machine: &MachineResults,
    out: &Path,
) -> Markup {
    let drawn = profiled.iter().map(|p| {
        let profile = &p.profile;
        (
            &*p.id.function,
            &*profile.summary.sentence,
            &profile.timeline,
        )
    });
    let drawn: Vec<_> = drawn.collect();
    html! {
        h4 { (report.topic(group).at(size)) }
        (timeline::timelines(&drawn))
        @for one in profiled { (details(one, machine, out)) }
    }
}

fn details(profiled: &Profiled, machine: &MachineResults, out: &Path) -> Markup {
    let profile = &profiled.profile;
    let lines = summary(profile);
    let trace = (!machine.other)
        .then(|| link::relative(out, &profiled.trace()))
        .flatten();
    html! {
        details.profile {
            summary {
                b.gpu { (profiled.id.function) }
                @if let Some((name, value)) = lines.first() { " " (name) " " (value) }
            }
            dl.facts { @for (name, value) in &lines { div { dt { (name) } dd { (value) } } } }
            @for totals in tables(profile) { (rows(&profiled.id.function, &totals)) }
            p.note {
                (source(profile)) "."
                @if let Some(trace) = trace {
                    " " a href=(trace) download { "trace.json" } " has every call, kernel and copy; \
                    Perfetto (ui.perfetto.dev) opens it."
                }
            }
        }
    }
}

/// A table of the benchmark that the page calls `of`.
fn rows(of: &str, totals: &Table) -> Markup {
    let (head, rows) = totals.rows.split_first().expect("a table has a head");
    let left_out = rows.len().saturating_sub(MOST_ROWS);
    let shown = rows.iter().take(MOST_ROWS);
    let shown = shown.map(|row| row.iter().map(Render::render));
    html! {
        @if !rows.is_empty() {
            (table(&format!("{of}, {}", head[0]), "plain totals", &named(head), shown))
            @if left_out > 0 { p.note { "and " (left_out) " more" } }
        }
    }
}
