//! Ranges and ticks of logarithmic axes: sizes in powers of two, values in decades.

use crate::plot::figure::{Plot, Quantity};
use crossover_results::model::group_info::Unit;
use crossover_words::units::{self, short};

/// Logarithms of numbers that can be labelled: beyond are none of full precision.
const FIRST: f64 = f64::MIN_10_EXP as f64;
const LAST: f64 = f64::MAX_10_EXP as f64;

/// Decades on an axis up to which each has its line.
const MOST_MINOR: f64 = 40.0;

/// One axis, in logarithms.
pub(super) struct Axis {
    pub(super) from: f64,
    pub(super) to: f64,
    /// Labelled lines.
    pub(super) ticks: Vec<f64>,
    /// Unlabelled lines between.
    pub(super) minor: Vec<f64>,
}

impl Axis {
    /// Base 2, with at most `most` ticks. `None` without a point.
    pub(super) fn sizes(plot: &Plot, most: usize) -> Option<Self> {
        let sizes = plot
            .curves
            .iter()
            .flat_map(|c| c.dots.iter().map(|d| d.size.log2()));
        let (from, to) = bounds(sizes)?;
        // A single size stands in the middle; else a little room for the markers.
        let room = if to - from < 0.5 {
            1.0
        } else {
            0.03 * (to - from)
        };
        let (from, to) = (from - room, to + room);
        let ticks = match plot.size_unit {
            Unit::Count | Unit::Powers | Unit::Bytes => steps(from, to, most),
            Unit::Time => {
                let decade = std::f64::consts::LOG2_10;
                let decades = steps(from / decade, to / decade, most);
                decades.into_iter().map(|d| d * decade).collect()
            }
        };
        Some(Self {
            from,
            to,
            ticks,
            minor: Vec::new(),
        })
    }

    /// Base 10. `None` without a point.
    pub(super) fn values(plot: &Plot, most: usize) -> Option<Self> {
        let dots = plot.curves.iter().flat_map(|c| &c.dots);
        let values = dots.flat_map(|d| [d.low, d.value, d.high]);
        let limits = plot.limits.iter().map(|l| l.value);
        let (from, to) = bounds(values.chain(limits).map(f64::log10))?;
        // Percentages crowd at one end of a wide axis, and far from 1 they say nothing.
        let near_one = from > -3.0 && to < 3.0 && to - from < 1.0;
        if plot.quantity == Quantity::Ratio && near_one {
            return Some(Self::ratios(from, to, most));
        }
        let room = 0.05 * (to - from).max(1.0);
        let (from, to) = (from - room, to + room);
        let between = |from: f64, to: f64, factors: &[f64]| -> Vec<f64> {
            let decades = from.floor() as i32..=to.ceil() as i32;
            decades
                .flat_map(|d| factors.iter().map(move |f| f64::from(d) + f.log10()))
                .filter(|v| (from..=to.min(LAST)).contains(v))
                .collect()
        };
        if to - from < 2.5 {
            let ticks = between(from, to, &[1.0, 2.0, 5.0]);
            return Some(Self {
                from,
                to,
                ticks,
                minor: Vec::new(),
            });
        }
        // Among very many decades no line between is told from its neighbours.
        let minor = match to - from < MOST_MINOR {
            true => between(from, to, &[1.0]),
            false => Vec::new(),
        };
        Some(Self {
            from,
            to,
            ticks: steps(from.max(FIRST), to.min(LAST), most),
            minor,
        })
    }

    /// Round percentages around a ratio of 1.
    fn ratios(from: f64, to: f64, most: usize) -> Self {
        let room = 0.05 * (to - from).max(1e-4);
        let (from, to) = (from - room, to + room);
        let percent = |log10: f64| 100.0 * (10f64.powf(log10) - 1.0);
        let (low, high) = (percent(from), percent(to));
        let least = (high - low) / most.max(1) as f64;
        let decade = 10f64.powf(least.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade);
        let step = steps.into_iter().find(|s| *s >= least).unwrap_or(decade);
        let ticks = ((low / step).ceil() as i64..=(high / step).floor() as i64)
            .map(|i| (1.0 + i as f64 * step / 100.0).log10())
            .collect();
        Self {
            from,
            to,
            ticks,
            minor: Vec::new(),
        }
    }
}

/// Finite lowest and highest.
fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values
        .filter(|v| v.is_finite())
        .fold(None, |bounds, v| match bounds {
            None => Some((v, v)),
            Some((low, high)) => Some((v.min(low), v.max(high))),
        })
}

/// Whole numbers in a range, every first, second, third … so that there are at most `most`.
fn steps(from: f64, to: f64, most: usize) -> Vec<f64> {
    let (first, last) = (from.ceil() as i64, to.floor() as i64);
    let step = ((last - first) as usize / most.max(1) + 1) as i64;
    (first..=last)
        .filter(|v| v.rem_euclid(step) == 0)
        .map(|v| v as f64)
        .collect()
}

/// `2²⁰`, or `16,384` where the whole axis is small; `256 MiB`, `10 ms`. As the tables have it.
pub(super) fn size_label(log2: f64, largest: f64, unit: Unit) -> String {
    let size = log2.exp2();
    match unit {
        Unit::Time => short(&units::time(size)),
        Unit::Bytes => unit.write(size.round() as u64),
        _ if size < 1.0 => String::new(),
        // A group of which nobody said how far it goes, as in a comparison.
        Unit::Count if largest <= 19.5 => units::size(size.round() as u64),
        _ if log2 < 9.5 => units::size(size.round() as u64),
        _ => format!("2{}", units::superscript(log2.round() as u32)),
    }
}

/// `10 µs`, `100 GB/s` or `+2.00 %`.
pub(super) fn value_label(log10: f64, quantity: Quantity) -> String {
    // 10^3 is not exactly 1000 in floating point.
    let value = 10f64.powf(log10);
    let value = match value {
        v if v >= 1.0 => v.round(),
        v => v,
    };
    let text = match quantity {
        Quantity::Time => units::time(value),
        Quantity::Rate(unit) => units::rate(value, unit),
        Quantity::Ratio => return units::change(10f64.powf(log10)),
        Quantity::Speedup => return speedup(value),
    };
    short(&text)
}

/// `10×`, `1×`, `1/10`.
fn speedup(factor: f64) -> String {
    match factor {
        // Absurd, and its inverse may be no number.
        f if f < 1e-12 => format!("×{}", units::number(f)),
        f if f < 0.95 => format!("1/{}", units::count(1.0 / f)),
        f => units::factor(f),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ink::Family;
    use crate::plot::figure::{Curve, Dot, Shape};

    fn plot(quantity: Quantity, size_unit: Unit, dots: [(u64, f64); 2]) -> Plot {
        let dot = |(size, value): (u64, f64)| Dot {
            size: size as f64,
            value,
            low: value,
            high: value,
        };
        let curve = Curve {
            label: "one".into(),
            family: Family::Cpu,
            index: 0,
            clock: None,
            other: false,
            joined: true,
            dots: dots.map(dot).into(),
        };
        Plot::of("absurd".into(), ("size", size_unit), quantity, vec![curve])
    }

    #[test]
    fn any_range_has_few_lines_and_short_labels() {
        let values = [
            5e-324,
            1e-300,
            1e-17,
            1e-6,
            1.0,
            1.001,
            1e6,
            1e17,
            1e300,
            f64::MAX,
        ];
        let quantities = [
            Quantity::Time,
            Quantity::Rate("FLOP/s"),
            Quantity::Ratio,
            Quantity::Speedup,
        ];
        for quantity in quantities {
            for (low, high) in values.iter().flat_map(|a| values.map(|b| (*a, b))) {
                let plot = plot(quantity, Unit::Count, [(1, low), (2, high)]);
                let axis = Axis::values(&plot, 9).unwrap();
                let place = format!("{quantity:?} from {low:e} to {high:e}");
                assert!(axis.ticks.len() <= 11, "{place}: {:?}", axis.ticks);
                assert!(axis.minor.len() <= 42, "{place}: {:?}", axis.minor);
                for tick in axis.ticks {
                    assert!((axis.from..=axis.to).contains(&tick), "{place}: {tick}");
                    let label = value_label(tick, quantity);
                    assert!(label.chars().count() <= 20, "{place}: {label}");
                    assert!(!label.contains('?'), "{place}: {label}");
                }
                for shape in [Shape::Wide, Shape::Narrow] {
                    assert!(plot.svg(shape).is_some(), "{place}");
                }
            }
        }
    }

    #[test]
    fn any_sizes_have_few_lines_and_short_labels() {
        let sizes = [1, 3, 1 << 40, u64::MAX - 1, u64::MAX];
        for unit in [Unit::Count, Unit::Bytes, Unit::Time] {
            for (low, high) in sizes.iter().flat_map(|a| sizes.map(|b| (*a, b))) {
                let plot = plot(Quantity::Time, unit, [(low, 1.0), (high, 2.0)]);
                let axis = Axis::sizes(&plot, 9).unwrap();
                assert!(axis.ticks.len() <= 10, "{low} to {high}: {:?}", axis.ticks);
                for tick in axis.ticks {
                    let label = size_label(tick, axis.to, unit);
                    assert!(label.chars().count() <= 20, "{low} to {high}: {label}");
                }
                assert!(plot.svg(Shape::Wide).is_some());
            }
        }
    }

    #[test]
    fn a_label_keeps_its_exponent() {
        assert_eq!(value_label(3.0, Quantity::Time), "1 µs");
        assert_eq!(value_label(300.0, Quantity::Time), "1e291 s");
        assert_eq!(value_label(-299.0, Quantity::Time), "1e-299 ns");
        assert_eq!(value_label(-6.0, Quantity::Ratio), "×1.00e-6");
    }
}
