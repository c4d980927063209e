//! Findings where real results do not show them: the other way round, with a part missing, of other
//! machines, of roles alone, and none without their benchmarks.

use super::{Fixture, check, check_with, machine, near};
use crate::analysis::answer::crossover_answer;
use crate::analysis::rate::{self, Work};
use crate::analysis::reuse;
use crate::model::{Energy, Telemetry};
use crossover_words::Clock::EventsGated;

const PHASES: &str = "
    cold_start/gpu/driver-init/1 wall 10e6
    cold_start/gpu/context/1 wall 60e6
    cold_start/gpu/first-stream/1 wall 0.5e6
    cold_start/gpu/first-alloc/1 wall 0.5e6
    cold_start/gpu/nvrtc-compile/1 wall 20e6
    cold_start/gpu/ptx-jit/1 wall 8e6
    cold_start/gpu/cubin-load/1 wall 0.1e6
    cold_start/gpu/first-launch/1 wall 1e6
    cold_start/gpu/warm-launch/1 wall 10e3
    cold_start/gpu/first-gemm/1 wall 29e6
    cold_start/gpu/warm-gemm/1 wall 20e3
    ";

/// Without the JIT's time the CUBIN stands for compiling.
#[test]
fn a_cold_start_without_a_phase_tells_the_rest() {
    let without = |phase: &str, expected: &str| {
        let line = |line: &&str| !line.contains(phase);
        let lines: Vec<&str> = PHASES
            .lines()
            .filter(line)
            .chain(expected.lines())
            .collect();
        check(&lines.join("\n"));
    };
    without(
        "ptx-jit",
        "says cold_start.kernel: takes 72.1 ms\nomits cold_start.kernel: instead",
    );
    without("context", "silent cold_start");
    without("warm-launch", "silent cold_start.kernel");
}

#[test]
fn a_cold_start_pays_after_some_calls() {
    let mut f = Fixture::new();
    f.lines(
        "
        cold_start/gpu/driver-init/1 wall 1e7
        cold_start/gpu/context/1 wall 9e7
        cold_start/gpu/first-stream/1 wall 1e4
        cold_start/gpu/first-alloc/1 wall 9e4
        cold_start/gpu/first-gemm/1 wall 1.999e8
        cold_start/gpu/nvrtc-compile/1 wall 5e7
        cold_start/gpu/warm-gemm/1 wall 2e4
        matmul/gpu/transfer/1024 wall 1e6 launches=1
        matmul/gpu/cublas-eager/1024 events 1e5 launches=1
        matmul/cpu/best/1024 wall 4e5
        ",
    );
    let machine = f.machine();
    let reuse = reuse::find(&machine, &crossover_answer::find(&machine, &[]));
    // Compiling is not on the way to a product.
    near(reuse[0].rows[0].calls.unwrap(), 1000.0);
}

#[test]
fn a_process_is_warm_after_some_calls_and_preparing_pays_after_some() {
    check(
        "
        warm/gpu/apart/1 wall 500e3
        warm/gpu/apart/2 wall 101e3
        warm/gpu/apart/10 wall 100e3
        warm/gpu/apart-host/1 submit 450e3
        warm/gpu/apart-host/2 submit 91e3
        warm/gpu/apart-host/10 submit 90e3
        warm/gpu/graph/1 wall 80e3
        warm/gpu/graph/2 wall 60e3
        warm/gpu/graph/10 wall 40e3
        warm/gpu/fused/1 wall 200e3
        warm/gpu/fused/10 wall 200e3
        warm/gpu/graph-capture/1 wall 100e3
        warm/gpu/graph-instantiate/1 wall 85e3
        warm/gpu/kernel-compile/1 wall 20e6
        says warming_up.calls: A chain: first 500 µs, of it the host 450 µs, last 100 µs, of it the host 90.0 µs
        says warming_up.calls: Its graph: first 80.0 µs, last 40.0 µs, warm from call 10
        says warming_up.prepared: graph takes 185 µs and is paid after 4 calls, each of which takes 60.0 µs less
        says warming_up.prepared: kernel takes 20.0 ms and is never paid
        silent graph.
        ",
    );
}

#[test]
fn one_row_alone_is_no_finding() {
    for (row, finding) in [
        ("matmul/gpu/submit/8 submit", "submit"),
        ("nested_sine/gpu/fused/1024 events", "fusing"),
        ("streams/gpu/sequence/65536 wall", "overlap"),
        ("memory/gpu/malloc/4096 wall", "allocation"),
        ("loader/gpu/pageable/1048576 wall", "loading"),
        ("precision/gpu/f32/64 events-gated", "precision"),
        ("precision/gpu/fp16/64 events-gated", "precision"),
    ] {
        check(&format!("{row} 1e4 launches=1\nsilent {finding}"));
    }
}

/// Also without the kernels' time of a loader, and of copies without a small size.
#[test]
fn techniques_that_cost_time_are_said_to() {
    check(
        "
        transfer/gpu/d2h-pageable/1048576 wall 10e3 launches=1
        transfer/gpu/d2h-pinned/1048576 wall 20e3 launches=1
        transfer/gpu/h2d-pinned/1048576 wall 20e3 launches=1
        says copies.pinned.d2h: Pinning the host memory of copies to the host is 2× slower
        silent copies.fixed
        silent copies.many
        streams/gpu/sequence/65536 wall 30e3 launches=1
        streams/gpu/chunks-2/65536 wall 60e3 launches=1
        streams/gpu/synced/65536 wall 15e3 launches=1
        says overlap.pieces: is 2× slower
        says overlap.synced: is 2× faster
        host_sync/gpu/async/1024 wall 128e3 launches=64
        host_sync/gpu/sync-each/1024 wall 64e3 launches=64
        host_sync/gpu/graph/1024 wall 256e3 launches=64
        says synchronising.host_sync: is 2× slower | more for each of 63
        says graph.host_sync: is 2× slower
        silent reading
        silent host_sync.hybrid
        nested_sine/gpu/per-kernel/1024 events 1e3 launches=4
        nested_sine/gpu/fused/1024 events 2e3 launches=1
        says fusing.launches: is 2× slower | more for each of 3 launches
        silent fusing.traffic
        graph_replay/gpu/eager/1024 wall 40e3 launches=32
        graph_replay/gpu/graph/1024 wall 80e3 launches=1
        says graph.graph_replay: 2× slower
        silent synchronising.graph_replay
        loader/gpu/pageable/1048576 wall 32e6 launches=32
        loader/gpu/pinned/1048576 wall 64e6 launches=32
        says loading.loader: pinned buffer | 0.5×
        omits loading.loader: kernel
        precision/gpu/f32/64 events 1e6
        precision/gpu/fp16/64 events 2e6
        says precision.formats: FP16: time 2.00 ms, speed 2× slower
        ",
    );
}

#[test]
fn an_allocation_that_costs_nothing_or_more_than_another() {
    let text = |kept: f64| {
        let sizes = [(1u64 << 12, 0.1), (1 << 26, 1.0), (1 << 32, 100.0)];
        let of_size = sizes.map(|(size, scale)| {
            format!(
                "memory/gpu/reuse/{size} wall 8e3 launches=1
                memory/gpu/malloc/{size} wall {} launches=1
                memory/gpu/malloc-async/{size} wall {} launches=1
                memory/gpu/malloc-async-kept/{size} wall {} launches=1\n",
                8e3 + 80e3 * scale,
                8e3 + 120e3 * scale,
                8e3 + kept
            )
        });
        of_size.concat()
    };
    check(
        &(text(-1e3)
            + "says allocation.memory: is 1,140× faster | at size = 4 GiB | at size = 4 KiB"),
    );
    check(&(text(160e5) + "says allocation.memory: is 2× slower"));
}

/// Known where the pool was asked before and after a release, and not before.
#[test]
fn a_pool_that_keeps_its_memory_has_it_after_a_release() {
    let text = |how: &str, released: &str| {
        format!(
            "memory/gpu/{how}/67108864 wall 1e4 pool_used_allocated_bytes=67108864 \
             pool_reserved_allocated_bytes=67108864 pool_used_released_bytes=0 \
             pool_reserved_released_bytes={released} pool_used_trimmed_bytes=0 \
             pool_reserved_trimmed_bytes=0\n"
        )
    };
    let both = text("malloc-async", "0") + &text("malloc-async-kept", "67108864");
    check(
        &(both
            + "says allocation.memory.held: told to keep its memory, after its release and a \
               synchronisation: in use 0 B, reserved 64 MiB"),
    );
    check("memory/gpu/malloc-async/67108864 wall 1e4\nsilent allocation.memory.held");
}

#[test]
fn a_group_has_the_rate_that_all_its_curves_have() {
    let work = |gpu_flop: &str| {
        let (machine, _) = machine(|f| {
            f.line("nested_sine/cpu/simd/1000 wall 1e3 bytes=8e3 flop=80e3");
            f.line(&format!(
                "nested_sine/gpu/fused/1000 wall 1e3 bytes=8e3 {gpu_flop}"
            ));
        });
        rate::work(&[machine.group("nested_sine").unwrap()])
    };
    assert_eq!(work(""), Some(Work::Bytes));
    assert_eq!(work("flop=80e3"), Some(Work::Flop));
}

/// A winner, or a crossing that counts as measured, takes a time of every rival.
#[test]
fn a_rival_that_was_not_run_leaves_the_crossing_interpolated() {
    for (rival, expected) in [(true, "omits"), (false, "says")] {
        let row = |n: u32| {
            let cpu = 1e5 * (f64::from(n) / 350.0).powi(3);
            let rayon = (rival || n == 256 || n == 512)
                .then(|| format!("matmul/cpu/rayon/{n} wall {}\n", 1.5 * cpu));
            format!("matmul/cpu/best/{n} wall {cpu}\nmatmul/gpu/cublas-eager/{n} events 1e5\n")
                + &rayon.unwrap_or_default()
        };
        let rows = [256, 320, 384, 512].map(row).concat();
        check(&(rows + &format!("{expected} winner.matmul.queued: (interpolated)")));
    }
}

/// A training step: more kernels apart than fused, of which several remain, in three formats. Its copies are
/// not compared with the work in fewer bits, which takes 8 µs.
#[test]
fn a_step_of_several_kernels_has_findings_by_its_roles() {
    let kept = |activations: f64| {
        let peak = 34e6 + activations;
        format!(
            "parameters_bytes=30e6 activations_bytes={activations} workspace_bytes=4e6 peak_bytes={peak}"
        )
    };
    let rows = [16, 256].map(|size| {
        let [full, half] = [2e5, 1e5].map(|each| kept(each * f64::from(size)));
        format!(
            "training/gpu/eager/{size} events 100e3 bytes=22e6 launches=22 {full}
            training/gpu/eager-gated/{size} events-gated 80e3 bytes=22e6 launches=22 {full}
            training/gpu/fused/{size} events 50e3 bytes=9e6 launches=9 {full}
            training/gpu/fused-gated/{size} events-gated 40e3 bytes=9e6 launches=9 {full}
            training/gpu/graph/{size} events 25e3 bytes=9e6 launches=9 {full}
            training/gpu/graph-gated/{size} events-gated 20e3 bytes=9e6 launches=9 {full}
            training/gpu/tf32-gated/{size} events-gated 10e3 bytes=9e6 launches=9 {full}
            training/gpu/bf16-gated/{size} events-gated 8e3 bytes=9e6 launches=9 {half}\n"
        )
    });
    let expected = "training/gpu/transfer-pinned/256 wall 80e3
        says graph.training: Replaying the training step as one graph is 4× faster
        omits graph.training: a kernel)
        says fusing.launches: Fusing the kernels of the training step is 2× faster | less for each of 13
        says fusing.traffic: at batch = 256
        says precision.formats: f32: time 20.0 µs | speed 2× faster
        says transfers.training.transfer-pinned: share of moving 75 %
        says device_memory.training: TF32: at most 85.2 MB | BF16: at most 59.6 MB
        says device_memory.training: f32: at most 85.2 MB, parameters and their state 30.0 MB, activations 51.2 MB";
    check(&(rows.concat() + expected));
}

/// Half of the time of the larger f32 product was filled by something else.
#[test]
fn energy_of_a_format_is_told_where_it_is_known() {
    let counted = |f: &mut Fixture, name: &str, ns: f64, joules: f64, iterations: u64| {
        let id = format!("precision/gpu/{name}/4096");
        let mut planted = f.benchmark(&id, EventsGated, ns);
        planted.telemetry = Some(Telemetry {
            energy: Some(Energy {
                joules: joules * iterations as f64,
                seconds: 0.5,
                iterations,
            }),
            ..Telemetry::default()
        });
        f.plant(planted);
    };
    check_with(
        |f| {
            counted(f, "f32", 5e6, 1.5, 100);
            counted(f, "fp16", 0.5e6, 0.15, 1000);
        },
        "says precision.formats: energy 1.50 J | energy 150 mJ",
    );
    check_with(
        |f| {
            counted(f, "f32", 25e6, 20.0, 10);
            counted(f, "fp16", 2.5e6, 1.2, 200);
        },
        "says precision.formats: energy 1.20 J\nomits precision.formats: 20.0 J",
    );
}
