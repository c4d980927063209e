//! Profiles as a recorder leaves them, made up of planted times: an iteration is told as calls of
//! the host and work on the device, and the table and the summary follow from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::model::id::Id;
use crate::store::layout::{PROFILE, PROFILE_FILE};
use crate::store::whole_file::write_json;
use crossover_profile::{
    CallRow, DeviceRow, Lane, LaneKind, Place, Profile, SCHEMA, Span, Summary, Timeline, Work,
};
use crossover_words::Clock;

/// An iteration in the making; times in ns from its start.
#[derive(Default)]
struct Iteration {
    calls: Vec<Span>,
    work: Vec<(LaneKind, String, Work, Span)>,
}

fn span(name: &str, start_ns: f64, length_ns: f64) -> Span {
    Span {
        start_ns,
        end_ns: start_ns + length_ns,
        name: name.to_owned(),
    }
}

/// A kernel of 4 blocks of 256 threads.
pub fn kernel(name: &str) -> Work {
    Work::Kernel {
        name: name.to_owned(),
        grid: [4, 1, 1],
        block: [256, 1, 1],
        registers: 16,
        shared_bytes: 0,
    }
}

fn copy(from: Place, to: Place, bytes: u64) -> Work {
    Work::Copy { from, to, bytes }
}

impl Iteration {
    /// Gives its end.
    fn call(&mut self, name: &str, start: f64, length: f64) -> f64 {
        self.calls.push(span(name, start, length));
        start + length
    }

    /// Gives its end.
    fn run(&mut self, lane: &str, work: Work, start: f64, length: f64) -> f64 {
        let (kind, name) = match &work {
            Work::Kernel { name, .. } => (LaneKind::Kernels, name.clone()),
            Work::Copy { .. } => (LaneKind::Copies, "copy".to_owned()),
            Work::Set { .. } => (LaneKind::Sets, "set".to_owned()),
        };
        let span = span(&name, start, length);
        self.work.push((kind, lane.to_owned(), work, span));
        start + length
    }

    fn lanes(&self) -> Vec<Lane> {
        let mut lanes = vec![Lane {
            kind: LaneKind::Calls,
            name: "thread 4711".to_owned(),
            spans: self.calls.clone(),
        }];
        for (kind, name, _, span) in &self.work {
            let known = lanes
                .iter()
                .position(|l| l.kind == *kind && l.name == *name);
            let at = known.unwrap_or_else(|| {
                lanes.push(Lane {
                    kind: *kind,
                    name: name.clone(),
                    spans: Vec::new(),
                });
                lanes.len() - 1
            });
            lanes[at].spans.push(span.clone());
        }
        lanes.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
        lanes
    }

    fn device(&self) -> Vec<DeviceRow> {
        let mut rows: BTreeMap<&Work, Vec<f64>> = BTreeMap::new();
        for (_, _, work, span) in &self.work {
            rows.entry(work)
                .or_default()
                .push(span.end_ns - span.start_ns);
        }
        let all: f64 = rows.values().flatten().sum();
        let row = |(work, mut ns): (&Work, Vec<f64>)| {
            ns.sort_by(f64::total_cmp);
            let sum: f64 = ns.iter().sum();
            DeviceRow {
                work: work.clone(),
                per_iteration: ns.len() as f64,
                ns_per_iteration: sum,
                share: sum / all,
                median_ns: ns[ns.len() / 2],
                shortest_ns: ns[0],
                longest_ns: ns[ns.len() - 1],
            }
        };
        let mut rows: Vec<DeviceRow> = rows.into_iter().map(row).collect();
        rows.sort_by(|a, b| b.ns_per_iteration.total_cmp(&a.ns_per_iteration));
        rows
    }

    fn calls(&self) -> Vec<CallRow> {
        let mut rows: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        for call in &self.calls {
            let row = rows.entry(&call.name).or_default();
            *row = (row.0 + 1.0, row.1 + call.end_ns - call.start_ns);
        }
        let row = |(name, (per_iteration, ns_per_iteration)): (&str, (f64, f64))| CallRow {
            name: name.to_owned(),
            per_iteration,
            ns_per_iteration,
        };
        let mut rows: Vec<CallRow> = rows.into_iter().map(row).collect();
        rows.sort_by(|a, b| b.ns_per_iteration.total_cmp(&a.ns_per_iteration));
        rows
    }

    /// What ran at each moment: kernels, copies, and both.
    fn covered(&self) -> [f64; 4] {
        let mut edges: Vec<f64> = (self.work.iter())
            .flat_map(|(.., span)| [span.start_ns, span.end_ns])
            .collect();
        edges.sort_by(f64::total_cmp);
        let [mut busy, mut kernels, mut copies, mut both] = [0.0; 4];
        for edge in edges.windows(2) {
            let runs = |kind| {
                let mut of = self.work.iter().filter(|w| w.0 == kind);
                of.any(|(.., s)| s.start_ns <= edge[0] && edge[1] <= s.end_ns)
            };
            let length = edge[1] - edge[0];
            let (kernel, copy) = (runs(LaneKind::Kernels), runs(LaneKind::Copies));
            busy += if kernel || copy { length } else { 0.0 };
            kernels += if kernel { length } else { 0.0 };
            copies += if copy { length } else { 0.0 };
            both += if kernel && copy { length } else { 0.0 };
        }
        [busy, kernels, copies, both]
    }

    fn profile(self, id: &str, length_ns: f64, sentence: &str) -> Profile {
        let [busy_ns, kernels_ns, copies_ns, hidden_ns] = self.covered();
        let first = (self.work.iter())
            .filter(|(kind, ..)| *kind == LaneKind::Kernels)
            .map(|(.., span)| span.start_ns)
            .min_by(f64::total_cmp);
        let iterations = 100;
        Profile {
            schema: SCHEMA,
            benchmark: id.to_owned(),
            clock: Clock::Wall.name().to_owned(),
            gpu: "NVIDIA H200".to_owned(),
            cupti: "13.0".to_owned(),
            recorded: "2026-11-22T10:00:00Z".to_owned(),
            iterations,
            records: iterations * self.work.len() as u64,
            notes: Vec::new(),
            device: self.device(),
            calls: self.calls(),
            ranges: Vec::new(),
            summary: Summary {
                iteration_ns: length_ns,
                unrecorded_ns: length_ns * 0.9,
                busy_ns,
                idle_ns: length_ns - busy_ns,
                gaps: self.work.len() as f64,
                median_gap_ns: (length_ns - busy_ns) / self.work.len() as f64,
                kernels_ns,
                copies_ns,
                hidden_ns,
                first_kernel_ns: first,
                sentence: sentence.to_owned(),
            },
            timeline: Timeline {
                length_ns,
                lanes: self.lanes(),
                left_out: 0,
            },
        }
    }
}

/// A chain of 32 short kernels, each launched by itself.
pub fn eager(id: &str) -> Profile {
    let mut it = Iteration::default();
    let (mut host, mut device) = (0.0, 0.0);
    for _ in 0..32 {
        host = it.call("cuLaunchKernel", host, 2_100.0) + 300.0;
        let start = f64::max(host + 4_000.0, device + 700.0);
        device = it.run("stream 13", kernel("scale_add"), start, 1_180.0);
    }
    let end = it.call("cuStreamSynchronize", host, device - host + 2_000.0);
    it.profile(id, end, "idle 55 %: bound by launches")
}

/// The same chain, replayed as a graph.
pub fn graph(id: &str) -> Profile {
    let mut it = Iteration::default();
    let host = it.call("cuGraphLaunch", 0.0, 7_400.0);
    let mut device = 9_000.0;
    for _ in 0..32 {
        device = it.run("stream 13", kernel("scale_add"), device, 1_180.0) + 90.0;
    }
    let end = it.call("cuStreamSynchronize", host, device - host + 2_000.0);
    it.profile(id, end, "one kernel, 100 % of the time on the device")
}

const BYTES: u64 = 64 << 20;

/// To the device, through a kernel and back, one after the other, or in pieces that overlap: on
/// a stream each, so that the next piece comes while the one before is worked on.
pub fn pieces(id: &str, pieces: u64) -> Profile {
    let mut it = Iteration::default();
    let bytes = BYTES / pieces;
    let (link, work) = (bytes as f64 / 55.0, bytes as f64 / 160.0);
    let [mut host, mut up, mut sine, mut down] = [0.0, 6_000.0, 0.0, 0.0];
    for piece in 0..pieces {
        for call in ["cuMemcpyHtoDAsync", "cuLaunchKernel", "cuMemcpyDtoHAsync"] {
            host = it.call(call, host, 2_400.0) + 200.0;
        }
        let sent = copy(Place::Pinned, Place::Device, bytes);
        up = it.run("host to device", sent, up, link) + 800.0;
        let start = f64::max(up, sine) + 600.0;
        let lane = format!("stream {}", 13 + piece % 3);
        sine = it.run(&lane, kernel("nested_sine4"), start, work);
        let back = copy(Place::Device, Place::Pinned, bytes);
        down = it.run("device to host", back, f64::max(sine, down) + 800.0, link);
    }
    let end = it.call("cuCtxSynchronize", host, down - host + 3_000.0);
    let sentence = match pieces {
        1 => "86 % copies: bound by the link",
        _ => "97 % copies: bound by the link",
    };
    it.profile(id, end, sentence)
}

/// What cuBLAS calls one of its kernels.
pub(crate) const CUTLASS: &str = "cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>";

/// A product from host memory of one kind and back; the driver copies ordinary memory in pieces
/// through memory of its own, and the call waits for it.
pub fn product(id: &str, memory: Place) -> Profile {
    let mut it = Iteration::default();
    let bytes = 16 << 20;
    let rate = if memory == Place::Pinned { 55.0 } else { 14.0 };
    let length = bytes as f64 / rate;
    let mut at = 3_000.0;
    for _ in 0..2 {
        let held = if memory == Place::Pinned {
            2_500.0
        } else {
            length
        };
        it.call("cuMemcpyHtoDAsync_v2", at - 2_800.0, held);
        let sent = copy(memory, Place::Device, bytes);
        at = it.run("host to device", sent, at, length) + 3_500.0;
    }
    it.call("cuLaunchKernel", at - 3_000.0, 2_600.0);
    let gemm = Work::Kernel {
        name: CUTLASS.to_owned(),
        grid: [16, 8, 1],
        block: [256, 1, 1],
        registers: 202,
        shared_bytes: 49_152,
    };
    at = it.run("stream 7", gemm, at, 340_000.0) + 1_200.0;
    let held = if memory == Place::Pinned {
        2_500.0
    } else {
        length
    };
    it.call("cuMemcpyDtoHAsync_v2", at - 2_800.0, held);
    let back = copy(Place::Device, memory, bytes);
    let end = it.run("device to host", back, at, length);
    it.call("cuStreamSynchronize", end - 8_000.0, 11_000.0);
    let end = end + 3_000.0;
    it.profile(id, end, "73 % copies: bound by the link")
}

/// Writes a profile to its place under `root`; gives the benchmark's folder.
pub fn plant(root: &Path, profile: &Profile) -> PathBuf {
    let id: Id = profile.benchmark.parse().expect("an id");
    let dir = root.join(id.directory());
    let path = dir.join(PROFILE).join(PROFILE_FILE);
    write_json(&path, profile).expect("a temporary folder can be written");
    dir
}
