//! Techniques that make code faster.

/// One thing to do, in the order in which one would try them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
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
    /// The host runs ahead of the device.
    DoNotWait,
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
}

impl Technique {
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
