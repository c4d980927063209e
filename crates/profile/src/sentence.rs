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
    let also_idle = if idle >= MENTIONED_SHARE {
        format!("; idle {}: {while_idle}", percent(idle))
    } else {
        String::new()
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
        // Busy, kernels, copies and copies behind kernels, of 1,000 ns.
        let is =
            |[busy, kernels, copies, hidden]: [u32; 4], works: &[(Work, f64)], expected: &str| {
                let summary = Summary {
                    unrecorded_ns: 1000.0,
                    busy_ns: busy.into(),
                    kernels_ns: kernels.into(),
                    copies_ns: copies.into(),
                    hidden_ns: hidden.into(),
                    ..Summary::default()
                };
                let named = sentence(&summary, &rows(works), "launches");
                assert_eq!(named, expected);
            };
        let [a, b, c] = ["a", "b", "c"].map(|name| move |ns| (kernel(name), ns));
        let copy = |from, to, ns| (Work::Copy { from, to, bytes: 1 }, ns);
        let up = |ns| [a(1000.0 - ns), copy(Place::Pinned, Place::Device, ns)];
        let (link, memory) = ("bound by the link", "bound by the device's memory");
        is([1000, 1000, 0, 0], &[a(1000.0)], "one kernel, 100 %");
        let three = [a(400.0), b(300.0), c(300.0)];
        is([950, 950, 0, 0], &three, "3 kernels, the longest 40 %");
        let mostly = "mostly one of 2 kernels, 70 %; idle 30 %: launches";
        is([700, 700, 0, 0], &[a(700.0), b(300.0)], mostly);
        let idle = "idle 72 %: bound by launches";
        is([280, 280, 0, 0], &[a(1000.0)], idle);
        let copies = format!("61 % copies: {link}");
        is([1000, 390, 610, 0], &up(610.0), &copies);
        let partly = format!("90 % copies, 40 % of them behind kernels: {link}");
        is([1000, 460, 900, 360], &up(660.0), &partly);
        let on_device = [a(390.0), copy(Place::Device, Place::Device, 610.0)];
        let copies = format!("61 % copies: {memory}");
        is([1000, 390, 610, 0], &on_device, &copies);
        // A kernel all the time, and copies hidden behind it.
        let hidden = "one kernel, 71 %; copies hidden behind kernels";
        is([1000, 1000, 400, 400], &up(290.0), hidden);
        let mostly_set = [a(100.0), (Work::Set { bytes: 1 }, 900.0)];
        let sets = format!("90 % memory sets: {memory}");
        is([1000, 100, 0, 0], &mostly_set, &sets);
        is([0, 0, 0, 0], &[], "nothing ran on the device");
        let ordinary = [a(390.0), copy(Place::Pageable, Place::Device, 610.0)];
        let staging = "the link and the staging of ordinary host memory (pinned memory is faster)";
        let staged = format!("61 % copies: bound by {staging}");
        is([1000, 390, 610, 0], &ordinary, &staged);
    }

    #[test]
    fn calls_have_a_kind() {
        for (name, of) in [
            ("cuLaunchKernelEx", CallKind::Launch),
            ("cuGraphLaunch", CallKind::Launch),
            ("cuMemcpyHtoDAsync", CallKind::Launch),
            ("cuStreamSynchronize", CallKind::Wait),
            ("cuMemAllocAsync", CallKind::Allocate),
            ("cuMemFree", CallKind::Allocate),
            ("cuCtxSetCurrent", CallKind::Other),
            ("cudaMalloc", CallKind::Allocate),
        ] {
            assert_eq!(kind(name), of, "{name}");
        }
    }
}
