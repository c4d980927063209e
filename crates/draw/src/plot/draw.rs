//! Drawing a [`Plot`].

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::ink::{Inks, Paint};
use crate::plot::axis::{self, Axis};
use crate::plot::ends::{self, Names};
use crate::plot::figure::{Curve, Plot, Quantity, Shape};
use crate::plot::legend::{self, Entry, Shows};
use crate::plot::svg::{Drawing, SCALE};
use crossover_words::text::{shortened, visible};

/// What stands at the end of a line.
#[derive(Clone, Copy)]
enum End {
    Curve(usize),
    Limit(usize),
}

/// Markers nearer to each other would cover the line between them, and with it its dashes.
const BETWEEN_MARKERS: i32 = 15 * SCALE;

/// Of a marker, in scaled pixels.
const RADIUS: i32 = 10;

/// The corners of a marker that is not round.
fn corners(index: usize, (x, y): (i32, i32)) -> Vec<(i32, i32)> {
    let r = RADIUS;
    match index % 5 {
        1 => vec![
            (x, y - r - 3),
            (x + r + 2, y + r - 2),
            (x - r - 2, y + r - 2),
        ],
        2 => vec![
            (x - r + 1, y - r + 1),
            (x + r - 1, y - r + 1),
            (x + r - 1, y + r - 1),
            (x - r + 1, y + r - 1),
        ],
        3 => vec![
            (x, y - r - 4),
            (x + r + 4, y),
            (x, y + r + 4),
            (x - r - 4, y),
        ],
        _ => vec![
            (x, y + r + 3),
            (x + r + 2, y - r + 2),
            (x - r - 2, y - r + 2),
        ],
    }
}

/// The points that get a marker: the ends, and between them those that leave the line to be seen.
fn apart(points: &[(i32, i32)]) -> Vec<(i32, i32)> {
    let mut kept: Vec<(i32, i32)> = Vec::new();
    let far = |a: (i32, i32), b: (i32, i32)| {
        (a.0 - b.0).abs() >= BETWEEN_MARKERS || (a.1 - b.1).abs() >= BETWEEN_MARKERS
    };
    for point in points {
        if kept.last().is_none_or(|last| far(*last, *point)) {
            kept.push(*point);
        }
    }
    if let Some(last) = points.last()
        && kept.last() != Some(last)
    {
        kept.push(*last);
    }
    kept
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Drawn<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Sizes in px before scaling.
struct Layout {
    width: i32,
    /// Height of the plotting area.
    height: i32,
    left: i32,
    right: i32,
    font: i32,
    ticks: (usize, usize),
}

impl Shape {
    fn layout(self) -> Layout {
        match self {
            Shape::Wide => Layout {
                width: 700,
                height: 330,
                left: 92,
                right: 18,
                font: 12,
                ticks: (9, 9),
            },
            Shape::Narrow => Layout {
                width: 372,
                height: 270,
                left: 90,
                right: 12,
                font: 12,
                ticks: (5, 7),
            },
        }
    }
}

const TITLE: i32 = 30;
const MARK_ROW: i32 = 17;
const BELOW: i32 = 48;

impl Plot {
    /// The plot as SVG for a page; `None` when no curve has a point.
    pub fn svg(&self, shape: Shape) -> Option<String> {
        Some(self.drawing(shape)?.inline())
    }

    /// The plot drawn, for a page or as a file; `None` when no curve has a point.
    pub fn drawing(&self, shape: Shape) -> Option<Drawing> {
        let mut layout = shape.layout();
        let sizes = Axis::sizes(self, layout.ticks.0)?;
        let values = Axis::values(self, layout.ticks.1)?;
        let names = Names::of(self, shape);
        layout.right = layout.right.max(ends::margin(self, names, shape));
        let (entries, legend) = legend::layout(self, names, layout.width - 24);
        // On a phone plots stand below each other: nothing has to line up.
        let rows = match shape {
            Shape::Wide => self.rows.max(self.marks.len()),
            Shape::Narrow => self.marks.len(),
        };
        let top = TITLE + MARK_ROW * rows as i32 + 6;
        let height = top + layout.height + BELOW + legend + 10;
        let mut canvas = Canvas {
            plot: self,
            layout,
            sizes,
            values,
            top,
            names,
            inks: Inks::default(),
        };
        let mut svg = String::new();
        let size = (canvas.layout.width * SCALE, height * SCALE);
        {
            let area = SVGBackend::with_string(&mut svg, (size.0 as u32, size.1 as u32))
                .into_drawing_area();
            // Writing into a string cannot fail, and the layout is never empty.
            canvas.draw(&area, &entries).ok()?;
            area.present().ok()?;
        }
        Drawing::new(&self.title, size, &svg, canvas.inks)
    }
}

struct Canvas<'p> {
    plot: &'p Plot,
    layout: Layout,
    sizes: Axis,
    values: Axis,
    top: i32,
    names: Names,
    inks: Inks,
}

impl Canvas<'_> {
    fn draw(&mut self, area: &Area, entries: &[Entry]) -> Drawn {
        let title = self.plot.title.clone();
        let size = title_size(&title, self.layout.width - 24);
        self.text(area, &title, (12, 18), Paint::Ink, size, HPos::Left, true)?;
        self.grid(area)?;
        self.limits(area)?;
        let curves = &self.plot.curves;
        for curve in curves {
            self.band(area, curve)?;
        }
        for curve in curves {
            let at: Vec<(i32, i32)> = curve
                .dots
                .iter()
                .map(|d| (self.x(d.size.log2()), self.y(d.value.log10())))
                .collect();
            if curve.joined {
                self.line(area, curve, &at)?;
            }
            if self.plot.quantity == Quantity::Ratio {
                self.whiskers(area, curve)?;
            }
            self.markers(area, curve, &apart(&at))?;
        }
        self.ends(area)?;
        self.marks(area)?;
        let corner = (12, self.top + self.layout.height + BELOW);
        for entry in entries {
            self.entry(area, entry, corner)?;
        }
        Ok(())
    }

    /// Position in scaled pixels of a logarithm of a size; at the edge what lies beyond.
    fn x(&self, log2: f64) -> i32 {
        let width = f64::from((self.layout.width - self.layout.left - self.layout.right) * SCALE);
        let t = (log2 - self.sizes.from) / (self.sizes.to - self.sizes.from);
        let t = t.clamp(0.0, 1.0);
        self.layout.left * SCALE + (t * width).round() as i32
    }

    fn y(&self, log10: f64) -> i32 {
        let height = f64::from(self.layout.height * SCALE);
        let t = (log10 - self.values.from) / (self.values.to - self.values.from);
        let t = t.clamp(0.0, 1.0);
        self.top * SCALE + ((1.0 - t) * height).round() as i32
    }

    #[allow(clippy::too_many_arguments)]
    fn text(
        &mut self,
        area: &Area,
        text: &str,
        at: (i32, i32),
        role: Paint,
        size: i32,
        side: HPos,
        bold: bool,
    ) -> Drawn {
        let color = self.inks.solid(role);
        // The backend divides by 1.24 on its way to pixels.
        let size = f64::from(size * SCALE) * 1.24;
        let style = if bold {
            FontStyle::Bold
        } else {
            FontStyle::Normal
        };
        let font = FontDesc::new(FontFamily::SansSerif, size, style);
        let style = font.color(&color).pos(Pos::new(side, VPos::Center));
        let at = (at.0 * SCALE, at.1 * SCALE);
        area.draw(&Text::new(visible(text), at, style))?;
        Ok(())
    }

    fn stroke(&mut self, area: &Area, points: Vec<(i32, i32)>, role: Paint, width: u32) -> Drawn {
        let color = self.inks.solid(role);
        area.draw(&PathElement::new(points, color.stroke_width(width)))?;
        Ok(())
    }

    fn grid(&mut self, area: &Area) -> Drawn {
        let layout = &self.layout;
        let (left, right) = (layout.left * SCALE, (layout.width - layout.right) * SCALE);
        let (top, bottom) = (self.top * SCALE, (self.top + layout.height) * SCALE);
        let font = layout.font;
        let middle = (layout.left + layout.width - layout.right) / 2;
        for v in self.values.minor.clone() {
            let y = self.y(v);
            self.stroke(area, vec![(left, y), (right, y)], Paint::Grid, 2)?;
        }
        // All lines, then all labels: on a page like lines that follow each other are one.
        for v in self.values.ticks.clone() {
            let y = self.y(v);
            self.stroke(area, vec![(left, y), (right, y)], Paint::Grid, 4)?;
        }
        for v in self.sizes.ticks.clone() {
            let x = self.x(v);
            self.stroke(area, vec![(x, top), (x, bottom)], Paint::Grid, 4)?;
        }
        for v in self.values.ticks.clone() {
            let y = self.y(v);
            let label = axis::value_label(v, self.plot.quantity);
            let at = (self.layout.left - 8, y / SCALE);
            self.text(area, &label, at, Paint::Muted, font, HPos::Right, false)?;
        }
        for v in self.sizes.ticks.clone() {
            let x = self.x(v);
            let label = axis::size_label(v, self.sizes.to, self.plot.size_unit);
            let at = (x / SCALE, bottom / SCALE + 13);
            self.text(area, &label, at, Paint::Muted, font, HPos::Center, false)?;
        }
        self.stroke(area, vec![(left, bottom), (right, bottom)], Paint::Muted, 5)?;
        let at = (middle, bottom / SCALE + 32);
        let label = self.plot.size_label.clone();
        self.text(area, &label, at, Paint::Ink, font, HPos::Center, false)
    }

    fn limits(&mut self, area: &Area) -> Drawn {
        let left = self.layout.left * SCALE;
        let right = (self.layout.width - self.layout.right) * SCALE;
        for limit in &self.plot.limits {
            let y = self.y(limit.value.log10());
            let role = Paint::Shade(limit.family, 0);
            self.stroke(area, vec![(left, y), (right, y)], role, 5)?;
        }
        Ok(())
    }

    /// What each curve and limit is called, right of its end and clear of the others.
    fn ends(&mut self, area: &Area) -> Drawn {
        let edge = self.layout.width - self.layout.right;
        let most = ((self.layout.right - 22) * 2 / 15).max(1) as usize;
        let mut ends: Vec<(End, String, (i32, i32))> = Vec::new();
        for (i, curve) in self.plot.curves.iter().enumerate() {
            let Some(last) = curve.dots.last() else {
                continue;
            };
            let name = match self.names {
                Names::AtEnds => shortened(&curve.label, most),
                Names::Numbers => (i + 1).to_string(),
                Names::Legend => continue,
            };
            let at = (self.x(last.size.log2()), self.y(last.value.log10()));
            ends.push((End::Curve(i), name, at));
        }
        for (i, limit) in self.plot.limits.iter().enumerate() {
            let at = (edge * SCALE, self.y(limit.value.log10()));
            let name = match self.names {
                Names::Numbers => ends::letter(i),
                _ => shortened(&limit.label, most),
            };
            ends.push((End::Limit(i), name, at));
        }
        ends.sort_by_key(|(_, _, at)| at.1);
        let wanted: Vec<i32> = ends.iter().map(|(_, _, at)| at.1 / SCALE).collect();
        let rows = ends::apart(&wanted, (self.top, self.top + self.layout.height));
        for ((end, name, at), row) in ends.into_iter().zip(rows) {
            let (role, size) = match end {
                End::Curve(i) => (role(&self.plot.curves[i]), 12),
                End::Limit(i) => (Paint::Shade(self.plot.limits[i].family, 0), 11),
            };
            let to = ((edge + 10) * SCALE, row * SCALE);
            self.stroke(area, vec![at, to], role, 3)?;
            let bold = matches!(end, End::Curve(_));
            self.text(area, &name, (edge + 14, row), role, size, HPos::Left, bold)?;
        }
        Ok(())
    }

    fn band(&mut self, area: &Area, curve: &Curve) -> Drawn {
        if curve.dots.len() < 2 || !curve.joined {
            return Ok(());
        }
        let at = |size: f64, value: f64| (self.x(size.log2()), self.y(value.log10()));
        let mut outline: Vec<(i32, i32)> = curve.dots.iter().map(|d| at(d.size, d.high)).collect();
        outline.extend(curve.dots.iter().rev().map(|d| at(d.size, d.low)));
        let color = self.inks.solid(role(curve)).mix(0.22);
        area.draw(&Polygon::new(outline, color.filled()))?;
        Ok(())
    }

    /// The interval of each dot.
    fn whiskers(&mut self, area: &Area, curve: &Curve) -> Drawn {
        for dot in &curve.dots {
            let x = self.x(dot.size.log2());
            let ends = [dot.low, dot.high].map(|value| (x, self.y(value.log10())));
            self.stroke(area, ends.to_vec(), role(curve), 6)?;
        }
        Ok(())
    }

    fn line(&mut self, area: &Area, curve: &Curve, at: &[(i32, i32)]) -> Drawn {
        let width = if curve.other { 5 } else { 8 };
        let color = self.inks.line(role(curve), curve.clock, SCALE as u32);
        area.draw(&PathElement::new(at.to_vec(), color.stroke_width(width)))?;
        Ok(())
    }

    /// Filled for this machine's figures, hollow for another's.
    fn marker(&mut self, area: &Area, curve: &Curve, at: (i32, i32)) -> Drawn {
        self.markers(area, curve, &[at])
    }

    /// Markers that do not touch each other.
    fn markers(&mut self, area: &Area, curve: &Curve, at: &[(i32, i32)]) -> Drawn {
        let color = self.inks.solid(role(curve));
        let paper = self.inks.solid(Paint::Paper);
        let fill = if curve.other { paper } else { color };
        let round = curve.index.is_multiple_of(5);
        for &at in at {
            match round {
                true => area.draw(&Circle::new(at, RADIUS, fill.filled()))?,
                false => area.draw(&Polygon::new(corners(curve.index, at), fill.filled()))?,
            }
        }
        for &at in at.iter().filter(|_| curve.other) {
            let mut closed = corners(curve.index, at);
            closed.push(closed[0]);
            match round {
                true => area.draw(&Circle::new(at, RADIUS, color.stroke_width(5)))?,
                false => area.draw(&PathElement::new(closed, color.stroke_width(5)))?,
            }
        }
        Ok(())
    }

    fn marks(&mut self, area: &Area) -> Drawn {
        let bottom = (self.top + self.layout.height) * SCALE;
        let row = |i: usize| TITLE + MARK_ROW * i as i32 + MARK_ROW / 2;
        let ink = self.inks.solid(Paint::Ink);
        let paper = self.inks.solid(Paint::Paper);
        for (i, mark) in self.plot.marks.iter().enumerate() {
            let x = self.x(mark.size.log2());
            self.stroke(area, vec![(x, row(i) * SCALE), (x, bottom)], Paint::Ink, 4)?;
            if let Some(value) = mark.value {
                let at = (x, self.y(value.log10()));
                area.draw(&Circle::new(at, 22, ink.stroke_width(7)))?;
            }
        }
        for (i, mark) in self.plot.marks.iter().enumerate() {
            let curves = self.plot.curves.iter();
            let number = (self.names == Names::Numbers)
                .then(|| {
                    curves
                        .enumerate()
                        .find(|(_, c)| c.label.starts_with(&mark.of))
                })
                .flatten();
            let label = &match number {
                Some((i, _)) => format!("{}: {}", i + 1, mark.at),
                None => format!("{}: {}", mark.at, mark.of),
            };
            let (x, y) = (self.x(mark.size.log2()) / SCALE, row(i));
            let width = ends::width(label) + 6;
            let fits = x + 6 + width <= self.layout.width;
            let (side, at, left) = match fits {
                true => (HPos::Left, x + 6, x + 3),
                false => (HPos::Right, x - 6, x - 4 - width),
            };
            // Where it had to go left, the line of a mark in a row above runs through it.
            let corners = [
                (left * SCALE, (y - 8) * SCALE),
                ((left + width) * SCALE, (y + 8) * SCALE),
            ];
            area.draw(&Rectangle::new(corners, paper.filled()))?;
            self.text(area, label, (at, y), Paint::Ink, 12, side, false)?;
        }
        Ok(())
    }

    fn entry(&mut self, area: &Area, entry: &Entry, corner: (i32, i32)) -> Drawn {
        let (x, y) = (corner.0 + entry.x, corner.1 + entry.y + legend::ROW / 2);
        let (from, to) = (x * SCALE, (x + legend::SAMPLE - 8) * SCALE);
        let sample = vec![(from, y * SCALE), (to, y * SCALE)];
        let text = match entry.shows {
            Shows::Curve(i) => {
                let curve = &self.plot.curves[i];
                if curve.joined {
                    self.line(area, curve, &sample)?;
                }
                self.marker(area, curve, ((from + to) / 2, y * SCALE))?;
                if self.names == Names::Numbers {
                    let number = (i + 1).to_string();
                    let at = (x + legend::SAMPLE - 4, y);
                    self.text(area, &number, at, role(curve), 12, HPos::Left, true)?;
                }
                Paint::Ink
            }
            Shows::Limit(i) => {
                let role = Paint::Shade(self.plot.limits[i].family, 0);
                self.stroke(area, sample, role, 5)?;
                let at = (x + legend::SAMPLE - 4, y);
                self.text(area, &ends::letter(i), at, role, 12, HPos::Left, true)?;
                Paint::Ink
            }
            Shows::Clock(clock) => {
                let color = self.inks.line(Paint::Muted, clock, SCALE as u32);
                area.draw(&PathElement::new(sample, color.stroke_width(6)))?;
                Paint::Muted
            }
        };
        let number = match (self.names, entry.shows) {
            (Names::Numbers, Shows::Curve(_) | Shows::Limit(_)) => legend::NUMBER,
            _ => 0,
        };
        let at = (x + legend::SAMPLE + number, y);
        self.text(area, &entry.label, at, text, 12, HPos::Left, false)
    }
}

/// Size at which a title fits a width: bold letters are up to 0.62 of their size wide.
fn title_size(title: &str, width: i32) -> i32 {
    let letters = title.chars().take(1000).count().max(1) as i32;
    (width * 100 / (62 * letters)).clamp(9, 15)
}

fn role(curve: &Curve) -> Paint {
    Paint::Shade(curve.family, curve.index)
}
