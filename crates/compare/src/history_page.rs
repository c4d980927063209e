//! A history as one page without scripts.

use maud::{Markup, html};

use crate::history::{BenchmarkHistory, Change, History};
use crossover_draw::ink::Paint;
use crossover_draw::page::shell;
use crossover_words::text::visible;
use crossover_words::units::time;

/// Width and height of a drawing.
const SIZE: [f64; 2] = [760.0, 120.0];

impl History {
    /// The page; benchmarks with the largest change first.
    pub fn page(&self) -> String {
        let title = visible(&self.machine);
        let body = html! {
            header { div.wrap {
                p.brand { "crossover history" }
                h1 { (title) }
                @for note in &self.notes { p.machine { (visible(note)) } }
            } }
            main {
                p.note {
                    "The band is the interval of 95 % of one run around its value, from the spread between runs. A vertical \
                     line is a change, or the beginning of a gradual one."
                }
                @for row in &self.rows { section {
                    h2 { (visible(&row.id)) }
                    p.note { (row.in_words(&self.runs)) }
                    (drawing(row, &self.runs))
                } }
            }
        };
        shell(&title, &[], body).into_string()
    }
}

fn drawing(row: &BenchmarkHistory, runs: &[String]) -> Markup {
    let known = row.times.iter().enumerate();
    let known: Vec<(usize, f64)> = known.filter_map(|(run, ns)| Some((run, (*ns)?))).collect();
    let reach = (1.96 * row.judged.deviation).min(1.0).exp();
    let least = known
        .iter()
        .map(|(_, ns)| ns / reach)
        .fold(f64::INFINITY, f64::min);
    let most = known.iter().map(|(_, ns)| ns * reach).fold(0.0, f64::max);
    let [width, height] = SIZE;
    let x = |run: usize| 70.0 + (width - 80.0) * run as f64 / (runs.len().max(2) - 1) as f64;
    let range = (most / least).ln().max(1e-6);
    let y = |ns: f64| 10.0 + (height - 20.0) * (most / ns).ln() / range;
    let point = |(run, ns): (usize, f64)| format!("{:.1},{:.1}", x(run), y(ns));
    let line = |factor: f64| {
        known
            .iter()
            .map(move |(run, ns)| point((*run, ns * factor)))
    };
    let upper: Vec<String> = line(reach).collect();
    let lower: Vec<String> = line(1.0 / reach).rev().collect();
    let (ink, muted) = (Paint::Cpu.light(), Paint::Muted.light());
    let mark = |change: &Change| match change.is_slope {
        true => x(change.between.0),
        false => x(change.between.0).midpoint(x(change.between.1)),
    };
    html! {
        svg viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(row.in_words(runs)) {
            polygon points=([upper, lower].concat().join(" ")) fill=(ink) opacity="0.2" {}
            polyline points=(Vec::from_iter(line(1.0)).join(" ")) fill="none" stroke=(ink) {}
            @for (run, ns) in &known {
                circle cx=(x(*run)) cy=(y(*ns)) r="2.5" fill=(ink) { title { (visible(&runs[*run])) ": " (time(*ns)) } }
            }
            @for change in &row.judged.changes {
                line x1=(mark(change)) x2=(mark(change)) y1="4" y2=(height - 4.0) stroke=(Paint::Gpu.light()) {}
            }
            @for (ns, at) in [(most, 16.0), (least, height - 6.0)] {
                text x="0" y=(at) font-size="12" fill=(muted) { (time(ns)) }
            }
        }
    }
}
