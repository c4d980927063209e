//! The fingerprint of the machine that a result comes from.

use crossover_words::units;
use serde::{Deserialize, Serialize};

/// The machine and software a run was measured on. What cannot be known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of this crate.
    pub crossover: String,
    /// Name and version of the package whose benchmarks were run, such as `my-kernels 1.2.0`; `None`
    /// for those of this crate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// Git commit of that package that the executables were built from; `None` when built outside a
    /// checkout.
    pub commit: Option<String>,
    /// True where the work tree had uncommitted changes at build time; `None` where that is not known.
    pub dirty: Option<bool>,
    /// Operating system and kernel, for example `Linux 6.18`.
    pub os: Option<String>,
    /// The processor.
    pub cpu: Cpu,
    /// The NUMA node that the process was kept at; `None` on a machine with one, where the process could run
    /// at several, and where the system does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa_node: Option<u32>,
    /// The GPU that was used; `None` without one.
    pub gpu: Option<GpuInfo>,
    /// Why there is no GPU, in a sentence.
    pub gpu_absent: Option<String>,
    /// The GPUs beside it that groups on several devices used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further_gpus: Vec<FurtherGpu>,
    /// Disturbances of measurements here: other processes on the GPU, a CPU quota, a power-saving
    /// governor, each a sentence with its remedy.
    pub disturbances: Vec<String>,
}

impl Environment {
    /// `0123456789ab with uncommitted changes`, where there is a commit.
    pub fn commit_in_words(&self) -> Option<String> {
        let commit = self.commit.as_ref()?;
        let short = commit.get(..12).unwrap_or(commit);
        Some(match self.dirty {
            Some(false) => short.to_owned(),
            Some(true) => format!("{short} with uncommitted changes"),
            None => format!("{short}, perhaps with changes"),
        })
    }

    /// `my-kernels 1.2.0, commit 0123456789ab; measured with crossover 0.1.0`.
    pub fn code(&self) -> String {
        let crossover = format!("crossover {}", self.crossover);
        let commit = match (self.commit_in_words(), &self.package) {
            (Some(commit), _) => format!(", commit {commit}"),
            (None, Some(_)) => ", commit unknown".to_owned(),
            (None, None) => String::new(),
        };
        match &self.package {
            Some(package) => format!("{package}{commit}; measured with {crossover}"),
            None => crossover + &commit,
        }
    }

    /// The known facts of the machine, each with its name, in the order in which they are shown. Runs on one
    /// machine with the same software have the same facts.
    pub fn facts(&self) -> Vec<(&'static str, String)> {
        let cpu = &self.cpu;
        let quota = cpu
            .quota_cores
            .map(|quota| format!("{} cores", units::number(quota)));
        let extensions = Some(cpu.vector_extensions.join(" "));
        let mut facts = vec![
            ("operating system", self.os.clone()),
            ("CPU", Some(cpu.model.clone())),
            ("usable cores", Some(cpu.usable_cores.to_string())),
            ("logical cores", Some(cpu.logical_cores.to_string())),
            ("physical cores", cpu.physical_cores.map(|n| n.to_string())),
            ("CPU quota", Some(or_none(quota))),
            ("memory", cpu.memory_bytes.map(units::binary)),
            ("caches", cpu.caches.clone()),
            ("vectors", extensions.filter(|names| !names.is_empty())),
            ("CPU governor", cpu.governor.clone()),
            ("NUMA node", Some(or_none(self.numa_node))),
            ("GPU", Some(or_none(self.gpu.as_ref().map(|gpu| &gpu.name)))),
        ];
        if let Some(gpu) = &self.gpu {
            let version = |(major, minor): (u32, u32)| format!("{major}.{minor}");
            let clock = |mhz: u32| format!("{mhz} MHz");
            let link = |link: PcieLink| format!("generation {}, x{}", link.generation, link.width);
            facts.extend([
                ("GPU board", gpu.uuid.clone()),
                ("compute capability", Some(version(gpu.compute_capability))),
                ("multiprocessors", Some(gpu.multiprocessors.to_string())),
                ("GPU memory", Some(units::binary(gpu.memory_bytes))),
                ("GPU driver", gpu.driver.clone()),
                ("CUDA version", gpu.cuda.map(version)),
                ("NVRTC version", gpu.nvrtc.map(version)),
                ("cuBLAS version", gpu.cublas.clone()),
                ("highest SM clock", gpu.max_sm_clock_mhz.map(clock)),
                (SM_CLOCK_LOCK, gpu.sm_clock_lock()),
                ("highest memory clock", gpu.max_memory_clock_mhz.map(clock)),
                (
                    "power limit",
                    gpu.power_limit_w
                        .map(|watts| format!("{} W", units::number(watts))),
                ),
                ("MIG mode", gpu.mig.map(|is_on| is_on.to_string())),
                ("PCIe link", gpu.pcie.map(link)),
            ]);
        }
        let known = facts.into_iter();
        known
            .filter_map(|(name, fact)| Some((name, fact?)))
            .collect()
    }

    /// The GPU's name, else the CPU's.
    pub(crate) fn hardware(&self) -> Option<&str> {
        match &self.gpu {
            Some(gpu) => Some(&gpu.name),
            None => Some(self.cpu.model.as_str()).filter(|model| !model.is_empty()),
        }
    }

    /// The name of this machine's files and folders: `nvidia-h200--intel-xeon-processor`.
    pub fn slug(&self) -> String {
        let gpu = (self.gpu.as_ref()).map_or("no GPU", |gpu| &gpu.name);
        format!("{}--{}", slug(gpu), slug(&self.cpu.model))
    }

    /// The name of the series of runs in a history: the hardware. Hosts of one kind share it, since a runner in a cloud
    /// lives an hour; memory varies between such hosts, and kernels and drivers are updated.
    pub fn machine_key(&self) -> String {
        format!("{}--{}-cores", self.slug(), self.cpu.usable_cores)
    }

    /// Whether the GPU was [recorded](GpuInfo::recorded).
    pub fn recorded(&self) -> bool {
        self.gpu.as_ref().is_some_and(|gpu| gpu.recorded)
    }
}

fn or_none(value: Option<impl ToString>) -> String {
    value.map_or("none".to_owned(), |value| value.to_string())
}

/// A product's name in lower-case letters, digits and hyphens, without trademark signs.
fn slug(name: &str) -> String {
    let name = name.replace("(R)", " ").replace("(TM)", " ").to_lowercase();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        "unknown".to_owned()
    } else {
        // No product's name is as long; a folder's name may be 255 bytes long.
        words.join("-").chars().take(100).collect()
    }
}

/// The processor of a machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// Model name, for example `AMD EPYC 9575F`.
    pub model: String,
    /// Physical cores, where known.
    pub physical_cores: Option<usize>,
    /// Logical processors online.
    pub logical_cores: usize,
    /// Processors this process may use at once (affinity and cgroup quota counted in).
    pub usable_cores: usize,
    /// Processors in this process's affinity mask, where known.
    pub allowed_cores: Option<usize>,
    /// CPU quota of the cgroup in cores, `None` without one.
    pub quota_cores: Option<f64>,
    /// Vector extensions that matter here, such as `avx2`, `fma`, `avx512f`, `neon`.
    pub vector_extensions: Vec<String>,
    /// Sizes of the caches of processor 0, as Linux lists them: `48K 32K 2048K 107520K`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Frequency governor, for example `performance`.
    pub governor: Option<String>,
}

/// A GPU and the software that drives it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuInfo {
    /// Index of the device among those that the driver shows.
    pub ordinal: usize,
    /// Name, for example `NVIDIA H200`.
    pub name: String,
    /// UUID as `nvidia-smi` prints it; in the record of a machine a digest of it.
    pub uuid: Option<String>,
    /// Compute capability, `(9, 0)` for Hopper.
    pub compute_capability: (u32, u32),
    /// Number of streaming multiprocessors.
    pub multiprocessors: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// L2 cache in bytes.
    pub l2_bytes: Option<u64>,
    /// Highest SM clock, MHz.
    pub max_sm_clock_mhz: Option<u32>,
    /// SM clock when the environment was collected, MHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sm_clock_mhz: Option<u32>,
    /// Whether a setting holds the SM clock. `None` where it cannot be told: NVML has no query for a lock by
    /// `nvidia-smi -lgc`, but a clock that fell while the device was idle is not locked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds_sm_clock: Option<bool>,
    /// Highest memory clock, MHz.
    pub max_memory_clock_mhz: Option<u32>,
    /// PCIe link, highest generation and width.
    pub pcie: Option<PcieLink>,
    /// PCIe link when the environment was collected. An idle link runs at a lower
    /// generation; fewer lanes than `pcie` has are real.
    pub pcie_current: Option<PcieLink>,
    /// Version of the kernel driver, for example `580.159.04`.
    pub driver: Option<String>,
    /// CUDA version of the driver, `(13, 0)`.
    pub cuda: Option<(u32, u32)>,
    /// Version of NVRTC.
    pub nvrtc: Option<(u32, u32)>,
    /// Version of cuBLAS, for example `13.1.0`.
    pub cublas: Option<String>,
    /// Power limit in force, watts.
    pub power_limit_w: Option<f64>,
    /// Power limit the board ships with, watts.
    pub power_limit_default_w: Option<f64>,
    /// Temperature at the start, degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Whether MIG mode is on; `None` on a device without it.
    pub mig: Option<bool>,
    /// Whether the recording driver of the tests replaced the device's own: then no device time is a
    /// measurement, and no output was verified.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub recorded: bool,
}

/// Name of the fact whether a setting holds the SM clock.
pub const SM_CLOCK_LOCK: &str = "SM clock lock";

impl GpuInfo {
    fn sm_clock_lock(&self) -> Option<String> {
        let highest = self.max_sm_clock_mhz?;
        Some(if self.holds_sm_clock? {
            "set by `nvidia-smi -ac`".to_owned()
        } else {
            format!("none (`sudo nvidia-smi -lgc {highest}` locks it)")
        })
    }
}

/// A GPU beside the first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FurtherGpu {
    /// Index of the device among those that the driver shows.
    pub ordinal: usize,
    /// Name, for example `NVIDIA H200`.
    pub name: String,
    /// How it exchanges data with the first GPU.
    pub link: GpuLink,
    /// GPUs named between the first and this one whose link with it is reported and does not work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broken_with: Vec<usize>,
}

/// How two GPUs exchange data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuLink {
    /// Peer access over NVLink.
    Nvlink,
    /// Peer access over PCIe.
    Pcie,
    /// No peer access: all data take the way through the host.
    Host,
    /// The driver reports peer access, and data that were moved did not arrive.
    Broken,
}

impl GpuLink {
    /// The link in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Nvlink => "NVLink",
            Self::Pcie => "PCIe peer access",
            Self::Host => "no peer access: data take the way through the host",
            Self::Broken => {
                "peer access is reported and does not work: disable the IOMMU or PCIe ACS, or set \
                 NCCL_P2P_DISABLE=1"
            }
        }
    }

    /// Whether either GPU may use the other's memory.
    pub fn has_access(self) -> bool {
        matches!(self, Self::Nvlink | Self::Pcie)
    }
}

/// A PCIe link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PcieLink {
    /// Generation, 5 for PCIe 5.0.
    pub generation: u32,
    /// Number of lanes.
    pub width: u32,
}
