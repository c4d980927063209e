//! Every function of a library that the suite calls is one that the recording driver has.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

/// What cudarc's wrappers and methods call, and those of nvml-wrapper. A name that is missing here
/// fails the test below: look up what it calls.
const CALLS: &[(&str, &[&str])] = &[
    // cudarc::cublas
    (
        "CudaBlas::new",
        &["cublasCreate_v2", "cublasSetStream_v2", "cublasDestroy_v2"],
    ),
    ("create_handle", &["cublasCreate_v2"]),
    ("set_stream", &["cublasSetStream_v2"]),
    ("sgemm", &["cublasSgemm_v2"]),
    ("sgemm_strided_batched", &["cublasSgemmStridedBatched"]),
    ("gemm_ex", &["cublasGemmEx"]),
    // cudarc::cublaslt
    ("create_matmul_desc", &["cublasLtMatmulDescCreate"]),
    (
        "set_matmul_desc_attribute",
        &["cublasLtMatmulDescSetAttribute"],
    ),
    ("destroy_matmul_desc", &["cublasLtMatmulDescDestroy"]),
    ("create_matrix_layout", &["cublasLtMatrixLayoutCreate"]),
    (
        "set_matrix_layout_attribute",
        &["cublasLtMatrixLayoutSetAttribute"],
    ),
    ("destroy_matrix_layout", &["cublasLtMatrixLayoutDestroy"]),
    ("create_matmul_pref", &["cublasLtMatmulPreferenceCreate"]),
    (
        "set_matmul_pref_attribute",
        &["cublasLtMatmulPreferenceSetAttribute"],
    ),
    ("destroy_matmul_pref", &["cublasLtMatmulPreferenceDestroy"]),
    (
        "get_matmul_algo_heuristic",
        &["cublasLtMatmulAlgoGetHeuristic"],
    ),
    ("matmul", &["cublasLtMatmul"]),
    // cudarc::nvrtc
    ("create_program", &["nvrtcCreateProgram"]),
    ("compile_program", &["nvrtcCompileProgram"]),
    ("destroy_program", &["nvrtcDestroyProgram"]),
    (
        "get_program_log",
        &["nvrtcGetProgramLogSize", "nvrtcGetProgramLog"],
    ),
    ("get_ptx", &["nvrtcGetPTXSize", "nvrtcGetPTX"]),
    (
        "compile_ptx",
        &["nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetPTX"],
    ),
    (
        "compile_ptx_with_opts",
        &["nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetPTX"],
    ),
    // nvml_wrapper
    (
        "Nvml::init",
        &["nvmlInit_v2", "nvmlShutdown", "nvmlSystemGetDriverVersion"],
    ),
    ("sys_driver_version", &["nvmlSystemGetDriverVersion"]),
    (
        "device_by_pci_bus_id",
        &["nvmlDeviceGetHandleByPciBusId_v2"],
    ),
    ("device_by_uuid", &["nvmlDeviceGetHandleByUUID"]),
    ("clock_info", &["nvmlDeviceGetClockInfo"]),
    ("max_clock_info", &["nvmlDeviceGetMaxClockInfo"]),
    ("temperature", &["nvmlDeviceGetTemperature"]),
    ("power_usage", &["nvmlDeviceGetPowerUsage"]),
    (
        "total_energy_consumption",
        &["nvmlDeviceGetTotalEnergyConsumption"],
    ),
    ("enforced_power_limit", &["nvmlDeviceGetEnforcedPowerLimit"]),
    (
        "power_management_limit_default",
        &["nvmlDeviceGetPowerManagementDefaultLimit"],
    ),
    (
        "current_throttle_reasons",
        &["nvmlDeviceGetCurrentClocksThrottleReasons"],
    ),
    ("max_pcie_link_gen", &["nvmlDeviceGetMaxPcieLinkGeneration"]),
    ("max_pcie_link_width", &["nvmlDeviceGetMaxPcieLinkWidth"]),
    (
        "current_pcie_link_gen",
        &["nvmlDeviceGetCurrPcieLinkGeneration"],
    ),
    (
        "current_pcie_link_width",
        &["nvmlDeviceGetCurrPcieLinkWidth"],
    ),
    ("memory_info", &["nvmlDeviceGetMemoryInfo_v2"]),
    ("mig_mode", &["nvmlDeviceGetMigMode"]),
    (
        "running_compute_processes",
        &["nvmlDeviceGetComputeRunningProcesses_v3"],
    ),
    ("utilization_rates", &["nvmlDeviceGetUtilizationRates"]),
];

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        // The driver's own calls are those that it answers.
        if path.is_dir() && !path.ends_with("recording-driver") {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The names that follow `before` and are called, in a text without blanks.
fn called<'a>(text: &'a str, before: &'a str) -> impl Iterator<Item = &'a str> {
    text.match_indices(before).filter_map(move |(at, _)| {
        let preceded = text[..at].ends_with(is_word) && before.starts_with(is_word);
        let rest = &text[at + before.len()..];
        let name = &rest[..rest.find(|c| !is_word(c))?];
        (!preceded && !name.is_empty() && rest[name.len()..].starts_with('(')).then_some(name)
    })
}

/// The exported functions that a source calls by name.
fn exported(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_word(c)).filter(|word| {
        let rest = word
            .strip_prefix("cublas")
            .or_else(|| word.strip_prefix("nvrtc"));
        let is_function = |rest: &str| {
            rest.starts_with(|c: char| c.is_uppercase())
                && !rest.ends_with("_t")
                && !["Program", "Something", "Create", "Error"].contains(&rest)
        };
        rest.is_some_and(is_function)
    })
}

/// The wrappers of a library that a source calls: by the names that its `use` declarations give to
/// cudarc's modules and functions.
fn wrappers(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut modules = Vec::new();
    for library in ["cublas", "cublaslt", "nvrtc"] {
        let path = format!("cudarc::{library}::");
        for (at, _) in text.match_indices(&path) {
            let declared = text[at + path.len()..]
                .split(';')
                .next()
                .unwrap_or_default();
            for item in declared.split([',', '{', '}']) {
                match item.rsplit("::").next().unwrap_or(item).trim() {
                    "result" | "self" => modules.push("result::".to_owned()),
                    item if item.starts_with("result as ") => {
                        modules.push(format!("{}::", &item["result as ".len()..]));
                    }
                    item if item.starts_with(char::is_lowercase) => {
                        let is_called = text.contains(&format!("{item}("));
                        let is_own = exported(item).next().is_some();
                        found.extend((is_called && !is_own).then(|| item.to_owned()));
                    }
                    _ => {}
                }
            }
        }
    }
    for module in &modules {
        found.extend(called(text, module).map(str::to_owned));
    }
    found.extend(
        text.contains("CudaBlas::new(")
            .then(|| "CudaBlas::new".to_owned()),
    );
    found
}

/// The methods of nvml-wrapper that a source calls.
fn nvml(text: &str) -> BTreeSet<String> {
    let text: String = text.split_whitespace().collect();
    let of = ["device.", "nvml.", "library()?."];
    let methods = of
        .into_iter()
        .flat_map(|of| called(&text, of).map(str::to_owned));
    let methods: BTreeSet<String> = methods.collect();
    methods
        .into_iter()
        .chain(
            text.contains("Nvml::init(")
                .then(|| "Nvml::init".to_owned()),
        )
        .collect()
}

#[test]
fn nothing_that_the_suite_calls_is_missing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for folder in ["src", "crates", "tests", "benches", "examples"] {
        sources(&root.join(folder), &mut files);
    }
    let (mut symbols, mut names) = (BTreeSet::new(), BTreeSet::new());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let code = text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let code: String = code.map(|line| format!("{} ", line.trim())).collect();
        if code.contains("cudarc::") {
            names.extend(wrappers(&code));
            symbols.extend(exported(&code).map(str::to_owned));
        }
        if code.contains("nvml_wrapper::") {
            names.extend(nvml(&code));
        }
    }
    for known in [
        "CudaBlas::new",
        "gemm_ex",
        "matmul",
        "get_program_log",
        "clock_info",
    ] {
        assert!(names.contains(known), "the search finds {known}: {names:?}");
    }
    assert!(
        symbols.contains("cublasLtMatmulAlgoGetHeuristic"),
        "{symbols:?}"
    );
    for name in &names {
        let calls = CALLS.iter().find(|(wrapper, _)| wrapper == name);
        let (_, calls) = calls.unwrap_or_else(|| panic!("what does {name} call? Add it to CALLS"));
        symbols.extend(calls.iter().map(|call| (*call).to_owned()));
    }
    let executable = std::env::current_exe().unwrap();
    let library = executable.with_file_name("libcrossover_recording_driver.so");
    let path = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: opens the library of this crate, which has no initialisers.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    assert!(!library.is_null(), "cannot open {path:?}");
    let missing = symbols.iter().filter(|symbol| {
        let name = CString::new(symbol.as_str()).unwrap();
        // SAFETY: the library is open and stays so.
        unsafe { libc::dlsym(library, name.as_ptr()) }.is_null()
    });
    let missing: Vec<&String> = missing.collect();
    assert!(missing.is_empty(), "the recording driver lacks {missing:?}");
}
