//! The charts of a group: speedup, time and throughput by size, of the places of the data and of all
//! implementations. The page's script draws them; those of the places are files too, for a README and for
//! readers without scripts.

use serde_json::{Value, json};

use crate::group::{GroupView, Implementation};
use crossover_draw::ink::Paint;
use crossover_draw::plot::{Axis, Curve, Dot, Limit, Plot, Quantity};
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::answer::kind::Speedup;
use crossover_results::model::role::Residency;
use crossover_results::store::curves::Benchmark;
use crossover_words::units::{self, significant};

/// Number of curves that can be told apart in a file.
const MOST: usize = 6;
/// The decades above every curve within which a limit is drawn: one further up would press them flat.
const NEAR: f64 = 1.6;

/// One chart.
pub(crate) struct Chart {
    pub(crate) plot: Plot,
    /// For each curve what a file does not show.
    more: Vec<More>,
}

/// The properties of a curve that only the page shows.
#[derive(Default)]
struct More {
    place: Option<Residency>,
    clock: &'static str,
    /// The speedups that single processes measured.
    single: Vec<(u64, f64)>,
    /// The size from which on the GPU wins, with its interval and in words.
    crossing: Option<Value>,
}

/// The quantity of a chart.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Speedup,
    Time,
    Throughput,
}

impl Shown {
    pub(crate) const ALL: [Self; 3] = [Self::Speedup, Self::Time, Self::Throughput];

    /// In the names of files and of options.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Speedup => "speedup",
            Self::Time => "time",
            Self::Throughput => "throughput",
        }
    }
}

/// The chart of the places of the data, with the best CPU code; `None` if there is nothing to show.
pub(crate) fn of_places(group: &GroupView, shown: Shown) -> Option<Chart> {
    let mut curves: Vec<(Curve, More)> = Vec::new();
    for answer in group.answers {
        let place = answer.found.question;
        let code = group.code_of(answer);
        let dots = match shown {
            Shown::Speedup => answer.speedup.iter().map(dot_of).collect(),
            _ => code.map_or_else(Vec::new, |code| dots(group, code, shown)),
        };
        let crossing = answer.found.crossing.for_good().map(|change| {
            let [size, low, high] = [change.size, change.low, change.high].map(short);
            json!({"size": size, "low": low, "high": high, "text": answer_in_words::size(answer.found)})
        });
        let more = More {
            place: Some(place),
            single: match shown {
                Shown::Speedup => answer.of_processes(),
                _ => Vec::new(),
            },
            crossing,
            ..More::default()
        };
        curves.push((curve(place.words(), Paint::Place(place), dots), more));
    }
    if shown != Shown::Speedup && !curves.is_empty() {
        let best = group.best_cpu.iter().filter_map(|(size, name)| {
            let code = group
                .implementations
                .iter()
                .find(|code| code.name == *name)?;
            let mut dots = dots(group, code, shown).into_iter();
            dots.find(|dot| dot.size == *size)
        });
        let best = curve("best CPU code", Paint::Cpu, best.collect());
        curves.push((best, More::default()));
    }
    chart(group, shown, curves)
}

/// The chart of all implementations, or of some.
pub(crate) fn of_implementations<'a>(
    group: &GroupView,
    shown: Shown,
    all: impl Iterator<Item = &'a Implementation<'a>>,
) -> Option<Chart> {
    let one = |code: &Implementation| {
        let more = More {
            clock: code.series.clock_name(),
            ..More::default()
        };
        let curve = curve(&code.name, Paint::Hue(code.hue), dots(group, code, shown));
        (curve, more)
    };
    chart(group, shown, all.map(one).collect())
}

/// The charts that are files, each with the suffix of its name; none for a group of one size. If nothing is
/// compared, they show the first rows.
pub(crate) fn files(group: &GroupView) -> Vec<(&'static str, Plot)> {
    let of = |shown: Shown| {
        let mut chart = if group.answers.is_empty() {
            let all = group.implementations.iter();
            of_implementations(group, shown, all.filter(|code| code.series.measures_work()))?
        } else {
            of_places(group, shown)?
        };
        chart.plot.curves.truncate(MOST);
        Some((shown.name(), chart.plot))
    };
    if group.one_size() {
        return Vec::new();
    }
    Shown::ALL.into_iter().filter_map(of).collect()
}

fn chart(group: &GroupView, shown: Shown, mut curves: Vec<(Curve, More)>) -> Option<Chart> {
    for (curve, _) in &mut curves {
        curve.dots.retain(Dot::is_sound);
    }
    curves.retain(|(curve, _)| !curve.dots.is_empty());
    let values = curves.iter().flat_map(|(curve, _)| &curve.dots);
    let highest = values.map(|dot| dot.value.log10()).reduce(f64::max)?;
    let (words, quantity, limits) = match shown {
        Shown::Speedup => {
            let even = Limit {
                label: "as fast as the CPU".to_owned(),
                value: 1.0,
                paint: Paint::Cpu,
            };
            ("speedup", Quantity::Speedup, vec![even])
        }
        Shown::Time => ("time", Quantity::Time, Vec::new()),
        Shown::Throughput => {
            let near = |limit: &&Limit| limit.value.log10() <= highest + NEAR;
            let limits = group.limits.iter().filter(near).cloned();
            let quantity = Quantity::Rate(group.work?.unit());
            ("throughput and limits", quantity, limits.collect())
        }
    };
    let (curves, more) = curves.into_iter().unzip();
    let plot = Plot {
        title: format!("{}: {words}", group.topic.title),
        size_label: group.topic.axis.clone(),
        size_unit: group.topic.unit,
        quantity,
        curves,
        limits,
    };
    Some(Chart { plot, more })
}

fn curve(label: &str, paint: Paint, dots: Vec<Dot>) -> Curve {
    let label = label.to_owned();
    Curve { label, paint, dots }
}

fn dot_of(at: &Speedup) -> Dot {
    Dot {
        size: at.size,
        value: at.ratio,
        low: at.low,
        high: at.high,
    }
}

/// The points of an implementation.
fn dots(group: &GroupView, code: &Implementation, shown: Shown) -> Vec<Dot> {
    let series = code.series;
    // A rate of queueing would mean nothing, and neither would its speedup.
    if shown != Shown::Time && !series.measures_work() {
        return Vec::new();
    }
    let points = series.points.iter().enumerate();
    let dot = |(i, b): (usize, &Benchmark)| {
        let size = b.size as f64;
        let (value, low, high) = match shown {
            Shown::Time => (b.median_ns, b.low_ns(), b.high_ns()),
            Shown::Throughput => {
                let amount = group.work?.amount(series, i)? * 1e9;
                (
                    amount / b.median_ns,
                    amount / b.high_ns(),
                    amount / b.low_ns(),
                )
            }
            Shown::Speedup => {
                let speedup = group.speedup(code, b)?;
                return Some(dot_of(&speedup));
            }
        };
        Some(Dot {
            size,
            value,
            low,
            high,
        })
    };
    points.filter_map(dot).collect()
}

/// Rounds to five digits, more than are shown, to keep the page small.
fn short(value: f64) -> f64 {
    significant(value, 5)
}

impl Chart {
    /// The chart as the page's script draws it, with each of its texts.
    pub(crate) fn json(&self) -> Option<Value> {
        let Plot { curves, limits, .. } = &self.plot;
        let frame = self.plot.frame()?;
        let axis = |axis: &Axis, text: &dyn Fn(f64) -> String| {
            let ticks: Vec<Value> = (axis.ticks.iter())
                .map(|at| json!({"at": at, "text": text(*at)}))
                .collect();
            json!({"ends": axis.ends, "ticks": ticks})
        };
        let largest = frame.sizes.ends.1;
        let limits: Vec<Value> = (limits.iter())
            .map(|l| json!({"label": l.label, "value": l.value, "colour": l.paint.property()}))
            .collect();
        let dot = |dot: &Dot| {
            let [value, low, high] = [dot.value, dot.low, dot.high].map(short);
            json!({"size": dot.size, "value": value, "low": low, "high": high, "text": self.words(dot.value)})
        };
        let curve = |(curve, more): (&Curve, &More)| {
            json!({
                "label": curve.label,
                "colour": curve.paint.property(),
                "place": more.place.map(Residency::name),
                "clock": more.clock,
                "dots": curve.dots.iter().map(dot).collect::<Vec<_>>(),
                "single": more.single,
                "crossing": more.crossing,
            })
        };
        Some(json!({
            "axis": self.plot.size_label,
            "lowest_first": self.plot.quantity == Quantity::Time,
            "x": axis(&frame.sizes, &|at| self.plot.size_label(at, largest)),
            "y": axis(&frame.values, &|at| self.plot.value_label(at)),
            "curves": curves.iter().zip(&self.more).map(curve).collect::<Vec<_>>(),
            "limits": limits,
        }))
    }

    fn words(&self, value: f64) -> String {
        match self.plot.quantity {
            Quantity::Time => units::time(value),
            Quantity::Rate(unit) => units::rate(value, unit),
            Quantity::Ratio | Quantity::Speedup => units::factor(value),
        }
    }
}
