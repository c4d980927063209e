//! The wrong thing tried, and the sentence seen: this executable starts itself again with the
//! recording driver of this repository in place of NVIDIA's.
//!
//! Without that library beside it the tests say so and end, unless
//! CROSSOVER_REQUIRE_RECORDING_DRIVER is set.
#![cfg(feature = "criterion")]

mod cheats;

use std::env;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crossover_timing::criterion::{Bencher, Criterion};
use crossover_timing::{BoxError, Clock, CudaBencherExt, CudaTime, GateMode, Parts, open};

use crossover_words::clock_file::stored_clock;

const TASK: &str = "RECORDED_TASK";
const FOLDER: &str = "RECORDED_FOLDER";

struct Folder(PathBuf);

impl Folder {
    /// With the recording driver under the driver's names; `None` where it was not built.
    fn new(name: &str) -> Option<Self> {
        let built = env::current_exe()
            .unwrap()
            .with_file_name("libcrossover_recording_driver.so");
        if !built.is_file() {
            let required = env::var_os("CROSSOVER_REQUIRE_RECORDING_DRIVER").is_some();
            assert!(!required, "{} is missing", built.display());
            println!("skipped: {} is missing", built.display());
            return None;
        }
        let name = format!("crossover-recorded-{name}-{}", std::process::id());
        let path = env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        for library in ["libcuda.so", "libcuda.so.1"] {
            symlink(&built, path.join(library)).unwrap();
        }
        Some(Self(path))
    }

    /// Does the task in a process of its own: whether it succeeded, and what it said.
    fn run(&self, task: &str, variables: &[(&str, &str)]) -> (bool, String) {
        let output = Command::new(env::current_exe().unwrap())
            .args(["--exact", "child", "--nocapture"])
            .env(TASK, task)
            .env(FOLDER, &self.0)
            .env("LD_LIBRARY_PATH", &self.0)
            .env("RUST_BACKTRACE", "0")
            .env_remove("CUDA_LAUNCH_BLOCKING")
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let both = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&both).into_owned();
        (output.status.success(), said)
    }

    fn clock(&self, benchmark: &str) -> Option<Clock> {
        stored_clock(&self.0.join("criterion").join(benchmark).join("new"))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a process that was started again does; nothing in the test itself.
#[test]
fn child() {
    if let Ok(task) = env::var(TASK) {
        task_of(&task).unwrap();
    }
}

fn task_of(task: &str) -> Result<(), BoxError> {
    let (_, stream) = open(0)?;
    let mode = match task {
        "off" => GateMode::Off,
        "required" => GateMode::Required,
        _ => GateMode::Auto,
    };
    let time = CudaTime::on_stream(&stream, mode)?;
    let root = Path::new(&env::var(FOLDER)?).join("criterion");
    time.set_output_directory(&root);
    let empty = time.empty_kernel().expect("opened on a device");
    let other = stream.context().new_stream()?;
    // SAFETY: the kernel takes no arguments.
    let launch = || unsafe { empty.launch(&stream) };
    let twice = || launch().and_then(|()| launch());
    let waits = || -> Result<(), BoxError> {
        launch()?;
        Ok(stream.synchronize()?)
    };
    let bench = |name: &str, f: &mut dyn FnMut(&mut Bencher<'_, CudaTime>)| {
        Criterion::default()
            .with_measurement(time.clone())
            .output_directory(&root)
            .without_plots()
            .sample_size(10)
            .warm_up_time(Duration::from_millis(1))
            .measurement_time(Duration::from_millis(5))
            .bench_function(name, f);
    };
    match task {
        "plain" | "off" | "required" => bench("k", &mut |b| b.iter_gated(&time, 1, launch)),
        "fewer" => bench("k", &mut |b| b.iter_gated(&time, 1, twice)),
        "more" => bench("k", &mut |b| b.iter_gated(&time, 3, launch)),
        "elsewhere" => bench("k", &mut |b| {
            // SAFETY: as above.
            b.iter_gated(&time, 1, || unsafe { empty.launch(&other) });
        }),
        "graph" => bench("k", &mut |b| b.iter_graph(&time, twice)),
        "clocks" => {
            bench("events", &mut |b| b.iter(|| launch().unwrap()));
            bench("submit", &mut |b| b.iter_submit(&time, 1, launch));
            bench("cold", &mut |b| b.iter_cold(&time, 1, launch));
            bench("graph-cold", &mut |b| b.iter_graph_cold(&time, twice));
        }
        "cannot" => bench("k", &mut |b| b.iter_graph(&time, waits)),
        "part" => {
            let mut parts = Parts::new().part("one", 1, launch).part("two", 2, twice);
            bench("k", &mut |b| b.iter_part(&time, &mut parts, "two"));
        }
        "chosen" => {
            println!("chosen: {}", time.do_bench(twice)?);
            println!("chosen: {}", time.do_bench(waits)?);
        }
        "wall" => {
            // 0 launches: it waits for the device all the same.
            let ns = time.measure(Clock::Wall, 100, 0, launch)? / 100.0;
            println!("wall {}", ns > 1_000.0);
            let submitted = time.measure(Clock::Submit, 100, 1, launch)?;
            println!("submit {}", submitted > 0.0);
        }
        "raw" => {
            let raw = stream.cu_stream().cast();
            // SAFETY: the stream outlives the clock.
            let time = unsafe { CudaTime::on_raw_stream(0, raw, GateMode::Auto) }?;
            let ns = time.measure(Clock::EventsGated, 100, 1, launch)? / 100.0;
            println!("raw {}", (1_000.0..2_000.0).contains(&ns));
        }
        "cold" => {
            let mut inputs = time.rotating(8 << 20, |_| stream.alloc_zeros::<u8>(8 << 20))?;
            println!("copies {}", inputs.copies().len());
            time.measure(Clock::EventsCold, 3, 1, launch)?;
        }
        "cheats" => cheats::all(&time)?,
        other => return Err(format!("no task is called {other}").into()),
    }
    Ok(())
}

#[test]
fn a_number_of_launches_that_is_wrong_is_said() {
    let Some(folder) = Folder::new("launches") else {
        return;
    };
    let note = "note: a benchmark on events-gated was said to make";
    let (well, said) = folder.run("fewer", &[]);
    assert!(well, "{said}");
    assert!(
        said.contains(&format!("{note} 1 launch per iteration and makes 2")),
        "{said}"
    );
    assert_eq!(said.matches(note).count(), 1, "{said}");
    let (well, said) = folder.run("more", &[]);
    assert!(well, "{said}");
    assert!(
        said.contains(&format!("{note} 3 launches per iteration and makes 1")),
        "{said}"
    );
    let (well, said) = folder.run("plain", &[]);
    assert!(well && !said.contains("note: a benchmark"), "{said}");
}

#[test]
fn work_on_another_stream_and_what_cannot_be_captured_are_errors() {
    let Some(folder) = Folder::new("errors") else {
        return;
    };
    let (well, said) = folder.run("elsewhere", &[]);
    assert!(
        !well && said.contains("enqueued nothing on the stream that is timed"),
        "{said}"
    );
    let (well, said) = folder.run("cannot", &[]);
    assert!(
        !well && said.contains("cannot be captured in a CUDA graph"),
        "{said}"
    );
}

#[test]
fn a_gate_that_is_off_is_said_kept_and_an_error_where_it_is_required() {
    let Some(folder) = Folder::new("gate") else {
        return;
    };
    let (well, said) = folder.run("plain", &[]);
    assert!(well && !said.contains("the gate is off"), "{said}");
    assert_eq!(folder.clock("k"), Some(Clock::EventsGated));
    let (well, said) = folder.run("off", &[]);
    assert!(well, "{said}");
    assert_eq!(
        said.matches("is timed on events, launches included")
            .count(),
        1,
        "{said}"
    );
    let changed = "k: this result is of the clock events, and the one before it of events-gated";
    assert!(said.contains(changed), "{said}");
    assert_eq!(folder.clock("k"), Some(Clock::Events));
    let (well, said) = folder.run("required", &[("CUDA_LAUNCH_BLOCKING", "1")]);
    assert!(
        !well && said.contains("the events-gated clock needs the gate"),
        "{said}"
    );
    let (well, said) = folder.run("required", &[]);
    assert!(well, "{said}");
}

#[test]
fn the_wall_clock_waits_and_a_stream_of_anyone_is_timed() {
    let Some(folder) = Folder::new("wall") else {
        return;
    };
    let (well, said) = folder.run("wall", &[]);
    assert!(
        well && said.contains("wall true") && said.contains("submit true"),
        "{said}"
    );
    let (well, said) = folder.run("raw", &[]);
    assert!(well && said.contains("raw true"), "{said}");
}

#[test]
fn each_clock_is_stored_and_reads_the_virtual_time() {
    let Some(folder) = Folder::new("clocks") else {
        return;
    };
    let (well, said) = folder.run("clocks", &[]);
    assert!(well, "{said}");
    // Of the H200's description: a launch takes 2,500 ns of the host, an empty kernel 1,400, give or
    // take 1 %. Criterion's own `iter` counts a batch from its first launch on.
    for (benchmark, clock, each, more) in [
        ("events", None, 2_500.0..=2_500.0, 1_414.0),
        ("cold", Some(Clock::EventsCold), 1_386.0..=1_414.0, 0.0),
        (
            "graph-cold",
            Some(Clock::EventsCold),
            2_772.0..=2_828.0,
            0.0,
        ),
    ] {
        assert_eq!(folder.clock(benchmark), clock, "{benchmark}");
        let sample = folder.0.join("criterion").join(benchmark);
        let sample = std::fs::read(sample.join("new/sample.json")).unwrap();
        let sample: serde_json::Value = serde_json::from_slice(&sample).unwrap();
        let numbers = |of: &str| sample[of].as_array().unwrap().clone().into_iter();
        for (n, time) in numbers("iters").zip(numbers("times")) {
            let (n, time) = (n.as_f64().unwrap(), time.as_f64().unwrap());
            // An elapsed time is a float of milliseconds.
            let (least, most) = (
                each.start() * n * 0.999_99,
                each.end() * n * 1.000_01 + more,
            );
            assert!(
                (least..=most).contains(&time),
                "{benchmark}: {n} in {time} ns"
            );
        }
    }
    assert_eq!(folder.clock("submit"), Some(Clock::Submit));
}

#[test]
fn graphs_parts_and_the_call_that_chooses() {
    let Some(folder) = Folder::new("graphs") else {
        return;
    };
    for task in ["graph", "part"] {
        let (well, said) = folder.run(task, &[]);
        assert!(well && !said.contains("note:"), "{said}");
        assert_eq!(folder.clock("k"), Some(Clock::EventsGated));
    }
    let (well, said) = folder.run("chosen", &[]);
    assert!(well, "{said}");
    let chosen: Vec<&str> = said
        .lines()
        .filter(|line| line.starts_with("chosen"))
        .collect();
    let [counted, waits] = chosen[..] else {
        panic!("{said}");
    };
    assert!(
        counted.contains("on events-gated") && counted.contains("2 launches each"),
        "{said}"
    );
    assert!(
        waits.contains("on wall") && waits.contains("could not be counted"),
        "{said}"
    );
}

#[test]
fn each_cheat_gets_its_sentence_and_what_is_honest_none() {
    let Some(folder) = Folder::new("cheats") else {
        return;
    };
    let (well, said) = folder.run("cheats", &[]);
    print!("{said}");
    assert!(well, "{said}");
}

#[test]
fn the_flush_resets_persisting_lines_before_it_writes() {
    let Some(folder) = Folder::new("cold") else {
        return;
    };
    let log = folder.0.join("log");
    let (well, said) = folder.run("cold", &[("RECORDING_DRIVER_LOG", log.to_str().unwrap())]);
    assert!(well, "{said}");
    // 1 + 2 · 60 MB over 8 MiB, on the H200 that the driver describes.
    assert!(said.contains("copies 16"), "{said}");
    let log = std::fs::read_to_string(log).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let resets = |line: &&str| line.contains("persisting");
    assert_eq!(lines.iter().filter(|line| resets(line)).count(), 3, "{log}");
    let at = lines.iter().position(resets).unwrap();
    assert!(lines[at + 1].contains("set "), "{}", lines[at + 1]);
}
