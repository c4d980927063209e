//! Techniques that make code faster, and their gains by the findings.

use crate::analysis::findings::finding::{Finding, Gain};

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Technique {
    /// The GPU in place of the best CPU code.
    MoveToGpu,
    /// Data stay on the device between calls.
    KeepOnDevice,
    /// Several kernels in one.
    Fuse,
    /// A CUDA graph in place of launches.
    ReplayGraph,
    /// Page-locked host memory.
    Pin,
    /// Copies of ordinary memory through pinned buffers, by several threads.
    Stage,
    /// Copies and kernels at the same time.
    Overlap,
    /// Threads that load what comes next.
    Prefetch,
    /// Narrower number formats.
    FewerBits,
    /// A memory pool that keeps what it has.
    KeepPool,
    /// The host runs ahead of the device.
    DoNotWait,
}

impl Technique {
    /// In the order in which one would try them.
    pub const ALL: [Technique; 11] = [
        Technique::MoveToGpu,
        Technique::KeepOnDevice,
        Technique::Fuse,
        Technique::ReplayGraph,
        Technique::DoNotWait,
        Technique::Pin,
        Technique::Stage,
        Technique::Overlap,
        Technique::Prefetch,
        Technique::FewerBits,
        Technique::KeepPool,
    ];

    /// The advice in words.
    pub fn words(self) -> &'static str {
        match self {
            Technique::MoveToGpu => "Move the work to the GPU",
            Technique::KeepOnDevice => "Keep the data on the device",
            Technique::Fuse => "Fuse kernels",
            Technique::ReplayGraph => "Replay a CUDA graph",
            Technique::Pin => "Pin host memory",
            Technique::Stage => "Stage copies through pinned buffers",
            Technique::Overlap => "Overlap copies and kernels",
            Technique::Prefetch => "Prefetch batches",
            Technique::FewerBits => "Use lower precision",
            Technique::KeepPool => "Keep a memory pool",
            Technique::DoNotWait => "Do not wait for each kernel",
        }
    }

    /// The alternative that it is compared with.
    pub fn against(self) -> &'static str {
        match self {
            Technique::MoveToGpu => {
                "against the best CPU code, with the data in host memory where that was measured"
            }
            Technique::KeepOnDevice => "against copying them there and back for each call",
            Technique::Fuse => "against one kernel for each part",
            Technique::ReplayGraph => "against launching the kernels one by one",
            Technique::Pin => "against pageable memory",
            Technique::Stage => "against one plain copy of pageable memory",
            Technique::Overlap => "against running them one after the other",
            Technique::Prefetch => "against loading each batch when it is its turn",
            Technique::FewerBits => "against f32",
            Technique::KeepPool => "against cuMemAlloc and cuMemFree for each use",
            Technique::DoNotWait => "against synchronising after each of them",
        }
    }
}

/// The gains of each technique, by group, the largest factor first. Techniques without a gain are
/// absent.
pub fn gains(findings: &[Finding]) -> Vec<(Technique, Vec<(&Finding, &Gain)>)> {
    let of = |technique: Technique| {
        let mut all: Vec<(&Finding, &Gain)> =
            (findings.iter().filter_map(|f| Some((f, f.gain.as_ref()?))))
                .filter(|(_, gain)| gain.technique == technique)
                .collect();
        all.sort_by(|a, b| b.1.factor.total_cmp(&a.1.factor));
        // One per group: if a technique was tried in several ways, the best of them.
        let mut seen: Vec<&str> = Vec::new();
        all.retain(|(finding, _)| {
            let is_new = !seen.contains(&finding.group.as_str());
            seen.push(&finding.group);
            is_new
        });
        (technique, all)
    };
    let all = Technique::ALL.into_iter().map(of);
    all.filter(|(_, gains)| !gains.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_each_group_comes_first() {
        let finding = |(group, id, factor)| {
            Finding::new(group, id, String::new()).gained(Technique::Fuse, factor, "n = 1".into())
        };
        let factors = [
            ("a", "small", 2.0),
            ("b", "small", 5.0),
            ("a", "large", 3.0),
        ];
        let mut all: Vec<Finding> = factors.map(finding).into();
        all.push(finding(("c", "none", f64::NAN)));
        let [(Technique::Fuse, found)] = &gains(&all)[..] else {
            panic!("one technique");
        };
        let ids: Vec<_> = found.iter().map(|(f, _)| (&*f.group, &*f.id)).collect();
        assert_eq!(ids, [("b", "small"), ("a", "large")]);
    }
}
