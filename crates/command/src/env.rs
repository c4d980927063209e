//! `crossover env`: the machine, and disturbances of measurements.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::{Context, bail};

use crate::compare::results_folders;
use crossover_machine::libraries::{self, NO_CUBLAS, NO_NVRTC};
use crossover_machine::peers::{first_gpu, further_gpus};
use crossover_machine::{fingerprint, nccl};
use crossover_protocol::settings::Settings;
use crossover_results::model::environment::{Environment, GpuLink};
use crossover_results::model::record::{RunRecord, SCHEMA};
use crossover_results::store::layout::baselines;
use crossover_results::store::runs;

/// Show the machine: CPU, GPU, driver, libraries, and what disturbs a measurement
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print it as JSON, in the form that results store
    #[arg(long)]
    json: bool,
    /// Write the machine beside this baseline of plain Criterion, so that `compare` knows it; run it on the machine
    /// that measured the baseline
    #[arg(long, value_name = "NAME")]
    save: Option<String>,
}

pub(crate) fn run(arguments: &Args) -> anyhow::Result<ExitCode> {
    let settings = Settings::from_env()?;
    let device = first_gpu(&settings);
    let further = further_gpus(&settings);
    let mut environment = fingerprint::collect(device.as_ref(), 0);
    if device.is_ok() {
        match further {
            Ok(further) => environment.further_gpus = further,
            Err(absence) => environment.disturbances.push(absence.to_string()),
        }
    }
    if let Some(baseline) = &arguments.save {
        save(baseline, &environment)?;
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

/// Writes the machine beside a baseline, in each folder that has it.
fn save(baseline: &str, environment: &Environment) -> anyhow::Result<()> {
    let mut roots = results_folders();
    roots.retain(|root| baselines(root).contains(baseline));
    if roots.is_empty() {
        bail!(
            "no results have a baseline `{baseline}`: measure it with `cargo bench --bench TARGET -- \
             --save-baseline {baseline}`, and set CRITERION_HOME if it lies elsewhere"
        );
    }
    let record = RunRecord {
        schema: SCHEMA,
        run: runs::name_of_baseline(baseline),
        started: runs::moment(SystemTime::now()),
        // The code and the load are not those of the measurement.
        environment: Environment {
            package: None,
            commit: None,
            dirty: None,
            disturbances: Vec::new(),
            ..environment.clone()
        },
        ..RunRecord::default()
    };
    for root in roots {
        runs::write(&record, &root)?;
    }
    Ok(())
}

/// The column of the names.
const WIDTH: usize = 22;
/// Rows behind an empty line.
const SECTIONS: [&str; 4] = ["CPU", "GPU", "disturbances", "results"];

/// The remark on an NVRTC that is newer than the driver's CUDA.
const NEWER_NVRTC: &str = ", newer than the driver's CUDA version: the driver refuses its PTX; compile for the \
    device (crossover_timing::compile), or update the driver";

fn listing(environment: &Environment, results: &Path) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        if SECTIONS.contains(&name) {
            text.push('\n');
        }
        text += &format!("{name:<WIDTH$}{value}\n");
    };
    row("crossover", &environment.crossover);
    let facts = environment.facts();
    for (name, fact) in &facts {
        let absent = environment.gpu_absent.as_deref().unwrap_or_default();
        let which = match (*name, &environment.gpu) {
            ("GPU", Some(gpu)) => format!(" (device {})", gpu.ordinal),
            ("GPU", None) => format!(": {absent}"),
            ("NVRTC version", Some(gpu)) if gpu.cuda.is_some_and(|cuda| gpu.nvrtc > Some(cuda)) => {
                NEWER_NVRTC.to_owned()
            }
            ("highest SM clock", Some(gpu)) => {
                (gpu.sm_clock_mhz).map_or_else(String::new, |now| format!(" (now {now} MHz)"))
            }
            _ => String::new(),
        };
        row(name, &format!("{fact}{which}"));
    }
    for further in &environment.further_gpus {
        let (name, ordinal) = (&further.name, further.ordinal);
        row("GPU", &format!("{name} (device {ordinal})"));
        row("link", further.link.in_words());
        for other in &further.broken_with {
            let broken = GpuLink::Broken.in_words();
            row("", &format!("with device {other}: {broken}"));
        }
    }
    let nvrtc = libraries::nvrtc_version().map(|(major, minor)| format!("{major}.{minor}"));
    let nccl = (!environment.further_gpus.is_empty()).then(nccl::version);
    let cublas = libraries::cublas_version().ok_or(NO_CUBLAS);
    let libraries = [
        Some(("NVRTC version", nvrtc.ok_or(NO_NVRTC))),
        Some(("cuBLAS version", cublas)),
        nccl.map(|version| ("NCCL version", version)),
    ];
    for (name, version) in libraries.into_iter().flatten() {
        if facts.iter().all(|(fact, _)| *fact != name) {
            let version = version.unwrap_or_else(|absence| format!("none: {absence}"));
            row(name, &version);
        }
    }
    let line = format!("\n{:WIDTH$}", "");
    match &environment.disturbances[..] {
        [] => row("disturbances", "none found"),
        found => row("disturbances", &found.join(&line)),
    }
    row("results", &results.display().to_string());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossover_results::model::environment::{FurtherGpu, GpuInfo};

    #[test]
    fn a_machine_is_listed() {
        let environment = Environment {
            gpu: Some(GpuInfo {
                name: "NVIDIA H200".to_owned(),
                memory_bytes: 139 << 30,
                max_sm_clock_mhz: Some(1980),
                sm_clock_mhz: Some(345),
                cuda: Some((13, 0)),
                nvrtc: Some((13, 1)),
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
            "GPU                   NVIDIA H200 (device 0)",
            "GPU memory            139 GiB",
            "NVRTC version         13.1, newer than the driver's CUDA version: the driver refuses its PTX; compile for the \
             device (crossover_timing::compile), or update the driver",
            "highest SM clock      1980 MHz (now 345 MHz)",
            "GPU                   NVIDIA H200 (device 1)",
            "                      with device 2: peer access is reported and does not work: disable the IOMMU or PCIe \
             ACS, or set NCCL_P2P_DISABLE=1",
            "disturbances          one",
            "                      two",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}\n{text}");
        }
        let absent = Environment {
            gpu_absent: Some("no driver".to_owned()),
            ..Environment::default()
        };
        let text = listing(&absent, Path::new("r"));
        let none = "GPU                   none: no driver\n";
        assert!(text.contains(none), "{text}");
    }
}
