//! A recording in the Chrome trace format, which Perfetto opens.
//!
//! <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::intervals::Interval;
use super::recording::{Recording, WorkRecord};
use super::report::{LaneKind, Profile, Work};
use super::timeline::{Of, Outermost, Piece, Rows, label, numbered, pieces};

/// Upper bound on the spans of a trace: about 25 MB.
pub const SPANS: usize = 100_000;

/// Number of the process that stands for the host; GPU n has the number HOST + 1 + n.
const HOST: u32 = 1;

/// The trace, and how many spans are left out of it because there are too many.
pub fn trace(recording: &Recording, profile: &Profile) -> (String, u64) {
    capped(recording, profile, SPANS)
}

/// Where a span is drawn: process, kind of lane, name of the lane. The order is that from top to
/// bottom.
type Place = (u32, u8, String);

struct Drawn {
    place: Place,
    /// Of a range: those in it share its row.
    range: Option<Outermost>,
    start: u64,
    end: u64,
    name: String,
    category: &'static str,
    arguments: Value,
}

impl Drawn {
    /// Of no range, and called what it is.
    fn new(place: Place, (start, end): Interval, category: &'static str, arguments: Value) -> Self {
        Self {
            place,
            range: None,
            start,
            end,
            name: category.to_owned(),
            category,
            arguments,
        }
    }
}

fn capped(recording: &Recording, profile: &Profile, most: usize) -> (String, u64) {
    let mut spans = spans(recording);
    spans.sort_by_key(|s| (s.start, std::cmp::Reverse(s.end)));
    let left_out = spans.len().saturating_sub(most);
    // The last go, so that the time that is left is shown in full.
    spans.truncate(most);
    let begin = spans.first().map_or(0, |s| s.start);

    let mut lanes: BTreeMap<Place, Rows> = BTreeMap::new();
    let rows: Vec<usize> = (spans.iter())
        .map(|span| {
            let free = lanes.entry(span.place.clone()).or_default();
            match span.range {
                Some(range) => free.take_range(range),
                None => free.take(span.start, span.end),
            }
        })
        .collect();
    let mut events = Vec::new();
    let mut ids: BTreeMap<(&Place, usize), u32> = BTreeMap::new();
    for (place, free) in &lanes {
        for row in 0..free.count() {
            let id = ids.len() as u32 + 1;
            ids.insert((place, row), id);
            let about = |what: &str, arguments| json!({"ph": "M", "name": what, "pid": place.0, "tid": id, "args": arguments});
            events.push(about(
                "process_name",
                json!({"name": process(place.0, &profile.gpu)}),
            ));
            events.push(about("process_sort_index", json!({"sort_index": place.0})));
            events.push(about(
                "thread_name",
                json!({"name": numbered(&place.2, row)}),
            ));
            events.push(about("thread_sort_index", json!({"sort_index": id})));
        }
    }
    let micros = |ns: u64| ns as f64 / 1e3;
    for (span, row) in spans.iter().zip(rows) {
        events.push(json!({
            "ph": "X",
            "name": span.name,
            "cat": span.category,
            "pid": span.place.0,
            "tid": ids[&(&span.place, row)],
            "ts": micros(span.start - begin),
            "dur": micros(span.end.saturating_sub(span.start)),
            "args": span.arguments,
        }));
    }
    let trace = json!({
        "traceEvents": events,
        "displayTimeUnit": "ns",
        "otherData": {
            "benchmark": profile.benchmark,
            "gpu": profile.gpu,
            "cupti": profile.cupti,
            "recorded": profile.recorded,
            "spans_left_out": left_out.to_string(),
        },
    });
    (trace.to_string(), left_out as u64)
}

fn process(process: u32, gpu: &str) -> String {
    match process {
        HOST => "host".to_owned(),
        gpu_process => format!("GPU {}: {gpu}", gpu_process - HOST - 1),
    }
}

/// Everything of the windows: iterations, ranges, calls, work.
fn spans(recording: &Recording) -> Vec<Drawn> {
    let host = |order, lane: &str| (HOST, order, lane.to_owned());
    let overhead = recording.raw.overhead.iter().map(|&(start, end)| {
        let place = host(3, "CUPTI's own work");
        Drawn::new(place, (start, end.max(start)), "overhead", json!({}))
    });
    let mut spans: Vec<Drawn> = overhead.collect();
    let windows = (recording.singles.iter().map(|w| ("single", w)))
        .chain([("back to back", &recording.steady)]);
    for (how, window) in windows {
        spans.extend(window.iterations.iter().map(|iteration| {
            let (place, time) = (host(0, "iterations"), (iteration.start, iteration.end));
            Drawn::new(place, time, "iteration", json!({"recorded": how}))
        }));
        let part = recording.part(window);
        let end = part.spans.last().map_or(0, |s| s.1);
        let pieces = pieces(recording, &part, end).into_iter();
        spans.extend(pieces.map(|piece| drawn(recording, piece)));
    }
    spans
}

fn drawn(recording: &Recording, piece: Piece<'_>) -> Drawn {
    let (place, name, category, arguments) = match piece.of {
        Of::Range(range) => (
            (HOST, 1, piece.lane),
            piece.name,
            "range",
            json!({"path": recording.path(range)}),
        ),
        Of::Call(call) => (
            (HOST, 2, format!("driver calls: {}", piece.lane)),
            piece.name,
            "call",
            json!({"correlation": call.correlation, "thread": call.thread}),
        ),
        Of::Work(record) => {
            let (order, category) = match piece.kind {
                LaneKind::Kernels => (0, "kernel"),
                LaneKind::Copies => (1, "copy"),
                _ => (2, "set"),
            };
            (
                (HOST + 1 + record.device, order, piece.lane),
                label(&record.work),
                category,
                arguments(record),
            )
        }
    };
    let range = match piece.of {
        Of::Range(range) => Some(Outermost::of(recording, range)),
        _ => None,
    };
    Drawn {
        name,
        range,
        ..Drawn::new(place, (piece.start, piece.end), category, arguments)
    }
}

fn arguments(record: &WorkRecord) -> Value {
    let mut arguments = match &record.work {
        Work::Kernel {
            grid,
            block,
            registers,
            shared_bytes,
            ..
        } => {
            let three = |[x, y, z]: &[u32; 3]| format!("{x} x {y} x {z}");
            json!({
                "grid": three(grid),
                "block": three(block),
                "registers": registers,
                "shared_bytes": shared_bytes,
            })
        }
        Work::Copy { from, to, bytes } => json!({"from": from, "to": to, "bytes": bytes}),
        Work::Set { bytes } => json!({"bytes": bytes}),
    };
    arguments["correlation"] = record.correlation.into();
    arguments["stream"] = record.stream.into();
    arguments
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::analyse::{About, analyse};
    use super::super::recording::Raw;
    use super::super::recording::planted::{call, kernel, range, upload, window, work};
    use super::*;

    fn recording() -> Recording {
        Recording {
            steady: window(&[(10_000, 10_100, None), (10_100, 10_200, Some(10_900))]),
            singles: vec![window(&[(1_000, 1_100, Some(1_500))])],
            ranges: vec![range("step", None, 1_001, 1_050)],
            raw: Raw {
                calls: vec![
                    call("cuLaunchKernel", 1_010, 1_020, 1),
                    call("cuMemcpyHtoDAsync", 10_010, 10_020, 2),
                    call("cuLaunchKernel", 10_110, 10_120, 3),
                ],
                work: vec![
                    work(kernel("a"), 1_100, 1_400, 1),
                    work(upload(64), 10_100, 10_500, 2),
                    work(kernel("a"), 10_300, 10_800, 3),
                ],
                overhead: vec![(10_130, 10_140)],
                ..Raw::default()
            },
            ..Recording::default()
        }
    }

    fn events(text: &str, phase: &str) -> Vec<Value> {
        let trace: Value = serde_json::from_str(text).unwrap();
        (trace["traceEvents"].as_array().unwrap().iter())
            .filter(|e| e["ph"] == phase)
            .cloned()
            .collect()
    }

    #[test]
    fn spans_stand_in_named_lanes_and_count_from_the_first() {
        let recording = recording();
        let profile = analyse(
            &recording,
            About {
                gpu: "NVIDIA H200".to_owned(),
                ..About::default()
            },
        );
        let (text, left_out) = trace(&recording, &profile);
        assert_eq!(left_out, 0);
        let names: Vec<_> = (events(&text, "M").iter())
            .filter(|e| e["name"] == "thread_name")
            .map(|e| (e["pid"].clone(), e["args"]["name"].clone()))
            .collect();
        assert_eq!(
            names,
            [
                (json!(1), json!("iterations")),
                (json!(1), json!("ranges")),
                (json!(1), json!("driver calls: host")),
                (json!(1), json!("CUPTI's own work")),
                (json!(2), json!("stream 7")),
                (json!(2), json!("host to device")),
            ]
        );
        let processes: Vec<_> = (events(&text, "M").into_iter())
            .filter(|e| e["name"] == "process_name")
            .map(|e| e["args"]["name"].clone())
            .collect();
        assert!(
            processes.contains(&json!("GPU 0: NVIDIA H200")),
            "{processes:?}"
        );
        let spans = events(&text, "X");
        assert_eq!(spans.len(), 3 + 1 + 3 + 3 + 1);
        assert_eq!(spans[0]["ts"], json!(0.0));
        let copy = spans.iter().find(|e| e["cat"] == "copy").unwrap();
        assert_eq!((&copy["ts"], &copy["dur"]), (&json!(9.1), &json!(0.4)));
        assert_eq!(copy["args"]["from"], json!("pinned"));
        let kernel = spans.iter().find(|e| e["cat"] == "kernel").unwrap();
        assert_eq!(kernel["args"]["block"], json!("128 x 1 x 1"));
    }

    #[test]
    fn ranges_of_two_threads_do_not_share_a_row() {
        let recording = Recording {
            ranges: vec![
                // Of a worker that goes on from the first window to the end.
                range("worker", None, 1_001, None),
                range("step", None, 1_010, Some(1_050)),
                range("decode", Some(0), 1_020, Some(1_080)),
                range("step", None, 10_010, Some(10_050)),
                range("decode", Some(0), 10_020, Some(10_080)),
            ],
            ..recording()
        };
        let (text, _) = trace(&recording, &analyse(&recording, About::default()));
        let names: BTreeMap<u64, Value> = (events(&text, "M").into_iter())
            .filter(|e| e["name"] == "thread_name")
            .map(|e| (e["tid"].as_u64().unwrap(), e["args"]["name"].clone()))
            .collect();
        let rows: Vec<_> = (events(&text, "X").into_iter())
            .filter(|e| e["cat"] == "range")
            .map(|e| {
                (
                    e["name"].clone(),
                    names[&e["tid"].as_u64().unwrap()].clone(),
                )
            })
            .collect();
        let (first, second) = ("ranges", "ranges (2)");
        let expected = [
            ("worker", first),
            ("step", second),
            ("decode", first),
            ("step", second),
            ("decode", first),
        ];
        assert_eq!(rows, expected.map(|(name, row)| (json!(name), json!(row))));
    }

    #[test]
    fn a_cap_cuts_the_end() {
        let recording = recording();
        let profile = analyse(&recording, About::default());
        let (text, left_out) = capped(&recording, &profile, 4);
        assert_eq!(left_out, 7);
        let spans = events(&text, "X");
        assert_eq!(spans.len(), 4);
        assert!(spans.iter().all(|e| e["ts"].as_f64().unwrap() < 1.0));
        assert!(text.contains(r#""spans_left_out":"7""#), "{text}");
    }

    proptest! {
        /// Perfetto drops a span that overlaps another of its lane without lying within it.
        #[test]
        fn nothing_overlaps_in_a_lane(
            pieces in prop::collection::vec((0u64..300, 1u64..60, 0u32..2), 0..40),
        ) {
            let recording = Recording {
                steady: window(&[(0, 400, Some(500))]),
                raw: Raw {
                    work: (pieces.iter())
                        .map(|&(start, long, stream)| {
                            let mut record = work(kernel("k"), start, start + long, 0);
                            record.stream = stream;
                            record
                        })
                        .collect(),
                    ..Raw::default()
                },
                ..Recording::default()
            };
            let (text, _) = trace(&recording, &analyse(&recording, About::default()));
            let mut lanes: BTreeMap<u64, Vec<(f64, f64)>> = BTreeMap::new();
            let spans = events(&text, "X");
            prop_assert_eq!(spans.len(), pieces.len() + 1);
            for e in spans {
                let at = e["ts"].as_f64().unwrap();
                let lane = lanes.entry(e["tid"].as_u64().unwrap()).or_default();
                lane.push((at, at + e["dur"].as_f64().unwrap()));
            }
            for lane in lanes.values() {
                prop_assert!(lane.windows(2).all(|w| w[0].1 <= w[1].0 + 1e-6), "{:?}", lane);
            }
        }
    }
}
