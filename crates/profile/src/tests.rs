//! A profile from its recording to the text that a terminal shows.

use std::ops::Range;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::recording::planted::{call, kernel, work};
use crate::recording::{Iteration, RangeRecord, Raw, Recording, Window, WorkRecord};
use crate::{DeviceRow, Place, Profile, Work, analyse};

/// A range of the code.
pub(crate) fn range(
    name: &str,
    within: Option<usize>,
    start: u64,
    end: impl Into<Option<u64>>,
) -> RangeRecord {
    RangeRecord {
        name: name.to_owned(),
        thread: 1,
        within,
        start,
        end: end.into(),
    }
}

/// A copy from pinned memory to the device.
pub(crate) fn upload(bytes: u64) -> Work {
    Work::Copy {
        from: Place::Pinned,
        to: Place::Device,
        bytes,
    }
}

/// Iterations: start, end, and when the device was known idle.
pub(crate) fn window(iterations: &[(u64, u64, Option<u64>)]) -> Window {
    Window {
        iterations: (iterations.iter())
            .map(|&(start, end, idle)| Iteration { start, end, idle })
            .collect(),
    }
}

pub(crate) type Random = Xoshiro256PlusPlus;

/// Sources of random cases. A test that fails shows the number of its last case.
pub(crate) fn random_cases() -> impl Iterator<Item = Random> {
    (0..if cfg!(miri) { 4 } else { 256 }).map(|case| {
        println!("case {case}");
        Random::seed_from_u64(case)
    })
}

/// A random number of random things.
pub(crate) fn several<T>(
    random: &mut Random,
    count: Range<usize>,
    thing: impl Fn(&mut Random) -> T,
) -> Vec<T> {
    let count = random.random_range(count);
    (0..count).map(|_| thing(random)).collect()
}

/// Two iterations back to back, the second copy behind the first kernel; and three single ones, of which
/// the median has two threads, two streams and a range that never ends.
pub(crate) fn recording() -> Recording {
    let (mut second_thread, mut second_stream) = (
        call("cuLaunchKernel", 1060, 1070, 7),
        work(kernel("b"), 1090, 1150, 7),
    );
    second_thread.thread = 2;
    second_stream.stream = 9;
    Recording {
        steady: window(&[(0, 50, None), (50, 100, Some(600))]),
        singles: vec![
            window(&[(1000, 1100, Some(1300))]),
            window(&[(3000, 3010, Some(3400))]),
            window(&[(4000, 4010, Some(4600))]),
        ],
        ranges: vec![
            range("step", None, 1, 45),
            range("load", Some(0), 1, 21),
            range("step", None, 51, 95),
            range("load", Some(2), 51, 71),
            range("step", None, 1005, None),
        ],
        raw: Raw {
            calls: vec![
                call("cuMemcpyHtoDAsync", 2, 20, 1),
                call("cuLaunchKernel", 22, 40, 2),
                call("cuMemcpyHtoDAsync", 52, 70, 3),
                call("cuLaunchKernel", 72, 92, 4),
                call("cuCtxSynchronize", 101, 590, 5),
                call("cuLaunchKernel", 1010, 1020, 6),
                second_thread,
                call("cuLaunchKernel", 3001, 3005, 8),
                call("cuLaunchKernel", 4001, 4005, 9),
            ],
            work: vec![
                work(upload(10), 30, 130, 1),
                work(kernel("k"), 150, 330, 2),
                work(upload(10), 200, 300, 3),
                work(kernel("k"), 360, 560, 4),
                work(kernel("a"), 1030, 1120, 6),
                work(kernel("a"), 1100, 1140, 6),
                second_stream,
                work(upload(1024), 1050, 1090, 6),
                work(Work::Set { bytes: 8 }, 1200, 1210, 6),
                work(kernel("k"), 3010, 3200, 8),
                work(kernel("k"), 4050, 4500, 9),
            ],
            in_range: vec![(1, 1), (2, 0), (3, 3), (4, 2), (5, 99)],
            ..Raw::default()
        },
        unrecorded_ns: 250.0,
    }
}

pub(crate) fn about() -> Profile {
    Profile {
        benchmark: "saxpy/gpu".to_owned(),
        gpu: "NVIDIA H200".to_owned(),
        cupti: "13.0".to_owned(),
        notes: vec!["the gate is off".to_owned()],
        ..Profile::default()
    }
}

#[test]
fn a_recording_reads_as_tables() {
    let profile = analyse(&recording(), about());
    let expected = "\
saxpy/gpu: one kernel, 66 %; copies 20 %

  on the device                  calls    time  share  grid  block  regs      rate
  k                                  1  190 ns   66 %     4    128    32
  copy pinned to device, 10.0 B      1  100 ns   34 %                     100 MB/s

  driver call        calls  host time
  cuLaunchKernel         1    19.0 ns
  cuMemcpyHtoDAsync      1    18.0 ns

  ranges       calls  host time  device time  share
  step             1    44.0 ns       290 ns  100 %
  step / load      1    20.0 ns       100 ns   34 %

  device busy: 240 ns of 250 ns (96 %)
  idle: 10.0 ns
  copies: 100 ns, 50 % of it hidden behind kernels
  first kernel: starts after 30.0 ns
  recording: 280 ns per iteration, 250 ns without it (+12.0 %)
  note: the gate is off
  2 iterations, 4 records of work; NVIDIA H200, CUPTI 13.0
";
    assert_eq!(format!("{profile:96}"), expected);
    let kernel = &profile.device[0];
    let times = (kernel.median_ns, kernel.shortest_ns, kernel.longest_ns);
    assert_eq!(times, (190.0, 180.0, 200.0));
    // Nor does the form lose anything on its way through a file.
    let text = serde_json::to_string(&profile).unwrap();
    assert_eq!(serde_json::from_str::<Profile>(&text).unwrap(), profile);
}

#[test]
fn long_names_give_way_to_the_width() {
    let mut profile = analyse(&recording(), about());
    if let Work::Kernel { name, grid, .. } = &mut profile.device[0].work {
        *name = format!("cutlass::{}::end", "x".repeat(100));
        *grid = [2, 3, 4];
    }
    for width in [96, 120] {
        let text = format!("{profile:width$}");
        let device = text.split("\n\n").nth(1).unwrap();
        let widest = device.lines().map(|line| line.chars().count()).max();
        assert_eq!(widest, Some(width), "{text}");
        assert!(device.contains("::end"), "{text}");
        assert!(device.contains("2×3×4"), "{text}");
    }
}

/// Perfetto drops a span that overlaps another of its lane without lying within it.
#[test]
fn no_work_is_lost_or_counted_twice_and_nothing_overlaps_in_a_lane() {
    for mut random in random_cases() {
        let work = several(&mut random, 1..40, |random| {
            let (start, ns) = (random.random_range(0..500), random.random_range(1..80));
            let what = match random.random_range(0..4) {
                0 => upload(1),
                name => kernel(&name.to_string()),
            };
            WorkRecord {
                stream: random.random_range(0..2),
                ..work(what, start, start + ns, 0)
            }
        });
        let (records, ns) = (work.len(), work.iter().map(|it| it.end - it.start));
        let ns = ns.sum::<u64>() as f64;
        let recording = Recording {
            steady: window(&[(0, 400, None), (400, 700, Some(800))]),
            singles: vec![window(&[(0, 700, Some(800))])],
            raw: Raw {
                work,
                ..Raw::default()
            },
            ..Recording::default()
        };
        let profile = analyse(&recording, Profile::default());
        let s = &profile.summary;
        assert!(s.busy_ns <= s.iteration_ns);
        assert!((s.kernels_ns + s.copies_ns - s.hidden_ns - s.busy_ns).abs() < 1e-9);
        assert!(s.hidden_ns <= s.copies_ns.min(s.kernels_ns));
        let rows = &profile.device;
        let sum = |of: fn(&DeviceRow) -> f64| rows.iter().map(of).sum::<f64>();
        assert_eq!(2.0 * sum(|row| row.per_iteration), records as f64);
        assert_eq!(2.0 * sum(|row| row.ns_per_iteration), ns);
        assert!((sum(|row| row.share) - 1.0).abs() < 1e-9);
        assert!(rows.is_sorted_by(|a, b| a.ns_per_iteration >= b.ns_per_iteration));
        let lanes = profile.timeline.lanes.iter().map(|lane| &lane.spans);
        assert_eq!(lanes.clone().map(Vec::len).sum::<usize>(), records);
        for spans in lanes {
            assert!(spans.is_sorted_by(|a, b| a.end_ns <= b.start_ns));
        }
    }
}
