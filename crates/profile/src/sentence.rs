//! A sentence that names the bound of a benchmark.

use std::collections::BTreeMap;

use super::report::{DeviceRow, Place, Summary, Work};
use crossover_words::units::percent;

/// The kinds of driver calls that the sentence distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Launch,
    Wait,
    Allocate,
    Other,
}

/// The kind of a driver call, by its name.
pub(super) fn kind(call: &str) -> CallKind {
    // Calls of the runtime have the same words after another prefix.
    let call = &call.replacen("cuda", "cu", 1);
    let begins = |with: &[&str]| with.iter().any(|w| call.starts_with(w));
    if call.contains("Synchronize") || begins(&["cuEventQuery", "cuStreamQuery"]) {
        CallKind::Wait
    } else if begins(&[
        "cuMemAlloc",
        "cuMemFree",
        "cuMalloc",
        "cuFree",
        "cuHostAlloc",
        "cuMemHost",
        "cuMemCreate",
        "cuMemMap",
    ]) {
        CallKind::Allocate
    } else if begins(&[
        "cuLaunch",
        "cuGraphLaunch",
        "cuMemcpy",
        "cuMemset",
        "cuEventRecord",
        "cuStreamWaitEvent",
    ]) {
        CallKind::Launch
    } else {
        CallKind::Other
    }
}

/// A part with at least this share of the iteration bounds it.
const BOUND_SHARE: f64 = 0.5;
/// A part with at least this share of the iteration is mentioned.
const MENTIONED_SHARE: f64 = 0.2;

/// The sentence; `while_idle` is the host's main activity in the idle time.
pub(super) fn sentence(s: &Summary, rows: &[DeviceRow], while_idle: &str) -> String {
    if s.busy_ns <= 0.0 {
        return "nothing ran on the device".to_owned();
    }
    let total = s.length_ns();
    let idle = 1.0 - s.busy_ns / total;
    if idle >= BOUND_SHARE {
        return format!("idle {}: bound by {while_idle}", percent(idle));
    }
    let also_idle = match idle >= MENTIONED_SHARE {
        true => format!("; idle {}: {while_idle}", percent(idle)),
        false => String::new(),
    };
    let (mut kernels, mut copied) = (BTreeMap::new(), BTreeMap::new());
    let mut sets = 0.0;
    for row in rows {
        match &row.work {
            Work::Kernel { name, .. } => *kernels.entry(name).or_insert(0.0) += row.share,
            Work::Copy { from, to, .. } => {
                *copied.entry((*from, *to)).or_insert(0.0) += row.share;
            }
            Work::Set { .. } => sets += row.ns_per_iteration / total,
        }
    }
    let copies = s.copies_ns / total;
    let alone = (s.copies_ns - s.hidden_ns) / total;
    // If copies and kernels overlap, neither costs time by itself, so the parts outside the overlap
    // decide.
    if alone > (s.kernels_ns - s.hidden_ns) / total && copies >= MENTIONED_SHARE {
        let hidden = match s.hidden_ns / s.copies_ns {
            hidden if hidden >= 0.05 => format!(", {} of them behind kernels", percent(hidden)),
            _ => String::new(),
        };
        let most = copied.into_iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let by = copies_by(most.map(|(places, _)| places));
        return format!(
            "{} copies{hidden}: bound by {by}{also_idle}",
            percent(copies)
        );
    }
    if sets >= BOUND_SHARE {
        let sets = percent(sets);
        return format!("{sets} memory sets: bound by the device's memory{also_idle}");
    }
    let longest = kernels.values().copied().fold(0.0, f64::max);
    let kernels = match kernels.len() {
        n if n == 1 || longest >= 0.9 => format!("one kernel, {}", percent(longest)),
        n if longest >= BOUND_SHARE => format!("mostly one of {n} kernels, {}", percent(longest)),
        n => format!("{n} kernels, the longest {}", percent(longest)),
    };
    let copies = if alone >= MENTIONED_SHARE {
        format!("; copies {}", percent(alone))
    } else if copies >= MENTIONED_SHARE {
        "; copies hidden behind kernels".to_owned()
    } else {
        String::new()
    };
    format!("{kernels}{copies}{also_idle}")
}

fn copies_by(copied: Option<(Place, Place)>) -> &'static str {
    use Place::{Device, Managed, Pageable, Peer, Pinned};
    match copied {
        Some((Pageable, _) | (_, Pageable)) => {
            "the link and the staging of ordinary host memory (pinned memory is faster)"
        }
        Some((Device, Device)) => "the device's memory",
        Some((Peer, _) | (_, Peer)) => "the link between the devices",
        Some((Managed, _) | (_, Managed)) => "the movement of managed memory",
        Some((Pinned, _) | (_, Pinned)) | Some(_) | None => "the link",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::planted::kernel;

    /// Rows with these thousandths of all work.
    fn rows(works: &[(Work, f64)]) -> Vec<DeviceRow> {
        let row = |(work, ns): &(Work, f64)| DeviceRow {
            work: work.clone(),
            per_iteration: 1.0,
            ns_per_iteration: *ns,
            share: ns / 1000.0,
            median_ns: *ns,
            shortest_ns: *ns,
            longest_ns: *ns,
        };
        works.iter().map(row).collect()
    }

    #[test]
    fn the_bound_of_the_time_is_named() {
        let summary = |busy_ns, kernels_ns, copies_ns, hidden_ns| Summary {
            unrecorded_ns: 1000.0,
            busy_ns,
            kernels_ns,
            copies_ns,
            hidden_ns,
            ..Summary::default()
        };
        let one = rows(&[(kernel("a"), 1000.0)]);
        let copy = |from, to, ns| (Work::Copy { from, to, bytes: 1 }, ns);
        let (pinned, device, pageable) = (Place::Pinned, Place::Device, Place::Pageable);
        let copied = |to, ns| rows(&[(kernel("a"), 1000.0 - ns), copy(pinned, to, ns)]);
        for (summary, rows, expected) in [
            (
                summary(1000.0, 1000.0, 0.0, 0.0),
                one.clone(),
                "one kernel, 100 %",
            ),
            (
                summary(950.0, 950.0, 0.0, 0.0),
                rows(&[
                    (kernel("a"), 400.0),
                    (kernel("b"), 300.0),
                    (kernel("c"), 300.0),
                ]),
                "3 kernels, the longest 40 %",
            ),
            (
                summary(700.0, 700.0, 0.0, 0.0),
                rows(&[(kernel("a"), 700.0), (kernel("b"), 300.0)]),
                "mostly one of 2 kernels, 70 %; idle 30 %: launches",
            ),
            (
                summary(280.0, 280.0, 0.0, 0.0),
                one,
                "idle 72 %: bound by launches",
            ),
            (
                summary(1000.0, 390.0, 610.0, 0.0),
                copied(device, 610.0),
                "61 % copies: bound by the link",
            ),
            (
                summary(1000.0, 460.0, 900.0, 360.0),
                copied(device, 660.0),
                "90 % copies, 40 % of them behind kernels: bound by the link",
            ),
            (
                summary(1000.0, 390.0, 610.0, 0.0),
                rows(&[(kernel("a"), 390.0), copy(device, device, 610.0)]),
                "61 % copies: bound by the device's memory",
            ),
            // A kernel all the time, and copies hidden behind it.
            (
                summary(1000.0, 1000.0, 400.0, 400.0),
                copied(device, 290.0),
                "one kernel, 71 %; copies hidden behind kernels",
            ),
            (
                summary(1000.0, 100.0, 0.0, 0.0),
                rows(&[(kernel("a"), 100.0), (Work::Set { bytes: 1 }, 900.0)]),
                "90 % memory sets: bound by the device's memory",
            ),
            (
                summary(0.0, 0.0, 0.0, 0.0),
                Vec::new(),
                "nothing ran on the device",
            ),
        ] {
            assert_eq!(sentence(&summary, &rows, "launches"), expected);
        }
        let ordinary = summary(1000.0, 390.0, 610.0, 0.0);
        let ordinary = sentence(&ordinary, &copied(pageable, 610.0), "launches");
        assert!(ordinary.contains("ordinary host memory"), "{ordinary}");
    }

    #[test]
    fn calls_have_a_kind() {
        for (name, of) in [
            ("cuLaunchKernelEx", CallKind::Launch),
            ("cuGraphLaunch", CallKind::Launch),
            ("cuMemcpyHtoDAsync", CallKind::Launch),
            ("cuStreamSynchronize", CallKind::Wait),
            ("cuEventSynchronize", CallKind::Wait),
            ("cuMemAllocAsync", CallKind::Allocate),
            ("cuMemFree", CallKind::Allocate),
            ("cuCtxSetCurrent", CallKind::Other),
            ("cudaLaunchKernelExC", CallKind::Launch),
            ("cudaMalloc", CallKind::Allocate),
            ("cudaStreamSynchronize", CallKind::Wait),
        ] {
            assert_eq!(kind(name), of, "{name}");
        }
    }
}
