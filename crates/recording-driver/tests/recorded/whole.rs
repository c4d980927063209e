//! Whole runs of the suite's own groups, from the bench executable to the page.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::panic::catch_unwind;
use std::thread;

use crossover_report::readme::refresh;
use crossover_report::report::Options;
use crossover_results::export::{ExportError, export};
use crossover_words::sidecar::{EMPTY_KERNEL, LAUNCH_PROBE, LONG_LAUNCHES};
use serde_json::Value;

use crate::stand_in::{
    CHILDREN_FAIL, FAULTS, LOG, SMALL_H200, StandIn, TWO, expect, read_json, said, samples,
};

/// A run on two devices: what is in the files of its rows, the answers of processes of their own, the page,
/// and what is refused because nothing was measured.
pub(crate) fn page() {
    let stand_in = StandIn::default();
    let rows = "^(nested_sine/(cpu/std|gpu/(fused|graph-gated|per-kernel-gated))/1024|\
                matmul_devices/(.*/2048|gpu/(one|in-place)/512))$";
    // It just suffices to measure the link.
    let small = "h200:memory_bytes=1342177280";
    let mut bench = stand_in.command("bench", &format!("{small},{small}"));
    bench.args(["--bench", "--quick", "--noplot", rows]);
    bench.env("CROSSOVER_DEVICE", "all");
    bench.env("CROSSOVER_PROCESSES", "3");
    let said = expect(&mut bench, 0);
    assert!(said.contains("recorded, not measured"), "{said}");
    let root = stand_in.folder().join("criterion");
    // Of the H200's description, with its variation: a kernel, and a launch before the first. Launches are
    // counted on gated clocks, and the empty kernel is timed beside them.
    for (row, kernels, launch, launches, graphs) in [
        ("gpu_fused", 1.0, 2_500.0, None, None),
        ("gpu_graph-gated", 4.0, 0.0, Some(1.0), Some(1.0)),
        ("gpu_per-kernel-gated", 4.0, 0.0, Some(4.0), None),
    ] {
        let folder = root.join("nested_sine").join(row).join("1024/new");
        let sidecar = read_json(&folder.join("crossover.json"));
        assert_eq!(sidecar["verified"], Value::Null, "{row}");
        assert_eq!(sidecar["notes"][0], "recorded, not measured", "{row}");
        let extra = |key: &str| sidecar["extra"][key].as_f64();
        assert_eq!(extra("launches"), launches, "{row}");
        assert_eq!(extra("graphs"), graphs, "{row}");
        for ns in EMPTY_KERNEL.map(extra) {
            let is_near = ns.map(|ns| (1_380.0..=1_420.0).contains(&ns));
            assert_eq!(is_near, launches.map(|_| true), "{row}: {ns:?}");
        }
        // NVML's, which the description has.
        assert_eq!(sidecar["device_state"]["sm_clock_mhz"], 1980, "{row}");
        for (iterations, time) in samples(&folder) {
            let known = 4_000.0 * kernels * iterations;
            let is_near = (0.99 * known..=1.01 * known + launch).contains(&time);
            assert!(is_near, "{row}: {iterations} in {time} ns");
        }
    }
    let runs = fs::read_dir(root.join("runs")).expect("a folder");
    let run = runs.map(|run| run.expect("it can be read").path()).next();
    let run = read_json(&run.expect("a run"));
    let further = &run["environment"]["further_gpus"][0];
    assert_eq!(further["ordinal"], 1);
    assert_eq!(further["link"], "nvlink");
    // Against the CPU in turns with it, a kernel and its share of a launch. Two devices against one.
    for (row, other, size, times) in [
        ("fused", "std", 1024, 3_960.0..4_080.0),
        ("gathered", "one", 2048, 1.5..2.1),
        ("in-place", "one", 2048, 1.5..2.1),
    ] {
        let mut asked = run["confirmations"].as_array().expect("a list").iter();
        let asked = asked.find(|asked| asked["gpu"] == row).expect(row);
        let processes = asked["processes"].as_array().expect("a list");
        assert!(processes.len() >= 3, "{said}");
        for process in processes {
            let pairs = process.as_array().expect("a list");
            let largest = pairs.last().expect("a size");
            assert_eq!(largest["cpu"], other, "{largest}");
            assert_eq!(largest["size"], size, "{largest}");
            let ns = |side: &str| largest[side].as_f64().expect("a time");
            let against = match other {
                "one" => ns("cpu_ns") / ns("gpu_ns"),
                _ => ns("gpu_ns"),
            };
            assert!(times.contains(&against), "{largest}");
        }
    }
    let read = |page: &str| fs::read_to_string(stand_in.folder().join(page)).expect(page);
    assert!(read("index.html").contains("recorded, not measured"));
    let page = read("groups/matmul_devices.html");
    for words in [
        "2 GPUs against one, all data on the first: ",
        "2 GPUs against one, each with its part of the data: ",
        "communication that is not hidden takes",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let to = stand_in.folder().join("exported");
    let refused = export(stand_in.folder(), &to).expect_err("nothing was measured");
    assert!(matches!(refused, ExportError::Recorded(_)), "{refused}");
    assert!(!to.exists());
    let readme = stand_in.folder().join("README.md");
    let text = "<!-- crossover:begin -->\n<!-- crossover:end -->\n";
    fs::write(&readme, text).expect("a file in a new folder");
    let refused = refresh(&readme, &root, stand_in.folder(), &Options::default());
    let refused = refused.expect_err("nothing was measured").to_string();
    assert!(refused.contains("from the recording driver"), "{refused}");
    assert_eq!(read("README.md"), text);
}

/// The output of a run, with these sentences. No kernel ran, so none is a success. Without CUPTI a profile is
/// absent.
fn says(
    stand_in: &StandIn,
    [devices, fault]: [&str; 2],
    arguments: &[&str],
    sentences: &[&str],
) -> String {
    let mut command = stand_in.command("bench", devices);
    command.env("CROSSOVER_DEVICE", "all").env(FAULTS, fault);
    let said = expect(command.args(arguments).env("CUDA_HOME", "/none"), 0);
    for sentence in sentences {
        assert!(said.contains(sentence), "{sentence}: {said}");
    }
    assert!(
        !said.contains("Success") && !said.contains("FAILED"),
        "{said}"
    );
    said
}

/// A card or a library that cannot do everything has the rest of the rows, and a reason for each that
/// is left out.
pub(crate) fn incomplete() {
    let stand_in = StandIn::default();
    let filter = "^(precision/gpu/.*/256|(graph_replay|nested_sine)/gpu/.*/1024)$";
    let sentences = [
        "skipped precision/gpu/bf16/256: Tesla T4 (compute capability 7.5) has no BF16 tensor cores",
        "skipped precision/gpu/fp8/256: Tesla T4 (compute capability 7.5) has no FP8 tensor cores",
        "more: the recording driver runs no kernel",
        "[16/",
    ];
    says(&stand_in, ["t4", ""], &["--test", filter], &sentences);
    let filter = "nested_sine/gpu/fused/(1024|4194304)$";
    let sentences = [
        "skipped nested_sine/gpu/fused/4194304: needs ",
        "skipped nested_sine/gpu/fused/1024: the recording driver runs no kernel",
    ];
    let little = "t4:context_bytes=0:memory_bytes=24000000";
    says(&stand_in, [little, ""], &["--test", filter], &sentences);
    let row = "nested_sine/gpu/fused/1024$";
    let arguments = ["--bench", "--profile-time=1", row];
    let absent = "note: no profile of nested_sine/gpu/fused/1024: ";
    says(&stand_in, [SMALL_H200, ""], &arguments, &[absent]);
    let arguments = ["--test", "fft/gpu/cufft/64$"];
    let absent = "skipped fft/gpu/cufft/64: cuFFT was not found; install the CUDA toolkit's cuFFT";
    let stand_in = StandIn::without("libcufft.so");
    says(&stand_in, ["h200", ""], &arguments, &[absent]);
}

/// Each of what the groups on several devices need is absent in turn: one sentence, and the rest runs.
pub(crate) fn absences() {
    let ran = "the recording driver runs no kernel";
    let filter = "^(peer_copy/gpu/.*/4096|all_reduce/.*/1024|matmul_devices/.*/512)$";
    let on = |stand_in: &StandIn, devices: [&str; 2], sentences: &[&str]| {
        says(stand_in, devices, &["--test", filter], sentences)
    };
    let stand_in = StandIn::default();
    on(&stand_in, [TWO, ""], &[ran, "[11/11]"]);
    on(&stand_in, ["h200,h200,h200,h200", ""], &[ran]);
    let remedy = "it needs two GPUs: name them with CROSSOVER_DEVICE=0,1";
    let groups = ["peer_copy", "all_reduce", "matmul_devices", remedy];
    on(&stand_in, ["h200", ""], &groups);
    let host = "peer_copy/gpu/host/4096";
    let absent = "device 0 and device 1 have no link for it (no peer access";
    on(&stand_in, ["t4,t4", ""], &[absent, host, ran]);
    let absent = "(peer access is reported and does not work";
    on(
        &stand_in,
        [TWO, "cuMemcpyPeerAsync:2:999"],
        &[absent, host, ran],
    );
    let absent = "ncclCommInitRank failed: an error of NCCL";
    on(&stand_in, [TWO, "ncclCommInitRank:*:1"], &[absent]);
    let absent = "NCCL was not found; install NCCL";
    on(&StandIn::without("libnccl.so.2"), [TWO, ""], &[absent, ran]);
    // Device 2 has no link, which a copy between the first two does not need.
    let said = on(&stand_in, ["h200,h200,t4", ""], &[ran]);
    assert!(
        !said.contains("peer_copy/gpu/engine/4096: device"),
        "{said}"
    );
    // The links are tried in the order 0-1, 0-2, 1-2, with two copies each.
    let three = ["h200,h200,h200", "cuMemcpyPeerAsync:5:999"];
    let absent = "device 1 and device 2 have no link for it (peer access is reported and does";
    let arguments = ["--test", "^all_reduce/.*/1024$"];
    says(&stand_in, three, &arguments, &[absent]);
    // An error names its device among several.
    let errors = (1..=9).map(|at| {
        let mut command = stand_in.command("bench", three[0]);
        command.env("CROSSOVER_DEVICE", "all");
        command.env(FAULTS, format!("cuMemAllocAsync:{at}:2"));
        expect(command.args(arguments), 1)
    });
    let errors: String = errors.collect();
    let named = |device| errors.contains(&format!("out of memory (device {device})"));
    assert!([0, 1, 2].into_iter().all(named), "{errors}");
    // How the process ends that has tried them all does not matter.
    let mut failing = stand_in.command("bench", TWO);
    failing
        .env("CROSSOVER_DEVICE", "all")
        .env(CHILDREN_FAIL, "1");
    let said = expect(failing.args(["--test", "peer_copy/gpu/engine/4096$"]), 0);
    assert!(said.contains(ran), "{said}");
    // Each device of a link gets two pieces of memory.
    let cannot = |link| format!("the link between {link} could not be tried: cuMemAlloc failed");
    for (which, fault, sentence) in [
        ("0,7", "", "there is no GPU 7".to_owned()),
        ("0,1", "cuMemAlloc_v2:*:2", cannot("device 0 and device 1")),
        ("all", "cuMemAlloc_v2:5:2", cannot("device 0 and device 2")),
    ] {
        let mut command = stand_in.command("bench", three[0]);
        command.env("CROSSOVER_DEVICE", which).env(FAULTS, fault);
        let rows = "^(peer_copy/gpu/engine/4096|nested_sine/gpu/fused/1024)$";
        let said = expect(command.args(["--test", rows]), 1);
        let skipped = format!("skipped peer_copy: {sentence}");
        assert!(said.contains(&skipped) && said.contains(ran), "{said}");
    }
}

/// The streams on which a run has kernels and memory sets are those of its GPU: the eighth beside the first would make
/// each launch take longer. Cold starts, which are processes of their own, are left out, and here networks too, whose
/// references take longest.
pub(crate) fn streams() {
    streams_of("quick", "^([^cmt]|c[^o]|m[^l]|t[^r]|transfer).*/gpu/", &[0]);
}

/// Of all rows with the size set `default`, whose larger sizes take a minute. Some need more memory than there is.
pub(crate) fn streams_at_length() {
    streams_of("default", "^([^c]|c[^o]).*/gpu/", &[0, 1]);
}

fn streams_of(size_set: &str, rows: &str, codes: &[i32]) {
    let stand_in = StandIn::default();
    let mut command = stand_in.command("bench", SMALL_H200);
    command.env(LOG, stand_in.log());
    command.env("CROSSOVER_SIZES", size_set);
    let output = command.args(["--test", rows]).output().expect("it runs");
    let said = said(&output);
    let code = output.status.code().expect("an end");
    assert!(codes.contains(&code), "{said}");
    let log = fs::read_to_string(stand_in.log()).expect("it was written");
    let work = |line: &&str| line.starts_with("launch ") || line.starts_with("set ");
    let streams = log.lines().filter(work);
    let streams = streams.filter_map(|line| line.split_once(" on s"));
    let names: BTreeSet<_> = streams.map(|(_, of)| of.split(' ').next()).collect();
    assert!(names.len() <= 6, "{names:?}");
    for row in [
        "transfer/gpu/d2h-staged/",
        "loader/gpu/prefetch/",
        "streams/gpu/chunks-2/",
    ] {
        assert!(said.contains(row), "{row} did not run: {said}");
    }
}

/// A device whose part of an all-reduce was launched would wait for the others.
pub(crate) fn aborted() {
    let stand_in = StandIn::default();
    let mut command = stand_in.command("bench", TWO);
    command.env("CROSSOVER_DEVICE", "0,1");
    command.env(FAULTS, "ncclGroupEnd:3:1");
    command.env(LOG, stand_in.log());
    let said = expect(command.args(["--test", "all_reduce/gpu/in-place/1024$"]), 1);
    assert!(said.contains("ncclGroupEnd failed"), "{said}");
    let log = fs::read_to_string(stand_in.log()).expect("it was written");
    let (_, after) = log.split_once("abort comm1").expect("the first");
    let (ends, freed) = (after.find("abort comm2"), after.find("free d"));
    assert!(ends < freed && ends.is_some(), "{after}");
}

/// Launches are restored before a row if they are long. A row during which they became long is measured once more,
/// unless its own streams have that effect.
pub(crate) fn launches() {
    let cold = "timing_methods/gpu/spin-events-cold/1000";
    let gated = "timing_methods/gpu/spin-events-gated/1000";
    // Small, since what takes long is not measured again.
    let three = "streams/gpu/streams-3/65536";
    let resets = "kernels on many streams make them longer";
    let itself = "it runs kernels on many streams itself";
    for (differing, rows, long, why, times) in [
        // Each flush on the cold clock counts as a stream.
        ("persisting_bytes=1048576", [cold, gated], cold, resets, 1),
        ("short_streams=1", [three, gated], three, itself, 0),
    ] {
        let looks = || {
            let stand_in = StandIn::default();
            let mut command = stand_in.command("bench", &format!("{SMALL_H200}:{differing}"));
            command.env(LOG, stand_in.log());
            command.env("CROSSOVER_SIZES", "full");
            command.env("CROSSOVER_PROCESSES", "0");
            let options =
                "--bench --noplot --sample-size=10 --warm-up-time=0.01 --measurement-time=0.01";
            let filter = rows.map(|row| format!("{row}$")).join("|");
            let output = expect(command.args(options.split(' ')).arg(filter), 0);
            let again = format!("note: {long} is measured again: launches took longer");
            assert_eq!(output.matches(&again).count(), times, "{output}");
            assert!(output.contains(", keeping launches short "), "{output}");
            let log = fs::read_to_string(stand_in.log()).expect("it was written");
            let restored = log.matches("create a second context").count();
            assert!(restored >= 2, "{output}");
            for row in rows {
                let result = row.replacen("gpu/", "gpu_", 1);
                let path = format!("criterion/{result}/new/crossover.json");
                let sidecar = read_json(&stand_in.folder().join(path));
                let [before, after] = LAUNCH_PROBE.map(|key| sidecar["extra"][key].as_f64());
                // A row with many streams may be unsteady, and measured again for that.
                let is_short = before.is_some_and(|ns| ns < 130_000.0);
                assert!(is_short || row == three, "{row}: {before:?} {output}");
                let is_long = after.is_some_and(|ns| ns > 150_000.0);
                assert_eq!(is_long, row == long, "{row}: {after:?} {output}");
                assert_eq!(sidecar["extra"][LONG_LAUNCHES] == 1.0, is_long, "{row}");
                let has_note = sidecar["notes"].to_string().contains(why);
                assert_eq!(has_note, is_long, "{sidecar}");
            }
        };
        // A busy host may have taken long for what is small.
        assert!((0..3).any(|_| catch_unwind(looks).is_ok()), "{differing}");
    }
}

/// The empty kernel and the count of launches correct comparisons of a result, which is kept without them.
pub(crate) fn kept() {
    let run = |fault: &str, code: i32| {
        let stand_in = StandIn::default();
        let mut command = stand_in.command("bench", SMALL_H200);
        command.env(LOG, stand_in.log()).env(FAULTS, fault);
        let row = "nested_sine/gpu/fused-gated/1024$";
        command.args(["--bench", "--quick", "--noplot", row]);
        let said = expect(&mut command, code);
        let result = "criterion/nested_sine/gpu_fused-gated/1024/new/crossover.json";
        let sidecar = read_json(&stand_in.folder().join(result));
        let [before, after] = EMPTY_KERNEL.map(|key| sidecar["extra"][key].is_number());
        let has = [before, after, sidecar["extra"]["launches"].is_number()];
        let log = fs::read_to_string(stand_in.log()).expect("it was written");
        let empty = log.matches("launch crossover_empty ").count();
        (said, sidecar["notes"].to_string(), has, empty)
    };
    let (said, _, has, empty) = run("", 0);
    assert_eq!(has, [true; 3], "{said}");
    // The last thousand come after the samples.
    let [refused, lost] = [2, 719].map(|error| format!("crossover_empty:{}:{error}", empty - 500));
    // The first graph is the probe of the launches.
    let uncounted = "cuGraphInstantiateWithFlags:2:2";
    let constant = "the launch constant is unknown";
    for (fault, code, wanted, word) in [
        (&*refused, 0, [false, false, true], constant),
        (
            uncounted,
            0,
            [true, true, false],
            "the number of launches is unknown",
        ),
        // Without the context, no later call succeeds; the samples were taken and verified before.
        (&*lost, 1, [false, false, true], constant),
    ] {
        let (said, notes, has, _) = run(fault, code);
        assert_eq!(has, wanted, "{said}");
        assert!(notes.contains(word) && said.contains(word), "{notes}");
        let failed = "FAILED nested_sine/gpu/fused-gated/1024: an earlier CUDA call failed: ";
        assert_eq!(said.contains(failed), code == 1, "{said}");
    }
}

/// In turns a sample of a clock that counts the submission alone takes no longer than others: each iteration keeps
/// the device busy for a millisecond.
pub(crate) fn submitted() {
    let stand_in = StandIn::default();
    let socket = stand_in.folder().join("socket");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let mut command = stand_in.command("bench", SMALL_H200);
    command
        .env(LOG, stand_in.log())
        .env("CROSSOVER_TURNS", socket);
    command.env("RECORDING_DRIVER_WAITS", "streams");
    let row = "timing_methods/gpu/spin-submit/1000000$";
    command.args(["--bench", "--noplot", row]);
    let turns = thread::spawn(move || {
        let (link, _) = listener.accept().expect("the run connects");
        let told = r#"{"run":{"core":null,"only":null,"verify":true,"choices":{}}}"#;
        let (mut reader, mut writer) = (BufReader::new(&link), &link);
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|read| read > 0) {
            let reply = if line.contains("plan") {
                told
            } else {
                "\"go\""
            };
            writeln!(writer, "{reply}").expect("the run listens");
            line.clear();
        }
    });
    let said = expect(&mut command, 0);
    turns.join().expect("the run takes turns");
    let log = fs::read_to_string(stand_in.log()).expect("it was written");
    let launches = log.matches("launch spin_timed ").count();
    // A warm-up, and ten samples of one or two iterations with one before each, unless the host was busy.
    assert!((11..60).contains(&launches), "{launches}: {said}");
}
