//! The fingerprint of the machine that a result comes from.

use std::fs;

use cudarc::driver::{result, sys};
use serde::{Deserialize, Serialize};

use super::disturbances::{self, Surroundings};
use super::nvml::{self, Monitor};
use super::{Absence, DeviceProperties, present};
use crate::timing::catch_panic;

/// The machine and software a run was measured on. What cannot be known is `None`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Environment {
    /// Version of this crate.
    pub crossover: String,
    /// Git commit the executables were built from; `None` when built outside a checkout.
    pub commit: Option<String>,
    /// True where the work tree had uncommitted changes at build time.
    pub dirty: Option<bool>,
    /// Operating system and kernel, for example `Linux 6.18`.
    pub os: Option<String>,
    /// The processor.
    pub cpu: Cpu,
    /// The GPU that was used; `None` without one.
    pub gpu: Option<GpuInfo>,
    /// Why there is no GPU, in a sentence.
    pub gpu_absent: Option<String>,
    /// What disturbs measurements here: other processes on the GPU, a CPU quota, a
    /// power-saving governor, each a sentence with its remedy.
    #[serde(default)]
    pub disturbances: Vec<String>,
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
    #[serde(default)]
    pub allowed_cores: Option<usize>,
    /// CPU quota of the cgroup in cores, `None` without one.
    pub quota_cores: Option<f64>,
    /// Vector extensions that matter here, such as `avx2`, `fma`, `avx512f`, `neon`.
    pub vector_extensions: Vec<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Frequency governor, for example `performance`.
    pub governor: Option<String>,
}

/// A GPU and the software that drives it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuInfo {
    /// Device index.
    pub ordinal: usize,
    /// Name, for example `NVIDIA H200`.
    pub name: String,
    /// UUID as `nvidia-smi` prints it.
    pub uuid: Option<String>,
    /// Compute capability, `(9, 0)` for Hopper.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// L2 cache in bytes.
    pub l2_bytes: Option<u64>,
    /// Highest SM clock, MHz.
    pub max_sm_clock_mhz: Option<u32>,
    /// Highest memory clock, MHz.
    pub max_memory_clock_mhz: Option<u32>,
    /// PCIe link, highest generation and width.
    pub pcie: Option<PcieLink>,
    /// PCIe link when the environment was collected. An idle link runs at a lower
    /// generation; fewer lanes than `pcie` has are real.
    #[serde(default)]
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
    #[serde(default)]
    pub power_limit_default_w: Option<f64>,
    /// Temperature at the start, degrees Celsius.
    pub temperature_c: Option<u32>,
    /// MIG mode is on.
    pub mig: Option<bool>,
}

/// A PCIe link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PcieLink {
    /// Generation, 5 for PCIe 5.0.
    pub generation: u32,
    /// Lanes.
    pub width: u32,
}

impl Environment {
    /// Looks at this machine. `gpu` is what [`probe`](super::probe) said; nothing here makes
    /// a context. What cannot be found out is `None`.
    pub fn collect(gpu: Result<&DeviceProperties, &Absence>) -> Self {
        let cpu = Cpu::collect();
        let monitor = gpu.ok().and_then(Monitor::open);
        let gpu_info = gpu
            .ok()
            .map(|device| GpuInfo::collect(device, monitor.as_ref()));
        let around = Surroundings {
            other_processes: match (gpu, &monitor) {
                (Ok(device), Some(monitor)) => disturbances::count_others(
                    &monitor.compute_processes(),
                    std::process::id(),
                    has_context(device.ordinal),
                ),
                _ => 0,
            },
            launch_blocking: std::env::var_os("CUDA_LAUNCH_BLOCKING").is_some_and(|v| v != "0"),
        };
        Environment {
            crossover: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("CROSSOVER_COMMIT").map(str::to_owned),
            dirty: option_env!("CROSSOVER_DIRTY").map(|dirty| dirty == "true"),
            os: operating_system(),
            disturbances: disturbances::find(&cpu, gpu_info.as_ref(), around),
            cpu,
            gpu: gpu_info,
            gpu_absent: gpu.err().map(Absence::to_string),
        }
    }
}

impl GpuInfo {
    fn collect(device: &DeviceProperties, monitor: Option<&Monitor>) -> Self {
        let (max_sm_clock_mhz, max_memory_clock_mhz) =
            monitor.map(Monitor::max_clocks_mhz).unwrap_or_default();
        let (power_limit_w, power_limit_default_w) =
            monitor.map(Monitor::power_limits_w).unwrap_or_default();
        GpuInfo {
            ordinal: device.ordinal,
            name: device.name.clone(),
            uuid: Some(device.uuid.clone()),
            compute_capability: device.compute_capability,
            multiprocessors: device.multiprocessors,
            memory_bytes: device.memory_bytes,
            l2_bytes: Some(device.l2_bytes).filter(|&bytes| bytes > 0),
            max_sm_clock_mhz,
            max_memory_clock_mhz,
            pcie: monitor.and_then(Monitor::max_pcie),
            pcie_current: monitor.and_then(Monitor::current_pcie),
            driver: nvml::driver_version().or_else(|| {
                fs::read_to_string("/proc/driver/nvidia/version")
                    .ok()
                    .and_then(|text| driver_version(&text))
            }),
            cuda: Some(device.cuda),
            nvrtc: present::nvrtc_version(),
            cublas: present::cublas_version(),
            power_limit_w,
            power_limit_default_w,
            temperature_c: monitor.and_then(Monitor::temperature_c),
            mig: monitor.and_then(Monitor::mig),
        }
    }
}

/// Name and version of the system, and the kernel's, for example
/// `Debian GNU/Linux 13, Linux 6.12.57`.
fn operating_system() -> Option<String> {
    use sysinfo::System;
    let name = System::name().map(|name| match System::os_version() {
        Some(version) => format!("{name} {version}"),
        None => name,
    });
    let kernel = System::kernel_version()
        .map(|version| format!("{} {version}", kernel_name(std::env::consts::OS)));
    match (name, kernel) {
        (Some(name), Some(kernel)) => Some(format!("{name}, {kernel}")),
        (name, kernel) => name.or(kernel),
    }
}

fn kernel_name(os: &str) -> &str {
    match os {
        "linux" => "Linux",
        "macos" => "Darwin",
        "windows" => "Windows NT",
        other => other,
    }
}

/// The version in `/proc/driver/nvidia/version`, which is there without NVML too. Its first
/// line is `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  <date>`, with words
/// that differ between the driver's flavours.
fn driver_version(text: &str) -> Option<String> {
    text.lines()
        .next()?
        .split_whitespace()
        .find(|word| {
            word.contains('.')
                && word
                    .split('.')
                    .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
        })
        .map(str::to_owned)
}

/// Whether this process has a primary context on the device.
fn has_context(ordinal: usize) -> bool {
    catch_panic(|| {
        let Ok(device) = result::device::get(ordinal as i32) else {
            return false;
        };
        let (mut flags, mut active) = (0, 0);
        // SAFETY: the driver returned `device` just above; both pointers are valid for the
        // call.
        let status = unsafe { sys::cuDevicePrimaryCtxGetState(device, &mut flags, &mut active) };
        status.result().is_ok() && active != 0
    })
    .unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_version_is_found_in_both_flavours() {
        for text in [
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 09:55:41 UTC 2025\nGCC version:  gcc version 13.3.0\n",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (dvs-builder)\n",
        ] {
            assert_eq!(driver_version(text).as_deref(), Some("580.95.05"));
        }
        assert_eq!(driver_version("NVRM version: unknown\n"), None);
        assert_eq!(driver_version(""), None);
    }

    #[test]
    fn an_absent_gpu_is_told_and_the_rest_collected() {
        let environment = Environment::collect(Err(&Absence::Device(crate::timing::Absence::NoDriver)));
        assert_eq!(environment.gpu, None);
        assert_eq!(environment.gpu_absent, Some(Absence::Device(crate::timing::Absence::NoDriver).to_string()));
        assert_eq!(environment.crossover, env!("CARGO_PKG_VERSION"));
        assert!(environment.cpu.usable_cores >= 1);
        assert!(environment.os.is_some());
    }

    #[test]
    fn an_environment_survives_its_file() {
        let environment = Environment::collect(Err(&Absence::Device(crate::timing::Absence::NoDevice)));
        let text = serde_json::to_string(&environment).unwrap();
        assert_eq!(
            serde_json::from_str::<Environment>(&text).unwrap(),
            environment
        );
    }
}
