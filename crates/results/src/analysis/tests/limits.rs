//! What a benchmark is held against: the planted share, of the limit that is its own.

use super::{check, check_with, machine, share};
use crate::analysis::limits;
use crate::model::{Format, Library, Role, Telemetry};
use crossover_words::Clock::{EventsGated, Wall};

/// 132 multiprocessors at 1,980 MHz: 66.9 TFLOP/s in f32, 535 in TF32, 1,071 in FP16 and BF16, 2,141 in
/// FP8. Six products in BF16 make one in f32. A library's rate is no limit.
#[test]
fn each_format_has_a_peak_of_its_own() {
    check(
        "
        ceiling gpu_sgemm 10e12 FLOP/s
        precision/gpu/f32/1024 events-gated 1e3 flop=33454080 => 50 % of f32 peak
        precision/gpu/tf32/1024 events-gated 1e3 flop=267632640 => 50 % of TF32 peak
        precision/gpu/fp16/1024 events-gated 1e3 flop=535265280 => 50 % of FP16 peak
        precision/gpu/bf16/1024 events-gated 1e3 flop=535265280 => 50 % of BF16 peak
        precision/gpu/fp8/1024 events-gated 1e3 flop=1070530560 => 50 % of FP8 peak
        precision/gpu/split-bf16x6-k2048/1024 events-gated 1e3 flop=89210880 => 50 % of BF16 peak
        mine/gpu/tensor/64 events-gated 1e3 flop=10e6 => none
        mine/gpu/tensor/1024 events-gated 1e3 flop=300e6 => none
        ",
    );
}

#[test]
fn the_peak_is_that_of_the_clock_that_was_seen() {
    let (machine, _) = machine(|f| {
        let half = 0.5 * 132.0 * 8192.0 * 1500e6 * 1e-6;
        let mut planted = f.benchmark("precision/gpu/fp8/1024", EventsGated, 1e3);
        planted.cost.flop = Some(half);
        // It idled at first, at another clock.
        planted.telemetry = Some(Telemetry {
            time_ms: (0..7).map(|i| 100 * i).collect(),
            sm_clock_mhz: [345, 345, 345, 345, 1515, 1500, 1470].map(Some).into(),
            utilisation_percent: [0, 0, 0, 0, 90, 100, 100].map(Some).into(),
            ..Telemetry::default()
        });
        f.plant(planted);
    });
    let share = share(&machine, "precision/gpu/fp8/1024").unwrap();
    assert_eq!(share.words(), "50 % of FP8 peak");
}

#[test]
fn without_a_table_f32_alone_has_a_peak_that_was_measured() {
    check_with(
        |f| f.gpu(|gpu| gpu.compute_capability = (99, 0)),
        "
        ceiling gpu_fma 50e12 FLOP/s
        precision/gpu/fp8/1024 events-gated 1e3 flop=500e6 => none
        precision/gpu/f32/1024 events-gated 1e3 flop=25e6 => 50 % of f32 peak
        ",
    );
}

/// The L2 cache has 50 MB and 6 TB/s, the memory 4 TB/s. The benchmarks of nested sine move 3 TB/s each;
/// the curve counts at the next smaller working set, of 32 MiB. What exceeds the memory's rate on the cold
/// clock was written and stayed in the cache. Of `mine`, kernels of 100 MB each move 1 TB/s.
#[test]
fn data_in_a_cache_have_no_share_of_the_memory() {
    check(
        "
        curve gpu_read 1048576:6e12 33554432:6e12 67108864:5e12 2147483648:4e12
        curve gpu_copy 1048576:5.4e12 33554432:5.4e12 67108864:4.5e12 2147483648:3.6e12
        nested_sine/gpu/fused/1 events-gated 1e3 bytes=3e6 launches=1 => 50 % of L2 bandwidth
        nested_sine/gpu/fused/2 events-gated 20e3 bytes=60e6 launches=1 => 50 % of L2 and memory bandwidth
        nested_sine/gpu/fused/3 events-gated 33333 bytes=100e6 launches=1 => 60 % of L2 and memory bandwidth
        nested_sine/gpu/fused/4 events-gated 733333 bytes=2.2e9 launches=1 => 75 % of memory bandwidth
        nested_sine/gpu/per-kernel/1 events-gated 4e3 bytes=12e6 launches=4 => 50 % of L2 bandwidth
        nested_sine/gpu/per-kernel/2 events-gated 80e3 bytes=240e6 launches=4 => partly from the L2 cache
        nested_sine/gpu/per-kernel/3 events-gated 133333 bytes=400e6 launches=4 => partly from the L2 cache
        nested_sine/gpu/per-kernel/4 events-gated 2933333 bytes=8.8e9 launches=4 => 75 % of memory bandwidth
        mine/gpu/light/64 events-gated 4e5 bytes=4e8 launches=4 flop=4e8 => partly from the L2 cache
        mine/gpu/heavy/64 events-gated 4e5 bytes=4e8 launches=4 flop=24e9 => 90 % of f32 peak
        skinny/gpu/cold/1 events-cold 1e3 bytes=3e6 launches=1 => 75 % of memory bandwidth
        skinny/gpu/written/1 events-cold 1e3 bytes=5e6 launches=1 => partly from the L2 cache
        ",
    );
}

/// Of the runs one met a slower hour, and the last measured no limits, as one that takes turns.
#[test]
fn a_benchmark_is_held_against_its_own_run_and_the_newest_figures_of_each_device_are_shown() {
    let text = "
        run
        ceiling gpu_copy 4e12 B/s
        ceiling cpu_fma_all 1e12 FLOP/s
        ceiling cpu_memory 1e11 B/s
        matmul/cpu/best/64 wall 1e3 flop=500e3 => 50 % of FMA peak
        run
        ceiling cpu_fma_all 0.25e12 FLOP/s
        curve cpu_read 1048576:1e12
        matmul/cpu/best/128 wall 1e3 flop=200e3 => 80 % of FMA peak
        run
        matmul/cpu/best/256 wall 1e3 flop=200e3 => none
        ";
    check(text);
    let (machine, _) = machine(|f| f.lines(text));
    let limits = &machine.limits;
    assert_eq!(limits.ceiling("gpu_copy"), Some(4e12));
    assert_eq!(limits.ceiling("cpu_fma_all"), Some(0.25e12));
    assert_eq!(limits.ceiling("cpu_memory"), None);
    assert_eq!(limits.curves["cpu_read"].points.len(), 1);
}

/// Copying was faster than reading at 16 MiB. What is read may stay in the caches, if results are stored past
/// them. One thread has the peak of one core, and not the bandwidth of all. Noise may carry a result 3 % above
/// its limit.
#[test]
fn a_cpu_is_held_against_its_caches_and_memory() {
    check(
        "
        ceiling cpu_fma_1 200e9 FLOP/s
        ceiling cpu_fma_all 2e12 FLOP/s
        curve cpu_read 1048576:1e12 16777216:4e11 268435456:1e11
        curve cpu_copy 1048576:8e11 16777216:5e11 268435456:8e10
        curve cpu_write 16777216:2.5e11 268435456:5e10
        nested_sine/cpu/simd/1 wall 2e3 bytes=100e3 launches=1 => 5.0 % of cache bandwidth
        nested_sine/cpu/simd/2 wall 40e3 bytes=2e6 launches=1 => 5.0 % of cache bandwidth
        nested_sine/cpu/simd/3 wall 2e6 bytes=100e6 launches=1 => 10 % of cache bandwidth
        nested_sine/cpu/simd/4 wall 20e6 bytes=1e9 launches=1 => 50 % of memory bandwidth
        nested_sine/cpu/simd/5 wall 8e6 bytes=400e6 launches=1 => 10 % of cache bandwidth
        matmul/cpu/best/64 wall 1e3 bytes=500e3 launches=1 flop=100e3 => 50 % of cache bandwidth
        matmul/cpu/best-1-thread/64 wall 1e3 bytes=500e3 launches=1 flop=100e3 => 50 % of FMA peak of 1 core
        matmul/cpu/best-1-thread/128 wall 1e3 flop=204e3 => 100 % of FMA peak of 1 core
        matmul/cpu/best-1-thread/256 wall 1e3 flop=222e3 => above the FMA peak of 1 core, so no share
        memory/cpu/reads/1 wall 2.5e6 bytes=100e6 written=0 => 10 % of cache bandwidth
        memory/cpu/writes/1 wall 2.5e6 bytes=100e6 written=100e6 => 16 % of cache bandwidth
        memory/cpu/copies/1 wall 2.5e6 bytes=100e6 written=50e6 => 8.0 % of cache bandwidth
        ",
    );
}

#[test]
fn vectors_of_a_cpu_have_half_as_many_lanes_for_float64() {
    let (machine, _) = machine(|f| {
        f.line("ceiling cpu_fma_all 1e12 FLOP/s");
        let mut planted = f.benchmark("product/cpu/best/64", Wall, 1e3);
        planted.cost.flop = Some(250e3);
        planted.role.format = Format::F64;
        f.plant(planted);
    });
    let share = share(&machine, "product/cpu/best/64").unwrap();
    assert_eq!(share.words(), "50 % of FMA peak");
}

#[test]
fn the_link_carries_both_ways_and_the_longer_one_counts() {
    check(
        "
        ceiling h2d_pinned 50e9 B/s
        ceiling d2h_pinned 40e9 B/s
        streams/gpu/copies/1 wall 1e3 up=25e3 down=0 => 50 % of PCIe rate
        streams/gpu/copies/2 wall 1e3 up=0 down=10e3 => 25 % of PCIe rate
        streams/gpu/copies/3 wall 1e3 up=30e3 down=30e3 => 75 % of PCIe rate
        streams/gpu/copies/4 wall 1e3 up=40e3 down=4 => 80 % of PCIe rate
        streams/gpu/copies/5 wall 1e3 up=51e3 down=51e3 => above the PCIe rate, so no share
        ",
    );
}

#[test]
fn a_rate_is_impossible_by_documents_and_else_above_a_limit() {
    let (machine, _) = machine(|f| {
        let peak = 132.0 * 4096.0 * 1980e6 * 1e-6;
        // cuBLAS takes tensor cores in float64, which are twice as fast as the FP64 cores here.
        let cores = 132.0 * 128.0 * 1980e6 * 1e-6;
        f.line("ceiling gpu_fma 10e12 FLOP/s");
        f.line("ceiling cpu_fma_all 1e12 FLOP/s");
        f.line(&format!(
            "precision/gpu/fp16/64 events-gated 1e3 flop={}",
            1.02 * peak
        ));
        f.line(&format!(
            "precision/gpu/bf16/64 events-gated 1e3 flop={}",
            1.1 * peak
        ));
        f.line("precision/cpu/best/64 wall 1e3 flop=1.1e6");
        for (id, library) in [
            ("product/gpu/f64/64", Some(Library::Cublas)),
            ("sine/gpu/f64/64", None),
        ] {
            let mut planted = f.benchmark(id, EventsGated, 1e3);
            planted.cost.flop = Some(1.8 * cores);
            planted.role = Role {
                format: Format::F64,
                library,
                ..Role::gpu()
            };
            f.plant(planted);
        }
    });
    let series = |group, name| machine.group(group).unwrap().find(name).unwrap();
    let impossible = |group, name| limits::impossible(series(group, name), &machine.limits);
    assert_eq!(impossible("precision", "gpu/fp16"), None);
    let said = impossible("precision", "gpu/bf16").unwrap();
    assert!(
        said.starts_with("1.18 PFLOP/s is more than the 1.07 PFLOP/s"),
        "{said}"
    );
    assert_eq!(impossible("product", "gpu/f64"), None);
    assert!(impossible("sine", "gpu/f64").is_some());
    // What was measured may have been measured too low.
    assert_eq!(impossible("precision", "cpu/best"), None);
    let exceeded = limits::exceeded(series("precision", "cpu/best"), &machine.limits).unwrap();
    assert_eq!(exceeded.words(), "above the FMA peak, so no share");
}

/// An iteration's launches may be its limit, and take all of its time at most. A clock that measures no work
/// has no limit, and the CPU launches nothing.
#[test]
fn a_kernel_is_limited_by_its_launch_then_by_what_it_does() {
    let (machine, _) = machine(|f| {
        for line in [
            "ceiling launch_latency 2450 ns",
            "ceiling empty_kernel 1380 ns",
            "matmul/gpu/cublas/4 events-gated 1900 flop=128 launches=1",
            "matmul/gpu/cublas/8192 events-gated 2.2e7 flop=1099511627776 launches=1",
            "matmul/gpu/cublas-eager/4 events 4400 flop=128 launches=1",
            "matmul/gpu/submit/4 submit 4400 flop=128 launches=1",
            "mine/gpu/many/8 events 1e3 flop=1024 launches=1000",
            "matmul/cpu/best/4 wall 10 flop=128 launches=1",
        ] {
            f.line(line);
        }
    });
    for (group, name, size, limit, percent) in [
        ("matmul", "gpu/cublas", 4, "launch", 73.0),
        ("matmul", "gpu/cublas-eager", 4, "launch", 56.0),
        ("matmul", "gpu/cublas", 8192, "compute", 75.0),
        ("mine", "gpu/many", 8, "launch", 100.0),
        ("matmul", "gpu/submit", 4, "none", 0.0),
        ("matmul", "cpu/best", 4, "none", 0.0),
    ] {
        let series = machine.group(group).unwrap().find(name).unwrap();
        let found = limits::with_launches(series, series.at(size).unwrap(), &machine);
        let share = found.and_then(|found| found.fraction()).unwrap_or(0.0);
        assert_eq!(
            found.map_or("none", |found| found.kind.name()),
            limit,
            "{name} {size}"
        );
        assert_eq!((100.0 * share).round(), percent, "{name} {size}");
        let words = found.map_or(String::new(), |found| found.words());
        let is_launch = words.starts_with("launches take at least");
        assert_eq!(is_launch, limit == "launch", "{words}");
    }
}
