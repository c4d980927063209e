//! Starting this executable again with the recording driver in place of NVIDIA's libraries, and
//! talking to it there.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crossover::timing::cudarc::driver::sys;
use serde_json::Value;
use tempfile::TempDir;

/// The names that cudarc, nvml-wrapper and the suite look for first.
const LIBRARIES: [&str; 8] = [
    "libcuda.so",
    "libcuda.so.1",
    "libcublas.so",
    "libcublasLt.so",
    "libcufft.so",
    "libnccl.so.2",
    "libnvrtc.so",
    "libnvidia-ml.so.1",
];

/// Says what a process that was started again is to do.
pub(crate) const TASK: &str = "RECORDED_TASK";

/// Seconds after which a process that was started again hangs, and is killed.
const HANGS: &str = "300";

/// How much the virtual clock varies, in millionths.
pub(crate) const VARIATION: &str = "RECORDING_DRIVER_VARIATION";

/// A folder in which every library of CUDA is the recording driver, and the log of the processes
/// that use it.
pub(crate) struct StandIn {
    folder: TempDir,
}

impl StandIn {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder of its own");
        // It lies beside the tests of its own package.
        let here = std::env::current_exe().expect("this executable has a path");
        let library = here.with_file_name("libcrossover_recording_driver.so");
        for name in LIBRARIES {
            symlink(&library, folder.path().join(name)).expect("a link in a new folder");
        }
        Self { folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// An H200 with so little memory that its bandwidth is soon measured: the file that describes it.
    pub(crate) fn small_h200(&self) -> PathBuf {
        self.h200_with("memory_bytes", 768 << 20)
    }

    /// An H200 with another value of a property: the file that describes it.
    pub(crate) fn h200_with(&self, property: &str, value: u64) -> PathBuf {
        let lines = include_str!("../../devices/h200.txt").lines();
        let lines = lines.map(|line| match line.split_once(" = ") {
            Some((name, _)) if name == property => format!("{name} = {value}\n"),
            _ => format!("{line}\n"),
        });
        let file = self.folder().join("device.txt");
        std::fs::write(&file, lines.collect::<String>()).expect("a file in a new folder");
        file
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    /// This executable again, with `task` to do on `device`, or on several with commas between.
    pub(crate) fn command(&self, task: &str, device: &str) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", HANGS]);
        command.arg(std::env::current_exe().expect("as above"));
        let others = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
        let path = format!("{}:{others}", self.folder.path().display());
        command
            .env(TASK, task)
            .env("LD_LIBRARY_PATH", path)
            .env("RECORDING_DRIVER_DEVICES", device)
            .env("CRITERION_HOME", self.folder.path().join("criterion"))
            .env("CROSSOVER_PROFILE", "quick");
        command
    }

    /// The same, and every call is written down.
    pub(crate) fn logged(&self, task: &str, device: &str) -> Command {
        let mut command = self.command(task, device);
        command.env("RECORDING_DRIVER_LOG", self.log());
        command
    }

    /// What was written down, with the marks that it stands after.
    pub(crate) fn phases(&self) -> Vec<(String, Vec<String>)> {
        let text = std::fs::read_to_string(self.log()).expect("the process has written it");
        let mut phases = vec![(String::new(), Vec::new())];
        for line in text.lines() {
            match line.strip_prefix("== ") {
                Some(mark) => phases.push((mark.to_owned(), Vec::new())),
                None => phases.last_mut().unwrap().1.push(line.to_owned()),
            }
        }
        phases
    }
}

/// The samples of a result: how many iterations each has, and how long they take, ns.
pub(crate) fn samples(result: &Path) -> Vec<(f64, f64)> {
    let text = std::fs::read(result.join("sample.json")).unwrap();
    let samples: Value = serde_json::from_slice(&text).unwrap();
    let numbers = |of: &str| samples[of].as_array().unwrap().clone().into_iter();
    let pairs = numbers("iters").zip(numbers("times"));
    pairs
        .map(|(n, time)| (n.as_f64().unwrap(), time.as_f64().unwrap()))
        .collect()
}

/// Runs a command that is to end with `code`, and returns what it said.
pub(crate) fn expect(command: &mut Command, code: i32) -> String {
    let output = command.output().expect("this executable runs");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

pub(crate) fn said(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

/// A function of the recording driver. Call it in a process that was started again.
///
/// # Safety
/// `F` is the type of the function.
unsafe fn exported<F: Copy>(name: &[u8]) -> F {
    // SAFETY: the caller's promise.
    let function = unsafe { sys::culib().get::<F>(name) };
    *function.expect("the recording driver is loaded")
}

/// Begins a part of the log, and a phase for faults.
pub(crate) fn mark(text: &str) {
    let text = CString::new(text).expect("a mark without zeros");
    let name = b"crossover_recording_driver_mark\0";
    // SAFETY: the recording driver exports the function so; the text lives through the call.
    unsafe { exported::<unsafe extern "C" fn(*const c_char)>(name)(text.as_ptr()) }
}

/// Lets names begin at 1 again, so that those of a row do not depend on what came before it.
pub(crate) fn restart_names() {
    let name = b"crossover_recording_driver_restart_names\0";
    // SAFETY: the recording driver exports the function so.
    unsafe { exported::<unsafe extern "C" fn()>(name)() }
}

/// Plans faults in place of those before, and returns the calls so far: phase, function and number, with
/// tabs between.
pub(crate) fn plan(faults: &str) -> String {
    let text = CString::new(faults).expect("faults without zeros");
    let name = b"crossover_recording_driver_plan\0";
    // SAFETY: the recording driver exports the function so, and the text that it returns stays.
    unsafe {
        let plan = exported::<unsafe extern "C" fn(*const c_char) -> *const c_char>(name);
        CStr::from_ptr(plan(text.as_ptr()))
            .to_string_lossy()
            .into_owned()
    }
}
