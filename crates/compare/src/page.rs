//! A comparison as one self-contained HTML page: the table, then for each implementation both
//! curves and the change at each size.

use std::collections::BTreeMap;

use maud::{Markup, PreEscaped, html};

use crate::case::LaunchSlope;
use crate::comparison::Comparison;
use crate::constant::{FEWEST_PAIRS, LaunchesOfProcess};
use crate::forms::{Sheet, is_number};
use crate::rows::BenchmarkRow;
use crossover_draw::ink::Paint;
use crossover_draw::page::shell;
use crossover_draw::plot::{Curve, Dot, Limit, Plot, Quantity, Stroke};
use crossover_results::model::group_info::Unit;
use crossover_results::statistics::mean;
use crossover_words::Clock;
use crossover_words::text::visible;

/// The sizes of one implementation.
type CurveRows<'a> = Vec<(f64, &'a BenchmarkRow)>;

impl Comparison {
    /// The page.
    pub fn page(&self) -> String {
        let title = format!("{} against {}", self.new.join(", "), self.base.join(", "));
        let title = visible(&title);
        let body = html! {
            header { div.wrap {
                p.brand { "crossover compare" }
                h1 { (title) }
                @for doubt in &self.doubts { p.machine { (visible(doubt)) } }
                p.machine { b { (self.summary()) } ". " (self.promise()) }
                @if let Some(layout) = self.layout() { p.machine { (layout) } }
            } }
            main {
                @if !self.failures.is_empty() { section {
                    h2 { "Failed" }
                    ul { @for failure in &self.failures { li { (visible(failure)) } } }
                } }
                @for (heading, lines) in self.remarks(true) {
                    section {
                        h2 { (heading) }
                        ul { @for line in lines { li { (line) } } }
                    }
                }
                section {
                    h2 { "Benchmarks" }
                    div.scroll tabindex="0" role="region" aria-label="Benchmarks" { (self.table()) }
                    @if let Some(note) = self.times_note() { p.note { (note) } }
                }
                @let launches = self.launches();
                @if !launches.is_empty() { section id="launches" {
                    h2 { "How benchmarks follow the launch constant" }
                    div.plots { @for (id, plot) in &launches { figure id=(id) { (drawn(plot)) } } }
                    p.note { (LAUNCHES) }
                } }
                @for (name, sizes) in self.curves() {
                    section id=(visible(name)) {
                        h2 { (visible(name)) }
                        div.plots {
                            figure { (drawn(&times(&sizes))) }
                            figure { (drawn(&changes(&sizes, self.options.threshold))) }
                        }
                    }
                }
            }
        };
        shell(&title, &[], body).into_string()
    }

    fn table(&self) -> Markup {
        let Sheet { header, lines } = Sheet::of(&self.rows);
        let class = |column: &str, of_verdict: String| match column {
            "verdict" => of_verdict,
            column if is_number(column) => "n".to_owned(),
            _ => String::new(),
        };
        html! {
            table {
                thead { tr { @for name in &header { th class=(class(name, String::new())) { (name) } } } }
                tbody { @for (row, cells) in &lines { tr {
                    @for (name, cell) in header.iter().zip(cells) {
                        td class=(class(name, row.verdict.to_string())) { (cell) }
                    }
                } } }
            }
        }
    }

    /// A plot for each clock with corrected benchmarks, from four pairs on.
    fn launches(&self) -> Vec<(String, Plot)> {
        let plots = self.shown_slopes().filter_map(|(clock, slope)| {
            let sides = self.processes.get(&clock)?;
            let id = format!("launches-{clock}");
            (sides[0].len() >= FEWEST_PAIRS).then(|| (id, launches(clock, slope, sides)))
        });
        plots.collect()
    }

    /// Implementations with at least two sizes on either side.
    fn curves(&self) -> BTreeMap<&str, CurveRows<'_>> {
        let mut curves: BTreeMap<&str, CurveRows<'_>> = BTreeMap::new();
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

fn drawn(plot: &Plot) -> Markup {
    html! {
        @match plot.svg() {
            Some(svg) => { (PreEscaped(svg)) }
            None => { p.note { (plot.title) ": no size was measured on both sides." } }
        }
    }
}

const LAUNCHES: &str = "Each point is a process: its empty kernel, and how much longer than in the mean process a \
 launch of its corrected benchmarks took (a mean in which short benchmarks count most). The correction \
 subtracts the line; the band is the standard error of its slope. If the points of one side lie above the line \
 and those of the other below it, many benchmarks changed, or the empty kernel alone.";

fn launches(clock: Clock, slope: &LaunchSlope, sides: &[Vec<LaunchesOfProcess>; 2]) -> Plot {
    let processes = |label, paint, side: &[LaunchesOfProcess]| {
        let dots = side.iter().map(|it| Dot::exact(it.empty_ns, it.longer_ns));
        let mut curve = Curve::joined(label, paint, dots.collect());
        curve.dots.sort_by(|a, b| a.size.total_cmp(&b.size));
        curve.stroke = Stroke::Dots;
        curve
    };
    let both = || sides.iter().flatten();
    let empty = || both().map(|it| it.empty_ns);
    let [middle, longer] = [mean(empty()), mean(both().map(|it| it.longer_ns))];
    let ends = [f64::min, f64::max].map(|end| empty().fold(middle, end));
    let line = [ends[0], middle, ends[1]].map(|empty| {
        let [value, error] = [slope.value, slope.error].map(|it| it * (empty - middle));
        let value = longer + value;
        Dot::new(empty, value, value - error, value + error)
    });
    let slope = format!("slope {:.2} ± {:.2}", slope.value, slope.error);
    let mut line = Curve::joined(slope, Paint::Muted, line.into());
    line.stroke = Stroke::Line;
    let base = processes("base", Paint::Gpu, &sides[0]);
    let new = processes("new", Paint::Cpu, &sides[1]);
    let title = format!("{clock}: time of a launch, difference from the mean process");
    let curves = vec![line, base, new];
    Plot {
        size_label: "empty kernel of the process".to_owned(),
        ..plot(&title, Quantity::Difference, curves, Vec::new())
    }
}

fn times(sizes: &CurveRows<'_>) -> Plot {
    let curve = |label: &str, paint, of: fn(&BenchmarkRow) -> Option<f64>| {
        let dots = sizes
            .iter()
            .filter_map(|&(size, row)| Some(Dot::exact(size, of(row)?)));
        Curve::joined(label, paint, dots.collect())
    };
    let curves = vec![
        curve("base", Paint::Gpu, |row| row.base_ns),
        curve("new", Paint::Cpu, |row| row.new_ns),
    ];
    let (title, quantity) = if sizes.iter().any(|(_, row)| row.is_count) {
        ("median, in the unit of the measurement", Quantity::Rate(""))
    } else {
        ("median time", Quantity::Time)
    };
    plot(title, quantity, curves, Vec::new())
}

fn changes(sizes: &CurveRows<'_>, threshold: f64) -> Plot {
    let dots = sizes.iter().filter_map(|&(size, row)| {
        let judgement = row.judgement?;
        Some(Dot::new(
            size,
            judgement.ratio,
            judgement.low,
            judgement.high,
        ))
    });
    let change = Curve::joined("change, with its interval", Paint::Cpu, dots.collect());
    let limit = |value: f64| Limit {
        label: "threshold".into(),
        value,
        paint: Paint::Muted,
    };
    // A change counts by its logarithm: the threshold lies as far below 1 as above.
    let limits = vec![limit(1.0 + threshold), limit(1.0 / (1.0 + threshold))];
    plot(
        "change of the median",
        Quantity::Ratio,
        vec![change],
        limits,
    )
}

fn plot(title: &str, quantity: Quantity, curves: Vec<Curve>, limits: Vec<Limit>) -> Plot {
    Plot {
        title: title.to_owned(),
        size_label: "size".to_owned(),
        size_unit: Unit::Count,
        quantity,
        curves,
        limits,
    }
}
