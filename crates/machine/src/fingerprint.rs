//! The fingerprint of the machine that results come from.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crossover_advice::HostInfo;
use crossover_results::model::environment::{Cpu, Environment, GpuInfo};
use crossover_system::usable_cores;
use crossover_timing::DeviceProperties;

use crate::disturbances::{self, Conditions};
use crate::libraries::Absence;
use crate::numa::Nodes;
use crate::nvml::{self, Monitor};
use crate::{libraries, limits};

/// Collects the fingerprint of this machine, before this process has a context on the device. `gpu` is
/// the result of [`probe`](crossover_timing::probe). `partners` is the number of other processes of the
/// run, which stand still while this one measures.
pub fn collect(gpu: Result<&DeviceProperties, &Absence>, partners: u32) -> Environment {
    let cpu = cpu();
    let nodes = Nodes::of_this_machine(gpu.ok().map(|device| device.pci_bus_id.as_str()));
    let kept_at = nodes.and_then(|nodes| nodes.kept_at(&usable_cores()));
    let monitor = gpu.ok().and_then(Monitor::open);
    let gpu_info = gpu.ok().map(|device| gpu_info(device, monitor.as_ref()));
    let processes = monitor.as_ref().map_or(0, Monitor::other_processes);
    let conditions = Conditions {
        other_processes: processes.saturating_sub(partners),
        for_editing: cfg!(debug_assertions),
        launch_blocking: std::env::var_os("CUDA_LAUNCH_BLOCKING").is_some_and(|v| v != "0"),
        far_from_gpu: kept_at.is_some_and(|(_, is_far)| is_far),
    };
    Environment {
        package: None,
        crossover: env!("CARGO_PKG_VERSION").to_owned(),
        commit: None,
        dirty: None,
        os: Some(operating_system()),
        disturbances: disturbances::find(&cpu, gpu_info.as_ref(), conditions),
        cpu,
        numa_node: kept_at.map(|(node, _)| node),
        gpu: gpu_info,
        gpu_absent: gpu.err().map(Absence::to_string),
        further_gpus: Vec::new(),
    }
}

fn gpu_info(device: &DeviceProperties, monitor: Option<&Monitor>) -> GpuInfo {
    let info = GpuInfo {
        ordinal: device.ordinal,
        name: device.name.clone(),
        uuid: Some(device.uuid.clone()),
        compute_capability: device.compute_capability,
        multiprocessors: device.multiprocessors,
        memory_bytes: device.memory_bytes,
        l2_bytes: Some(device.l2_bytes).filter(|&bytes| bytes > 0),
        driver: nvml::driver_version(),
        cuda: Some(device.cuda),
        nvrtc: libraries::nvrtc_version(),
        cublas: libraries::cublas_version(),
        recorded: libraries::recorded(),
        ..GpuInfo::default()
    };
    match monitor {
        Some(monitor) => monitor.complete(info),
        None => info,
    }
}

/// Name and version of the system, and the kernel's, for example
/// `Debian GNU/Linux 13, Linux 6.12.57`.
fn operating_system() -> String {
    let name = [System::name(), System::os_version()];
    let name: Vec<String> = name.into_iter().flatten().collect();
    format!("{}, {}", name.join(" "), System::kernel_long_version())
}

/// The processor, as the operating system describes it.
fn cpu() -> Cpu {
    let system = System::new_with_specifics(
        RefreshKind::nothing()
            .with_cpu(CpuRefreshKind::nothing())
            .with_memory(MemoryRefreshKind::nothing().with_ram()),
    );
    let here = HostInfo::detect();
    let parallelism = std::thread::available_parallelism().map_or(1, usize::from);
    Cpu {
        model: system
            .cpus()
            .first()
            .map(|cpu| cpu.brand().trim().to_owned())
            .filter(|model| !model.is_empty())
            .unwrap_or_else(|| std::env::consts::ARCH.to_owned()),
        physical_cores: System::physical_core_count().filter(|&cores| cores > 0),
        logical_cores: system.cpus().len().max(parallelism),
        usable_cores: parallelism,
        allowed_cores: Some(usable_cores().len()).filter(|&cores| cores > 0),
        quota_cores: limits::quota(),
        vector_extensions: here.vector_extensions,
        caches: here.caches,
        memory_bytes: Some(system.total_memory()).filter(|&bytes| bytes > 0),
        governor: governor(Path::new("/sys/devices/system/cpu")),
    }
}

/// The frequency governors of the processors under `root`, joined by commas if they differ. `None` if
/// the kernel does not govern the frequency, as in most virtual machines.
fn governor(root: &Path) -> Option<String> {
    let found: BTreeSet<String> = fs::read_dir(root)
        .ok()?
        .flatten()
        .filter_map(|cpu| fs::read_to_string(cpu.path().join("cpufreq/scaling_governor")).ok())
        .map(|text| text.trim().to_owned())
        .collect();
    (!found.is_empty()).then(|| found.into_iter().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlike_governors_are_all_named() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(governor(root.path()), None);
        for (cpu, text) in [("cpu0", "powersave\n"), ("cpu1", "performance\n")] {
            let dir = root.path().join(cpu).join("cpufreq");
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("scaling_governor"), text).unwrap();
        }
        fs::create_dir(root.path().join("cpufreq")).unwrap();
        assert_eq!(
            governor(root.path()).as_deref(),
            Some("performance, powersave")
        );
    }
}
