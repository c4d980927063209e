//! Plots as SVG, by plotters: curves over sizes with both axes logarithmic, in the colours of
//! [`ink`](crate::ink).

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::ink::{Paint, css};
use crossover_results::model::group_info::Unit;
use crossover_words::text::{shortened, visible};
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
    /// Its colour.
    pub paint: Paint,
    /// Sizes ascending.
    pub dots: Vec<Dot>,
}

/// A horizontal line: a limit.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Written at its end.
    pub label: String,
    /// In the plot's units.
    pub value: f64,
    /// Its colour.
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

const WIDTH: u32 = 800;
const HEIGHT: u32 = 400;
const RIGHT: u32 = 226;
/// Distance between two labels.
const ROW: i32 = 15;
/// Letters of a label that fit in the margin.
const LETTERS: usize = 31;

type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn colour(paint: Paint) -> RGBColor {
    let hex = u32::from_str_radix(&paint.light()[1..], 16).unwrap_or(0);
    RGBColor((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}

/// Both axes of a plot.
#[derive(Debug)]
pub struct Frame {
    /// Positions are logarithms to base 2.
    pub sizes: Axis,
    /// Positions are logarithms to base 10.
    pub values: Axis,
}

/// An axis of logarithms with its lines.
#[derive(Debug)]
pub struct Axis {
    /// The first and the last position.
    pub ends: (f64, f64),
    /// The positions of its lines.
    pub ticks: Vec<f64>,
}

impl From<Axis> for Range<f64> {
    fn from(axis: Axis) -> Self {
        axis.ends.0..axis.ends.1
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let share = (value - self.ends.0) / (self.ends.1 - self.ends.0);
        first + (share.clamp(0.0, 1.0) * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.ends.0..self.ends.1
    }
}

impl Plot {
    /// The range and the lines of both axes; `None` where no curve has a point.
    pub fn frame(&self) -> Option<Frame> {
        let curves = self.curves.iter().flat_map(|curve| &curve.dots);
        let dots: Vec<&Dot> = curves.filter(|dot| dot.is_sound()).collect();
        let sizes = bounds(dots.iter().map(|dot| dot.size.log2()), 0.03, 1.0)?;
        let ends = dots.iter().flat_map(|dot| [dot.low, dot.value, dot.high]);
        let values = ends.chain(self.limits.iter().map(|limit| limit.value));
        let least = if self.quantity == Quantity::Ratio {
            1e-3
        } else {
            0.1
        };
        let values = bounds(values.map(f64::log10), 0.05, least)?;
        Some(Frame {
            sizes: Axis {
                ends: sizes,
                ticks: size_ticks(sizes, self.size_unit),
            },
            values: Axis {
                ends: values,
                ticks: self.value_ticks(values),
            },
        })
    }

    /// The plot as a file of its own, light and dark; `None` where no curve has a point.
    pub fn svg(&self) -> Option<String> {
        let frame = self.frame()?;
        let mut plot = self.clone();
        for curve in &mut plot.curves {
            curve.dots.retain(Dot::is_sound);
        }
        plot.curves.retain(|curve| !curve.dots.is_empty());
        let mut svg = String::new();
        // Writing into a string cannot fail.
        plot.draw(&mut svg, frame).ok()?;
        let at = svg.find('>')? + 1;
        svg.insert_str(at, &format!("<style>{}</style>", css()));
        Some(svg)
    }

    fn draw(&self, svg: &mut String, frame: Frame) -> Drawn {
        let area = SVGBackend::with_string(svg, (WIDTH, HEIGHT)).into_drawing_area();
        area.fill(&colour(Paint::Paper))?;
        let text = |size: i32, paint| ("sans-serif", size).into_font().color(&colour(paint));
        let title = shortened(&visible(&self.title), 80);
        let sizes = frame.sizes.ends;
        let mut chart = ChartBuilder::on(&area)
            .caption(title, text(17, Paint::Ink))
            .margin(10)
            .margin_right(RIGHT)
            .x_label_area_size(44)
            .y_label_area_size(76)
            .build_cartesian_2d(frame.sizes, frame.values)?;
        chart
            .configure_mesh()
            .max_light_lines(0)
            .bold_line_style(colour(Paint::Grid))
            .axis_style(colour(Paint::Muted))
            .label_style(text(13, Paint::Muted))
            .axis_desc_style(text(13, Paint::Ink))
            .x_desc(visible(&self.size_label))
            .x_label_formatter(&|v| self.size_label(*v, sizes.1))
            .y_label_formatter(&|v| self.value_label(*v))
            .draw()?;
        for limit in &self.limits {
            let y = limit.value.log10();
            let line = [(sizes.0, y), (sizes.1, y)];
            chart.draw_series(LineSeries::new(line, colour(limit.paint)))?;
        }
        for curve in &self.curves {
            let ink = colour(curve.paint);
            let upper = curve
                .dots
                .iter()
                .map(|dot| (dot.size.log2(), dot.high.log10()));
            let lower = curve
                .dots
                .iter()
                .rev()
                .map(|dot| (dot.size.log2(), dot.low.log10()));
            let band: Vec<(f64, f64)> = upper.chain(lower).collect();
            chart.draw_series([Polygon::new(band, ink.mix(0.2))])?;
            let line = || {
                curve
                    .dots
                    .iter()
                    .map(|dot| (dot.size.log2(), dot.value.log10()))
            };
            chart.draw_series(LineSeries::new(line(), ink.stroke_width(2)))?;
            let points = line().map(|point| Circle::new(point, 3, ink.filled()));
            chart.draw_series(points)?;
        }
        self.labels(&area, |size, value| {
            chart.backend_coord(&(size.log2(), value.log10()))
        })?;
        area.present()?;
        Ok(())
    }

    /// The names of curves and limits, right of their ends, without overlaps.
    fn labels(
        &self,
        area: &DrawingArea<SVGBackend, plotters::coord::Shift>,
        place: impl Fn(f64, f64) -> (i32, i32),
    ) -> Drawn {
        let curves = self.curves.iter().filter_map(|curve| {
            let last = curve.dots.last()?;
            Some((&curve.label, curve.paint, place(last.size, last.value)))
        });
        let edge = (WIDTH - RIGHT) as i32;
        let limits = self.limits.iter().map(|limit| {
            let (_, y) = place(1.0, limit.value);
            (&limit.label, limit.paint, (edge, y))
        });
        let mut labels: Vec<_> = curves.chain(limits).collect();
        labels.sort_by_key(|(.., (_, y))| *y);
        let wanted: Vec<i32> = labels.iter().map(|(.., (_, y))| *y).collect();
        let rows = apart(&wanted, (30, HEIGHT as i32 - 50));
        for ((label, paint, at), row) in labels.into_iter().zip(rows) {
            let ink = colour(paint);
            area.draw(&PathElement::new([at, (edge + 8, row)], ink))?;
            let style = ("sans-serif", 13).into_font().color(&ink);
            let style = style.pos(Pos::new(HPos::Left, VPos::Center));
            let label = shortened(&visible(label), LETTERS);
            area.draw(&Text::new(label, (edge + 12, row), style))?;
        }
        Ok(())
    }

    /// `2²⁰`, or `16,384` if the whole axis is small; `256 MiB`, `10 ms`. As in the tables.
    pub fn size_label(&self, log2: f64, largest: f64) -> String {
        let size = log2.exp2();
        match self.size_unit {
            Unit::Time => short(&units::time(size)),
            Unit::Bytes => self.size_unit.write(size.round() as u64),
            _ if size < 0.9 => String::new(),
            // A group whose largest size is unknown, as in a comparison.
            Unit::Count if largest <= 19.5 => units::size(size.round() as u64),
            _ if log2 < 9.5 => units::size(size.round() as u64),
            _ => format!("2{}", units::superscript(log2.round() as u32)),
        }
    }

    /// `10 µs`, `100 GB/s` or `+2.00 %`.
    pub fn value_label(&self, log10: f64) -> String {
        // 10^3 is not exactly 1000 in floating point.
        let value = match 10f64.powf(log10) {
            v if v >= 1.0 => v.round(),
            v => v,
        };
        match self.quantity {
            Quantity::Time => short(&units::time(value)),
            Quantity::Rate(unit) => short(&units::rate(value, unit)),
            Quantity::Ratio => units::change(10f64.powf(log10)),
            Quantity::Speedup if (1e-12..0.95).contains(&value) => {
                format!("1/{}", units::count(1.0 / value))
            }
            Quantity::Speedup => units::factor(value),
        }
    }

    /// The logarithms of round values, about ten at most.
    fn value_ticks(&self, (low, high): (f64, f64)) -> Vec<f64> {
        if self.quantity == Quantity::Ratio && low > -0.5 && high < 0.5 {
            // Round percentages around a ratio of 1.
            let percent = |log10: f64| 100.0 * (10f64.powf(log10) - 1.0);
            let step = round_step((percent(high) - percent(low)) / 8.0);
            let (first, last) = ((percent(low) / step).ceil(), (percent(high) / step).floor());
            let steps = (first as i64)..=(last as i64);
            return steps
                .map(|i| (1.0 + i as f64 * step / 100.0).log10())
                .collect();
        }
        if high - low > 2.5 {
            return steps(low, high, 9);
        }
        let decades = low.floor() as i32..=high.ceil() as i32;
        let all = decades.flat_map(|d| [1.0_f64, 2.0, 5.0].map(|f| f64::from(d) + f.log10()));
        all.filter(|v| (low..=high).contains(v)).collect()
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

/// Whole numbers in a range, every first, second, third … so that there are at most `most`.
fn steps(low: f64, high: f64, most: usize) -> Vec<f64> {
    let (first, last) = (low.ceil() as i64, high.floor() as i64);
    let step = ((last - first).max(0) as usize / most + 1) as i64;
    let all = (first..=last).filter(|v| v.rem_euclid(step) == 0);
    all.map(|v| v as f64).collect()
}

fn size_ticks((low, high): (f64, f64), unit: Unit) -> Vec<f64> {
    let per = if unit == Unit::Time {
        std::f64::consts::LOG2_10
    } else {
        1.0
    };
    steps(low / per, high / per, 9)
        .into_iter()
        .map(|tick| tick * per)
        .collect()
}

/// Places for labels that should be at these heights, ascending: as near as possible, a row apart, and
/// between top and bottom if they fit.
fn apart(wanted: &[i32], (top, bottom): (i32, i32)) -> Vec<i32> {
    let mut rows = wanted.to_vec();
    let mut least = top + ROW / 2;
    for row in &mut rows {
        *row = (*row).max(least);
        least = *row + ROW;
    }
    let mut most = bottom - ROW / 2;
    for row in rows.iter_mut().rev() {
        *row = (*row).min(most);
        most = *row - ROW;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_range_is_drawn_with_few_lines_and_short_labels() {
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
        let sizes = [1.0, 3.0, 1e12, u64::MAX as f64];
        let quantities = [
            Quantity::Time,
            Quantity::Rate("FLOP/s"),
            Quantity::Ratio,
            Quantity::Speedup,
        ];
        for (i, quantity) in quantities.into_iter().enumerate() {
            for (low, high) in values.iter().flat_map(|a| values.map(|b| (*a, b))) {
                let dot = |size, value| Dot {
                    size,
                    value,
                    low: value,
                    high: value,
                };
                let plot = Plot {
                    title: "a <b>".into(),
                    size_label: "size".into(),
                    size_unit: [Unit::Count, Unit::Bytes, Unit::Time, Unit::Powers][i],
                    quantity,
                    curves: vec![Curve {
                        label: "one".into(),
                        paint: Paint::Cpu,
                        dots: vec![dot(1.0, low), dot(sizes[i], high)],
                    }],
                    limits: Vec::new(),
                };
                let place = format!("{quantity:?} from {low:e} to {high:e}");
                match plot.svg() {
                    Some(svg) => {
                        assert!(svg.contains("a &lt;b&gt;") && svg.len() < 20_000, "{place}");
                        let lines = svg.matches("<text").count();
                        assert!(lines < 30, "{place}: {lines} texts");
                    }
                    None => assert!(!low.is_normal() && !high.is_normal(), "{place}"),
                }
            }
        }
    }

    #[test]
    fn an_axis_leads_from_its_first_pixel_to_its_last_and_no_further() {
        let axis = Axis {
            ends: (1.0, 3.0),
            ticks: Vec::new(),
        };
        let pixels = [0.0, 1.0, 1.5, 3.0, 9.0].map(|value| axis.map(&value, (10, 110)));
        assert_eq!(pixels, [10, 10, 35, 110, 110]);
    }

    #[test]
    fn labels_are_those_of_the_tables() {
        let plot = |quantity| Plot {
            title: String::new(),
            size_label: String::new(),
            size_unit: Unit::Count,
            quantity,
            curves: Vec::new(),
            limits: Vec::new(),
        };
        let time = plot(Quantity::Time);
        assert_eq!(time.value_label(3.0), "1 µs");
        assert_eq!(time.value_label(-299.0), "1e-299 ns");
        assert_eq!(plot(Quantity::Ratio).value_label(0.0086), "+2.00 %");
        assert_eq!(plot(Quantity::Speedup).value_label(-1.0), "1/10");
        assert_eq!(time.size_label(20.0, 30.0), "2²⁰");
        assert_eq!(time.size_label(10.0, 12.0), "1,024");
    }

    #[test]
    fn no_label_lies_on_another() {
        for wanted in [
            &[50, 50, 50, 51, 52][..],
            &[0, 0, 0],
            &[298, 299, 300, 300],
            &[],
        ] {
            let rows = apart(wanted, (0, 300));
            assert!(rows.windows(2).all(|w| w[1] - w[0] >= ROW), "{rows:?}");
            assert!(rows.iter().all(|r| (7..=293).contains(r)), "{rows:?}");
        }
        assert_eq!(apart(&[10, 100, 200], (0, 300)), [10, 100, 200]);
    }
}
