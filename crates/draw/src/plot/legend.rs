//! The legend, under the plot and off the data.

use crate::plot::ends::{self, Names};
use crate::plot::figure::Plot;
use crossover_words::Clock;
use crossover_words::text::shortened;

/// Width of the sample of a line, with the gap after it.
pub(super) const SAMPLE: i32 = 34;
/// Width of the number of a curve, with the gap after it.
pub(super) const NUMBER: i32 = 12;
/// Height of a row.
pub(super) const ROW: i32 = 18;

/// One entry and where it goes.
pub(super) struct Entry {
    pub(super) x: i32,
    pub(super) y: i32,
    /// A curve or a limit by its index, or the line of a clock.
    pub(super) shows: Shows,
    pub(super) label: String,
}

#[derive(Clone, Copy)]
pub(super) enum Shows {
    Curve(usize),
    Limit(usize),
    Clock(Option<Clock>),
}

/// Places a row per curve, unless its name stands at its end, in as many columns as fit `width`,
/// then the clocks; returns the entries, relative to the legend's corner, and the legend's height.
pub(super) fn layout(plot: &Plot, names: Names, width: i32) -> (Vec<Entry>, i32) {
    let mut entries = Vec::new();
    let curves = plot.curves.iter().enumerate();
    let curves: Vec<(Shows, String)> = curves
        .filter(|_| names != Names::AtEnds)
        .map(|(i, c)| (Shows::Curve(i), c.label.clone()))
        .collect();
    let limits = plot.limits.iter().enumerate();
    let limits = limits
        .filter(|_| names == Names::Numbers)
        .map(|(i, l)| (Shows::Limit(i), l.label.clone()));
    let curves: Vec<(Shows, String)> = curves.into_iter().chain(limits).collect();
    let height = match curves.is_empty() {
        true => 0,
        false => place(&mut entries, curves, width, 0),
    };
    if !plot.clocks {
        return (entries, height);
    }
    let mut clocks: Vec<Option<Clock>> = plot.curves.iter().map(|c| c.clock).collect();
    clocks.sort_unstable();
    clocks.dedup();
    let clocks = clocks
        .into_iter()
        .map(|c| {
            let name = c.map_or("clock unknown", Clock::name);
            (
                Shows::Clock(c),
                format!("clock: {name}").replace("clock: clock", "clock"),
            )
        })
        .collect();
    let height = place(&mut entries, clocks, width, height + 6);
    (entries, height)
}

fn place(entries: &mut Vec<Entry>, items: Vec<(Shows, String)>, width: i32, top: i32) -> i32 {
    let longest = items.iter().map(|(_, l)| ends::width(l)).max();
    let column = SAMPLE + NUMBER + longest.unwrap_or(0) + 8;
    let columns = (width / column).clamp(1, items.len().max(1) as i32);
    let rows = (items.len() as i32 + columns - 1) / columns;
    let most = ends::letters(width / columns - SAMPLE - NUMBER);
    for (i, (shows, label)) in items.into_iter().enumerate() {
        // Down the columns, so that CPU and GPU each stay together.
        let (at, row) = (i as i32 / rows, i as i32 % rows);
        entries.push(Entry {
            x: at * (width / columns),
            y: top + row * ROW,
            shows,
            label: shortened(&label, most),
        });
    }
    top + rows * ROW
}
