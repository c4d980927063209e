//! A comparison as one self-contained HTML page: the table, then both curves and the change
//! a size of every implementation.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use plotters::prelude::*;

use crate::compare::comparison::Comparison;
use crate::compare::judge::Verdict;
use crate::compare::rows::Row;
use crate::compare::show;

type PlotError = Box<dyn std::error::Error>;

/// Colours that hold on a light and a dark page; lines and grid are grey for the same reason.
const BASE: RGBColor = RGBColor(140, 140, 140);
const NEW: RGBColor = RGBColor(31, 135, 229);
const GRID: RGBColor = RGBColor(128, 128, 128);
const SIZE: (u32, u32) = (520, 300);

const STYLE: &str = "
:root{color-scheme:light dark;--line:#8884;--slower:#d33;--faster:#2a2;--unsure:#b80}
body{font:15px/1.5 system-ui,sans-serif;max-width:76rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:left}
td.n,th.n{text-align:right;white-space:nowrap}
.slower{color:var(--slower);font-weight:600}.faster{color:var(--faster);font-weight:600}
.unsure{color:var(--unsure)}.wide{overflow-x:auto}
figure{margin:1rem 0;display:flex;flex-wrap:wrap;gap:1rem}
figure svg{max-width:100%;height:auto}figure svg text{fill:currentColor}
";

/// The sizes of one implementation.
type Curve<'a> = Vec<(f64, &'a Row)>;

impl Comparison {
    /// The page. A plot that cannot be drawn is replaced by a sentence.
    pub(crate) fn page(&self) -> String {
        let title = format!("{} against {}", self.new.join(", "), self.base.join(", "));
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width,initial-scale=1";
                    title { (title) }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    h1 { (title) }
                    p { strong { (self.summary()) } ". " (self.promise()) "." }
                    @for (heading, lines) in self.remarks() {
                        h2 { (heading) }
                        ul { @for line in lines { li { (line) } } }
                    }
                    h2 { "Benchmarks" }
                    div class="wide" { (self.table()) }
                    @for (name, curve) in self.curves() {
                        h2 id=(name) { (name) }
                        figure {
                            (drawn(times(&curve)))
                            (drawn(changes(&curve, self.threshold)))
                        }
                    }
                }
            }
        }
        .into_string()
    }

    fn table(&self) -> Markup {
        html! {
            table {
                thead { tr {
                    th { "benchmark" } th { "clock" } th class="n" { "base" } th class="n" { "new" }
                    th class="n" { "change" } th class="n" { "interval" }
                    th class="n" { "samples" } th { "verdict" }
                } }
                tbody { @for row in &self.rows { tr {
                    td { (row.id) }
                    td { (row.clock.map_or("unknown", |c| c.name())) }
                    td class="n" { (row.base_ns.map_or_else(String::new, show::time)) }
                    td class="n" { (row.new_ns.map_or_else(String::new, show::time)) }
                    td class="n" { (row.judgement.map_or_else(String::new, |j| show::change(j.ratio))) }
                    td class="n" { (row.judgement.as_ref().map_or_else(String::new, show::interval)) }
                    td class="n" { (show::samples(row)) }
                    td class=(row.verdict.name()) { (show::verdict(row)) }
                } } }
            }
        }
    }

    /// Implementations with at least two sizes on either side.
    fn curves(&self) -> BTreeMap<&str, Curve<'_>> {
        let mut curves: BTreeMap<&str, Curve<'_>> = BTreeMap::new();
        for row in &self.rows {
            if let Some((name, size)) = row.id.rsplit_once('/')
                && let Ok(size) = size.parse::<u64>()
                && size > 0
            {
                curves.entry(name).or_default().push((size as f64, row));
            }
        }
        curves.retain(|_, curve| curve.len() > 1);
        for curve in curves.values_mut() {
            curve.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        curves
    }
}

fn drawn(plot: Result<String, PlotError>) -> Markup {
    match plot {
        Ok(svg) => PreEscaped(svg),
        Err(e) => html! { p { "This plot could not be drawn: " (e) } },
    }
}

fn sizes(curve: &Curve<'_>) -> std::ops::Range<f64> {
    let first = curve.first().map_or(1.0, |p| p.0);
    let last = curve.last().map_or(2.0, |p| p.0);
    first / 1.2..last * 1.2
}

/// A logarithmic axis has a line at every digit; labels at 1, 2 and 5 do not collide.
fn labelled(value: f64) -> bool {
    let digit = value / 10_f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .iter()
        .any(|d| (digit - d).abs() < 0.01)
}

fn size_label(size: &f64) -> String {
    match *size {
        size if !labelled(size) => String::new(),
        size if size >= 1e6 => format!("{size:.0e}"),
        size => format!("{size:.0}"),
    }
}

fn time_label(ns: &f64) -> String {
    if labelled(*ns) {
        show::time(*ns)
    } else {
        String::new()
    }
}

fn times(curve: &Curve<'_>) -> Result<String, PlotError> {
    let side = |of: fn(&Row) -> Option<f64>| -> Vec<(f64, f64)> {
        curve
            .iter()
            .filter_map(|(size, row)| Some((*size, of(row)?)))
            .collect()
    };
    let (base, new) = (side(|r| r.base_ns), side(|r| r.new_ns));
    let all = || base.iter().chain(&new).map(|p| p.1);
    let low = all().fold(f64::INFINITY, f64::min) / 1.5;
    let high = all().fold(0.0, f64::max) * 1.5;

    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .caption("median time by size", ("sans-serif", 15))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(74)
            .build_cartesian_2d(sizes(curve).log_scale(), (low..high).log_scale())?;
        chart
            .configure_mesh()
            .axis_style(GRID)
            .bold_line_style(GRID.mix(0.3))
            .light_line_style(TRANSPARENT)
            .x_desc("size")
            .x_label_formatter(&size_label)
            .y_label_formatter(&time_label)
            .draw()?;
        // The base lies under the new side, wide enough to show where the two agree.
        for (points, colour, width, label) in [(base, BASE, 5, "base"), (new, NEW, 2, "new")] {
            chart
                .draw_series(LineSeries::new(
                    points.iter().copied(),
                    colour.stroke_width(width),
                ))?
                .label(label)
                .legend(move |(x, y)| {
                    PathElement::new([(x, y), (x + 18, y)], colour.stroke_width(width))
                });
            chart.draw_series(
                points
                    .iter()
                    .map(|p| Circle::new(*p, width.min(3), colour.filled())),
            )?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .border_style(TRANSPARENT)
            .draw()?;
        root.present()?;
    }
    Ok(svg)
}

fn changes(curve: &Curve<'_>, threshold: f64) -> Result<String, PlotError> {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let points: Vec<(f64, &Row, [f64; 3])> = curve
        .iter()
        .filter_map(|(size, row)| {
            let j = row.judgement?;
            Some((*size, *row, [j.low, j.ratio, j.high].map(percent)))
        })
        .collect();
    if points.is_empty() {
        return Err("no size is on both sides".into());
    }
    let margin = 300.0 * threshold;
    let low = points.iter().map(|p| p.2[0]).fold(-margin, f64::min) * 1.1;
    let high = points.iter().map(|p| p.2[2]).fold(margin, f64::max) * 1.1;

    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let x = sizes(curve);
        let mut chart = ChartBuilder::on(&root)
            .caption("change by size, with its interval", ("sans-serif", 15))
            .margin(8)
            .x_label_area_size(36)
            .y_label_area_size(60)
            .build_cartesian_2d(x.clone().log_scale(), low..high)?;
        chart
            .configure_mesh()
            .axis_style(GRID)
            .bold_line_style(GRID.mix(0.3))
            .light_line_style(TRANSPARENT)
            .x_desc("size")
            .x_label_formatter(&size_label)
            .y_desc("change of the median, %")
            .draw()?;
        let edge = 100.0 * threshold;
        chart.draw_series([Rectangle::new(
            [(x.start, -edge), (x.end, edge)],
            GRID.mix(0.15).filled(),
        )])?;
        chart.draw_series(points.iter().flat_map(|(size, row, [low, middle, high])| {
            let colour = match row.verdict {
                Verdict::Slower => RGBColor(221, 51, 51),
                Verdict::Faster => RGBColor(34, 160, 34),
                _ => BASE,
            };
            [
                PathElement::new([(*size, *low), (*size, *high)], colour.stroke_width(2))
                    .into_dyn(),
                Circle::new((*size, *middle), 4, colour.filled()).into_dyn(),
            ]
        }))?;
        root.present()?;
    }
    Ok(svg)
}
