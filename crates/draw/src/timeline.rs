//! Iterations drawn as SVG: a lane for each place where something happens, time from left to
//! right, one iteration below the other on one time scale, so that the shorter one is shorter.
//!
//! Where nothing runs a lane is empty. What is narrower than a pixel is still seen: neighbours
//! of that size are drawn as one block, the paler the less of it they cover. So there are never
//! more blocks than fit side by side, however many spans a lane has.

use maud::{Markup, html};

use crate::ink::Paint;
use crossover_profile::{Lane, LaneKind, Span, Timeline};
use crossover_words::text::{shortened, visible};
use crossover_words::units::{self, short};

const WIDTH: f64 = 1000.0;
/// Where time begins; the names of the lanes stand left of it.
const LEFT: f64 = 164.0;
/// Where it ends.
const RIGHT: f64 = WIDTH - 24.0;
const HEADING: f64 = 26.0;
const LANE: f64 = 23.0;
const BLOCK: f64 = 18.0;
const BETWEEN: f64 = 14.0;
const AXIS: f64 = 40.0;

/// Generous widths of a character of the names in blocks, and of those of lanes.
const CHARACTER: f64 = 6.0;
const LABEL: usize = 25;

/// Blocks narrower than this may be drawn as one.
const TINY: f64 = 2.0;
/// Those nearer than this are.
const NEAR: f64 = 1.0;
/// The palest block.
const PALEST: f64 = 0.3;
/// How pale a call is in which the host only waits.
const WAITING: f64 = 0.35;

/// Lanes of an iteration that are drawn.
const MOST_LANES: usize = 12;
/// Ranges within ranges that are drawn.
const MOST_LEVELS: usize = 4;
/// Blocks of a lane of which each says what it is.
const MOST_TITLES: usize = 200;

/// Times that can be drawn, ns.
const TIMES: std::ops::RangeInclusive<f64> = 1e-3..=1e15;

/// One iteration to be drawn.
pub struct Iteration<'a> {
    /// Its name.
    pub name: String,
    /// What else stands in its heading.
    pub remark: String,
    /// What happened in it.
    pub timeline: &'a Timeline,
}

impl Iteration<'_> {
    /// Whether there is something to be drawn.
    pub fn is_drawn(&self) -> bool {
        let mut lanes = self.timeline.lanes.iter();
        TIMES.contains(&self.timeline.length_ns) && lanes.any(|lane| !lane.spans.is_empty())
    }
}

/// All of them below each other on the scale of the longest; `None` where nothing is to be drawn.
pub fn svg(iterations: &[Iteration<'_>]) -> Option<Markup> {
    let drawn: Vec<&Iteration> = iterations.iter().filter(|i| i.is_drawn()).collect();
    let lengths = drawn.iter().map(|i| i.timeline.length_ns);
    let scale = Scale {
        longest: lengths.reduce(f64::max)?,
    };
    let copies = copies(&drawn);
    let mut y = 0.0;
    let panels: Vec<Panel> = drawn
        .into_iter()
        .map(|iteration| {
            let panel = Panel::new(iteration, y, &scale, &copies);
            y = panel.bottom + BETWEEN;
            panel
        })
        .collect();
    let bottom = y - BETWEEN;
    let names: Vec<&str> = panels.iter().map(|p| &*p.iteration.name).collect();
    let label = format!("Timelines of one iteration: {}", names.join(", "));
    Some(html! {
        svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox={ "0 0 " (WIDTH) " " (px(bottom + AXIS)) } {
            title { (shortened(&visible(&label), 300)) }
            (scale.grid(bottom, &panels))
            @for panel in &panels { (panel.drawn(&scale)) }
        }
    })
}

/// The directions of copies, each of which has its colour in all iterations.
fn copies<'a>(iterations: &[&Iteration<'a>]) -> Vec<&'a str> {
    let lanes = iterations.iter().flat_map(|i| &i.timeline.lanes);
    let mut names: Vec<&str> = lanes
        .filter(|lane| lane.kind == LaneKind::Copies)
        .map(|lane| &*lane.name)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// A length in the drawing, to a tenth of a pixel.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

struct Scale {
    /// At [`RIGHT`].
    longest: f64,
}

impl Scale {
    fn x(&self, ns: f64) -> f64 {
        LEFT + (RIGHT - LEFT) * (ns / self.longest).clamp(0.0, 1.0)
    }

    /// Round times, about eight of them.
    fn ticks(&self) -> Vec<f64> {
        let least = self.longest / 9.0;
        let decade = 10f64.powf(least.log10().floor());
        let steps = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * decade);
        let step = steps.into_iter().find(|s| *s >= least).unwrap_or(decade);
        let last = (self.longest / step * (1.0 + 1e-9)).floor() as i64;
        (0..=last).map(|i| i as f64 * step).collect()
    }

    fn grid(&self, bottom: f64, panels: &[Panel]) -> Markup {
        html! {
            g stroke=(Paint::Grid.light()) {
                @for tick in self.ticks() {
                    @for panel in panels {
                        line x1=(px(self.x(tick))) x2=(px(self.x(tick))) y1=(px(panel.top + HEADING - 4.0)) y2=(px(panel.bottom)) {}
                    }
                }
            }
            g fill=(Paint::Muted.light()) font-size="11" text-anchor="middle" {
                @for tick in self.ticks() {
                    text x=(px(self.x(tick))) y=(px(bottom + 16.0)) { (time(tick)) }
                }
                text x=(px((LEFT + RIGHT) / 2.0)) y=(px(bottom + 34.0)) { "time since the iteration began on an idle device" }
            }
        }
    }
}

/// `20 µs`, also of 20.000000001.
fn time(ns: f64) -> String {
    match ns {
        0.0 => "0".to_owned(),
        _ => short(&units::time(ns)),
    }
}

/// An iteration and where it is drawn.
struct Panel<'a> {
    iteration: &'a Iteration<'a>,
    top: f64,
    bottom: f64,
    rows: Vec<Row>,
    /// Lanes that are not drawn.
    more: usize,
}

/// A lane, or one level of its ranges.
struct Row {
    label: String,
    role: Paint,
    blocks: Vec<Block>,
}

/// What is drawn as one rectangle.
#[derive(Debug)]
struct Block {
    from: f64,
    to: f64,
    /// How much of it something runs in.
    covered: f64,
    /// Spans in it, all of them tiny where there are several.
    spans: usize,
    ns: f64,
    name: String,
}

impl<'a> Panel<'a> {
    fn new(iteration: &'a Iteration<'a>, top: f64, scale: &Scale, copies: &[&str]) -> Self {
        let timeline = iteration.timeline;
        let lanes: Vec<&Lane> = timeline
            .lanes
            .iter()
            .filter(|l| !l.spans.is_empty())
            .collect();
        let threads = lanes.iter().filter(|l| l.kind == LaneKind::Calls).count();
        let mut rows = Vec::new();
        for lane in lanes.iter().take(MOST_LANES) {
            let role = role(lane, copies);
            for (level, spans) in levels(lane).into_iter().enumerate() {
                rows.push(Row {
                    label: if level == 0 {
                        label(lane, threads)
                    } else {
                        String::new()
                    },
                    role,
                    blocks: blocks(&spans, scale, timeline.length_ns),
                });
            }
        }
        let more = lanes.len().saturating_sub(MOST_LANES);
        let lines = rows.len() + usize::from(more > 0);
        Self {
            iteration,
            top,
            bottom: top + HEADING + LANE * lines as f64,
            rows,
            more,
        }
    }

    fn drawn(&self, scale: &Scale) -> Markup {
        let end = scale.x(self.iteration.timeline.length_ns);
        let row = |at: usize| self.top + HEADING + LANE * at as f64;
        let length = units::time(self.iteration.timeline.length_ns);
        let heading = shortened(&visible(&self.iteration.name), 60);
        let remark = shortened(&visible(&self.iteration.remark), 90);
        html! {
            text x="0" y=(px(self.top + 15.0)) font-size="13" {
                tspan fill=(Paint::Ink.light()) font-weight="bold" { (heading) }
                tspan fill=(Paint::Muted.light()) dx="8" { (length) }
                @if !remark.is_empty() {
                    tspan fill=(Paint::Muted.light()) dx="8" { (remark) }
                }
            }
            // The empty lanes: what is left of them is idle.
            g fill=(Paint::Grid.light()) fill-opacity=".45" {
                @for at in 0..self.rows.len() {
                    rect x=(px(LEFT)) y=(px(row(at))) width=(px((end - LEFT).max(1.0))) height=(px(BLOCK)) {}
                }
            }
            @for (at, lane) in self.rows.iter().enumerate() {
                text fill=(Paint::Ink.light()) x=(px(LEFT - 10.0)) y=(px(row(at) + 13.0)) font-size="11.5" text-anchor="end" { (lane.label) }
                (lane.drawn(row(at)))
            }
            @if self.more > 0 {
                text fill=(Paint::Muted.light()) x=(px(LEFT)) y=(px(row(self.rows.len()) + 13.0)) font-size="11" { (self.more) " more lanes are not drawn" }
            }
            line stroke=(Paint::Muted.light()) x1=(px(end)) x2=(px(end)) y1=(px(self.top + HEADING - 4.0)) y2=(px(self.bottom)) {}
        }
    }
}

impl Row {
    fn drawn(&self, y: f64) -> Markup {
        let titles = self.blocks.len() <= MOST_TITLES;
        html! {
            g fill=(self.role.light()) {
                @for block in &self.blocks {
                    rect x=(px(block.from)) y=(px(y)) width=(px(block.width())) height=(px(BLOCK)) fill-opacity=[block.opacity()] {
                        @if titles { title { (block.title()) } }
                    }
                }
            }
            @for block in &self.blocks {
                @if let Some(name) = block.label() {
                    @let role = if block.waits() { Paint::Ink } else { Paint::Paper };
                    text fill=(role.light()) x=(px((block.from + block.to) / 2.0)) y=(px(y + 12.6)) font-size="10" text-anchor="middle" pointer-events="none" { (name) }
                }
            }
        }
    }
}

impl Block {
    /// Whether it is made of what is too narrow to be drawn by itself.
    fn is_tiny(&self) -> bool {
        self.spans > 1 || self.to - self.from < TINY
    }

    /// As drawn: never nothing, and with a little room to the next where there is some.
    fn width(&self) -> f64 {
        let room = if self.to - self.from > 4.0 { 0.6 } else { 0.0 };
        (self.to - self.from - room).max(1.0)
    }

    fn opacity(&self) -> Option<String> {
        if self.waits() {
            return Some(format!("{WAITING}"));
        }
        let share = (self.covered / self.width()).max(PALEST);
        (share < 0.95).then(|| format!("{share:.2}"))
    }

    /// Whether the host does nothing in it.
    fn waits(&self) -> bool {
        self.spans == 1 && self.name.contains("Synchronize")
    }

    /// Its name, where there is room for it.
    fn label(&self) -> Option<String> {
        let fit = (self.width() - 8.0) / CHARACTER;
        let name = visible(&self.name);
        let fits = fit >= 5.0 || fit >= name.chars().count() as f64;
        (self.spans == 1 && fits).then(|| shortened(&name, fit as usize))
    }

    fn title(&self) -> String {
        let name = shortened(&visible(&self.name), 120);
        match self.spans {
            1 => format!("{name}, {}", units::time(self.ns)),
            n => format!("{n} in {}, the first of them {name}", units::time(self.ns)),
        }
    }
}

fn role(lane: &Lane, copies: &[&str]) -> Paint {
    /// Of directions: green, purple, teal, pink.
    const HUES: [usize; 4] = [4, 5, 11, 6];
    let hue = Paint::Hue;
    match lane.kind {
        LaneKind::Ranges => hue(7),
        LaneKind::Calls => Paint::Cpu,
        LaneKind::Kernels => Paint::Gpu,
        LaneKind::Copies => {
            let at = copies.iter().position(|name| *name == lane.name);
            hue(HUES[at.unwrap_or(0) % HUES.len()])
        }
        LaneKind::Sets => Paint::Muted,
    }
}

/// What stands left of a lane. One thread of the host needs no name.
fn label(lane: &Lane, threads: usize) -> String {
    let name = visible(&lane.name);
    let text = match lane.kind {
        LaneKind::Calls if threads == 1 => "driver calls".to_owned(),
        LaneKind::Calls => format!("calls, {name}"),
        LaneKind::Kernels => format!("kernels, {name}"),
        LaneKind::Copies => format!("copies, {name}"),
        LaneKind::Ranges | LaneKind::Sets => name,
    };
    shortened(&text, LABEL)
}

/// The spans of a lane in rows in which none lies within another: ranges may.
fn levels(lane: &Lane) -> Vec<Vec<&Span>> {
    let mut spans: Vec<&Span> = lane.spans.iter().collect();
    if lane.kind != LaneKind::Ranges {
        return vec![spans];
    }
    // Of two that begin together the longer one holds the other.
    spans.sort_by(|a, b| {
        let begin = a.start_ns.total_cmp(&b.start_ns);
        begin.then(b.end_ns.total_cmp(&a.end_ns))
    });
    let mut levels: Vec<Vec<&Span>> = Vec::new();
    for span in spans {
        let free = |row: &Vec<&Span>| row.last().is_some_and(|l| l.end_ns <= span.start_ns);
        match levels.iter().position(free) {
            Some(at) => levels[at].push(span),
            None if levels.len() < MOST_LEVELS => levels.push(vec![span]),
            None => {}
        }
    }
    levels
}

/// The rectangles of one row, from left to right, none over another.
fn blocks(spans: &[&Span], scale: &Scale, length_ns: f64) -> Vec<Block> {
    let mut spans: Vec<&&Span> = spans
        .iter()
        .filter(|s| s.start_ns <= s.end_ns && (0.0..=length_ns).contains(&s.start_ns))
        .collect();
    spans.sort_by(|a, b| a.start_ns.total_cmp(&b.start_ns));
    let mut blocks: Vec<Block> = Vec::new();
    for span in spans {
        let end = span.end_ns.min(length_ns);
        // Where the last one ends: what a damaged file has twice is drawn once.
        let after = blocks.last().map_or(LEFT, |last| last.to);
        let from = scale.x(span.start_ns).max(after);
        let to = scale.x(end).max(from);
        let covered = to - from;
        let ns = end - span.start_ns;
        match blocks.last_mut() {
            Some(last) if last.is_tiny() && covered < TINY && from - last.to < NEAR => {
                last.to = to;
                last.covered += covered;
                last.spans += 1;
                last.ns += ns;
            }
            // Hidden behind the one before.
            Some(_) if covered <= 0.0 && from <= after => {}
            _ => blocks.push(Block {
                // The narrowest is a pixel wide, also at the end.
                from: from.min(RIGHT - 1.0),
                to,
                covered,
                spans: 1,
                ns,
                name: span.name.clone(),
            }),
        }
    }
    blocks
}

#[cfg(test)]
mod tests;
