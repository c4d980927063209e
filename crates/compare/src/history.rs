//! The history of a machine in words, and as one page without scripts.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::comparison::FailOn;
use crate::series::{Change, FEWEST_RUNS, Judged, judge};
use crate::verdict::Verdict;
use crossover_draw::ink::Paint;
use crossover_draw::page::shell;
use crossover_results::statistics::median::median;
use crossover_words::text::visible;
use crossover_words::units::{change, counted, percent, time};

/// Width and height of a drawing.
const SIZE: [f64; 2] = [760.0, 120.0];

/// One benchmark of a history.
#[derive(Clone, Debug)]
pub struct BenchmarkHistory {
    /// Full id.
    pub id: String,
    /// Its time in each run, ns; `None` if the run lacks it.
    pub times: Vec<Option<f64>>,
    /// Its changes.
    pub judged: Judged,
}

/// The runs of one machine.
#[derive(Clone, Debug)]
pub struct History {
    /// Name of the machine.
    pub machine: String,
    /// Name of each run, in their order.
    pub runs: Vec<String>,
    /// Sentences about the runs and what is common to the benchmarks.
    pub notes: Vec<String>,
    /// The benchmarks of the newest run, those with the largest change first.
    pub rows: Vec<BenchmarkHistory>,
    /// The last change that all benchmarks share.
    common: Option<Change>,
}

impl History {
    /// Judges the benchmarks, with their times in each run.
    pub fn new(
        machine: String,
        runs: Vec<String>,
        mut notes: Vec<String>,
        times: Vec<(String, Vec<Option<f64>>)>,
    ) -> Self {
        let (ids, times): (Vec<_>, Vec<_>) = times.into_iter().unzip();
        let (judged, common) = judge(&times);
        let known = judged.iter().map(|judged| judged.deviation);
        let deviation = median(known.filter(|deviation| *deviation > 0.0)).unwrap_or_default();
        notes.push(match runs.len() {
            few @ ..FEWEST_RUNS => format!(
                "{few} of {FEWEST_RUNS} runs: how much runs differ is not known yet, so no change is reported"
            ),
            _ => format!(
                "spread between runs: {} (median of the benchmarks)",
                percent(deviation)
            ),
        });
        let common = common.changes.last().copied();
        if let Some(found) = common {
            notes.push(format!(
                "all benchmarks together: {}",
                found.in_words(&runs)
            ));
        }
        let rows = ids.into_iter().zip(times).zip(judged);
        let mut rows: Vec<BenchmarkHistory> = rows
            .map(|((id, times), judged)| BenchmarkHistory { id, times, judged })
            .collect();
        let size = |row: &BenchmarkHistory| {
            let last = row.judged.changes.last();
            last.map_or(0.0, |change| change.ratio.ln().abs())
        };
        rows.sort_by(|a, b| size(b).total_cmp(&size(a)).then_with(|| a.id.cmp(&b.id)));
        Self {
            machine,
            runs,
            notes,
            rows,
            common,
        }
    }

    /// The benchmarks with a change that was found at the newest run, by the runs that it lies between, and whether it
    /// is a change that `fail_on` names.
    pub fn suspected(&self, fail_on: FailOn) -> BTreeMap<(usize, usize), (BTreeSet<&str>, bool)> {
        let of_each = self.rows.chunks(1).filter_map(|row| {
            let change = row[0].judged.changes.last()?;
            Some((row, *change))
        });
        let of_all = self.common.map(|change| (&self.rows[..], change));
        let mut suspected: BTreeMap<_, (BTreeSet<&str>, bool)> = BTreeMap::new();
        for (rows, change) in of_each.chain(of_all) {
            if change.found_at + 1 == self.runs.len() {
                let (ids, fails) = suspected.entry(change.between).or_default();
                ids.extend(rows.iter().map(|row| row.id.as_str()));
                *fails |= fail_on.verdicts().contains(&change.verdict());
            }
        }
        suspected
    }

    /// The lines for a terminal.
    pub fn text(&self) -> String {
        let count = counted(self.runs.len(), "run");
        let notes = self.notes.iter().map(|note| visible(note));
        let rows = self.rows.iter();
        let rows = rows.map(|row| format!("{}: {}", visible(&row.id), row.in_words(&self.runs)));
        let head = [format!("{}: {count}", self.machine)].into_iter();
        let lines = head.chain(notes).chain([String::new()]).chain(rows);
        lines.collect::<Vec<_>>().join("\n")
    }

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
                    (row.drawing(&self.runs))
                } }
            }
        };
        shell(&title, &[], body).into_string()
    }
}

impl Change {
    fn verdict(&self) -> Verdict {
        if self.ratio > 1.0 {
            Verdict::Slower
        } else {
            Verdict::Faster
        }
    }

    fn in_words(&self, runs: &[String]) -> String {
        let before = if self.found_at + 1 == runs.len() {
            ""
        } else {
            " before"
        };
        let gradually = if self.is_slope { "gradually " } else { "" };
        let (verdict, ratio) = (self.verdict(), change(self.ratio));
        let (from, to) = (&runs[self.between.0], &runs[self.between.1]);
        format!("suspected{before} {gradually}{verdict}: {ratio} between {from} and {to}")
    }
}

impl BenchmarkHistory {
    /// Its newest time against the runs before, and its last change.
    pub fn in_words(&self, runs: &[String]) -> String {
        let ns = self.times.last().copied().flatten().map(time);
        let newest = self
            .judged
            .newest
            .filter(|interval| interval[2].is_finite());
        let newest = newest.map(|interval| {
            let [ratio, low, high] = interval.map(change);
            format!("{ratio} against the runs before ({low} to {high})")
        });
        let change = self.judged.changes.last();
        let change = change.map(|change| change.in_words(runs));
        Vec::from_iter([ns, newest, change].into_iter().flatten()).join("; ")
    }

    fn drawing(&self, runs: &[String]) -> Markup {
        let known = self.times.iter().enumerate();
        let known: Vec<(usize, f64)> = known.filter_map(|(run, ns)| Some((run, (*ns)?))).collect();
        let reach = (1.96 * self.judged.deviation).min(1.0).exp();
        let times = known.iter().map(|(_, ns)| *ns);
        let least = times.clone().fold(f64::INFINITY, f64::min) / reach;
        let most = times.fold(0.0, f64::max) * reach;
        let [width, height] = SIZE;
        let x = |run: usize| 70.0 + (width - 80.0) * run as f64 / (runs.len().max(2) - 1) as f64;
        let range = (most / least).ln().max(1e-6);
        let y = |ns: f64| 10.0 + (height - 20.0) * (most / ns).ln() / range;
        let line = |factor: f64| {
            let points = known.iter();
            points.map(move |(run, ns)| format!("{:.1},{:.1} ", x(*run), y(ns * factor)))
        };
        let band: String = line(reach).chain(line(1.0 / reach).rev()).collect();
        let (ink, muted) = (Paint::Cpu.light(), Paint::Muted.light());
        let mark = |change: &Change| {
            if change.is_slope {
                x(change.between.0)
            } else {
                x(change.between.0).midpoint(x(change.between.1))
            }
        };
        html! {
            svg viewBox=(format!("0 0 {width} {height}")) role="img" aria-label=(self.in_words(runs)) {
                polygon points=(band) fill=(ink) opacity="0.2" {}
                polyline points=(line(1.0).collect::<String>()) fill="none" stroke=(ink) {}
                @for (run, ns) in &known {
                    circle cx=(x(*run)) cy=(y(*ns)) r="2.5" fill=(ink) { title { (visible(&runs[*run])) ": " (time(*ns)) } }
                }
                @for change in &self.judged.changes {
                    line x1=(mark(change)) x2=(mark(change)) y1="4" y2=(height - 4.0) stroke=(Paint::Gpu.light()) {}
                }
                @for (ns, at) in [(most, 16.0), (least, height - 6.0)] {
                    text x="0" y=(at) font-size="12" fill=(muted) { (time(ns)) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_all_benchmarks_is_suspected_of_each() {
        let times = |at: usize| {
            let run = |run: usize| {
                let differs = 1e-3 * ((7 * at + (at + 3) * run) % 11) as f64;
                Some((100.0 + differs) * if run < 7 { 1.0 } else { 1.5 })
            };
            (format!("f/{at}"), (0..10).map(run).collect())
        };
        let runs = (0..10).map(|run| run.to_string()).collect();
        let rows = (0..12).map(times).collect();
        let history = History::new(String::new(), runs, Vec::new(), rows);
        let note = history.notes.last().unwrap();
        assert!(note.starts_with("all benchmarks together: "), "{note}");
        let suspected = history.suspected(FailOn::default());
        let (ids, fails) = &suspected[&(6, 7)];
        assert!(ids.len() == 12 && *fails, "{suspected:?}");
    }

    #[test]
    fn a_drawing_has_each_time_within_its_band_and_each_change_between_its_runs() {
        let change = |is_slope| Change {
            between: (0, 2),
            found_at: 2,
            ratio: 2.0,
            is_slope,
        };
        let drawn = |deviation| {
            let row = BenchmarkHistory {
                id: String::new(),
                times: vec![Some(100.0), None, Some(200.0)],
                judged: Judged {
                    changes: [true, false].map(change).into(),
                    deviation,
                    ..Judged::default()
                },
            };
            row.drawing(&["a", "b", "c"].map(str::to_owned))
                .into_string()
        };
        // Half and twice each time, in a drawing from 50 to 400 ns.
        let svg = drawn(2.0_f64.ln() / 1.96);
        for shown in [
            "\"70.0,43.3 750.0,10.0 750.0,76.7 70.0,110.0 \"",
            "\"70.0,76.7 750.0,43.3 \"",
            "<line x1=\"70\" x2=\"70\"",
            "<line x1=\"410\" x2=\"410\"",
            ">400 ns<",
        ] {
            assert!(svg.contains(shown), "{shown}: {svg}");
        }
        // However far runs differ, the times fill a part of the drawing.
        assert!(drawn(9.0).contains(">544 ns<"));
    }
}
