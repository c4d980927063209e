//! How long devices worked, from the records of their work.

use std::collections::{BTreeMap, BTreeSet};

use super::intervals::{Interval, intersection, length, union};
use super::recording::WorkRecord;
use super::report::Work;

/// The work of several iterations on the devices of a process, whichever thread or library launched it. The figures are
/// those of all iterations together.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Activity {
    /// Iterations.
    pub iterations: u64,
    /// Kernels, those of graphs included.
    pub kernels: u64,
    /// Copies and memory sets.
    pub copies: u64,
    /// The time during which a kernel, copy or memory set ran on any stream, ns. Launches and gaps are not in it.
    pub busy_ns: u64,
    /// The time from the first start to the last end, ns. Launches and gaps are in it.
    pub span_ns: u64,
    /// The part of [`busy_ns`](Self::busy_ns) in which more than one stream worked.
    pub overlap_ns: u64,
    /// The streams that took part: the numbers of the device, the context and the stream.
    pub streams: BTreeSet<[u32; 3]>,
    /// Whether the number of kernels of an iteration stayed the same.
    pub is_steady: bool,
}

impl Activity {
    /// The activity of `iterations`, from all their records. It is [steady](Self::is_steady) if each may have as many
    /// kernels.
    pub fn of(work: &[WorkRecord], iterations: u64) -> Self {
        let mut by_stream: BTreeMap<[u32; 3], Vec<Interval>> = BTreeMap::new();
        for record in work {
            by_stream
                .entry(record.place())
                .or_default()
                .push((record.start, record.end));
        }
        let is_kernel = |record: &&WorkRecord| matches!(record.work, Work::Kernel { .. });
        let kernels = work.iter().filter(is_kernel).count() as u64;
        let starts = work.iter().map(|record| record.start);
        let ends = work.iter().map(|record| record.end);
        let (mut busy, mut overlap) = (Vec::new(), Vec::new());
        for of_stream in by_stream.values() {
            // Kernels of one stream may overlap too, by programmatic dependent launch.
            let own = union(of_stream.iter().copied());
            overlap.extend(intersection(&busy, &own));
            busy = union(busy.into_iter().chain(own));
        }
        Self {
            iterations,
            kernels,
            copies: work.len() as u64 - kernels,
            busy_ns: length(&busy),
            span_ns: ends.max().unwrap_or(0) - starts.min().unwrap_or(0),
            overlap_ns: length(&union(overlap)),
            streams: by_stream.into_keys().collect(),
            is_steady: kernels.is_multiple_of(iterations.max(1)),
        }
    }

    /// Adds iterations that began after these had ended.
    pub fn append(&mut self, more: Self) {
        let is_alike = self.kernels * more.iterations == more.kernels * self.iterations;
        self.is_steady &= more.is_steady && is_alike;
        self.iterations += more.iterations;
        self.kernels += more.kernels;
        self.copies += more.copies;
        self.busy_ns += more.busy_ns;
        self.span_ns += more.span_ns;
        self.overlap_ns += more.overlap_ns;
        self.streams.extend(more.streams);
    }

    /// The number of devices that took part.
    pub fn devices(&self) -> usize {
        let devices: BTreeSet<u32> = self.streams.iter().map(|[device, ..]| *device).collect();
        devices.len()
    }

    /// The kernels and the span of an iteration, the share of the devices' time in which more than one stream worked,
    /// and the numbers of streams and devices.
    pub fn figures(&self) -> [f64; 5] {
        let each = |total: u64| total as f64 / self.iterations.max(1) as f64;
        let overlap = self.overlap_ns as f64 / self.busy_ns.max(1) as f64;
        let [streams, devices] = [self.streams.len(), self.devices()].map(|count| count as f64);
        [
            each(self.kernels),
            each(self.span_ns),
            overlap,
            streams,
            devices,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::planted::{kernel, work};

    /// Kernels by stream, start and end; streams from 100 on are of a second device, and those from 50 on are of a
    /// second context, whose streams have the numbers of the first one's.
    fn of(kernels: &[[u64; 3]], iterations: u64) -> Activity {
        let record = |&[stream, start, end]: &[u64; 3]| WorkRecord {
            device: u32::from(stream >= 100),
            context: 1 + u32::from(stream >= 50),
            stream: stream as u32 % 50,
            ..work(kernel("k"), start, end, 1)
        };
        let records: Vec<WorkRecord> = kernels.iter().map(record).collect();
        Activity::of(&records, iterations)
    }

    #[test]
    fn each_moment_counts_once_whichever_stream_works() {
        // Nothing, apart, touching, overlapping, nested, on one stream, three at once, two devices, two contexts, an
        // empty one. Busy, span, overlap, streams, devices.
        let cases: [(&[[u64; 3]], [u64; 5]); 10] = [
            (&[], [0, 0, 0, 0, 0]),
            (&[[7, 10, 20], [7, 50, 60]], [20, 50, 0, 1, 1]),
            (&[[7, 10, 20], [9, 20, 30]], [20, 20, 0, 2, 1]),
            (&[[7, 10, 30], [9, 20, 45]], [35, 35, 10, 2, 1]),
            (&[[7, 10, 90], [9, 20, 30], [9, 40, 50]], [80, 80, 20, 2, 1]),
            (&[[7, 10, 30], [7, 20, 45]], [35, 35, 0, 1, 1]),
            (&[[1, 0, 9], [2, 3, 9], [3, 6, 12]], [12, 12, 6, 3, 1]),
            (&[[7, 0, 10], [107, 5, 20]], [20, 20, 5, 2, 2]),
            (&[[7, 0, 10], [57, 5, 20]], [20, 20, 5, 2, 1]),
            (&[[7, 10, 20], [9, 15, 15]], [10, 10, 0, 2, 1]),
        ];
        for (kernels, expected) in cases {
            let activity = of(kernels, 1);
            let [streams, devices] = [activity.streams.len(), activity.devices()];
            let times = [activity.busy_ns, activity.span_ns, activity.overlap_ns];
            let found = [&times[..], &[streams as u64, devices as u64]].concat();
            assert_eq!(found, expected, "{kernels:?}");
            assert_eq!(activity.kernels, kernels.len() as u64);
        }
    }

    #[test]
    fn batches_add_up_and_a_change_of_their_kernels_is_seen() {
        let set = work(Work::Set { bytes: 64 }, 5, 9, 1);
        let mut total = Activity::of(&[set, work(kernel("k"), 9, 19, 2)], 1);
        assert_eq!((total.kernels, total.copies, total.busy_ns), (1, 1, 14));
        total.append(of(&[[7, 100, 105], [9, 103, 112]], 2));
        let counts = (total.iterations, total.kernels, total.streams.len());
        assert_eq!(counts, (3, 3, 2));
        assert_eq!((total.busy_ns, total.span_ns), (26, 26));
        let figures = [1.0, 26.0 / 3.0, 2.0 / 26.0, 2.0, 1.0];
        assert_eq!(total.figures(), figures);
        assert!(total.is_steady);
        // Two kernels in three iterations; as many in all, though not in each batch.
        assert!(!of(&[[7, 0, 1], [7, 1, 2]], 3).is_steady);
        total.append(of(&[[7, 200, 201], [7, 201, 202]], 1));
        assert!(!total.is_steady);
    }
}
