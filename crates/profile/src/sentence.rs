//! What bounds a benchmark, in a sentence.

use super::report::Place;
use crossover_words::units::percent;

/// What the sentence rests on. Times are of the whole window.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Facts {
    pub(super) total_ns: f64,
    pub(super) busy_ns: f64,
    pub(super) kernels_ns: f64,
    pub(super) copies_ns: f64,
    /// Of `copies_ns`, while a kernel ran.
    pub(super) hidden_ns: f64,
    pub(super) sets_ns: f64,
    /// Time of the kernel that takes longest, by name, as a share of all rows.
    pub(super) longest_kernel: f64,
    /// Number of kernels of different names.
    pub(super) kernels: usize,
    /// From and to which memory most of the time of copies is spent.
    pub(super) copied: Option<(Place, Place)>,
    pub(super) idle: Idle,
}

/// What the host did while the device was idle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Idle {
    pub(super) launching_ns: f64,
    pub(super) waiting_ns: f64,
    pub(super) allocating_ns: f64,
    pub(super) other_calls_ns: f64,
    /// Outside of the driver.
    pub(super) own_code_ns: f64,
}

/// The kinds of driver calls that the sentence tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallKind {
    Launch,
    Wait,
    Allocate,
    Other,
}

/// What a driver call is for, by its name.
pub(super) fn kind(call: &str) -> CallKind {
    // Those of the runtime have the same words after another prefix.
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

/// What takes at least this share of the iteration bounds it.
const MOST: f64 = 0.5;
/// What takes at least this share of the iteration is mentioned.
const MUCH: f64 = 0.2;

pub(super) fn sentence(facts: &Facts) -> String {
    let total = facts.total_ns.max(1.0);
    let idle = (total - facts.busy_ns).max(0.0) / total;
    if facts.busy_ns <= 0.0 {
        return "nothing ran on the device".to_owned();
    }
    if idle >= MOST {
        return format!(
            "idle {}: bound by {}",
            percent(idle),
            while_idle(&facts.idle)
        );
    }
    let also_idle = if idle >= MUCH {
        format!("; idle {}: {}", percent(idle), while_idle(&facts.idle))
    } else {
        String::new()
    };
    let copies = facts.copies_ns / total;
    let alone = (facts.copies_ns - facts.hidden_ns) / total;
    // Where copies and kernels overlap, neither costs time by itself: the rest of each decides.
    if alone > (facts.kernels_ns - facts.hidden_ns) / total && copies >= MUCH {
        let hidden = facts.hidden_ns / facts.copies_ns;
        let hidden = if hidden >= 0.05 {
            format!(", {} of them behind kernels", percent(hidden))
        } else {
            String::new()
        };
        let by = copies_by(facts.copied);
        return format!(
            "{} copies{hidden}: bound by {by}{also_idle}",
            percent(copies)
        );
    }
    if facts.sets_ns / total >= MOST {
        let sets = percent(facts.sets_ns / total);
        return format!("{sets} memory sets: bound by the device's memory{also_idle}");
    }
    let longest = percent(facts.longest_kernel);
    let kernels = match facts.kernels {
        n if n == 1 || facts.longest_kernel >= 0.9 => format!("one kernel, {longest}"),
        n if facts.longest_kernel >= MOST => {
            format!("mostly one of {n} kernels, {longest}")
        }
        n => format!("{n} kernels, the longest {longest}"),
    };
    let copies = if alone >= MUCH {
        format!("; copies {}", percent(alone))
    } else if copies >= MUCH {
        "; copies hidden behind kernels".to_owned()
    } else {
        String::new()
    };
    format!("{kernels}{copies}{also_idle}")
}

/// What the host was busy with for most of the idle time.
fn while_idle(idle: &Idle) -> &'static str {
    let causes = [
        (idle.launching_ns, "launches"),
        (idle.waiting_ns, "synchronisation"),
        (idle.allocating_ns, "memory allocation"),
        (idle.other_calls_ns, "other driver calls"),
        (idle.own_code_ns, "host code between the calls"),
    ];
    let most = causes.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    most.map_or("launches", |(_, cause)| cause)
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

    fn facts() -> Facts {
        Facts {
            total_ns: 1000.0,
            busy_ns: 1000.0,
            kernels_ns: 1000.0,
            longest_kernel: 1.0,
            kernels: 1,
            ..Facts::default()
        }
    }

    #[test]
    fn what_bounds_the_time_is_told() {
        let idle = |launching_ns, own_code_ns, allocating_ns, waiting_ns| Idle {
            launching_ns,
            own_code_ns,
            allocating_ns,
            waiting_ns,
            ..Idle::default()
        };
        let kernels = |kernels, longest_kernel, busy_ns, idle| Facts {
            kernels,
            longest_kernel,
            busy_ns,
            idle,
            ..facts()
        };
        let copies = |kernels_ns, copies_ns, hidden_ns, from, to| Facts {
            kernels_ns,
            copies_ns,
            hidden_ns,
            longest_kernel: kernels_ns / 1000.0,
            copied: Some((from, to)),
            ..facts()
        };
        let (pinned, device, pageable) = (Place::Pinned, Place::Device, Place::Pageable);
        let sets = Facts {
            kernels_ns: 100.0,
            sets_ns: 900.0,
            longest_kernel: 0.1,
            ..facts()
        };
        let none = Idle::default;
        for (facts, expected) in [
            (facts(), "one kernel, 100 %"),
            (
                kernels(3, 0.4, 950.0, none()),
                "3 kernels, the longest 40 %",
            ),
            (
                kernels(2, 0.7, 700.0, idle(100.0, 0.0, 0.0, 200.0)),
                "mostly one of 2 kernels, 70 %; idle 30 %: synchronisation",
            ),
            (
                kernels(1, 1.0, 280.0, idle(600.0, 120.0, 0.0, 0.0)),
                "idle 72 %: bound by launches",
            ),
            (
                kernels(1, 1.0, 280.0, idle(600.0, 700.0, 0.0, 0.0)),
                "idle 72 %: bound by host code between the calls",
            ),
            (
                kernels(1, 1.0, 280.0, idle(600.0, 700.0, 720.0, 0.0)),
                "idle 72 %: bound by memory allocation",
            ),
            (
                copies(390.0, 610.0, 0.0, pinned, device),
                "61 % copies: bound by the link",
            ),
            (
                copies(460.0, 900.0, 360.0, pinned, device),
                "90 % copies, 40 % of them behind kernels: bound by the link",
            ),
            (
                copies(390.0, 610.0, 0.0, device, device),
                "61 % copies: bound by the device's memory",
            ),
            // A kernel all the time, and copies behind it.
            (
                Facts {
                    longest_kernel: 0.71,
                    ..copies(1000.0, 400.0, 400.0, pinned, device)
                },
                "one kernel, 71 %; copies hidden behind kernels",
            ),
            (sets, "90 % memory sets: bound by the device's memory"),
            (kernels(1, 1.0, 0.0, none()), "nothing ran on the device"),
        ] {
            assert_eq!(sentence(&facts), expected);
        }
        let ordinary = sentence(&copies(390.0, 610.0, 0.0, device, pageable));
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
