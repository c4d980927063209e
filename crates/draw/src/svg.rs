//! Plots as SVG, by plotters, in the colours of [`ink`](crate::ink).

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::ink::{Paint, css};
use crate::plot::{Axis, Frame, Plot, Stroke};
use crossover_words::text::{shortened, visible};

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
    /// The plot as a file of its own, light and dark; `None` where no curve has a point.
    pub fn svg(&self) -> Option<String> {
        let frame = self.frame()?;
        let mut plot = self.clone();
        for curve in &mut plot.curves {
            curve.dots.retain(|dot| self.has(dot));
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
            let (_, y) = self.position(1.0, limit.value);
            let line = [(sizes.0, y), (sizes.1, y)];
            chart.draw_series(LineSeries::new(line, colour(limit.paint)))?;
        }
        for curve in &self.curves {
            let ink = colour(curve.paint);
            let dots = || curve.dots.iter();
            let line = || dots().map(|dot| self.position(dot.size, dot.value));
            if curve.stroke != Stroke::Dots {
                let upper = dots().map(|dot| self.position(dot.size, dot.high));
                let lower = dots().rev().map(|dot| self.position(dot.size, dot.low));
                let band: Vec<(f64, f64)> = upper.chain(lower).collect();
                chart.draw_series([Polygon::new(band, ink.mix(0.2))])?;
                chart.draw_series(LineSeries::new(line(), ink.stroke_width(2)))?;
            }
            if curve.stroke != Stroke::Line {
                let points = line().map(|point| Circle::new(point, 3, ink.filled()));
                chart.draw_series(points)?;
            }
        }
        self.labels(&area, |size, value| {
            chart.backend_coord(&self.position(size, value))
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
        let rows = spread_labels(&wanted, (30, HEIGHT as i32 - 50));
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
}

/// Places for labels that should be at these heights, ascending: as near as possible, a row apart, and
/// between top and bottom if they fit.
fn spread_labels(wanted: &[i32], (top, bottom): (i32, i32)) -> Vec<i32> {
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
    use std::collections::BTreeSet;

    use super::*;
    use crate::plot::{Curve, Dot, Quantity};
    use crossover_results::model::group_info::Unit;

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
            Quantity::Difference,
        ];
        for (i, quantity) in quantities.into_iter().enumerate() {
            for (low, high) in values.iter().flat_map(|a| values.map(|b| (*a, b))) {
                let plot = Plot {
                    title: "a <b>".into(),
                    size_label: "size".into(),
                    size_unit: [Unit::Count, Unit::Bytes, Unit::Time, Unit::Powers][i % 4],
                    quantity,
                    curves: vec![Curve::joined(
                        "one",
                        Paint::Cpu,
                        vec![Dot::exact(1.0, low), Dot::exact(sizes[i % 4], high)],
                    )],
                    limits: Vec::new(),
                };
                let place = format!("{quantity:?} from {low:e} to {high:e}");
                match plot.svg() {
                    Some(svg) => {
                        let ticks = plot.frame().unwrap().values.ticks;
                        let labels = ticks.iter().map(|at| plot.value_label(*at));
                        let labels = BTreeSet::from_iter(labels);
                        // Far from their middle, the others need more digits than they have.
                        let is_change = matches!(quantity, Quantity::Ratio | Quantity::Difference);
                        let differ = labels.len() > 2 && labels.len() == ticks.len();
                        assert!(differ || is_change, "{place}: {labels:?}");
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
    fn no_label_lies_on_another() {
        for wanted in [
            &[50, 50, 50, 51, 52][..],
            &[0, 0, 0],
            &[298, 299, 300, 300],
            &[],
        ] {
            let rows = spread_labels(wanted, (0, 300));
            assert!(rows.windows(2).all(|w| w[1] - w[0] >= ROW), "{rows:?}");
            assert!(rows.iter().all(|r| (7..=293).contains(r)), "{rows:?}");
        }
        assert_eq!(spread_labels(&[10, 100, 200], (0, 300)), [10, 100, 200]);
    }
}
