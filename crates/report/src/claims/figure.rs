//! The figures that test claims: from which results, at which sizes, with what interval.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::claims::declared::{Evidence, Quantity, Row, Sizes, TEXTS};
use crossover_results::analysis::findings::finding::Ratio;
use crossover_results::model::group_info::GroupInfo;
use crossover_results::model::role::Role;
use crossover_results::store::curves::{Benchmark, Group};
use crossover_results::store::machine_results::MachineResults;
use crossover_words::units;

/// Why a machine that has such results does not answer a claim; `None` if it has none.
pub(super) type Missing = Option<String>;

/// A figure at one size.
pub(super) struct Figure {
    pub(super) size: u64,
    pub(super) value: f64,
    /// The interval of another run.
    pub(super) interval: (f64, f64),
    pub(super) ids: Vec<String>,
}

impl Quantity {
    fn write(self, value: f64) -> String {
        match self {
            Quantity::Time => units::time(value),
            Quantity::Factor => units::factor_fine(value),
            Quantity::Share => units::percent(value),
            Quantity::Bytes => units::binary(value as u64),
        }
    }

    /// A stated figure, not a measured one.
    pub(super) fn round(self, value: f64) -> String {
        match self {
            Quantity::Factor => {
                units::short(&format!("{} ×", units::number(value))).replace(' ', "")
            }
            _ => units::short(&self.write(value)),
        }
    }
}

/// The figures of a claim, and the size's name and unit.
type Figures = Result<(GroupInfo, Vec<Figure>), Missing>;

impl Evidence {
    pub(super) fn quantity(&self) -> Quantity {
        match self {
            Evidence::Time(..) => Quantity::Time,
            Evidence::Figure(_, key, _) if key.ends_with("_bytes") => Quantity::Bytes,
            Evidence::Rest(..) | Evidence::Figure(..) | Evidence::LargestRange(_) => {
                Quantity::Share
            }
            _ => Quantity::Factor,
        }
    }

    /// The figure at the smallest and at the largest size, which may be one.
    pub(super) fn ends(&self, machine: &MachineResults) -> Figures {
        let one = |name: &str, sizes, figure: &dyn Fn(&Benchmark) -> Option<Figure>| {
            ends(machine, [name, name], sizes, |b, _| figure(b))
        };
        match self {
            Evidence::Time(row, sizes) => {
                one(row, *sizes, &|b| Some(Figure::of(b.median_ns, &[b], &[b])))
            }
            Evidence::Ratio(over, under, sizes) => ends(machine, [over, under], *sizes, |a, b| {
                Some(Figure::ratio(a, b))
            }),
            Evidence::Rest(all, part, sizes) => ends(machine, [all, part], *sizes, |all, part| {
                let share = Figure::ratio(part, all);
                let (low, high) = share.interval;
                Some(Figure {
                    value: 1.0 - share.value,
                    interval: ((1.0 - high).max(0.0), 1.0 - low),
                    ..share
                })
            }),
            Evidence::Growth(row, sizes) => {
                let (topic, found) = one(row, *sizes, &|b| Some(Figure::of(1.0, &[b], &[])))?;
                let [first, last] = &found[..] else {
                    return Err(Some("measured at one size alone".to_owned()));
                };
                let points = TEXTS.rows[row].points(machine)?;
                let grown = Figure::ratio(points[&last.size], points[&first.size]);
                Ok((topic, vec![grown]))
            }
            Evidence::Figure(row, key, sizes) => one(row, *sizes, &|b| {
                Some(Figure::of(*b.extra.get(key)?, &[b], &[]))
            }),
            Evidence::FigureRatio(over, under, key, sizes) => {
                ends(machine, [over, under], *sizes, |a, b| {
                    let ratio = a.extra.get(key)? / b.extra.get(key)?;
                    Some(Figure::of(ratio, &[a, b], &[]))
                })
            }
            Evidence::LargestRange(rows) => {
                let largest = |b: &Benchmark| {
                    let profiled = machine
                        .profiles
                        .iter()
                        .find(|p| p.profile.benchmark == b.id)?;
                    let shares = profiled.profile.ranges.iter().map(|range| range.share);
                    Some(Figure::of(shares.reduce(f64::max)?, &[b], &[]))
                };
                let found = rows.iter().find_map(|row| one(row, None, &largest).ok());
                found.ok_or(None)
            }
            Evidence::Crossover(..) => Err(None),
            Evidence::Unmeasured(why) => Err(Some(why.clone())),
        }
    }
}

impl Figure {
    /// A figure of these results, with an interval as wide as those of `times` together.
    fn of(value: f64, of: &[&Benchmark], times: &[&Benchmark]) -> Self {
        Self {
            size: of[0].size,
            value,
            interval: Ratio::with(value, times).interval,
            ids: of.iter().map(|b| b.id.clone()).collect(),
        }
    }

    fn ratio(over: &Benchmark, under: &Benchmark) -> Self {
        let both = [over, under];
        Self::of(over.median_ns / under.median_ns, &both, &both)
    }

    /// `3.7× (3.3× to 4.2×) at n = 2¹⁰`.
    pub(super) fn words(&self, quantity: Quantity, topic: &GroupInfo) -> String {
        let (low, high) = self.interval;
        let [low, high] = [low, high].map(|end| quantity.write(end));
        let interval = if low == high {
            String::new()
        } else {
            format!(" ({low} to {high})")
        };
        // An event that happens once per process has no size.
        let at = match (&*topic.symbol, self.size) {
            ("n", 1) => String::new(),
            _ => format!(" at {}", topic.at(self.size)),
        };
        format!("{}{interval}{at}", quantity.write(self.value))
    }
}

impl Row {
    fn group<'a>(&self, machine: &'a MachineResults) -> Result<&'a Group, Missing> {
        machine.group(&self.group).ok_or(None)
    }

    pub(crate) fn has(&self, role: &Role) -> bool {
        let role = serde_json::to_value(role).unwrap_or_default();
        self.role.iter().all(|(field, wanted)| match wanted {
            Value::Null => role.get(field).is_none(),
            Value::Bool(true) => role.get(field).is_some(),
            wanted => role.get(field) == Some(wanted),
        })
    }

    /// The fastest result at each size.
    pub(super) fn points<'a>(
        &self,
        machine: &'a MachineResults,
    ) -> Result<BTreeMap<u64, &'a Benchmark>, Missing> {
        let series = (self.group(machine)?.on(self.device))
            .filter(|s| s.clock_name() == self.clock && self.has(&s.role));
        let mut fastest: BTreeMap<u64, &Benchmark> = BTreeMap::new();
        for b in series.flat_map(|s| &s.points) {
            let best = fastest.entry(b.size).or_insert(b);
            if b.median_ns < best.median_ns {
                *best = b;
            }
        }
        Some(fastest).filter(|found| !found.is_empty()).ok_or(None)
    }
}

/// A figure of two rows at the smallest and the largest size at which both were measured, without sizes
/// whose fastest result is unsteady.
fn ends(
    machine: &MachineResults,
    rows: [&str; 2],
    sizes: Sizes,
    figure: impl Fn(&Benchmark, &Benchmark) -> Option<Figure>,
) -> Figures {
    let rows = rows.map(|name| &TEXTS.rows[name]);
    let topic = &rows[0].group(machine)?.topic;
    let [points, others] = [rows[0].points(machine)?, rows[1].points(machine)?];
    let both = points
        .iter()
        .filter_map(|(size, b)| Some((*b, *others.get(size)?)));
    let both: Vec<(&Benchmark, &Benchmark)> = both.collect();
    let (from, to) = sizes.unwrap_or((0, u64::MAX));
    let within = || both.iter().filter(|(b, _)| (from..=to).contains(&b.size));
    let unsteady = |b: &Benchmark| Some(format!("{} is unsteady: {}", b.id, b.unsteady.as_ref()?));
    let mut why = None;
    let mut found = Vec::new();
    for (b, other) in within() {
        match unsteady(b).or_else(|| unsteady(other)) {
            Some(reason) => why = Some(reason),
            None => found.extend(figure(b, other)),
        }
    }
    if found.len() > 2 {
        found.drain(1..found.len() - 1);
    }
    if !found.is_empty() {
        return Ok((topic.clone(), found));
    }
    let sizes: Vec<u64> = both.iter().map(|(b, _)| b.size).collect();
    let measured = match (why, &sizes[..]) {
        (Some(why), _) => return Err(Some(why)),
        // The results lack the figure.
        _ if within().count() > 0 => return Err(None),
        (_, []) => {
            return Err(Some("no size was measured on both sides".into()));
        }
        (_, [only]) => format!("at {}", topic.at(*only)),
        (_, [first, .., last]) => {
            format!("from {} to {}", topic.at(*first), topic.unit.write(*last))
        }
    };
    let why = format!("measured {measured}, not at {}", topic.at(from));
    Err(Some(why))
}
