//! What is drawn.

use crate::ink::Family;
use crossover_results::model::group_info::Unit;
use crossover_words::Clock;

/// One point of a curve, in the plot's units. `low` and `high` bound its confidence band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dot {
    /// Problem size.
    pub size: f64,
    /// Time in ns, a rate per second, or a ratio.
    pub value: f64,
    /// Lower end of the band.
    pub low: f64,
    /// Upper end of the band.
    pub high: f64,
}

/// One curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// For the legend.
    pub label: String,
    /// CPU or GPU hue.
    pub family: Family,
    /// Shade and marker, counted within the family.
    pub index: usize,
    /// Line style.
    pub clock: Option<Clock>,
    /// Thin line and hollow markers: figures of another machine.
    pub other: bool,
    /// Whether a line joins the dots, with a band around it.
    pub joined: bool,
    /// Sizes ascending.
    pub dots: Vec<Dot>,
}

/// A crossover on the plot.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Where.
    pub size: f64,
    /// Value of the curves there, for the ring; `None` without one.
    pub value: Option<f64>,
    /// The size in words.
    pub at: String,
    /// Which curve crosses there: how its label begins.
    pub of: String,
}

/// A horizontal line: a limit.
#[derive(Clone, Debug)]
pub struct Limit {
    /// Written at its end.
    pub label: String,
    /// In the plot's units.
    pub value: f64,
    /// CPU or GPU hue.
    pub family: Family,
}

/// What the vertical axis shows.
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

/// One plot, both axes logarithmic.
#[derive(Clone, Debug)]
pub struct Plot {
    /// Title.
    pub title: String,
    /// What the sizes count.
    pub size_label: String,
    /// How the sizes are written.
    pub size_unit: Unit,
    /// The vertical axis.
    pub quantity: Quantity,
    /// At least one with a dot, else nothing is drawn.
    pub curves: Vec<Curve>,
    /// Rows kept free above for marks, so that two plots side by side line up.
    pub rows: usize,
    /// Whether the legend says which line is of which clock.
    pub clocks: bool,
    /// Crossovers, at most `rows`, ascending: so no label runs across the line of another.
    pub marks: Vec<Mark>,
    /// Limits.
    pub limits: Vec<Limit>,
}

impl Plot {
    /// A plot of curves alone, whose legend has their clocks.
    pub fn of(title: String, size: (&str, Unit), quantity: Quantity, curves: Vec<Curve>) -> Self {
        let (label, unit) = size;
        Self {
            title,
            size_label: label.to_owned(),
            size_unit: unit,
            quantity,
            curves,
            rows: 0,
            clocks: true,
            marks: Vec::new(),
            limits: Vec::new(),
        }
    }
}

/// How much room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A screen or a printed page.
    Wide,
    /// A phone.
    Narrow,
}
