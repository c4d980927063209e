//! The records of a benchmark, before they are analysed. All times are nanoseconds of the
//! recording's own clock, which device and host share.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::intervals::Interval;
use super::report::Work;

/// Work on other streams may end so late, as in the wait behind a sample: it may be for the next iteration.
const LATE_NS: u64 = 20_000;
/// Much more than the clocks of two devices disagree by in the records.
const OTHER_DEVICE_NS: u64 = 200_000;

/// Everything recorded of one benchmark.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// Iterations as the benchmark queues them. The tables are about these.
    pub steady: Window,
    /// Single iterations, each from an idle device and awaited. The timeline shows one of these.
    pub singles: Vec<Window>,
    /// All windows' records.
    pub raw: Raw,
    /// The ranges of the code, by their numbers.
    pub ranges: Vec<RangeRecord>,
    /// Nanoseconds per iteration, measured just before with nothing recorded.
    pub unrecorded_ns: f64,
}

/// CUPTI's records of all windows together.
#[derive(Clone, Debug, Default)]
pub struct Raw {
    /// Work on devices.
    pub work: Vec<WorkRecord>,
    /// Calls of the host.
    pub calls: Vec<CallRecord>,
    /// Which range a call was made in: the call's correlation id and the range's number.
    pub in_range: Vec<(u32, u64)>,
    /// Records that were lost.
    pub dropped: u64,
    /// Work whose time could not be taken, left out of `work`.
    pub untimed: u64,
}

impl Raw {
    /// Adds the records of another window.
    pub fn append(&mut self, mut more: Raw) {
        self.work.append(&mut more.work);
        self.calls.append(&mut more.calls);
        self.in_range.append(&mut more.in_range);
        self.dropped += more.dropped;
        self.untimed += more.untimed;
    }

    /// The work outside of the window between two marks, the pieces of work of range `marks`: it starts before the
    /// first one or ends long after the second one. Work on their own stream is in order, and that of another device
    /// may begin early to wait for its peers. If a record is missing there is none, because the rest does not tell.
    pub fn outside(&self, marks: u64) -> Vec<&WorkRecord> {
        let of_marks =
            |(correlation, range): &(u32, u64)| (*range == marks).then_some(*correlation);
        let correlations: HashSet<u32> = self.in_range.iter().filter_map(of_marks).collect();
        let is_mark = |record: &&WorkRecord| correlations.contains(&record.correlation);
        let (mut marks, mut work): (Vec<_>, Vec<_>) = self.work.iter().partition(is_mark);
        marks.sort_by_key(|mark| mark.start);
        let [opening, closing] = marks[..] else {
            return Vec::new();
        };
        if self.dropped + self.untimed > 0 {
            return Vec::new();
        }
        work.retain(|record| {
            if record.device == closing.device {
                record.place() != closing.place()
                    && (record.start < opening.start || record.end > closing.end + LATE_NS)
            } else {
                record.end > closing.end + OTHER_DEVICE_NS
            }
        });
        work
    }

    /// Adds the calls of the CUDA runtime that made no driver call. The time of the others is already
    /// in their driver calls.
    pub fn add_outer(&mut self, outer: Vec<CallRecord>) {
        let mut starts: HashMap<u32, Vec<u64>> = HashMap::new();
        for call in &self.calls {
            starts.entry(call.thread).or_default().push(call.start);
        }
        for starts in starts.values_mut() {
            starts.sort_unstable();
        }
        let is_empty = |call: &CallRecord| {
            let of_thread = starts.get(&call.thread).map_or(&[][..], Vec::as_slice);
            let first = of_thread.partition_point(|start| *start < call.start);
            of_thread.get(first).is_none_or(|start| *start >= call.end)
        };
        let empty: Vec<CallRecord> = outer.into_iter().filter(is_empty).collect();
        self.calls.extend(empty);
    }
}

/// A piece of work on the device.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkRecord {
    /// The kernel, copy or memory set.
    pub work: Work,
    /// When it began on the device.
    pub start: u64,
    /// When it was done.
    pub end: u64,
    /// Correlation id of the call that launched it; all nodes of a graph have that of the graph's
    /// launch.
    pub correlation: u32,
    /// Index of the device.
    pub device: u32,
    /// Number of the context.
    pub context: u32,
    /// Number of the stream, among those of its context.
    pub stream: u32,
}

impl WorkRecord {
    /// The numbers of its device, context and stream.
    pub(crate) fn place(&self) -> [u32; 3] {
        [self.device, self.context, self.stream]
    }
}

/// A driver call, or a call of the CUDA runtime that makes none.
#[derive(Clone, Debug, PartialEq)]
pub struct CallRecord {
    /// The function's name.
    pub name: Arc<str>,
    /// When it was called.
    pub start: u64,
    /// When it returned.
    pub end: u64,
    /// The calling thread.
    pub thread: u32,
    /// Correlation id, by which work names the call that launched it.
    pub correlation: u32,
}

/// A range of the code. Its number is its index in [`Recording::ranges`].
#[derive(Clone, Debug, PartialEq)]
pub struct RangeRecord {
    /// Name in the code.
    pub name: String,
    /// The thread, by a number of its own.
    pub thread: u32,
    /// The range around it, on the same thread.
    pub within: Option<usize>,
    /// When it was entered.
    pub start: u64,
    /// `None` when it had not ended by the end of the recording.
    pub end: Option<u64>,
}

/// Iterations one after the other.
#[derive(Clone, Debug, Default)]
pub struct Window {
    /// In their order.
    pub iterations: Vec<Iteration>,
}

/// One iteration, as the host saw it.
#[derive(Clone, Copy, Debug)]
pub struct Iteration {
    /// When its first call began.
    pub start: u64,
    /// When its last call returned.
    pub end: u64,
    /// When the host knew the device idle after it; `None` if the next iteration followed at once.
    pub idle: Option<u64>,
}

/// The records of one window.
#[derive(Debug, Default)]
pub struct Part<'a> {
    /// How many.
    pub iterations: usize,
    /// From the start of an iteration on an idle device until it is idle again.
    pub spans: Vec<Interval>,
    /// In the order of their starts.
    pub work: Vec<&'a WorkRecord>,
    /// In the order of their starts.
    pub calls: Vec<&'a CallRecord>,
    /// Numbers of ranges.
    pub ranges: Vec<usize>,
}

impl Recording {
    /// The records of a window's iterations: calls and ranges that begin in an iteration, and the
    /// work that these calls launch, however late it runs. Work whose call was not recorded
    /// belongs to the window in whose time it starts.
    pub fn part(&self, window: &Window) -> Part<'_> {
        let launched: HashMap<u32, u64> = (self.raw.calls.iter())
            .map(|c| (c.correlation, c.start))
            .collect();
        let span_of = window.span_of_each();
        let awaited = window.spans(|i| i.idle.unwrap_or(i.end));
        let mut part = Part {
            iterations: window.iterations.len(),
            spans: window.spans(|i| i.end),
            work: Vec::new(),
            calls: (self.raw.calls.iter())
                .filter(|c| window.iteration_at(c.start).is_some())
                .collect(),
            ranges: (self.ranges.iter().enumerate())
                .filter(|(_, r)| window.iteration_at(r.start).is_some())
                .map(|(i, _)| i)
                .collect(),
        };
        for record in &self.raw.work {
            let span = match launched.get(&record.correlation) {
                Some(&call) => window.iteration_at(call).map(|i| span_of[i]),
                None => (awaited.iter())
                    .position(|&(start, end)| start <= record.start && record.start <= end),
            };
            if let Some(span) = span {
                part.spans[span].1 = part.spans[span].1.max(record.end);
                part.work.push(record);
            }
        }
        part.work.sort_by_key(|r| (r.start, r.end));
        part.calls.sort_by_key(|c| (c.start, c.end));
        part
    }

    /// Whether the iterations neither call the driver nor leave work to a device. (The recorder's own
    /// waits between them are records too.)
    pub fn has_nothing(&self) -> bool {
        let part = self.part(&self.steady);
        part.work.is_empty() && part.calls.is_empty()
    }

    /// How many pieces of work start before the call that launched them, and by how much at most: the
    /// error with which CUPTI aligns the clocks of device and host.
    pub(crate) fn ahead_of_calls(&self) -> (usize, u64) {
        let calls: HashMap<u32, u64> = (self.raw.calls.iter())
            .map(|c| (c.correlation, c.start))
            .collect();
        (self.raw.work.iter())
            .filter_map(|w| calls.get(&w.correlation)?.checked_sub(w.start))
            .filter(|&ahead| ahead > 0)
            .fold((0, 0), |(n, most), ahead| (n + 1, most.max(ahead)))
    }

    /// Names of the ranges around a range and its own, outermost first, with ` / ` between.
    pub fn path(&self, range: usize) -> String {
        let mut names: Vec<&str> = (self.and_around(range))
            .map(|r| self.ranges[r].name.as_str())
            .collect();
        names.reverse();
        names.join(" / ")
    }

    /// A range and those around it, innermost first.
    pub(crate) fn and_around(&self, range: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(Some(range), |&r| self.ranges[r].within)
    }
}

impl Window {
    /// The iteration that runs on the host at that time.
    fn iteration_at(&self, time: u64) -> Option<usize> {
        let next = self.iterations.partition_point(|i| i.start <= time);
        let at = next.checked_sub(1)?;
        (time <= self.iterations[at].end).then_some(at)
    }

    /// Runs of iterations after which the host waited for the device, from the start of the first
    /// to the `end` of the last.
    pub fn spans(&self, end: impl Fn(&Iteration) -> u64) -> Vec<Interval> {
        let mut spans = Vec::new();
        let mut start = None;
        for (at, iteration) in self.iterations.iter().enumerate() {
            let from = *start.get_or_insert(iteration.start);
            if iteration.idle.is_some() || at + 1 == self.iterations.len() {
                spans.push((from, end(iteration)));
                start = None;
            }
        }
        spans
    }

    /// The index of the [span](Self::spans) of each iteration.
    fn span_of_each(&self) -> Vec<usize> {
        let mut span = 0;
        (self.iterations.iter())
            .map(|i| {
                let own = span;
                span += usize::from(i.idle.is_some());
                own
            })
            .collect()
    }
}

impl Window {
    /// Total time of its iterations, from an idle device until the host knew it idle again.
    pub fn nanoseconds(&self) -> f64 {
        let spans = self.spans(|i| i.idle.unwrap_or(i.end));
        spans.iter().map(|(start, end)| (end - start) as f64).sum()
    }
}

/// Records for tests, of this crate and of the one that records.
#[doc(hidden)]
pub mod planted {
    use super::*;

    /// A kernel of four blocks.
    pub fn kernel(name: &str) -> Work {
        Work::Kernel {
            name: name.to_owned(),
            grid: [4, 1, 1],
            block: [128, 1, 1],
            registers: 32,
            shared_bytes: 0,
        }
    }

    /// A piece of work on the device.
    pub fn work(work: Work, start: u64, end: u64, correlation: u32) -> WorkRecord {
        WorkRecord {
            work,
            start,
            end,
            correlation,
            device: 0,
            context: 1,
            stream: 7,
        }
    }

    /// A driver call.
    pub fn call(name: &str, start: u64, end: u64, correlation: u32) -> CallRecord {
        CallRecord {
            name: name.into(),
            start,
            end,
            thread: 1,
            correlation,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::planted::{call, kernel, work};
    use super::*;
    use crate::tests::window;

    #[test]
    fn a_call_of_the_runtime_counts_only_without_driver_calls_in_it() {
        let on = |thread, call: CallRecord| CallRecord { thread, ..call };
        let mut raw = Raw {
            calls: vec![
                on(1, call("cuMemcpyAsync", 15, 20, 1)),
                on(1, call("cuLaunchKernel", 40, 45, 2)),
            ],
            ..Raw::default()
        };
        raw.add_outer(vec![
            on(1, call("cudaMemcpyAsync", 10, 21, 1)),
            on(1, call("cudaLaunchKernelExC", 25, 35, 3)),
            // Of another thread.
            on(2, call("cudaLaunchKernel", 38, 46, 4)),
            on(1, call("cudaGetLastError", 45, 50, 5)),
        ]);
        let starts = Vec::from_iter(raw.calls.iter().map(|call| call.start));
        assert_eq!(starts, [15, 40, 25, 38, 45], "all but cudaMemcpyAsync");
    }

    #[test]
    fn work_belongs_where_it_was_launched_however_late_it_runs() {
        let recording = Recording {
            steady: window(&[(100, 120, None), (120, 140, Some(400))]),
            singles: vec![window(&[(500, 520, Some(600))])],
            raw: Raw {
                calls: vec![
                    call("cuLaunchKernel", 130, 135, 2),
                    call("cuLaunchKernel", 105, 110, 1),
                    call("cuCtxSynchronize", 141, 399, 9),
                    call("cuLaunchKernel", 505, 510, 3),
                ],
                work: vec![
                    work(kernel("b"), 300, 390, 2),
                    work(kernel("a"), 112, 300, 1),
                    work(kernel("c"), 515, 590, 3),
                    work(kernel("nobody's"), 350, 360, 77),
                    work(kernel("before"), 50, 99, 78),
                ],
                ..Raw::default()
            },
            ..Recording::default()
        };
        let part = recording.part(&recording.steady);
        let names: Vec<_> = part.work.iter().map(|w| w.start).collect();
        assert_eq!(names, [112, 300, 350]);
        assert_eq!(part.spans, [(100, 390)]);
        assert_eq!(part.iterations, 2);
        assert_eq!(part.calls.len(), 2, "our own wait is not the benchmark's");
        let single = recording.part(&recording.singles[0]);
        assert_eq!(single.work.len(), 1);
        assert_eq!(single.spans, [(500, 590)]);
    }

    #[test]
    fn iterations_that_are_awaited_are_spans_of_their_own() {
        let recording = Recording {
            steady: window(&[(100, 110, Some(130)), (200, 210, Some(240))]),
            raw: Raw {
                calls: vec![call("launch", 101, 105, 1), call("launch", 201, 205, 2)],
                work: vec![
                    work(kernel("a"), 108, 128, 1),
                    work(kernel("a"), 208, 235, 2),
                ],
                ..Raw::default()
            },
            ..Recording::default()
        };
        let part = recording.part(&recording.steady);
        assert_eq!(part.spans, [(100, 128), (200, 235)]);
    }

    #[test]
    fn work_is_outside_of_the_window_between_marks_if_it_reaches_over_an_end() {
        let mark = |start, correlation| work(kernel("mark"), start, start + 10, correlation);
        let beside = |device, start, end| WorkRecord {
            device,
            stream: 8,
            ..work(kernel("k"), start, end, 9)
        };
        let far = OTHER_DEVICE_NS;
        let work = vec![
            mark(2 * far, 2),
            // On the stream of the marks.
            work(kernel("k"), 0, 5 * far, 9),
            mark(far + 10, 1),
            // The device of the marks, and another one.
            beside(0, far + 10, 2 * far + 10 + LATE_NS),
            beside(0, far + 9, far + 50),
            beside(0, far + 50, 2 * far + 11 + LATE_NS),
            beside(1, 9, 3 * far + 10),
            beside(1, far, 3 * far + 11),
        ];
        let mut raw = Raw {
            work,
            in_range: vec![(2, 7), (9, 3), (1, 7)],
            ..Raw::default()
        };
        let found: Vec<u64> = raw.outside(7).iter().map(|record| record.start).collect();
        assert_eq!(found, [far + 9, far + 50, far]);
        raw.untimed = 1;
        assert!(raw.outside(7).is_empty());
        raw.untimed = 0;
        raw.in_range.pop();
        assert!(raw.outside(7).is_empty());
    }

    #[test]
    fn a_clock_that_disagrees_is_seen() {
        let mut recording = Recording::default();
        recording.raw.calls = vec![call("launch", 100, 110, 1), call("launch", 200, 210, 2)];
        recording.raw.work = vec![
            work(kernel("a"), 97, 120, 1),
            work(kernel("a"), 200, 220, 2),
        ];
        assert_eq!(recording.ahead_of_calls(), (1, 3));
    }
}
