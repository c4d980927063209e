//! Runs of two processes, which variables of their launcher make ranks of one run.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

use crate::stand_in::{FAULTS, LOG, SMALL_H200, StandIn, read_json, said};
use crossover_protocol::rank::free_port;

/// Those of `torchrun`.
const VARIABLES: [&str; 3] = ["RANK", "WORLD_SIZE", "LOCAL_RANK"];

/// Two ranks with these arguments, each with the results folder of its number.
fn ranks(
    stand_in: &StandIn,
    arguments: &[&str],
    change: impl Fn(usize, &mut Command),
) -> [Child; 2] {
    let port = free_port().to_string();
    [0, 1].map(|rank| {
        let mut command = stand_in.command("bench", &format!("{SMALL_H200},{SMALL_H200}"));
        let number = rank.to_string();
        command.env("CRITERION_HOME", stand_in.folder().join(&number));
        command.envs(VARIABLES.into_iter().zip([&*number, "2", &number]));
        // The stand-in's calls are in a folder there.
        command.env("TMPDIR", stand_in.folder());
        command.env("MASTER_PORT", &port);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        change(rank, command.args(arguments));
        command.spawn().expect("this executable runs")
    })
}

/// How each ends, and what it says.
fn ended(ranks: [Child; 2]) -> [(Option<i32>, String); 2] {
    ranks.map(|rank| {
        let output = rank.wait_with_output().expect("it ends");
        (output.status.code(), said(&output))
    })
}

/// Rank 0 has the results of both, and rank 1 writes and says nothing. Other groups are skipped.
pub(crate) fn results() {
    let rows = "^((all_reduce/gpu/.*|nested_sine/gpu/fused)/1024|peer_copy/gpu/engine/4096)$";
    let stand_in = StandIn::default();
    let log = stand_in.folder().join("calls of rank 1");
    let bench = ["--bench", "--quick", "--noplot", rows];
    let both = ranks(&stand_in, &bench, |rank, command| {
        command.envs(Some((LOG, &log)).filter(|_| rank == 1));
    });
    let [(code, said), other] = ended(both);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(other, (Some(0), String::new()), "{said}");
    assert!(!stand_in.folder().join("1").exists());
    let log = fs::read_to_string(log).expect("it was written");
    // It verifies its own result.
    assert!(log.contains("copy D2H 1024 B"), "{log}");
    // Between two orders of rank 0.
    assert!(log.contains("create a second context of device 1"), "{log}");
    // Rank 1 is told of each sample, not of each run. With --quick the second has two on any machine.
    let mut calls = log.lines().zip(log.lines().skip(1));
    let follows = calls.any(|(run, next)| run == next && run.contains("ncclAllReduce by"));
    assert!(follows, "{log}");
    let skipped = "skipped nested_sine: it runs in one process; start it without torchrun";
    assert!(
        said.contains(skipped) && said.contains("left out "),
        "{said}"
    );
    let result = "0/all_reduce/gpu_device-time/1024/new/crossover.json";
    let sidecar = read_json(&stand_in.folder().join(result));
    assert_eq!(sidecar["extra"]["devices"], 2.0, "{sidecar}");
    let notes = sidecar["notes"].to_string();
    assert!(notes.contains("2 processes"), "{notes}");
}

/// If rank 0 has no memory for its part of a routine, rank 1 does not keep its own.
pub(crate) fn frees() {
    let stand_in = StandIn::default();
    let log = stand_in.folder().join("calls of rank 1");
    let rows = "all_reduce/gpu/(in|out-of)-place/1024$";
    let bench = ["--bench", "--quick", "--noplot", rows];
    let both = ranks(&stand_in, &bench, |rank, command| match rank {
        // Three are those of the machine's limits.
        0 => _ = command.env(FAULTS, "cuMemAllocAsync:4:2"),
        _ => _ = command.env(LOG, &log),
    });
    let [(_, said), _] = ended(both);
    assert!(said.contains("OUT_OF_MEMORY"), "{said}");
    let log = fs::read_to_string(log).expect("it was written");
    let before_the_next = log.split("allocate d3").next().expect("one");
    assert!(
        before_the_next.contains("free d2") && log.contains("allocate d3"),
        "{log}"
    );
}

/// A run whose ranks do not go on together ends with an error that names the rank.
pub(crate) fn ends() {
    let [same_gpu, no_memory, no_call] = [
        ("LOCAL_RANK", "0"),
        (FAULTS, "cuMemAllocAsync:1:2"),
        // The others wait for it.
        (FAULTS, "ncclAllReduce:30:1"),
    ];
    let cases = [
        (Some(same_gpu), None, "ranks 0 and 1 have the same GPU"),
        (
            Some(no_memory),
            None,
            "rank 1: cuMemAllocAsync failed: CUDA_ERROR_OUT_OF_MEMORY",
        ),
        (Some(no_call), None, "rank 1 ended during the run"),
        (None, Some(1), "rank 1 ended during the run"),
        (None, Some(0), "rank 0 ended during the run"),
    ];
    // The clock is not that of the host: this takes longer than until one of them ends.
    let row = "all_reduce/gpu/in-place/1024$";
    let bench = ["--bench", "--noplot", "--measurement-time=60", row];
    cases.par_iter().for_each(|&(variable, killed, words)| {
        let stand_in = StandIn::default();
        let mut both = ranks(&stand_in, &bench, |rank, command| {
            command.envs(variable.filter(|_| rank == 1));
        });
        if let Some(killed) = killed {
            while calls(&stand_in) < 200 && both[0].try_wait().expect("a child").is_none() {
                sleep(Duration::from_millis(1));
            }
            // The group of `timeout`, which has started it.
            let group = -both[killed].id().cast_signed();
            // SAFETY: the processes are those of this test.
            assert_eq!(unsafe { libc::kill(group, libc::SIGKILL) }, 0);
        }
        let [zero, one] = ended(both);
        let (code, said) = if killed == Some(0) { one } else { zero };
        assert!(
            said.contains(words) && code == Some(1),
            "{words}: {code:?} {said}"
        );
    });
}

/// Calls of rank 1 so far.
fn calls(stand_in: &StandIn) -> u64 {
    let entries = fs::read_dir(stand_in.folder()).expect("a folder").flatten();
    let mut files = entries.filter_map(|entry| entry.path().join("1").metadata().ok());
    files.next().map_or(0, |file| file.len() / 16)
}
