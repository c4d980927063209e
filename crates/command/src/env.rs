//! `crossover env`: the machine, and what disturbs a measurement.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;

use crossover_machine::fingerprint;
use crossover_machine::libraries::{self, NO_CUBLAS, NO_NVRTC};
use crossover_protocol::settings::Settings;
use crossover_results::model::environment::{Cpu, Environment, GpuInfo, Numa, PcieLink};

/// Show the machine: CPU, GPU, driver, libraries, and what disturbs a measurement
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print it as JSON, in the form that results store
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let settings = Settings::from_env()?;
    let device = settings.probe();
    let environment = fingerprint::collect(device.as_ref(), 0);
    let text = if arguments.json {
        let mut json = serde_json::to_string_pretty(&environment)?;
        json.push('\n');
        json
    } else {
        let libraries = Libraries {
            nvrtc: libraries::nvrtc_version(),
            cublas: libraries::cublas_version(),
        };
        let results = std::path::absolute(&settings.results)
            .with_context(|| settings.results.display().to_string())?;
        listing(&environment, &libraries, &results)
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .context("standard output")?;
    Ok(ExitCode::SUCCESS)
}

/// The toolkit's libraries, which may be there without a GPU.
struct Libraries {
    nvrtc: Option<(u32, u32)>,
    cublas: Option<String>,
}

fn listing(environment: &Environment, libraries: &Libraries, results: &Path) -> String {
    let mut rows = Rows::default();
    rows.add("crossover", &environment.crossover);
    rows.maybe("system", environment.os.clone());
    cpu(&mut rows, &environment.cpu);
    rows.maybe("NUMA", environment.numa.as_ref().map(numa));
    match (&environment.gpu, &environment.gpu_absent) {
        (Some(info), _) => gpu(&mut rows, info),
        (None, Some(reason)) => rows.section("GPU", format!("none: {reason}")),
        (None, None) => rows.section("GPU", "none"),
    }
    rows.add(
        "NVRTC",
        libraries
            .nvrtc
            .map_or_else(|| format!("none: {NO_NVRTC}"), version),
    );
    rows.add(
        "cuBLAS",
        libraries
            .cublas
            .clone()
            .unwrap_or_else(|| format!("none: {NO_CUBLAS}")),
    );
    match environment.disturbances.split_first() {
        None => rows.section("disturbances", "none found"),
        Some((first, others)) => {
            rows.section("disturbances", first.as_str());
            others.iter().for_each(|other| rows.add("", other.as_str()));
        }
    }
    rows.section("results", results.display().to_string());
    rows.0
}

fn cpu(rows: &mut Rows, cpu: &Cpu) {
    rows.section("CPU", cpu.model.as_str());
    let mut cores = format!("{} usable, {} logical", cpu.usable_cores, cpu.logical_cores);
    if let Some(physical) = cpu.physical_cores {
        cores += &format!(", {physical} physical");
    }
    rows.add("cores", cores);
    rows.maybe("quota", cpu.quota_cores.map(|q| format!("{q:.2} cores")));
    if !cpu.vector_extensions.is_empty() {
        rows.add("vectors", cpu.vector_extensions.join(" "));
    }
    rows.maybe("memory", cpu.memory_bytes.map(gibibytes));
    rows.maybe("governor", cpu.governor.clone());
}

fn numa(numa: &Numa) -> String {
    if let [node] = numa.nodes[..] {
        return format!("one node ({node})");
    }
    let list = |nodes: &[u32]| {
        let names: Vec<String> = nodes.iter().map(u32::to_string).collect();
        names.join(", ")
    };
    let gpu = (numa.gpu).map_or("unknown".to_owned(), |node| node.to_string());
    format!(
        "nodes {}; GPU at {gpu}, threads on {}, memory from {}",
        list(&numa.nodes),
        list(&numa.threads),
        list(&numa.memory)
    )
}

fn gpu(rows: &mut Rows, gpu: &GpuInfo) {
    let (major, minor) = gpu.compute_capability;
    rows.section("GPU", format!("{} (device {})", gpu.name, gpu.ordinal));
    rows.maybe("UUID", gpu.uuid.clone());
    rows.add(
        "compute",
        format!(
            "capability {major}.{minor}, {} multiprocessors",
            gpu.multiprocessors
        ),
    );
    let mut memory = gibibytes(gpu.memory_bytes);
    if let Some(bytes) = gpu.l2_bytes {
        memory += &format!(", L2 cache {:.0} MiB", bytes as f64 / (1 << 20) as f64);
    }
    rows.add("memory", memory);
    let clocks = [
        ("SM", gpu.max_sm_clock_mhz),
        ("memory", gpu.max_memory_clock_mhz),
    ];
    let clocks: Vec<String> = clocks
        .iter()
        .filter_map(|(name, mhz)| mhz.map(|mhz| format!("{name} up to {mhz} MHz")))
        .collect();
    rows.maybe("clocks", (!clocks.is_empty()).then(|| clocks.join(", ")));
    rows.maybe("link", link(gpu.pcie, gpu.pcie_current));
    let mut power: Vec<String> = Vec::new();
    power.extend(gpu.power_limit_w.map(|w| format!("limit {w:.0} W")));
    power.extend(gpu.temperature_c.map(|c| format!("{c} °C")));
    rows.maybe("power", (!power.is_empty()).then(|| power.join(", ")));
    rows.maybe(
        "MIG",
        gpu.mig.map(|on| if on { "on" } else { "off" }.to_owned()),
    );
    let mut driver: Vec<String> = gpu.driver.iter().cloned().collect();
    driver.extend(gpu.cuda.map(|cuda| format!("CUDA {}", version(cuda))));
    rows.maybe("driver", (!driver.is_empty()).then(|| driver.join(", ")));
}

fn link(max: Option<PcieLink>, now: Option<PcieLink>) -> Option<String> {
    let show = |link: PcieLink| format!("PCIe {}.0 x{}", link.generation, link.width);
    match (max, now) {
        (Some(max), Some(now)) if max != now => {
            let why = if now.width < max.width {
                "fewer lanes than device and slot have"
            } else {
                "an idle link slows down"
            };
            Some(format!("{}, now {} ({why})", show(max), show(now)))
        }
        (max, now) => max.or(now).map(show),
    }
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
    use crossover_machine::absence::Absence;

    fn libraries(nvrtc: Option<(u32, u32)>, cublas: Option<&str>) -> Libraries {
        Libraries {
            nvrtc,
            cublas: cublas.map(str::to_owned),
        }
    }

    #[test]
    fn a_machine_with_a_gpu_is_listed_whole() {
        let environment = Environment {
            crossover: "0.1.0".to_owned(),
            package: None,
            commit: None,
            dirty: None,
            os: Some("Debian GNU/Linux 13, Linux 6.12".to_owned()),
            cpu: Cpu {
                model: "Xeon".to_owned(),
                physical_cores: Some(8),
                logical_cores: 16,
                usable_cores: 4,
                quota_cores: Some(4.0),
                vector_extensions: vec!["avx2".to_owned(), "fma".to_owned()],
                memory_bytes: Some(128 << 30),
                governor: Some("performance".to_owned()),
                ..Cpu::default()
            },
            numa: Some(Numa {
                nodes: vec![0, 1],
                gpu: Some(1),
                threads: vec![0, 1],
                memory: vec![0, 1],
            }),
            gpu: Some(GpuInfo {
                name: "NVIDIA H200".to_owned(),
                uuid: Some("GPU-1".to_owned()),
                compute_capability: (9, 0),
                multiprocessors: 132,
                memory_bytes: 139 << 30,
                l2_bytes: Some(60 << 20),
                max_sm_clock_mhz: Some(1980),
                pcie: Some(PcieLink {
                    generation: 5,
                    width: 16,
                }),
                pcie_current: Some(PcieLink {
                    generation: 1,
                    width: 16,
                }),
                driver: Some("580.95.05".to_owned()),
                cuda: Some((13, 0)),
                power_limit_w: Some(700.0),
                temperature_c: Some(31),
                mig: Some(false),
                ..GpuInfo::default()
            }),
            gpu_absent: None,
            disturbances: vec!["one".to_owned(), "two".to_owned()],
        };
        let text = listing(
            &environment,
            &libraries(Some((13, 0)), Some("13.1.0")),
            Path::new("/results"),
        );
        assert_eq!(
            text,
            "\
crossover     0.1.0
system        Debian GNU/Linux 13, Linux 6.12

CPU           Xeon
cores         4 usable, 16 logical, 8 physical
quota         4.00 cores
vectors       avx2 fma
memory        128.0 GiB
governor      performance
NUMA          nodes 0, 1; GPU at 1, threads on 0, 1, memory from 0, 1

GPU           NVIDIA H200 (device 0)
UUID          GPU-1
compute       capability 9.0, 132 multiprocessors
memory        139.0 GiB, L2 cache 60 MiB
clocks        SM up to 1980 MHz
link          PCIe 5.0 x16, now PCIe 1.0 x16 (an idle link slows down)
power         limit 700 W, 31 °C
MIG           off
driver        580.95.05, CUDA 13.0
NVRTC         13.0
cuBLAS        13.1.0

disturbances  one
              two

results       /results
"
        );
    }

    #[test]
    fn every_absence_is_told_with_its_remedy() {
        let environment = Environment {
            gpu_absent: Some(Absence::Device(crossover_timing::Absence::NoDriver).to_string()),
            ..Environment::default()
        };
        let text = listing(&environment, &libraries(None, None), Path::new("r"));
        for absence in [
            Absence::Device(crossover_timing::Absence::NoDriver),
            NO_NVRTC,
            NO_CUBLAS,
        ] {
            assert!(text.contains(&format!("none: {absence}\n")), "{text}");
        }
        assert!(text.contains("none found"), "{text}");
    }
}
