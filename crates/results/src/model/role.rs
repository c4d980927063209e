//! The role of an implementation: what it measures and how, so that readers of results need no names.
//!
//! Two implementations whose roles differ in one thing alone show what that thing gains: a graph
//! against launching one by one, pinned host memory against ordinary. Findings are made of such
//! pairs, in every group.

use std::fmt;

use serde::{Deserialize, Serialize};

pub use crossover_advice::thresholds::Residency;

/// The work of one implementation, and the way that it is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Role {
    /// Where the data of an iteration start and end.
    pub data: Residency,
    /// How the GPU is given its work; `None` on the CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<Launches>,
    /// CPU threads that compute, or copy for the GPU; `None` where the GPU is driven by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<Threads>,
    /// Number format of the operands.
    pub format: Format,
    /// f32 emulated by products of operands in `format`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// Pieces that the work is cut into, whether or not they overlap; 1 where it is whole.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pieces: u32,
    /// Which part of a machine's work is measured.
    #[serde(rename = "does")]
    pub measures: Measures,
    /// The library that does the work and must be installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<Library>,
    /// Whether one device works or all, in a group that compares the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<Devices>,
    /// The algorithm, where the group has others for the same work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Whether it may be an answer: the best CPU code, or the GPU code that beats it.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub answers: bool,
}

impl Role {
    /// Whether one thread of the host does all that the host does.
    pub fn is_driven_by_one_thread(&self) -> bool {
        let threads = matches!(self.measures, Measures::Loads(1..) | Measures::Starts(_));
        self.threads != Some(Threads::All) && !threads
    }

    /// CPU code on all cores, f32 in ordinary host memory.
    pub fn cpu() -> Self {
        Self {
            data: Residency::Ordinary,
            launches: None,
            threads: Some(Threads::All),
            format: Format::F32,
            split: None,
            pieces: 1,
            measures: Measures::Computes,
            library: None,
            devices: None,
            method: None,
            answers: true,
        }
    }

    /// Whether steps run on the CPU between device steps.
    pub fn leaves_the_device(&self) -> bool {
        self.launches == Some(Launches::PartlyOnCpu)
    }

    /// GPU code on f32 in device memory, its calls queued, its kernels launched one by one.
    pub fn gpu() -> Self {
        Self {
            data: Residency::Queued,
            launches: Some(Launches::OneByOne),
            threads: None,
            ..Self::cpu()
        }
    }
}

/// How the kernels (or copies) of an iteration are launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Launches {
    /// Each by itself, without a wait between them.
    OneByOne,
    /// Each by itself; the host synchronises after each.
    Synchronised,
    /// Each by itself; the host reads a value back after each, and so waits for it.
    ReadBack,
    /// Some run on the CPU instead, which downloads the data and uploads the result.
    PartlyOnCpu,
    /// All of them as one CUDA graph, which is replayed.
    Graph,
    /// All of them fused into one kernel, or few.
    Fused,
}

/// CPU threads that compute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Threads {
    /// One thread.
    One,
    /// As many threads as there are usable cores, or fewer where those are faster.
    All,
}

/// A number format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// IEEE 754 single precision.
    #[default]
    F32,
    /// IEEE 754 double precision.
    F64,
    /// f32 with 10 bits of fraction, as tensor cores take it.
    Tf32,
    /// IEEE 754 half precision.
    Fp16,
    /// The upper 16 bits of f32.
    Bf16,
    /// 4 bits of exponent, 3 of fraction (e4m3).
    Fp8,
}

impl Format {
    /// The name as it is written: `TF32`.
    pub fn name(self) -> &'static str {
        match self {
            Format::F32 => "f32",
            Format::F64 => "f64",
            Format::Tf32 => "TF32",
            Format::Fp16 => "FP16",
            Format::Bf16 => "BF16",
            Format::Fp8 => "FP8",
        }
    }
}

/// f32 emulated by several products in a narrower format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Split {
    /// Number of products.
    pub products: u32,
    /// Terms of a partial sum in the narrower format's accumulator; partial sums are added in f32.
    /// `None` where each sum is one run from end to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u32>,
}

/// The devices that work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Devices {
    /// The first device alone.
    One,
    /// All devices of the run, with a part of operands and result each.
    Divided,
    /// All devices of the run, with operands and result on the first.
    Gathered,
}

/// A library that does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Library {
    /// cuBLAS, or cuBLASLt, which comes with it.
    Cublas,
    /// cuFFT.
    Cufft,
    /// The CPU's BLAS that was linked.
    Blas,
    /// NCCL.
    Nccl,
}

/// Which part of a machine's work is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measures {
    /// An operation on data.
    #[default]
    Computes,
    /// A copy between host and device, and nothing else.
    Copies(CopyDirection),
    /// Allocating, using and releasing device memory.
    Allocates(Allocator),
    /// Feeding batches to a consumer on the device, which this many threads prefetch; 0 where
    /// gathering, copying and consuming take place one after the other.
    Loads(u32),
    /// An event that happens once per process, measured in child processes.
    Starts(Phase),
    /// An exchange of data between devices, and nothing else.
    Exchanges(Exchange),
}

/// An exchange of data between devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Exchange {
    /// A copy from one device to another.
    OneWay,
    /// Copies from either device to the other at once.
    BothWays,
    /// Each device gets the sums of the values of all.
    AllReduce,
}

/// The direction of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyDirection {
    /// Host to device.
    ToDevice,
    /// Device to host.
    ToHost,
    /// Both ways at once.
    Both,
    /// No copy: a kernel reads host memory in place.
    InPlace,
}

/// Where device memory comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Allocator {
    /// One buffer, allocated beforehand and kept.
    Reuse,
    /// `cuMemAlloc` and `cuMemFree`.
    Malloc,
    /// `cuMemAllocAsync` from a pool that gives its memory back at each synchronisation, the
    /// driver's default.
    MallocAsync,
    /// `cuMemAllocAsync` from a pool whose release threshold is raised, so that it keeps its memory.
    MallocAsyncKept,
}

/// A part of the start of a process, or the same once the process is warm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// `cuInit`: the driver starts.
    DriverInit,
    /// Creating the context of the device.
    Context,
    /// Creating the first stream.
    FirstStream,
    /// Creating another stream.
    WarmStream,
    /// The first allocation, 1 MiB.
    FirstAlloc,
    /// Another allocation of 1 MiB.
    WarmAlloc,
    /// Compiling CUDA C++ to PTX with NVRTC, including the library's own start.
    NvrtcCompile,
    /// Compiling the same again.
    WarmNvrtcCompile,
    /// Compiling PTX to machine code with the driver's JIT, its cache off.
    PtxJit,
    /// Loading machine code.
    CubinLoad,
    /// The first launch, awaited.
    FirstLaunch,
    /// Another launch, awaited.
    WarmLaunch,
    /// Creating a cuBLAS handle, and its first product, awaited.
    FirstGemm,
    /// Another product, awaited.
    WarmGemm,
    /// Creating a cuBLAS handle, and its first product, of order 5,000, awaited.
    FirstLargeGemm,
    /// Opening the device, compiling the kernels of a small transformer, calibrating, capturing and
    /// instantiating its graph, and the first replay, awaited.
    FirstTransformer,
    /// The first call of the group's own work, after everything that it needs was prepared.
    FirstCall,
    /// The call of the group's own work whose number, from 1, is the size, after everything that it
    /// needs was prepared.
    EachCall,
    /// Compiling and loading a kernel, in a process in which NVRTC has compiled another.
    KernelCompile,
    /// Capturing launches to a graph.
    GraphCapture,
    /// Instantiating the graph and uploading it.
    GraphInstantiate,
}

/// The name in files: `first-launch`.
impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

fn one() -> u32 {
    1
}

fn is_one(pieces: &u32) -> bool {
    *pieces == 1
}

fn yes() -> bool {
    true
}

fn is_yes(answers: &bool) -> bool {
    *answers
}
