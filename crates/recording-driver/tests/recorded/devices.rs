//! Groups on several devices: with the links and libraries that they need, and without; and waits that are
//! missing.

use std::fs;
use std::process::ExitCode;
use std::rc::Rc;

use crossover::device::Gpu;
use crossover::model::{Exchange, FurtherGpu, GpuLink};
use crossover::workload::Workload;
use crossover::workload::devices::{Path, peer_copy};
use crossover::workload::transfer::Transfer;
use serde_json::{Value, json};

use crate::stand_in::{StandIn, expect, mark};

/// Copies that this driver carries out, by the names of their rows.
const COPIES: [(&str, Exchange, Path); 3] = [
    ("engine", Exchange::OneWay, Path::Engine),
    ("engine-both", Exchange::BothWays, Path::Engine),
    ("host", Exchange::OneWay, Path::Host),
];

/// The task of the process that was started again: copies, and prints whether all bytes arrived.
pub(crate) fn run() -> ExitCode {
    let second = FurtherGpu {
        ordinal: 1,
        name: String::new(),
        link: GpuLink::Nvlink,
    };
    let gpu = Rc::new(Gpu::open(0).unwrap().with_further(vec![second]));
    let bytes = Rc::new(Transfer::new(1 << 20));
    for (name, way, path) in COPIES {
        let mut copy = peer_copy(&gpu, &bytes, way, path).unwrap();
        copy.poison().unwrap();
        gpu.synchronize().unwrap();
        assert!(!copy.check().unwrap().passed(), "nothing was copied");
        mark(name);
        copy.run().unwrap();
        gpu.synchronize().unwrap();
        mark("checked");
        println!("{name}: {}", copy.check().unwrap().passed());
    }
    ExitCode::SUCCESS
}

/// The host waits for the timed stream alone. Without the wait of that stream for another device, the bytes
/// arrive too late.
pub(crate) fn waits() {
    let said = |fault: &str| {
        let stand_in = StandIn::new();
        let mut command = stand_in.command("devices", "h200,h200");
        if !fault.is_empty() {
            command.env("RECORDING_DRIVER_FAULTS", fault);
        }
        expect(&mut command, 0)
    };
    let whole = said("");
    for (name, ..) in COPIES {
        assert!(whole.contains(&format!("{name}: true")), "{whole}");
    }
    // The last wait of an iteration; an error 0 leaves a call out. Through the host a wait comes before the
    // pieces, and one with each of the eight.
    for (name, last) in [("engine-both", 2), ("host", 10)] {
        let left_out = said(&format!("cuStreamWaitEvent:{last}:0:{name}"));
        assert!(left_out.contains(&format!("{name}: false")), "{left_out}");
        let after = said(&format!("cuStreamWaitEvent:{}:0:{name}", last + 1));
        assert!(after.contains(&format!("{name}: true")), "{after}");
    }
}

/// Each of what the groups need is absent in turn: one sentence, and the rest runs.
pub(crate) fn absences() {
    let filter = "^(peer_copy/gpu/.*/4096|all_reduce/.*/1024|matmul_devices/.*/512)$";
    let run = |stand_in: &StandIn, devices: &str, which: &str, fault: &str| {
        let mut command = stand_in.command("bench", devices);
        command.env("CROSSOVER_DEVICE", which);
        if !fault.is_empty() {
            command.env("RECORDING_DRIVER_FAULTS", fault);
        }
        expect(command.args(["--test", filter]), 0)
    };
    let ran = "the recording driver runs no kernel";
    let all = run(&StandIn::new(), "h200,h200", "0,1", "");
    let rows = all.lines().filter(|line| line.starts_with('[')).count();
    assert_eq!(rows, 11, "{all}");
    let four = run(&StandIn::new(), "h200,h200,h200,h200", "all", "");
    assert!(four.contains(ran) && !four.contains("FAILED"), "{four}");
    let one = run(&StandIn::new(), "h200", "0", "");
    for group in ["peer_copy", "all_reduce", "matmul_devices"] {
        assert!(one.contains(group), "{one}");
    }
    assert!(
        one.contains("it needs two GPUs: name them with CROSSOVER_DEVICE=0,1"),
        "{one}"
    );
    for (devices, fault, sentence) in [
        (
            "t4,t4",
            "",
            "device 0 and device 1 have no link for it (no peer access",
        ),
        (
            "h200,h200",
            "cuMemcpyPeerAsync:2:999",
            "(peer access is reported and does not work",
        ),
    ] {
        let said = run(&StandIn::new(), devices, "0,1", fault);
        assert!(said.contains(sentence), "{sentence}: {said}");
        assert!(said.contains("peer_copy/gpu/host/4096"), "{said}");
        assert!(said.contains(ran), "{said}");
    }
    let stand_in = StandIn::new();
    fs::remove_file(stand_in.folder().join("libnccl.so.2")).expect("a link");
    let said = run(&stand_in, "h200,h200", "0,1", "");
    assert!(said.contains("NCCL was not found; install NCCL"), "{said}");
    assert!(said.contains(ran), "{said}");
    let said = run(&StandIn::new(), "h200,h200", "0,1", "ncclCommInitAll:*:1");
    assert!(
        said.contains("ncclCommInitAll failed: an error of NCCL"),
        "{said}"
    );
}

/// One device and two, by the times of the description, in the run and in processes of their own.
pub(crate) fn answers() {
    let stand_in = StandIn::new();
    let device = stand_in.h200_with("memory_bytes", 2 << 30);
    let device = device.to_str().expect("a path");
    let mut command = stand_in.command("bench", &format!("{device},{device}"));
    command.env("CROSSOVER_DEVICE", "all");
    command.env("CROSSOVER_PROCESSES", "3");
    let rows = "^matmul_devices/.*/(512|2048)$";
    let said = expect(command.args(["--bench", "--quick", "--noplot", rows]), 0);
    let runs = stand_in.folder().join("criterion/runs");
    let run = fs::read_dir(runs).expect("a folder").next().expect("a run");
    let run = fs::read(run.expect("it can be read").path()).expect("it is there");
    let run: Value = serde_json::from_slice(&run).expect("JSON");
    let further = &run["environment"]["further_gpus"][0];
    assert_eq!(
        (&further["ordinal"], &further["link"]),
        (&json!(1), &json!("nvlink"))
    );
    for row in ["gathered", "in-place"] {
        let mut asked = run["confirmations"].as_array().expect("a list").iter();
        let asked = asked.find(|asked| asked["gpu"] == row);
        let asked = asked.unwrap_or_else(|| panic!("{row}: {said}"));
        let processes = asked["processes"].as_array().expect("a list");
        assert!(processes.len() >= 3, "{said}");
        for process in processes {
            let largest = process.as_array().and_then(|pairs| pairs.last());
            let largest = largest.expect("a size");
            let ns = |side: &str| largest[side].as_f64().expect("a time");
            assert_eq!(
                (&largest["cpu"], &largest["size"]),
                (&json!("one"), &json!(2048))
            );
            assert!(
                (1.5..2.1).contains(&(ns("cpu_ns") / ns("gpu_ns"))),
                "{largest}"
            );
        }
    }
    let page = stand_in.folder().join("groups/matmul_devices.html");
    let page = fs::read_to_string(page).expect("a page");
    for words in [
        "2 GPUs against one, all data on the first: ",
        "2 GPUs against one, each with its part of the data: ",
        "communication that is not hidden takes",
    ] {
        assert!(page.contains(words), "{words}");
    }
}
