//! Whole runs of the suite's own groups, from the bench executable to the page.

use std::collections::BTreeSet;
use std::fs;

use crossover_report::readme::{ReadmeError, refresh};
use crossover_report::report::Options;
use crossover_results::export::{ExportError, export};
use crossover_words::sidecar::EMPTY_KERNEL;
use serde_json::Value;

use crate::stand_in::{StandIn, expect, samples};

/// The rows of a run, and what is in their files.
pub(crate) fn page() {
    let stand_in = StandIn::new();
    let rows = "nested_sine/gpu/(fused(-gated)?|graph(-gated)?|per-kernel-gated)/1024$";
    let device = stand_in.small_h200();
    let mut bench = stand_in.command("bench", device.to_str().expect("a path"));
    let said = expect(bench.args(["--bench", "--quick", "--noplot", rows]), 0);
    assert!(said.contains("recorded, not measured"), "{said}");
    let root = stand_in.folder().join("criterion");
    // Of the H200's description, with its variation: a kernel, and a launch before the first. Launches are
    // counted on gated clocks, and the empty kernel is timed beside them.
    for (row, kernels, launch, launches) in [
        ("gpu_fused", 1.0, 2_500.0, None),
        ("gpu_fused-gated", 1.0, 0.0, Some(1.0)),
        ("gpu_graph", 4.0, 2_500.0, None),
        ("gpu_graph-gated", 4.0, 0.0, Some(1.0)),
        ("gpu_per-kernel-gated", 4.0, 0.0, Some(4.0)),
    ] {
        let folder = root.join("nested_sine").join(row).join("1024/new");
        let file = fs::read(folder.join("crossover.json"));
        let file = file.unwrap_or_else(|e| panic!("{row}: {e}\n{said}"));
        let sidecar: Value = serde_json::from_slice(&file).expect("JSON");
        assert_eq!(sidecar["verified"], Value::Null, "{row}");
        assert_eq!(sidecar["notes"][0], "recorded, not measured", "{row}");
        let extra = |key: &str| sidecar["extra"][key].as_f64();
        assert_eq!(extra("launches"), launches, "{row}");
        let graphs = Some(1.0).filter(|_| row == "gpu_graph-gated");
        assert_eq!(extra("graphs"), graphs, "{row}");
        for key in EMPTY_KERNEL {
            let ns = extra(key);
            assert_eq!(ns.is_some(), launches.is_some(), "{row}");
            let is_near = ns.is_none_or(|ns| (1_380.0..=1_420.0).contains(&ns));
            assert!(is_near, "{row}: {ns:?}");
        }
        // NVML's, which the description has.
        assert_eq!(sidecar["device_state"]["sm_clock_mhz"], 1980, "{row}");
        for (iterations, time) in samples(&folder) {
            let known = 4_000.0 * kernels * iterations;
            let is_near = (0.99 * known..=1.01 * known + launch).contains(&time);
            assert!(is_near, "{row}: {iterations} in {time} ns");
        }
    }
    let page = fs::read_to_string(stand_in.folder().join("index.html")).expect("a page");
    assert!(page.contains("recorded, not measured"));
    let to = stand_in.folder().join("exported");
    let refused = export(stand_in.folder(), &to).expect_err("nothing was measured");
    assert!(matches!(refused, ExportError::Recorded(_)), "{refused}");
    assert!(!to.exists());
    let readme = stand_in.folder().join("README.md");
    let text = "<!-- crossover:begin -->\n<!-- crossover:end -->\n";
    fs::write(&readme, text).expect("a file in a new folder");
    let refused = refresh(&readme, &root, stand_in.folder(), &Options::default());
    assert!(matches!(refused, Err(ReadmeError::Recorded { .. })));
    assert_eq!(fs::read_to_string(&readme).expect("it is there"), text);
}

/// A card or a library that cannot do everything has the rest of the rows, and a reason for each that
/// is left out.
pub(crate) fn incomplete() {
    let run = |stand_in: StandIn, device, profile, filter, sentences: &[&str]| {
        let mut command = stand_in.command("bench", device);
        command.env("CROSSOVER_PROFILE", profile);
        let said = expect(command.args(["--test", filter]), 0);
        for sentence in sentences {
            assert!(said.contains(sentence), "{sentence}: {said}");
        }
        // No kernel ran, so none is a success.
        assert!(!said.contains("Success"), "{said}");
    };
    let filter = "^(precision/gpu/.*/256|(graph_replay|nested_sine)/gpu/.*/1024)$";
    let sentences = [
        "skipped precision/gpu/bf16/256: Tesla T4 (compute capability 7.5) has no BF16 tensor cores",
        "skipped precision/gpu/fp8/256: Tesla T4 (compute capability 7.5) has no FP8 tensor cores",
        "more: the recording driver runs no kernel",
        "[16/",
    ];
    run(StandIn::new(), "t4", "quick", filter, &sentences);
    let filter = "nested_sine/gpu/fused/(1024|268435456)$";
    let sentences = [
        "skipped nested_sine/gpu/fused/268435456: needs 2.0 GiB of device memory",
        "skipped nested_sine/gpu/fused/1024: the recording driver runs no kernel",
    ];
    run(
        StandIn::new(),
        "little_memory",
        "default",
        filter,
        &sentences,
    );
    let stand_in = StandIn::new();
    fs::remove_file(stand_in.folder().join("libcufft.so")).expect("a link");
    let absent = "skipped fft/gpu/cufft/64: cuFFT was not found; install the CUDA toolkit's cuFFT";
    run(stand_in, "h200", "quick", "fft/gpu/cufft/64$", &[absent]);
}

/// An answer is put to processes of its own, which take turns between CPU and GPU.
pub(crate) fn confirmed() {
    let stand_in = StandIn::new();
    let mut command = stand_in.command("bench", "little_memory");
    let rows = "nested_sine/(cpu/std|gpu/fused)/1024$";
    command.args(["--bench", "--quick", "--noplot", rows]);
    expect(command.env("CROSSOVER_PROCESSES", "2"), 0);
    let runs = stand_in.folder().join("criterion/runs");
    let run = fs::read_dir(runs).expect("a folder").next().expect("a run");
    let run = fs::read(run.expect("it can be read").path()).expect("it is there");
    let run: Value = serde_json::from_slice(&run).expect("JSON");
    let processes = run["confirmations"][0]["processes"]
        .as_array()
        .expect("a list");
    assert!(processes.len() >= 2, "{run:#}");
    // By the clock of events: a kernel of the T4's description, and its share of a launch.
    for process in processes {
        let ns = process[0]["gpu_ns"].as_f64().expect("a time");
        assert!((7_920.0..=8_250.0).contains(&ns), "{ns} ns");
    }
}

/// The streams of a run are those of its GPU: the eighth beside the first would make each launch take
/// longer. Cold starts, which are processes of their own, are left out.
pub(crate) fn streams() {
    let stand_in = StandIn::new();
    let device = stand_in.small_h200();
    let mut command = stand_in.logged("bench", device.to_str().expect("a path"));
    command.env("CROSSOVER_PROFILE", "quick");
    let said = expect(command.args(["--test", "^([^c]|c[^o]).*/gpu/"]), 0);
    let log = stand_in.phases();
    let lines = log.iter().flat_map(|(_, lines)| lines);
    let is_stream = |line: &&String| line.strip_prefix("create s").is_some();
    let names: BTreeSet<_> = lines.filter(is_stream).collect();
    assert!(names.len() <= 6, "{names:?}");
    for row in [
        "transfer/gpu/d2h-staged/",
        "loader/gpu/prefetch/",
        "streams/gpu/chunks-2/",
    ] {
        assert!(said.contains(row), "{row} did not run: {said}");
    }
}

/// Without CUPTI a profile is absent, and the run says why.
pub(crate) fn profiled() {
    let stand_in = StandIn::new();
    let mut command = stand_in.command("bench", "little_memory");
    let row = "nested_sine/gpu/fused/1024";
    command.args(["--bench", "--profile-time", "1", &format!("{row}$")]);
    let said = expect(command.env("CUDA_HOME", "/none"), 0);
    assert!(
        said.contains(&format!("note: no profile of {row}: ")),
        "{said}"
    );
}
