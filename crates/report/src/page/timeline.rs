//! Iterations as timelines: a lane for each thread, stream or link, time from left to right, and one
//! scale for all, so that a shorter iteration looks shorter.
//!
//! Spans narrower than [`TINY`] are joined with their neighbours into one block, which is paler the
//! less of it they cover, so a lane has a limited number of blocks.

use maud::{Markup, html};

use crossover_draw::plot::round_step;
use crossover_profile::{Lane, LaneKind, Span, Timeline};
use crossover_words::text::{shortened, visible};
use crossover_words::units::{self, short};

/// Blocks narrower than this percentage of the scale may be joined.
const TINY: f64 = 0.25;
/// Tiny blocks nearer to each other than this are joined.
const NEAR: f64 = 0.125;
/// Blocks narrower than this have no room for a name.
const NAMED: f64 = 3.0;
/// Opacity of the palest block.
const PALEST: f64 = 0.3;

/// Lanes that are drawn of an iteration.
const MOST_LANES: usize = 12;
/// Levels of nested ranges that are drawn.
const MOST_LEVELS: usize = 4;

/// Lengths that can be drawn, ns.
const LENGTHS: std::ops::RangeInclusive<f64> = 1e-3..=1e15;

/// Timelines with their names and notes, below each other; nothing if there are none.
pub(super) fn timelines(all: &[(&str, &str, &Timeline)]) -> Markup {
    let is_drawn = |timeline: &Timeline| {
        let mut lanes = timeline.lanes.iter();
        LENGTHS.contains(&timeline.length_ns) && lanes.any(|lane| !lane.spans.is_empty())
    };
    let drawn: Vec<_> = all.iter().filter(|(.., it)| is_drawn(it)).collect();
    let longest = drawn.iter().map(|(.., it)| it.length_ns).reduce(f64::max);
    html! {
        @if let Some(longest) = longest {
            @let step = round_step(longest / 9.0);
            figure.timeline style={ "--step:" (percent(step, longest)) } {
                @for (name, remark, timeline) in drawn {
                    p { b { (visible(name)) } " " (units::time(timeline.length_ns)) " " (visible(remark)) }
                    (lanes(timeline, longest))
                }
                div.axis {
                    @for tick in (0..=9).map(|i| f64::from(i) * step).filter(|tick| *tick <= longest) {
                        span style={ "left:" (percent(tick, longest)) } { (time(tick)) }
                    }
                }
                figcaption { "time since the iteration began on an idle device" }
            }
        }
    }
}

fn percent(part: f64, of: f64) -> String {
    format!("{:.2}%", 100.0 * part / of)
}

/// `20 µs`, also of 20.000000001.
fn time(ns: f64) -> String {
    match ns {
        0.0 => "0".to_owned(),
        _ => short(&units::time(ns)),
    }
}

fn lanes(timeline: &Timeline, longest: f64) -> Markup {
    let lanes: Vec<&Lane> = (timeline.lanes.iter())
        .filter(|lane| !lane.spans.is_empty())
        .collect();
    let left_out = lanes.len().saturating_sub(MOST_LANES);
    html! {
        @for lane in lanes.iter().take(MOST_LANES) {
            @for (level, spans) in levels(lane).into_iter().enumerate() {
                div class={ "lane " (lane.kind) } {
                    span { @if level == 0 { (lane.kind) ", " (visible(&lane.name)) } }
                    div {
                        // Visible where nothing runs.
                        u style={ "width:" (percent(timeline.length_ns, longest)) } {}
                        @for block in blocks(spans, timeline.length_ns, longest) { (block.drawn()) }
                    }
                }
            }
        }
        @if left_out > 0 { p.note { (left_out) " more lanes are not drawn" } }
    }
}

/// The spans of a lane in rows without nesting. Only ranges nest.
fn levels(lane: &Lane) -> Vec<Vec<&Span>> {
    let mut spans: Vec<&Span> = lane.spans.iter().collect();
    // Of two spans with the same start the longer one contains the other.
    spans.sort_by(|a, b| {
        let begin = a.start_ns.total_cmp(&b.start_ns);
        begin.then(b.end_ns.total_cmp(&a.end_ns))
    });
    if lane.kind != LaneKind::Ranges {
        return vec![spans];
    }
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

/// One rectangle; positions are percentages of the scale.
struct Block<'a> {
    from: f64,
    to: f64,
    /// The part of it that spans cover.
    covered: f64,
    spans: usize,
    ns: f64,
    name: &'a str,
}

/// The rectangles of one row, from left to right, without overlaps.
fn blocks<'a>(spans: Vec<&'a Span>, length_ns: f64, longest: f64) -> Vec<Block<'a>> {
    let mut blocks: Vec<Block> = Vec::new();
    let sound =
        |span: &&Span| span.start_ns <= span.end_ns && (0.0..=length_ns).contains(&span.start_ns);
    for span in spans.into_iter().filter(sound) {
        let end_ns = span.end_ns.min(length_ns);
        // Duplicate spans of a damaged file are drawn once.
        let after = blocks.last().map_or(0.0, |last| last.to);
        let from = (100.0 * span.start_ns / longest).max(after);
        let to = (100.0 * end_ns / longest).max(from);
        let (covered, ns) = (to - from, end_ns - span.start_ns);
        match blocks.last_mut() {
            Some(last) if last.is_tiny() && covered < TINY && from - last.to < NEAR => {
                last.to = to;
                last.covered += covered;
                last.spans += 1;
                last.ns += ns;
            }
            // Hidden behind the previous one.
            Some(_) if covered <= 0.0 && from <= after => {}
            _ => blocks.push(Block {
                from,
                to,
                covered,
                spans: 1,
                ns,
                name: &span.name,
            }),
        }
    }
    blocks
}

impl Block<'_> {
    fn is_tiny(&self) -> bool {
        self.spans > 1 || self.to - self.from < TINY
    }

    fn drawn(&self) -> Markup {
        let width = self.to - self.from;
        let name = shortened(&visible(self.name), 120);
        let time = units::time(self.ns);
        let title = match self.spans {
            1 => format!("{name}, {time}"),
            n => format!("{n} in {time}, the first of them {name}"),
        };
        let share = (self.covered / width.max(NEAR)).max(PALEST);
        let pale = (self.spans > 1 && share < 0.95).then(|| format!(";opacity:{share:.2}"));
        // The host does nothing during it.
        let waits = self.spans == 1 && self.name.contains("Synchronize");
        html! {
            i.waits[waits] title=(title) style={ "left:" (percent(self.from, 100.0)) ";width:" (percent(width, 100.0)) @if let Some(pale) = pale { (pale) } } {
                @if self.spans == 1 && width >= NAMED { (name) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start_ns: f64, end_ns: f64, name: &str) -> Span {
        Span {
            start_ns,
            end_ns,
            name: name.to_owned(),
        }
    }

    fn timeline(length_ns: f64, lanes: Vec<(LaneKind, Vec<Span>)>) -> Timeline {
        let lane = |(kind, spans)| Lane {
            kind,
            name: "<s>".to_owned(),
            spans,
        };
        Timeline {
            length_ns,
            lanes: lanes.into_iter().map(lane).collect(),
            left_out: 0,
        }
    }

    fn draw(all: &[Timeline]) -> String {
        let all: Vec<_> = all.iter().map(|it| ("gpu/one", "a remark", it)).collect();
        timelines(&all).into_string()
    }

    #[test]
    fn an_iteration_half_as_long_is_drawn_half_as_wide() {
        let of = |length: f64| {
            let kernels = vec![span(0.25 * length, 0.75 * length, "a<b")];
            timeline(length, vec![(LaneKind::Kernels, kernels)])
        };
        let html = draw(&[of(1000.0), of(500.0)]);
        for drawn in [
            "title=\"a&lt;b, 500 ns\" style=\"left:25.00%;width:50.00%\">a&lt;b</i>",
            "title=\"a&lt;b, 250 ns\" style=\"left:12.50%;width:25.00%\">a&lt;b</i>",
            "kernels, &lt;s&gt;",
            "left:80.00%\">800 ns<",
        ] {
            assert!(html.contains(drawn), "{drawn}: {html}");
        }
    }

    #[test]
    fn ranges_within_ranges_have_lanes_of_their_own() {
        let ranges = [(0.0, 90.0), (0.0, 40.0), (50.0, 80.0)];
        let ranges = ranges.map(|(from, to)| span(from, to, "r")).into();
        let html = draw(&[timeline(100.0, vec![(LaneKind::Ranges, ranges)])]);
        assert_eq!(html.matches("class=\"lane ranges\"").count(), 2, "{html}");
        assert_eq!(html.matches("<i ").count(), 3, "{html}");
    }

    #[test]
    fn a_hundred_thousand_short_spans_are_one_pale_block() {
        let short = |i: u32| span(f64::from(i) * 10.0, f64::from(i) * 10.0 + 4.0, "k");
        let kernels = (0..100_000).map(short).collect();
        let html = draw(&[timeline(1e6, vec![(LaneKind::Kernels, kernels)])]);
        assert_eq!(html.matches("<i ").count(), 1, "{html}");
        assert!(html.contains(";opacity:0.40"), "{html}");
        assert!(html.contains("100000 in 400 µs"), "{html}");
    }

    #[test]
    fn any_times_stay_within_the_drawing() {
        let times = [-1e308, -1.0, 0.0, 1e-300, 1.0, 99.0, 100.0, 1e300, f64::MAX];
        let pairs = times.iter().flat_map(|a| times.map(|b| span(*a, b, "x")));
        let spans: Vec<Span> = pairs.collect();
        let kinds = [LaneKind::Ranges, LaneKind::Calls, LaneKind::Copies];
        for length in [1e-300, 1e-3, 1.0, 100.0, 1e15, f64::MAX, 0.0, -1.0] {
            let lanes = kinds.iter().cycle().map(|kind| (*kind, spans.clone()));
            let html = draw(&[timeline(length, lanes.take(40).collect())]);
            if !LENGTHS.contains(&length) {
                assert_eq!(html, "");
                continue;
            }
            let numbers = html.split("left:").skip(1).map(|rest| {
                let (left, rest) = rest.split_once('%').unwrap();
                let width = rest.strip_prefix(";width:");
                let width = width.map_or("0", |rest| rest.split('%').next().unwrap());
                left.parse::<f64>().unwrap() + width.parse::<f64>().unwrap()
            });
            assert!(numbers.into_iter().all(|end| end <= 100.1), "{html}");
            assert!(html.contains("28 more lanes are not drawn"));
            assert!(html.len() < 60_000, "{}", html.len());
        }
    }
}
