//! A recording in lanes: one iteration as a picture, and all of them as a trace.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::recording::{Part, Recording, WorkRecord};
use super::report::{Lane, LaneKind, Place, Profile, Span, Timeline, Work};
use crossover_words::units::binary;

/// Upper bound on the spans of a picture. Beyond it the shortest spans are left out, which would be
/// invisible.
pub(super) const DRAWN: usize = 2_000;
/// Upper bound on the spans of a trace: about 25 MB.
const TRACED: usize = 100_000;

const TO_DEVICE: &str = "host to device";

/// The lane of a span. Lanes are ordered from top to bottom as data pass through them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    /// `None` for lanes of the host.
    device: Option<u32>,
    order: u8,
    name: String,
    /// The host's thread, or the context on a device, among whose streams a number is unique.
    owner: u32,
}

/// A span before it is placed.
struct Bar {
    at: At,
    /// `None` for an iteration as a whole, which only the trace shows.
    kind: Option<LaneKind>,
    start: u64,
    end: u64,
    name: String,
    arguments: Value,
}

/// Spans that do not overlap. Ranges may nest.
struct Row {
    at: At,
    name: String,
    bars: Vec<Bar>,
}

/// The single iteration of median length.
pub(super) fn timeline(recording: &Recording) -> Timeline {
    let singles = recording.singles.iter();
    let mut parts: Vec<Part<'_>> = singles.map(|single| recording.part(single)).collect();
    parts.sort_by_key(|part| part.spans[0].1 - part.spans[0].0);
    match parts.get(parts.len().saturating_sub(1) / 2) {
        Some(median) => draw(recording, median, DRAWN),
        None => Timeline::default(),
    }
}

fn draw(recording: &Recording, part: &Part<'_>, most: usize) -> Timeline {
    let (start, end) = part.spans[0];
    let mut bars = bars(recording, part, end);
    let left_out = bars.len().saturating_sub(most);
    if left_out > 0 {
        bars.sort_by_key(|bar| Reverse(bar.end.saturating_sub(bar.start)));
        bars.truncate(most);
    }
    let span = |bar: Bar| Span {
        start_ns: bar.start.saturating_sub(start) as f64,
        end_ns: bar.end.max(start).saturating_sub(start) as f64,
        name: bar.name,
    };
    let lane = |row: Row| {
        let kind = row.bars.first().and_then(|bar| bar.kind)?;
        let spans = row.bars.into_iter().map(span).collect();
        let name = row.name;
        Some(Lane { kind, name, spans })
    };
    Timeline {
        length_ns: (end - start) as f64,
        lanes: rows(bars).into_iter().filter_map(lane).collect(),
        left_out: left_out as u64,
    }
}

/// A recording in the Chrome trace format, which Perfetto opens: iterations, ranges, calls and work of
/// all windows.
///
/// <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>
pub fn trace(recording: &Recording, profile: &Profile) -> String {
    capped(recording, profile, TRACED)
}

fn capped(recording: &Recording, profile: &Profile, most: usize) -> String {
    let mut spans = Vec::new();
    let windows = (recording.singles.iter().map(|w| ("single", w)))
        .chain([("back to back", &recording.steady)]);
    for (how, window) in windows {
        let part = recording.part(window);
        spans.extend(window.iterations.iter().map(|iteration| Bar {
            at: At::host(0, "iterations", 0),
            kind: None,
            start: iteration.start,
            end: iteration.end,
            name: "iteration".to_owned(),
            arguments: json!({"recorded": how}),
        }));
        let end = part.spans.last().map_or(0, |span| span.1);
        spans.extend(bars(recording, &part, end));
    }
    spans.sort_by_key(|bar| bar.start);
    let left_out = spans.len().saturating_sub(most);
    // The last spans go, so that the remaining time is complete.
    spans.truncate(most);
    let begin = spans.first().map_or(0, |bar| bar.start);

    let rows = rows(spans).into_iter().enumerate();
    let events = rows.flat_map(|(at, row)| events(at, row, begin, &profile.gpu));
    let trace = json!({
        "traceEvents": events.collect::<Vec<_>>(),
        "displayTimeUnit": "ns",
        "otherData": {
            "benchmark": profile.benchmark,
            "gpu": profile.gpu,
            "cupti": profile.cupti,
            "recorded": profile.recorded,
            "spans_left_out": left_out.to_string(),
        },
    });
    trace.to_string()
}

/// The name and the place of a row, and its spans.
fn events(at: usize, row: Row, begin: u64, gpu: &str) -> Vec<Value> {
    let process = row.at.device.map_or(1, |device| device + 2);
    let about = |what: &str, arguments| json!({"ph": "M", "name": what, "pid": process, "tid": at + 1, "args": arguments});
    let name = match row.at.device {
        None => "host".to_owned(),
        Some(device) => format!("GPU {device}: {gpu}"),
    };
    let mut events = vec![
        about("process_name", json!({"name": name})),
        about("process_sort_index", json!({"sort_index": process})),
        about("thread_name", json!({"name": row.name})),
        about("thread_sort_index", json!({"sort_index": at})),
    ];
    let micros = |ns: u64| ns as f64 / 1e3;
    events.extend(row.bars.into_iter().map(|bar| {
        json!({
            "ph": "X",
            "name": bar.name,
            "pid": process,
            "tid": at + 1,
            "ts": micros(bar.start - begin),
            "dur": micros(bar.end.saturating_sub(bar.start)),
            "args": bar.arguments,
        })
    }));
    events
}

/// Ranges, calls and work of a window; a range that has not ended ends at `end`.
fn bars(recording: &Recording, part: &Part<'_>, end: u64) -> Vec<Bar> {
    let ranges = part.ranges.iter().map(|&range| {
        let record = &recording.ranges[range];
        Bar {
            at: At::host(1, "ranges", record.thread),
            kind: Some(LaneKind::Ranges),
            start: record.start,
            end: record.end.unwrap_or(end),
            name: record.name.clone(),
            arguments: json!({"path": recording.path(range)}),
        }
    });
    let calls = part.calls.iter().map(|call| Bar {
        at: At::host(2, "host", call.thread),
        kind: Some(LaneKind::Calls),
        start: call.start,
        end: call.end,
        name: call.name.to_string(),
        arguments: json!({"correlation": call.correlation, "thread": call.thread}),
    });
    let work = part.work.iter().map(|record| on_device(record));
    ranges.chain(calls).chain(work).collect()
}

fn on_device(record: &WorkRecord) -> Bar {
    let (order, kind, lane, name) = match &record.work {
        Work::Kernel { name, .. } => {
            let stream = format!("stream {}", record.stream);
            (4, LaneKind::Kernels, stream, name.clone())
        }
        Work::Copy { from, to, bytes } => {
            let direction = direction(*from, *to);
            let order = if direction == TO_DEVICE { 3 } else { 5 };
            let name = binary(*bytes);
            (order, LaneKind::Copies, direction.to_owned(), name)
        }
        Work::Set { .. } => {
            let lane = "memory sets".to_owned();
            (6, LaneKind::Sets, lane, "memory set".to_owned())
        }
    };
    Bar {
        at: At {
            device: Some(record.device),
            order,
            name: lane,
            owner: record.context,
        },
        kind: Some(kind),
        start: record.start,
        end: record.end,
        name,
        arguments: json!({
            "work": record.work,
            "correlation": record.correlation,
            "stream": record.stream,
        }),
    }
}

impl At {
    fn host(order: u8, name: &str, owner: u32) -> Self {
        Self {
            device: None,
            order,
            name: name.to_owned(),
            owner,
        }
    }
}

/// Gives each span a row. Spans at the same time need several rows; ranges of one thread lie within
/// each other. Streams of the same number name their contexts, and rows of the same name are numbered.
fn rows(mut bars: Vec<Bar>) -> Vec<Row> {
    bars.sort_by_key(|bar| (bar.start, Reverse(bar.end)));
    let mut lanes: BTreeMap<At, Vec<Vec<Bar>>> = BTreeMap::new();
    for bar in bars {
        let rows = lanes.entry(bar.at.clone()).or_default();
        let nests = bar.kind == Some(LaneKind::Ranges);
        let is_free = |row: &&mut Vec<Bar>| nests || row.last().is_none_or(|l| l.end <= bar.start);
        match rows.iter_mut().find(is_free) {
            Some(row) => row.push(bar),
            None => rows.push(vec![bar]),
        }
    }
    let places: Vec<At> = lanes.keys().cloned().collect();
    let occurs_twice = |at: &At| {
        let same = |place: &&At| (place.device, &place.name) == (at.device, &at.name);
        places.iter().filter(same).count() > 1
    };
    let mut numbered: Vec<Row> = Vec::new();
    let mut number = 1;
    for (mut at, bars) in lanes
        .into_iter()
        .flat_map(|(at, rows)| rows.into_iter().map(move |r| (at.clone(), r)))
    {
        if bars[0].kind == Some(LaneKind::Kernels) && occurs_twice(&at) {
            at.name = format!("{}, context {}", at.name, at.owner);
        }
        let is_next = (numbered.last())
            .is_some_and(|row| (row.at.device, &row.at.name) == (at.device, &at.name));
        number = if is_next { number + 1 } else { 1 };
        let name = match number {
            1 => at.name.clone(),
            n => format!("{} ({n})", at.name),
        };
        numbered.push(Row { at, name, bars });
    }
    numbered
}

/// The direction of a copy.
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

#[cfg(test)]
mod tests {
    use super::super::analyse::analyse;
    use super::super::recording::RangeRecord;
    use super::*;
    use crate::recording::planted::{kernel, work};
    use crate::tests::{about, range, recording};

    const LANES: [(LaneKind, &str); 8] = [
        (LaneKind::Ranges, "ranges"),
        (LaneKind::Calls, "host"),
        (LaneKind::Calls, "host (2)"),
        (LaneKind::Copies, "host to device"),
        (LaneKind::Kernels, "stream 7"),
        (LaneKind::Kernels, "stream 7 (2)"),
        (LaneKind::Kernels, "stream 9"),
        (LaneKind::Sets, "memory sets"),
    ];

    #[test]
    fn lanes_stand_in_order_and_their_spans_do_not_overlap() {
        let of_context = |context| WorkRecord {
            context,
            ..work(kernel("k"), 0, 9, 0)
        };
        let three = [1, 1, 2].map(|context| on_device(&of_context(context)));
        let names: Vec<_> = rows(three.into()).into_iter().map(|row| row.name).collect();
        let expected = ["context 1", "context 1 (2)", "context 2"];
        assert_eq!(
            names,
            expected.map(|context| format!("stream 7, {context}"))
        );
        let timeline = timeline(&recording());
        assert_eq!(timeline.length_ns, 210.0);
        let lanes: Vec<_> = (timeline.lanes.iter())
            .map(|l| (l.kind, l.name.as_str()))
            .collect();
        assert_eq!(lanes, LANES);
        let range = &timeline.lanes[0].spans[0];
        let ended = (range.start_ns, range.end_ns);
        assert_eq!(ended, (5.0, 210.0), "it never ended");
        let kernel = &timeline.lanes[4].spans[0];
        assert_eq!((kernel.start_ns, kernel.end_ns), (30.0, 120.0));
    }

    #[test]
    fn ranges_of_several_threads_have_rows_of_their_own() {
        let recording = Recording {
            ranges: vec![
                range("load", None, 1000, 1050),
                RangeRecord {
                    thread: 2,
                    ..range("compute", None, 1020, 1090)
                },
                range("decode", Some(0), 1030, 1040),
                range("store", None, 1060, 1080),
            ],
            ..recording()
        };
        let rows: Vec<Vec<_>> = (timeline(&recording).lanes.iter())
            .filter(|lane| lane.kind == LaneKind::Ranges)
            .map(|lane| lane.spans.iter().map(|span| span.name.clone()).collect())
            .collect();
        let expected = [&["load", "decode", "store"][..], &["compute"]];
        assert_eq!(rows, expected);
    }

    #[test]
    fn the_longest_spans_stay_and_the_rest_is_counted() {
        let recording = recording();
        let timeline = draw(&recording, &recording.part(&recording.singles[0]), 3);
        assert_eq!(timeline.left_out, 5);
        let names: Vec<_> = (timeline.lanes.iter())
            .flat_map(|l| l.spans.iter().map(|s| s.name.as_str()))
            .collect();
        assert_eq!(names, ["step", "a", "b"]);
    }

    fn events(text: &str, phase: &str) -> Vec<Value> {
        let trace: Value = serde_json::from_str(text).unwrap();
        (trace["traceEvents"].as_array().unwrap().iter())
            .filter(|e| e["ph"] == phase)
            .cloned()
            .collect()
    }

    #[test]
    fn a_trace_has_the_same_lanes_and_counts_from_its_first_span() {
        let recording = recording();
        let profile = analyse(&recording, about());
        let text = trace(&recording, &profile);
        let about = events(&text, "M");
        let names = |of: &str| -> Vec<String> {
            let about = about.iter().filter(|e| e["name"] == of);
            about
                .map(|e| e["args"]["name"].as_str().unwrap().to_owned())
                .collect()
        };
        assert_eq!(names("thread_name")[0], "iterations");
        assert_eq!(names("thread_name")[1..], LANES.map(|(_, name)| name));
        assert_eq!(names("process_name")[8], "GPU 0: NVIDIA H200");
        let spans = events(&text, "X");
        assert_eq!(spans.len(), 5 + 5 + 8 + 11);
        assert_eq!(spans[0]["ts"], json!(0.0));
        let copy = spans.iter().find(|e| e["name"] == "1 KiB").unwrap();
        assert_eq!((&copy["ts"], &copy["dur"]), (&json!(1.05), &json!(0.04)));
        assert_eq!(copy["args"]["work"]["from"], json!("pinned"));
        let cut = capped(&recording, &profile, 4);
        assert_eq!(events(&cut, "X").len(), 4);
        assert!(cut.contains(r#""spans_left_out":"25""#), "{cut}");
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
