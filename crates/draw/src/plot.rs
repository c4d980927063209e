//! A plot: curves over sizes with both axes logarithmic, or differences with both axes linear; their ranges,
//! lines and words.

use crate::ink::Paint;
use crossover_results::model::group_info::Unit;
use crossover_words::units::{self, short};

/// One point of a curve, in the plot's units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Problem size.
    pub size: f64,
    /// Time in ns, a rate per second, or a ratio.
    pub value: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Dot {
    /// A value at a size, with its interval.
    pub fn new(size: f64, value: f64, low: f64, high: f64) -> Self {
        Self {
            size,
            value,
            low,
            high,
        }
    }

    /// A value at a size, without an interval.
    pub fn exact(size: f64, value: f64) -> Self {
        Self::new(size, value, value, value)
    }

    /// Whether it can be drawn on logarithmic axes.
    pub fn is_sound(&self) -> bool {
        self.size > 0.0
            && [self.low, self.value, self.high]
                .iter()
                .all(|v| v.is_normal() && *v > 0.0)
    }
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Written at its end.
    pub label: String,
    /// Colour.
    pub paint: Paint,
    /// Sizes ascending.
    pub dots: Vec<Dot>,
    /// How they are drawn.
    pub stroke: Stroke,
}

/// The marks of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Dots, joined by a line, and their intervals.
    Joined,
    /// Dots alone.
    Dots,
    /// A line through them, and their intervals.
    Line,
}

impl Curve {
    /// A curve of joined dots.
    pub fn joined(label: impl Into<String>, paint: Paint, dots: Vec<Dot>) -> Self {
        Self {
            label: label.into(),
            paint,
            dots,
            stroke: Stroke::Joined,
        }
    }
}

/// A horizontal line: a limit.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Written at its end.
    pub label: String,
    /// In the plot's units.
    pub value: f64,
    /// Colour.
    pub paint: Paint,
}

/// The quantity of the vertical axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// Nanoseconds.
    Time,
    /// A rate in this unit.
    Rate(&'static str),
    /// The ratio of two times, around 1.
    Ratio,
    /// How many times as fast.
    Speedup,
    /// Nanoseconds more or less, over nanoseconds; the axes are linear.
    Difference,
}

/// One plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Title.
    pub title: String,
    /// The meaning of the sizes.
    pub size_label: String,
    /// How the sizes are written.
    pub size_unit: Unit,
    /// The vertical axis.
    pub quantity: Quantity,
    /// At least one must have a point, or nothing is drawn.
    pub curves: Vec<Curve>,
    /// Lines across.
    pub limits: Vec<Limit>,
}

/// Both axes of a plot.
#[derive(Debug)]
pub struct Frame {
    /// Positions are logarithms to base 2, of differences nanoseconds.
    pub sizes: Axis,
    /// Positions are logarithms to base 10, of differences nanoseconds.
    pub values: Axis,
}

/// An axis with its lines.
#[derive(Debug)]
pub struct Axis {
    /// The first and the last position.
    pub ends: (f64, f64),
    /// The positions of its lines.
    pub ticks: Vec<f64>,
}

impl Plot {
    fn is_linear(&self) -> bool {
        self.quantity == Quantity::Difference
    }

    /// Whether a point has a place on the axes.
    pub(crate) fn has(&self, dot: &Dot) -> bool {
        let numbers = [dot.size, dot.low, dot.value, dot.high];
        dot.is_sound() || self.is_linear() && numbers.iter().all(|v| v.is_finite())
    }

    /// The position of a size and a value on the axes.
    pub(crate) fn position(&self, size: f64, value: f64) -> (f64, f64) {
        if self.is_linear() {
            (size, value)
        } else {
            (size.log2(), value.log10())
        }
    }

    /// The range and the lines of both axes; `None` where no curve has a point.
    pub fn frame(&self) -> Option<Frame> {
        let curves = self.curves.iter().flat_map(|curve| &curve.dots);
        let dots: Vec<&Dot> = curves.filter(|dot| self.has(dot)).collect();
        let measured = dots.iter().map(|dot| self.position(dot.size, 1.0).0);
        let measured: Vec<f64> = measured.collect();
        let sizes = bounds(measured.iter().copied(), 0.03, 1.0)?;
        let ends = dots.iter().flat_map(|dot| [dot.low, dot.value, dot.high]);
        let values = ends.chain(self.limits.iter().map(|limit| limit.value));
        let least = match self.quantity {
            Quantity::Ratio => 1e-3,
            Quantity::Difference => 1.0,
            _ => 0.1,
        };
        let values = bounds(values.map(|value| self.position(1.0, value).1), 0.05, least)?;
        Some(Frame {
            sizes: Axis {
                ends: sizes,
                ticks: if self.is_linear() {
                    round_ticks(sizes)
                } else {
                    size_ticks(sizes, self.size_unit, measured)
                },
            },
            values: Axis {
                ends: values,
                ticks: self.value_ticks(values),
            },
        })
    }

    /// `2²⁰`, or `16,384` if the whole axis is small; `256 MiB`, `10 ms`. As in the tables.
    pub fn size_label(&self, log2: f64, largest: f64) -> String {
        let size = log2.exp2();
        match self.size_unit {
            _ if self.is_linear() => units::time_fine(log2),
            Unit::Time => short(&units::time(size)),
            Unit::Bytes => self.size_unit.write(size.round() as u64),
            _ if size < 0.9 => String::new(),
            // A group whose largest size is unknown, as in a comparison.
            Unit::Count if largest <= 19.5 => units::size(size.round() as u64),
            _ if log2 < 9.5 || log2.fract() != 0.0 => units::size(size.round() as u64),
            _ => format!("2{}", units::superscript(log2.round() as u32)),
        }
    }

    /// `10 µs`, `100 GB/s` or `+2.00 %`.
    pub fn value_label(&self, log10: f64) -> String {
        let value = 10f64.powf(log10);
        let inverse = (1.0 / value).round();
        match self.quantity {
            Quantity::Time => short(&units::time(value)),
            Quantity::Rate(unit) => short(&units::rate(value, unit)),
            Quantity::Ratio => units::change(value),
            Quantity::Difference if log10 > 0.0 => format!("+{}", short(&units::time(log10))),
            Quantity::Difference => short(&units::time(log10)),
            Quantity::Speedup if inverse > 1.0 && (inverse * value - 1.0).abs() < 1e-9 => {
                format!("1/{}", units::count(inverse))
            }
            Quantity::Speedup => short(&format!("{} ×", units::number(value))).replace(' ', ""),
        }
    }

    /// The logarithms of round values, three to about ten.
    fn value_ticks(&self, (low, high): (f64, f64)) -> Vec<f64> {
        if self.is_linear() {
            return round_ticks((low, high));
        }
        if high - low > 3.0 {
            return steps(low, high, 9);
        }
        let decades = low.floor() as i32..=high.ceil() as i32;
        let values = decades.flat_map(|d| [1.0_f64, 2.0, 5.0].map(|f| f64::from(d) + f.log10()));
        let ticks: Vec<f64> = values.filter(|v| (low..=high).contains(v)).collect();
        // Round percentages around a ratio of 1 are round ratios.
        let is_near_one = self.quantity == Quantity::Ratio && low > -0.5 && high < 0.5;
        if ticks.len() > 2 && !is_near_one {
            return ticks;
        }
        let ends = [low, high].map(|end| 10f64.powf(end).min(f64::MAX));
        let ticks = round_ticks(ends.into()).into_iter();
        ticks.map(f64::log10).collect()
    }
}

/// The lowest and highest finite value, with a share of room at both ends and at least some range.
/// `None` if there are none.
fn bounds(values: impl Iterator<Item = f64>, room: f64, least: f64) -> Option<(f64, f64)> {
    let finite = values.filter(|v| v.is_finite());
    let ends = finite.fold(None, |ends, v| match ends {
        None => Some((v, v)),
        Some((low, high)) => Some((f64::min(low, v), f64::max(high, v))),
    });
    let (low, high) = ends?;
    let room = (room * (high - low)).max((least - (high - low)) / 2.0);
    Some((low - room, high + room))
}

/// The smallest of 1, 2 and 5 times a power of ten that is not below `least`.
pub fn round_step(least: f64) -> f64 {
    let decade = 10f64.powf(least.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade);
    steps
        .into_iter()
        .find(|step| *step >= least)
        .unwrap_or(decade)
}

/// Round numbers in a range, about eight.
fn round_ticks((low, high): (f64, f64)) -> Vec<f64> {
    let step = round_step((high - low) / 8.0);
    let steps = (low / step).ceil() as i64..=(high / step).floor() as i64;
    steps.map(|i| i as f64 * step).collect()
}

/// Whole numbers in a range, every first, second, third … so that there are at most `most`.
fn steps(low: f64, high: f64, most: usize) -> Vec<f64> {
    let (first, last) = (low.ceil() as i64, high.floor() as i64);
    let step = ((last - first).max(0) as usize / most + 1) as i64;
    let multiples = (first..=last).filter(|v| v.rem_euclid(step) == 0);
    multiples.map(|v| v as f64).collect()
}

/// Powers of two or of ten, or, if there are fewer than three, the measured sizes that are far enough apart.
fn size_ticks((low, high): (f64, f64), unit: Unit, mut measured: Vec<f64>) -> Vec<f64> {
    let per = if unit == Unit::Time {
        std::f64::consts::LOG2_10
    } else {
        1.0
    };
    let powers = steps(low / per, high / per, 9);
    if powers.len() > 2 {
        return powers.into_iter().map(|tick| tick * per).collect();
    }
    measured.sort_by(f64::total_cmp);
    measured.dedup_by(|next, last| *next - *last < (high - low) / 9.0);
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(quantity: Quantity, dots: Vec<Dot>) -> Plot {
        Plot {
            title: String::new(),
            size_label: String::new(),
            size_unit: Unit::Count,
            quantity,
            curves: vec![Curve::joined("", Paint::Cpu, dots)],
            limits: Vec::new(),
        }
    }

    #[test]
    fn short_axes_have_lines() {
        let dots = vec![Dot::exact(7168.0, 2.2e6), Dot::exact(10240.0, 4.5e6)];
        let plot = plot(Quantity::Time, dots);
        let Frame { sizes, values } = plot.frame().unwrap();
        let sizes = sizes.ticks.iter().map(|at| plot.size_label(*at, 13.5));
        assert_eq!(Vec::from_iter(sizes), ["7,168", "10,240"]);
        let values = values.ticks.iter().map(|at| plot.value_label(*at));
        let expected = ["2.5 ms", "3 ms", "3.5 ms", "4 ms", "4.5 ms"];
        assert_eq!(Vec::from_iter(values), expected);
    }

    #[test]
    fn labels_are_those_of_the_tables() {
        let plot = |quantity| plot(quantity, Vec::new());
        let time = plot(Quantity::Time);
        assert_eq!(time.value_label(3.0), "1 µs");
        assert_eq!(time.value_label(-299.0), "1e-299 ns");
        assert_eq!(plot(Quantity::Ratio).value_label(0.0086), "+2.00 %");
        assert_eq!(plot(Quantity::Speedup).value_label(-1.0), "1/10");
        assert_eq!(
            plot(Quantity::Speedup).value_label(1.05f64.log10()),
            "1.05×"
        );
        assert_eq!(time.size_label(3f64.log2() + 20.0, 30.0), "3,145,728");
        assert_eq!(time.size_label(20.0, 30.0), "2²⁰");
        assert_eq!(time.size_label(10.0, 12.0), "1,024");
    }
}
