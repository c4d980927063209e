//! Makes a profile from a recording.

use super::intervals::{Interval, difference, intersection, length, union};
use super::recording::{Part, Recording};
use super::report::{DeviceRow, Profile, SCHEMA, Summary, Work};
use super::sentence::{CallKind, kind, sentence};
use super::{lanes, rows};

/// A note is added if recording makes an iteration longer by more than this factor.
const SLOWED: f64 = 1.2;
/// A note is added if the clocks of device and host disagree by more than this.
const DISAGREE_NS: u64 = 1_000;

/// Makes the profile of a recording. `described` names the benchmark and the machine, and may have notes.
pub fn analyse(recording: &Recording, described: Profile) -> Profile {
    let part = recording.part(&recording.steady);
    let device = rows::device(&part);
    let summary = summary(recording, &part, &device);
    let mut notes = described.notes;
    notes.extend(warnings(recording, &summary));
    let timeline = lanes::timeline(recording);
    if timeline.left_out > 0 {
        notes.push(format!(
            "the timeline has room for {} spans and leaves the shortest {} out",
            lanes::DRAWN,
            timeline.left_out
        ));
    }
    Profile {
        schema: SCHEMA,
        iterations: part.iterations as u64,
        records: part.work.len() as u64,
        notes,
        device,
        calls: rows::calls(&part),
        ranges: rows::ranges(recording, &part),
        summary,
        timeline,
        ..described
    }
}

/// Notes on how the recording distorts the numbers.
fn warnings(recording: &Recording, summary: &Summary) -> Vec<String> {
    let mut notes = Vec::new();
    let raw = &recording.raw;
    if raw.dropped > 0 {
        notes.push(format!(
            "CUPTI lost {} records, so the counts are too low; record a shorter window",
            raw.dropped
        ));
    }
    if raw.untimed > 0 {
        notes.push(format!(
            "CUPTI could not time {} pieces of work, which are left out",
            raw.untimed
        ));
    }
    let (count, ahead) = recording.ahead_of_calls();
    if ahead > DISAGREE_NS {
        notes.push(format!(
            "the clocks of device and host disagree by up to {:.1} µs: {count} pieces of work \
             start before the calls that launched them",
            ahead as f64 / 1e3
        ));
    }
    if summary.unrecorded_ns > 0.0 && summary.iteration_ns > SLOWED * summary.unrecorded_ns {
        notes.push(format!(
            "recording makes an iteration {:.1} times as long: driver calls, and the gaps that \
             they leave, are shorter without it",
            summary.iteration_ns / summary.unrecorded_ns
        ));
    }
    notes
}

/// Sums up the rows of a window.
fn summary(recording: &Recording, part: &Part<'_>, rows: &[DeviceRow]) -> Summary {
    let each = |ns: u64| ns as f64 / part.iterations.max(1) as f64;
    let window = union(part.spans.iter().copied());
    // If the clocks disagree, work may begin before its iteration.
    let covered = |these: fn(&Work) -> bool| {
        let intervals = (part.work.iter())
            .filter(|w| these(&w.work))
            .map(|w| (w.start, w.end));
        intersection(&union(intervals), &window)
    };
    let busy = covered(|_| true);
    let kernels = covered(|work| matches!(work, Work::Kernel { .. }));
    let copies = covered(|work| matches!(work, Work::Copy { .. }));
    let mut summary = Summary {
        iteration_ns: each(length(&window)),
        unrecorded_ns: recording.unrecorded_ns,
        busy_ns: each(length(&busy)),
        kernels_ns: each(length(&kernels)),
        copies_ns: each(length(&copies)),
        hidden_ns: each(length(&intersection(&kernels, &copies))),
        first_kernel_ns: first_kernel(recording),
        sentence: String::new(),
    };
    summary.sentence = sentence(&summary, rows, while_idle(difference(&window, &busy), part));
    summary
}

/// The host's main activity while the device is idle. If its threads do several things at once,
/// launching counts before waiting, and a driver call before other code.
fn while_idle(mut left: Vec<Interval>, part: &Part<'_>) -> &'static str {
    let causes = [
        (CallKind::Launch, "launches"),
        (CallKind::Allocate, "memory allocation"),
        (CallKind::Other, "other driver calls"),
        (CallKind::Wait, "synchronisation"),
    ];
    let mut most = (0, "launches");
    for (what, cause) in causes {
        let calls = (part.calls.iter())
            .filter(|c| kind(&c.name) == what)
            .map(|c| (c.start, c.end));
        let calls = union(calls);
        most = most.max((length(&intersection(&left, &calls)), cause));
        left = difference(&left, &calls);
    }
    most.max((length(&left), "host code between the calls")).1
}

/// Median over the single iterations of the time until their first kernel starts.
fn first_kernel(recording: &Recording) -> Option<f64> {
    let mut times: Vec<u64> = (recording.singles.iter())
        .filter_map(|single| {
            let part = recording.part(single);
            let first = (part.work.iter()).find(|w| matches!(w.work, Work::Kernel { .. }))?;
            Some(first.start.saturating_sub(part.spans[0].0))
        })
        .collect();
    times.sort_unstable();
    (!times.is_empty()).then(|| rows::median(&times))
}

#[cfg(test)]
mod tests {
    use super::super::recording::Raw;
    use super::*;
    use crate::recording::planted::{call, kernel, work};
    use crate::tests::{recording, window};

    #[test]
    fn no_share_is_over_one_where_the_recorded_iterations_were_the_slower_ones() {
        let mut recording = recording();
        recording.unrecorded_ns = 60.0;
        let work = &mut recording.raw.work;
        work.retain(|w| matches!(w.work, Work::Copy { .. }));
        let profile = analyse(&recording, Profile::default());
        let s = &profile.summary;
        assert_eq!([s.copies_ns, s.busy_ns, s.length_ns()], [100.0; 3]);
        assert!(s.sentence.starts_with("100 % copies"), "{}", s.sentence);
    }

    #[test]
    fn limits_of_the_recording_are_noted() {
        let mut recording = recording();
        recording.raw.dropped = 3;
        recording.raw.untimed = 2;
        recording.unrecorded_ns = 140.0;
        recording.raw.calls[0].start = 50;
        recording.raw.calls[0].end = 51;
        let about = Profile {
            notes: vec!["first".to_owned()],
            ..Profile::default()
        };
        let notes = analyse(&recording, about.clone()).notes;
        assert_eq!(notes[0], "first");
        assert!(notes[1].contains("lost 3 records"), "{notes:?}");
        assert!(notes[2].contains("could not time 2"), "{notes:?}");
        assert!(notes[3].contains("2.0 times as long"), "{notes:?}");
        assert_eq!(notes.len(), 4, "20 ns are within what clocks may differ by");
        recording.raw.calls[8].start = 4009;
        recording.raw.calls[8].end = 4010;
        recording.raw.work[10].start = 1009;
        let notes = analyse(&recording, about).notes;
        assert!(notes[3].contains("disagree by up to 3.0 µs"), "{notes:?}");
    }

    #[test]
    fn idle_time_goes_to_what_the_host_does_in_it() {
        let recording = Recording {
            steady: window(&[(0, 1000, Some(1010))]),
            raw: Raw {
                calls: vec![
                    call("cuLaunchKernel", 0, 100, 1),
                    call("cuStreamSynchronize", 100, 700, 2),
                    call("cuMemAlloc", 750, 950, 3),
                ],
                work: vec![work(kernel("k"), 150, 400, 1)],
                ..Raw::default()
            },
            ..Recording::default()
        };
        let summary = analyse(&recording, Profile::default()).summary;
        assert_eq!(summary.sentence, "idle 75 %: bound by synchronisation");
    }

    #[test]
    fn a_recording_without_work_has_a_profile_too() {
        let recording = Recording {
            steady: window(&[(0, 10, Some(20))]),
            singles: vec![window(&[(30, 40, Some(50))])],
            ..Recording::default()
        };
        let profile = analyse(&recording, Profile::default());
        assert_eq!(profile.summary.sentence, "nothing ran on the device");
        assert_eq!(profile.summary.first_kernel_ns, None);
    }
}
