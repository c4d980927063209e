//! One iteration as lanes to draw.

use std::collections::BTreeMap;

use super::recording::{CallRecord, Part, Recording, WorkRecord};
use super::report::{Lane, LaneKind, Place, Span, Timeline, Work};
use crossover_words::units::binary;

/// Upper bound on the spans of a timeline. Beyond it the shortest are left out, which a drawing
/// would not show.
pub(super) const SPANS: usize = 2_000;

/// The single iteration of median length.
pub(super) fn timeline(recording: &Recording) -> Timeline {
    let mut singles: Vec<Part<'_>> = (recording.singles.iter())
        .map(|single| recording.part(single))
        .collect();
    singles.sort_by_key(|part| part.spans[0].1 - part.spans[0].0);
    if singles.is_empty() {
        return Timeline::default();
    }
    draw(recording, &singles[(singles.len() - 1) / 2], SPANS)
}

/// When each row of a lane is free again, and its spans.
type Drawn = (Rows, Vec<Vec<Span>>);

/// A span before it is cut to the iteration.
pub(super) struct Piece<'a> {
    pub(super) kind: LaneKind,
    pub(super) lane: String,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) name: String,
    pub(super) of: Of<'a>,
}

/// What a span shows.
pub(super) enum Of<'a> {
    /// A range, by its number.
    Range(usize),
    Call(&'a CallRecord),
    Work(&'a WorkRecord),
}

fn draw(recording: &Recording, part: &Part<'_>, most: usize) -> Timeline {
    let (start, end) = part.spans[0];
    let mut pieces = pieces(recording, part, end);
    let left_out = pieces.len().saturating_sub(most);
    if left_out > 0 {
        pieces.sort_by_key(|p| std::cmp::Reverse(p.end.saturating_sub(p.start)));
        pieces.truncate(most);
    }
    pieces.sort_by_key(|p| (p.start, std::cmp::Reverse(p.end)));
    let mut lanes: BTreeMap<(u8, LaneKind, String), Drawn> = BTreeMap::new();
    for piece in pieces {
        let place = place(piece.kind, &piece.lane);
        let (free, rows) = lanes.entry((place, piece.kind, piece.lane)).or_default();
        let row = match piece.of {
            Of::Range(range) => free.take_range(Outermost::of(recording, range)),
            _ => free.take(piece.start, piece.end),
        };
        if row == rows.len() {
            rows.push(Vec::new());
        }
        rows[row].push(Span {
            start_ns: piece.start.saturating_sub(start) as f64,
            end_ns: piece.end.max(start).saturating_sub(start) as f64,
            name: piece.name,
        });
    }
    Timeline {
        length_ns: (end - start) as f64,
        lanes: (lanes.into_iter())
            .flat_map(|((_, kind, name), (_, rows))| {
                (rows.into_iter().enumerate()).map(move |(row, spans)| Lane {
                    kind,
                    name: numbered(&name, row),
                    spans,
                })
            })
            .collect(),
        left_out: left_out as u64,
    }
}

/// Ranges, calls and work of an iteration; a range that has not ended ends there.
pub(super) fn pieces<'a>(recording: &Recording, part: &Part<'a>, end: u64) -> Vec<Piece<'a>> {
    let piece = |kind, lane, (start, end), name, of| Piece {
        kind,
        lane,
        start,
        end,
        name,
        of,
    };
    let ranges = part.ranges.iter().map(|&range| {
        let record = &recording.ranges[range];
        let time = (record.start, record.end.unwrap_or(end));
        let (lane, name) = ("ranges".to_owned(), record.name.clone());
        piece(LaneKind::Ranges, lane, time, name, Of::Range(range))
    });
    let threads = Threads::of(part);
    let calls = part.calls.iter().map(|call| {
        let (lane, name) = (threads.name(call.thread), call.name.to_string());
        let time = (call.start, call.end);
        piece(LaneKind::Calls, lane, time, name, Of::Call(call))
    });
    let work = part.work.iter().map(|record| {
        let (kind, lane) = lane(&record.work, record.stream);
        let name = match &record.work {
            Work::Copy { bytes, .. } => binary(*bytes),
            other => label(other),
        };
        let time = (record.start, record.end);
        piece(kind, lane, time, name, Of::Work(record))
    });
    ranges.chain(calls).chain(work).collect()
}

/// A lane's place from top to bottom, in the order in which data pass through them.
fn place(kind: LaneKind, lane: &str) -> u8 {
    match kind {
        LaneKind::Ranges => 0,
        LaneKind::Calls => 1,
        LaneKind::Copies if lane == TO_DEVICE => 2,
        LaneKind::Kernels => 3,
        LaneKind::Copies => 4,
        LaneKind::Sets => 5,
    }
}

const TO_DEVICE: &str = "host to device";

/// The lane of work on the device.
fn lane(work: &Work, stream: u32) -> (LaneKind, String) {
    match work {
        Work::Kernel { .. } => (LaneKind::Kernels, format!("stream {stream}")),
        Work::Copy { from, to, .. } => (LaneKind::Copies, direction(*from, *to).to_owned()),
        Work::Set { .. } => (LaneKind::Sets, "memory sets".to_owned()),
    }
}

/// What a span of work is called.
pub(super) fn label(work: &Work) -> String {
    match work {
        Work::Kernel { name, .. } => name.clone(),
        Work::Copy { from, to, .. } => direction(*from, *to).to_owned(),
        Work::Set { .. } => "memory set".to_owned(),
    }
}

/// In which direction a copy goes.
fn direction(from: Place, to: Place) -> &'static str {
    let host = |place| matches!(place, Place::Pinned | Place::Pageable);
    match (from, to) {
        (Place::Peer, _) | (_, Place::Peer) => "device to another device",
        (from, to) if host(from) && host(to) => "host to host",
        (from, _) if host(from) => TO_DEVICE,
        (_, to) if host(to) => "device to host",
        (Place::Unknown, _) | (_, Place::Unknown) => "copies",
        _ => "device to device",
    }
}

/// The outermost range around one or more ranges. On a thread they follow one another, so two at the
/// same time are of two threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outermost {
    number: usize,
    start: u64,
    end: u64,
}

impl Outermost {
    /// The one around `range`.
    pub(super) fn of(recording: &Recording, range: usize) -> Self {
        let number = recording.outermost(range);
        let record = &recording.ranges[number];
        Self {
            number,
            start: record.start,
            // One that has not ended keeps its row.
            end: record.end.unwrap_or(u64::MAX),
        }
    }
}

/// When each row of a lane is free again: what runs at the same time in a lane needs several.
#[derive(Debug, Default)]
pub(super) struct Rows {
    until: Vec<u64>,
    /// The rows of outermost ranges, by number.
    ranges: BTreeMap<usize, usize>,
}

impl Rows {
    /// The first row that is free at `start`, taken until `end`.
    pub(super) fn take(&mut self, start: u64, end: u64) -> usize {
        let row = self.until.iter().position(|&until| until <= start);
        let row = row.unwrap_or_else(|| {
            self.until.push(0);
            self.until.len() - 1
        });
        self.until[row] = end;
        row
    }

    /// The row of an outermost range, which also holds the ranges in it.
    pub(super) fn take_range(&mut self, range: Outermost) -> usize {
        if let Some(row) = self.ranges.get(&range.number) {
            return *row;
        }
        let row = self.take(range.start, range.end);
        self.ranges.insert(range.number, row);
        row
    }

    pub(super) fn count(&self) -> usize {
        self.until.len()
    }
}

/// The name of a lane's row.
pub(super) fn numbered(lane: &str, row: usize) -> String {
    match row {
        0 => lane.to_owned(),
        more => format!("{lane} ({})", more + 1),
    }
}

/// Threads of the host, numbered in the order of their first call.
struct Threads(Vec<u32>);

impl Threads {
    fn of(part: &Part<'_>) -> Self {
        let mut seen = Vec::new();
        for call in &part.calls {
            if !seen.contains(&call.thread) {
                seen.push(call.thread);
            }
        }
        Self(seen)
    }

    fn name(&self, thread: u32) -> String {
        match (self.0.iter().position(|&t| t == thread), self.0.len()) {
            (Some(at), 2..) => format!("host thread {}", at + 1),
            _ => "host".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recording::Raw;
    use super::super::recording::planted::{call, kernel, range, upload, window, work};
    use super::*;

    fn recording() -> Recording {
        let mut second = call("cuLaunchKernel", 1060, 1070, 2);
        second.thread = 2;
        let mut other_stream = work(kernel("b"), 1090, 1150, 2);
        other_stream.stream = 9;
        Recording {
            singles: vec![window(&[(1000, 1100, Some(1300))])],
            ranges: vec![range("step", None, 1005, None)],
            raw: Raw {
                calls: vec![call("cuLaunchKernel", 1010, 1020, 1), second],
                work: vec![
                    work(kernel("a"), 1030, 1120, 1),
                    work(kernel("a"), 1100, 1140, 1),
                    other_stream,
                    work(upload(8), 1050, 1090, 1),
                    work(Work::Set { bytes: 8 }, 1200, 1210, 1),
                ],
                ..Raw::default()
            },
            ..Recording::default()
        }
    }

    #[test]
    fn lanes_stand_in_order_and_hold_what_does_not_overlap() {
        let timeline = timeline(&recording());
        assert_eq!(timeline.length_ns, 210.0);
        let lanes: Vec<_> = (timeline.lanes.iter())
            .map(|l| (l.kind, l.name.as_str(), l.spans.len()))
            .collect();
        assert_eq!(
            lanes,
            [
                (LaneKind::Ranges, "ranges", 1),
                (LaneKind::Calls, "host thread 1", 1),
                (LaneKind::Calls, "host thread 2", 1),
                (LaneKind::Copies, "host to device", 1),
                (LaneKind::Kernels, "stream 7", 1),
                (LaneKind::Kernels, "stream 7 (2)", 1),
                (LaneKind::Kernels, "stream 9", 1),
                (LaneKind::Sets, "memory sets", 1),
            ]
        );
        let range = &timeline.lanes[0].spans[0];
        assert_eq!(
            (range.start_ns, range.end_ns),
            (5.0, 210.0),
            "it never ended"
        );
        let kernel = &timeline.lanes[4].spans[0];
        assert_eq!((kernel.start_ns, kernel.end_ns), (30.0, 120.0));
    }

    #[test]
    fn ranges_of_several_threads_have_rows_of_their_own() {
        let recording = Recording {
            ranges: vec![
                range("load", None, 1000, 1050),
                range("compute", None, 1020, 1090),
                range("decode", Some(0), 1030, 1040),
                range("store", None, 1060, 1080),
            ],
            ..recording()
        };
        let rows: Vec<Vec<_>> = (timeline(&recording).lanes.iter())
            .filter(|lane| lane.kind == LaneKind::Ranges)
            .map(|lane| lane.spans.iter().map(|span| span.name.clone()).collect())
            .collect();
        assert_eq!(
            rows,
            [["load", "decode", "store"].to_vec(), vec!["compute"]]
        );
    }

    #[test]
    fn the_longest_spans_stay_and_the_rest_is_counted() {
        let recording = recording();
        let part = recording.part(&recording.singles[0]);
        let timeline = draw(&recording, &part, 3);
        assert_eq!(timeline.left_out, 5);
        let names: Vec<_> = (timeline.lanes.iter())
            .flat_map(|l| l.spans.iter().map(|s| s.name.as_str()))
            .collect();
        assert_eq!(names, ["step", "a", "b"]);
    }

    #[test]
    fn copies_have_a_direction() {
        use Place::*;
        assert_eq!(direction(Pageable, Device), "host to device");
        assert_eq!(direction(Device, Pinned), "device to host");
        assert_eq!(direction(Managed, Device), "device to device");
        assert_eq!(direction(Device, Peer), "device to another device");
        assert_eq!(direction(Pinned, Pageable), "host to host");
        assert_eq!(direction(Unknown, Device), "copies");
    }
}
