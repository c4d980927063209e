//! Starting this executable again with the recording driver in place of NVIDIA's libraries, and
//! talking to it there.

use std::ffi::{CStr, CString, c_char};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use crossover_suite::timing::cudarc::driver::sys;
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

/// Names the file that each call is written to.
pub(crate) const LOG: &str = "RECORDING_DRIVER_LOG";

/// A fault that is planned from the beginning on.
pub(crate) const FAULTS: &str = "RECORDING_DRIVER_FAULTS";

/// Has processes that tried links, or measured, fail after their last answer.
pub(crate) const CHILDREN_FAIL: &str = "RECORDED_CHILDREN_FAIL";

pub(crate) const TWO: &str = "h200,h200";

/// An H200 with so little memory that its bandwidth is soon measured.
pub(crate) const SMALL_H200: &str = "h200:memory_bytes=327155712:context_bytes=67108864";

/// A folder in which every library of CUDA is the recording driver, for results too.
pub(crate) struct StandIn(TempDir);

impl Default for StandIn {
    fn default() -> Self {
        let folder = tempfile::tempdir().expect("a folder of its own");
        // It lies beside the tests of its own package.
        let here = std::env::current_exe().expect("this executable has a path");
        let library = here.with_file_name("libcrossover_recording_driver.so");
        for name in LIBRARIES {
            symlink(&library, folder.path().join(name)).expect("a link in a new folder");
        }
        Self(folder)
    }
}

impl StandIn {
    pub(crate) fn without(library: &str) -> Self {
        let stand_in = Self::default();
        fs::remove_file(stand_in.folder().join(library)).expect("a link");
        stand_in
    }

    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// This executable again, with `task` to do on `devices`. CUPTI is there for the clock `activity` alone.
    pub(crate) fn command(&self, task: &str, devices: &str) -> Command {
        if task.starts_with("timing::activity") {
            let driver = self.folder().join("libcuda.so.1");
            symlink(driver, self.folder().join("libcupti.so.13")).expect("a link in a new folder");
        }
        let mut command = Command::new("timeout");
        command.args(["--signal=KILL", HANGS]);
        command.arg(std::env::current_exe().expect("this executable has a path"));
        let others = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
        let path = format!("{}:{others}", self.folder().display());
        command
            .env(TASK, task)
            .env("LD_LIBRARY_PATH", path)
            .env("RECORDING_DRIVER_DEVICES", devices)
            .env("CRITERION_HOME", self.folder().join("criterion"))
            .env("CROSSOVER_SIZES", "quick")
            // One thread copies through pinned buffers, wherever this runs.
            .env("RAYON_NUM_THREADS", "2");
        // The runs and rows with a fault make too many calls for that.
        let mut short = ["calls::", "timing::", "routines::"].iter();
        let is_short = short.any(|tasks| task.starts_with(tasks));
        if is_short {
            // Work beside the clock shows in the time of a wait.
            command
                .env(LOG, self.log())
                .env("RECORDING_DRIVER_WAITS", "1");
        }
        command
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder().join("log")
    }
}

pub(crate) fn read_json(file: &Path) -> Value {
    let text = fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    serde_json::from_slice(&text).expect("JSON")
}

/// The samples of a result: how many iterations each has, and how long they take, ns.
pub(crate) fn samples(result: &Path) -> Vec<(f64, f64)> {
    let samples = read_json(&result.join("sample.json"));
    let numbers = |of: &str| {
        let numbers = samples[of].as_array().expect("a list").iter();
        numbers.map(|n| n.as_f64().expect("a number"))
    };
    numbers("iters").zip(numbers("times")).collect()
}

/// The folder of this process's results.
pub(crate) fn results() -> PathBuf {
    std::env::var_os("CRITERION_HOME")
        .expect("set for tests")
        .into()
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

// ---- in a process that was started again ----

static WRITTEN: LazyLock<PathBuf> = LazyLock::new(|| {
    std::env::var_os(LOG)
        .expect("the calls are written down")
        .into()
});

/// From now on, processes that this one starts write nothing down.
pub(crate) fn leave_out_children() {
    LazyLock::force(&WRITTEN);
    // SAFETY: no other thread of this process reads or writes the environment.
    unsafe { std::env::remove_var(LOG) };
}

/// What the driver has written down since this was asked last, by the marks that it stands after.
pub(crate) fn phases() -> Vec<(String, Vec<String>)> {
    let text = fs::read_to_string(&*WRITTEN).expect("the driver has written it");
    fs::write(&*WRITTEN, "").expect("the driver appends to it");
    let mut phases = vec![(String::new(), Vec::new())];
    for line in text.lines() {
        match line.strip_prefix("== ") {
            Some(mark) => phases.push((mark.to_owned(), Vec::new())),
            None => phases.last_mut().unwrap().1.push(line.to_owned()),
        }
    }
    phases
}

type Tell = unsafe extern "C" fn(*const c_char) -> *const c_char;

/// Tells the recording driver a text. Call it in a process that was started again.
fn tell(text: &str) -> *const c_char {
    let text = CString::new(text).expect("a text without zeros");
    // SAFETY: the recording driver exports the function so; the text lives through the call.
    unsafe {
        let driver = sys::culib().get::<Tell>(b"crossover_recording_driver\0");
        driver.expect("the recording driver is loaded")(text.as_ptr())
    }
}

/// Begins a part of the log, and a phase for faults.
pub(crate) fn mark(text: &str) {
    tell(&format!("== {text}"));
}

/// Plans faults in place of those before, lets names begin at 1 again, so that those of a row do not depend
/// on what came before it, and returns the calls so far: phase, function and number, with tabs between.
pub(crate) fn plan(faults: &str) -> String {
    // SAFETY: the text that the driver returns stays.
    let calls = unsafe { CStr::from_ptr(tell(faults)) };
    calls.to_string_lossy().into_owned()
}
