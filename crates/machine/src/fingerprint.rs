//! The fingerprint of the machine that results come from.

use sysinfo::System;

use crate::absence::Absence;
use crate::cpu;
use crate::disturbances::{self, Conditions};
use crate::numa::Nodes;
use crate::nvml::{self, Monitor};
use crate::{libraries, recorded};
use crossover_results::model::environment::{Environment, GpuInfo};
use crossover_system::usable_cores;
use crossover_timing::DeviceProperties;

/// Collects the fingerprint of this machine, before this process has a context on the device. `gpu` is
/// the result of [`probe`](crossover_timing::probe). `partners` is the number of other processes of the
/// run, which stand still while this one measures.
pub fn collect(gpu: Result<&DeviceProperties, &Absence>, partners: u32) -> Environment {
    let cpu = cpu::collect();
    let nodes = Nodes::of_this_machine(gpu.ok().map(|device| device.pci_bus_id.as_str()));
    let kept_at = nodes.and_then(|nodes| nodes.kept_at(&usable_cores()));
    let monitor = gpu.ok().and_then(Monitor::open);
    let gpu_info = gpu.ok().map(|device| gpu_info(device, monitor.as_ref()));
    let others = monitor.as_ref().map_or(0, Monitor::other_processes);
    let conditions = Conditions {
        other_processes: others.saturating_sub(partners),
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
        recorded: recorded::recorded(),
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
