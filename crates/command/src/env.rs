//! `crossover env`: the machine, and disturbances of measurements.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crossover_machine::fingerprint;
use crossover_machine::libraries::{self, NO_CUBLAS, NO_NVRTC};
use crossover_machine::nccl;
use crossover_protocol::further::further_gpus;
use crossover_protocol::settings::Settings;
use crossover_results::model::environment::{Cpu, Environment, GpuInfo, GpuLink, PcieLink};

/// Show the machine: CPU, GPU, driver, libraries, and what disturbs a measurement
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print it as JSON, in the form that results store
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Args) -> anyhow::Result<ExitCode> {
    let settings = Settings::from_env()?;
    let device = settings.probe();
    let further = further_gpus(&settings);
    let mut environment = fingerprint::collect(device.as_ref(), 0);
    if device.is_ok() {
        match further {
            Ok(further) => environment.further_gpus = further,
            Err(absence) => environment.disturbances.push(absence.to_string()),
        }
    }
    let text = if arguments.json {
        let mut json = serde_json::to_string_pretty(&environment)?;
        json.push('\n');
        json
    } else {
        let results = std::path::absolute(&settings.results)
            .with_context(|| settings.results.display().to_string())?;
        listing(&environment, &results)
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("standard output")?;
    Ok(ExitCode::SUCCESS)
}

fn listing(environment: &Environment, results: &Path) -> String {
    let mut rows = Rows::default();
    rows.add("crossover", &environment.crossover);
    rows.maybe("system", environment.os.clone());
    cpu(&mut rows, &environment.cpu);
    rows.maybe(
        "NUMA node",
        environment.numa_node.map(|node| node.to_string()),
    );
    match (&environment.gpu, &environment.gpu_absent) {
        (Some(info), _) => gpu(&mut rows, info),
        (None, reason) => {
            let reason = reason.as_deref().unwrap_or("not probed");
            rows.section("GPU", format!("none: {reason}"));
        }
    }
    for further in &environment.further_gpus {
        let (name, ordinal) = (&further.name, further.ordinal);
        rows.section("GPU", format!("{name} (device {ordinal})"));
        rows.add("link", further.link.in_words());
        for other in &further.broken_with {
            let link = format!("with device {other}: {}", GpuLink::Broken.in_words());
            rows.add("", link);
        }
    }
    let nvrtc = libraries::nvrtc_version().map(version);
    rows.add(
        "NVRTC",
        nvrtc.unwrap_or_else(|| format!("none: {NO_NVRTC}")),
    );
    let cublas = libraries::cublas_version();
    rows.add(
        "cuBLAS",
        cublas.unwrap_or_else(|| format!("none: {NO_CUBLAS}")),
    );
    if !environment.further_gpus.is_empty() {
        rows.add(
            "NCCL",
            nccl::version().unwrap_or_else(|absence| format!("none: {absence}")),
        );
    }
    match &environment.disturbances[..] {
        [] => rows.section("disturbances", "none found"),
        found => rows.section("disturbances", found.join("\n              ")),
    }
    rows.section("results", results.display().to_string());
    rows.0
}

fn cpu(rows: &mut Rows, cpu: &Cpu) {
    rows.section("CPU", &cpu.model);
    let mut cores = format!("{} usable, {} logical", cpu.usable_cores, cpu.logical_cores);
    if let Some(physical) = cpu.physical_cores {
        cores += &format!(", {physical} physical");
    }
    rows.add("cores", cores);
    rows.maybe("quota", cpu.quota_cores.map(|q| format!("{q:.2} cores")));
    rows.maybe("memory", cpu.memory_bytes.map(gibibytes));
    rows.maybe("caches", cpu.caches.clone());
    let extensions = Some(cpu.vector_extensions.join(" "));
    rows.maybe("vectors", extensions.filter(|names| !names.is_empty()));
    rows.maybe("governor", cpu.governor.clone());
}

fn gpu(rows: &mut Rows, gpu: &GpuInfo) {
    rows.section("GPU", format!("{} (device {})", gpu.name, gpu.ordinal));
    let (major, minor) = gpu.compute_capability;
    let units = gpu.multiprocessors;
    rows.add(
        "compute",
        format!("capability {major}.{minor}, {units} multiprocessors"),
    );
    rows.add("memory", gibibytes(gpu.memory_bytes));
    rows.maybe("link", gpu.pcie.map(link));
    rows.maybe("driver", gpu.driver.clone());
    rows.maybe("CUDA", gpu.cuda.map(version));
}

fn link(link: PcieLink) -> String {
    format!("PCIe {}.0 x{}", link.generation, link.width)
}

fn version((major, minor): (u32, u32)) -> String {
    format!("{major}.{minor}")
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

/// Lines of a name and a value, the values aligned.
#[derive(Default)]
struct Rows(String);

impl Rows {
    fn add(&mut self, name: &str, value: impl AsRef<str>) {
        self.0 += &format!("{name:<14}{}\n", value.as_ref());
    }

    fn maybe(&mut self, name: &str, value: Option<String>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    /// As [`add`](Self::add), after an empty line.
    fn section(&mut self, name: &str, value: impl AsRef<str>) {
        self.0.push('\n');
        self.add(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossover_results::model::environment::FurtherGpu;

    #[test]
    fn a_machine_is_listed() {
        let environment = Environment {
            cpu: Cpu {
                model: "Xeon".to_owned(),
                logical_cores: 16,
                usable_cores: 4,
                quota_cores: Some(0.5),
                caches: Some("48K 32K 2048K".to_owned()),
                vector_extensions: vec!["avx2".to_owned(), "fma".to_owned()],
                ..Cpu::default()
            },
            gpu: Some(GpuInfo {
                name: "NVIDIA H200".to_owned(),
                compute_capability: (9, 0),
                memory_bytes: 139 << 30,
                pcie: Some(PcieLink {
                    generation: 5,
                    width: 16,
                }),
                ..GpuInfo::default()
            }),
            further_gpus: vec![FurtherGpu {
                ordinal: 1,
                name: "NVIDIA H200".to_owned(),
                link: GpuLink::Nvlink,
                broken_with: vec![2],
            }],
            disturbances: vec!["one".to_owned(), "two".to_owned()],
            ..Environment::default()
        };
        let text = listing(&environment, Path::new("/results"));
        for line in [
            "CPU           Xeon",
            "cores         4 usable, 16 logical",
            "quota         0.50 cores",
            "caches        48K 32K 2048K",
            "vectors       avx2 fma",
            "GPU           NVIDIA H200 (device 0)",
            "memory        139.0 GiB",
            "link          PCIe 5.0 x16",
            "GPU           NVIDIA H200 (device 1)",
            "link          NVLink",
            "              with device 2: peer access is reported and does not work: disable the IOMMU or PCIe \
             ACS, or set NCCL_P2P_DISABLE=1",
            "disturbances  one",
            "              two",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        let absent = Environment {
            gpu_absent: Some("no driver".to_owned()),
            ..Environment::default()
        };
        let text = listing(&absent, Path::new("r"));
        assert!(text.contains("GPU           none: no driver\n"), "{text}");
        assert!(text.contains("none found"), "{text}");
    }
}
