//! The processor, as the operating system describes it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use crate::limits;
use crossover_advice::HostInfo;
use crossover_results::model::environment::Cpu;
use crossover_system::usable_cores;

/// Collects the known properties of this machine's processor.
pub(super) fn collect() -> Cpu {
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
