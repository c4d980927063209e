//! What a benchmark is held against: the planted share, of the limit that is its own.

use super::{Fixture, Planted, machine};
use crate::analysis::limits::{self, Share};
use crate::model::{Cost, Format, Library, LinkBytes, Role, Telemetry};
use crate::store::machine::MachineResults;
use crossover_words::Clock::{self, EventsCold, EventsGated, Wall};

/// The words for a planted benchmark; none where there is no share.
fn words(machine: &MachineResults, id: &str) -> Option<String> {
    share(machine, id).map(|share| share.words())
}

fn share(machine: &MachineResults, id: &str) -> Option<Share> {
    let (group, rest) = id.split_once('/').unwrap();
    let (name, size) = rest.rsplit_once('/').unwrap();
    let series = machine.group(group).unwrap().find(name).unwrap();
    let benchmark = series.at(size.parse().unwrap()).unwrap();
    limits::share(series, benchmark, machine)
}

/// A benchmark of a microsecond.
fn plant(f: &Fixture, id: &str, clock: Clock, cost: Cost) {
    f.plant(&Planted::new(id, clock, 1e3).cost(cost));
}

fn flop(flop: f64) -> Cost {
    Cost {
        flop: Some(flop),
        ..Cost::default()
    }
}

fn bytes(bytes: f64, launches: u32) -> Cost {
    Cost {
        bytes: Some(bytes),
        launches: Some(launches),
        ..Cost::default()
    }
}

fn link(to_device: f64, to_host: f64) -> Cost {
    Cost {
        link_bytes: Some(LinkBytes::new(to_device, to_host)),
        ..Cost::default()
    }
}

fn telemetry(sm_clock_mhz: &[u32], utilisation: &[u32]) -> Telemetry {
    Telemetry {
        time_ms: (0..sm_clock_mhz.len() as u32).map(|i| 100 * i).collect(),
        sm_clock_mhz: sm_clock_mhz.iter().copied().map(Some).collect(),
        utilisation_percent: utilisation.iter().copied().map(Some).collect(),
        ..Telemetry::default()
    }
}

/// A device with 6 TB/s in its L2 cache of 50 MB and 4 TB/s from its memory.
fn gpu_curves(f: &mut Fixture) {
    let read = [
        (1 << 20, 6e12),
        (32 << 20, 6e12),
        (64 << 20, 5e12),
        (2 << 30, 4e12),
    ];
    let copy = read.map(|(bytes, rate)| (bytes, 0.9 * rate));
    f.bandwidth("gpu_read", &read);
    f.bandwidth("gpu_copy", &copy);
}

#[test]
fn each_format_has_a_peak_of_its_own() {
    // 132 multiprocessors at 1,980 MHz: 66.9 TFLOP/s in f32, 535 in TF32, 1,071 in FP16 and
    // BF16, 2,141 in FP8.
    let at = |per_clock: f64| 0.5 * 132.0 * per_clock * 1980e6 * 1e-6;
    let (machine, _) = machine(|f| {
        // A library's rate is no limit.
        f.ceiling("gpu_sgemm", 10e12, "FLOP/s");
        for (name, per_clock) in [
            ("f32", 256.0),
            ("tf32", 2048.0),
            ("fp16", 4096.0),
            ("bf16", 4096.0),
            ("fp8", 8192.0),
            // Six products in BF16 make one in f32.
            ("split-bf16x6-k2048", 4096.0 / 6.0),
        ] {
            let id = format!("precision/gpu/{name}/1024");
            plant(f, &id, EventsGated, flop(at(per_clock)));
        }
    });
    for (name, format) in [
        ("f32", "f32"),
        ("tf32", "TF32"),
        ("fp16", "FP16"),
        ("bf16", "BF16"),
        ("fp8", "FP8"),
        ("split-bf16x6-k2048", "BF16"),
    ] {
        let words = words(&machine, &format!("precision/gpu/{name}/1024"));
        assert_eq!(words, Some(format!("50 % of {format} peak")), "{name}");
    }
}

#[test]
fn the_peak_is_that_of_the_clock_that_was_seen() {
    let (machine, _) = machine(|f| {
        let half = 0.5 * 132.0 * 8192.0 * 1500e6 * 1e-6;
        let mut planted = Planted::new("precision/gpu/fp8/1024", EventsGated, 1e3).cost(flop(half));
        // It idled at first, at another clock.
        planted.telemetry = Some(telemetry(
            &[345, 345, 345, 345, 1515, 1500, 1470],
            &[0, 0, 0, 0, 90, 100, 100],
        ));
        f.plant(&planted);
    });
    let words = words(&machine, "precision/gpu/fp8/1024");
    assert_eq!(words.as_deref(), Some("50 % of FP8 peak"));
}

#[test]
fn what_no_table_knows_has_no_share() {
    let (machine, _) = machine(|f| {
        f.gpu(|gpu| gpu.compute_capability = (99, 0));
        f.ceiling("gpu_fma", 50e12, "FLOP/s");
        plant(f, "precision/gpu/fp8/1024", EventsGated, flop(500e6));
        plant(f, "precision/gpu/f32/1024", EventsGated, flop(25e6));
    });
    assert_eq!(words(&machine, "precision/gpu/fp8/1024"), None);
    // But f32, which was measured.
    let f32 = words(&machine, "precision/gpu/f32/1024");
    assert_eq!(f32.as_deref(), Some("50 % of f32 peak"));
}

#[test]
fn a_row_in_another_format_than_it_says_has_no_peak() {
    let (machine, _) = machine(|f| {
        plant(f, "mine/gpu/tensor/64", EventsGated, flop(10e6));
        plant(f, "mine/gpu/tensor/1024", EventsGated, flop(300e6));
    });
    for size in [64, 1024] {
        assert_eq!(words(&machine, &format!("mine/gpu/tensor/{size}")), None);
    }
}

#[test]
fn data_in_a_cache_have_no_share_of_the_memory() {
    let (machine, _) = machine(|f| {
        gpu_curves(f);
        let fused = |size, bytes: f64| (format!("nested_sine/gpu/fused/{size}"), bytes, 1);
        let apart =
            |size, bytes: f64| (format!("nested_sine/gpu/per-kernel/{size}"), 4.0 * bytes, 4);
        for (id, bytes_of, launches) in [
            fused(1, 3e6),
            fused(2, 60e6),
            fused(3, 100e6),
            fused(4, 2.2e9),
            apart(1, 3e6),
            apart(2, 60e6),
            apart(3, 100e6),
            apart(4, 2.2e9),
        ] {
            // 3 TB/s each.
            let ns = bytes_of / 3e12 * 1e9;
            f.plant(&Planted::new(&id, EventsGated, ns).cost(bytes(bytes_of, launches)));
        }
    });
    for (id, expected) in [
        ("fused/1", "50 % of L2 bandwidth"),
        // The curve at the next smaller working set, of 32 MiB.
        ("fused/2", "50 % of L2 and memory bandwidth"),
        ("fused/3", "60 % of L2 and memory bandwidth"),
        ("fused/4", "75 % of memory bandwidth"),
        ("per-kernel/1", "50 % of L2 bandwidth"),
        ("per-kernel/2", "partly from the L2 cache"),
        ("per-kernel/3", "partly from the L2 cache"),
        ("per-kernel/4", "75 % of memory bandwidth"),
    ] {
        let words = words(&machine, &format!("nested_sine/gpu/{id}"));
        assert_eq!(words.as_deref(), Some(expected), "{id}");
    }
    let cached = share(&machine, "nested_sine/gpu/per-kernel/3").unwrap();
    assert_eq!((cached.limit(), cached.fraction()), (None, None));
}

#[test]
fn arithmetic_binds_where_it_is_nearer_than_what_a_cache_hides() {
    let (machine, _) = machine(|f| {
        gpu_curves(f);
        for (name, flop) in [("light", 4e8), ("heavy", 24e9)] {
            let cost = Cost {
                flop: Some(flop),
                // 1 TB/s by kernels of 100 MB each, 20 % of the limit without a cache.
                ..bytes(4e8, 4)
            };
            let id = format!("mine/gpu/{name}/64");
            f.plant(&Planted::new(&id, EventsGated, 4e5).cost(cost));
        }
    });
    let words = |name: &str| words(&machine, &format!("mine/gpu/{name}/64")).unwrap();
    assert_eq!(words("light"), "partly from the L2 cache");
    assert_eq!(words("heavy"), "90 % of f32 peak");
}

#[test]
fn a_flushed_cache_leaves_the_memory() {
    let (machine, _) = machine(|f| {
        gpu_curves(f);
        plant(f, "skinny/gpu/cold/1", EventsCold, bytes(3e6, 1));
        plant(f, "skinny/gpu/written/1", EventsCold, bytes(5e6, 1));
    });
    let words = |name: &str| words(&machine, &format!("skinny/gpu/{name}/1")).unwrap();
    assert_eq!(words("cold"), "75 % of memory bandwidth");
    // Above what the memory gives: what was written stayed in the cache.
    assert_eq!(words("written"), "partly from the L2 cache");
}

#[test]
fn a_benchmark_is_held_against_its_own_run() {
    let (machine, _) = machine(|f| {
        f.next_run(10);
        f.ceiling("cpu_fma_all", 1e12, "FLOP/s");
        plant(f, "matmul/cpu/best/64", Wall, flop(500e3));
        // A slower hour.
        f.next_run(20);
        f.ceiling("cpu_fma_all", 0.25e12, "FLOP/s");
        plant(f, "matmul/cpu/best/128", Wall, flop(200e3));
        // One that measured no limits, as one that takes turns.
        f.next_run(30);
        plant(f, "matmul/cpu/best/256", Wall, flop(200e3));
    });
    let words = |size: u32| words(&machine, &format!("matmul/cpu/best/{size}"));
    assert_eq!(words(64).as_deref(), Some("50 % of FMA peak"));
    assert_eq!(words(128).as_deref(), Some("80 % of FMA peak"));
    assert_eq!(words(256), None);
    // Those that are shown are the newest that there are.
    assert_eq!(machine.limits.ceiling("cpu_fma_all"), Some(0.25e12));
}

#[test]
fn the_newest_figures_of_each_device_are_shown() {
    let (machine, _) = machine(|f| {
        f.next_run(10);
        f.ceiling("gpu_copy", 4e12, "B/s");
        f.ceiling("cpu_fma_1", 1e11, "FLOP/s");
        f.ceiling("cpu_memory", 1e11, "B/s");
        // A later run on the CPU alone.
        f.next_run(20);
        f.ceiling("cpu_fma_1", 2e11, "FLOP/s");
        f.bandwidth("cpu_read", &[(1 << 20, 1e12)]);
        f.next_run(30);
    });
    let limits = &machine.limits;
    assert_eq!(limits.ceiling("gpu_copy"), Some(4e12));
    assert_eq!(limits.ceiling("cpu_fma_1"), Some(2e11));
    assert_eq!(limits.ceiling("cpu_memory"), None);
    assert_eq!(limits.curves["cpu_read"].points.len(), 1);
}

#[test]
fn without_curves_a_copy_bounds_what_is_far_beyond_the_cache() {
    let (machine, _) = machine(|f| {
        f.ceiling("gpu_copy", 4e12, "B/s");
        f.ceiling("gpu_sgemm", 50e12, "FLOP/s");
        for (size, of) in [(1, 3e6), (2, 100e6), (3, 1e9)] {
            let id = format!("nested_sine/gpu/fused/{size}");
            f.plant(&Planted::new(&id, EventsGated, of / 3e12 * 1e9).cost(bytes(of, 1)));
        }
        plant(f, "nested_sine/cpu/simd/1", Wall, bytes(150e3, 1));
    });
    let words = |id: &str| words(&machine, &format!("nested_sine/{id}"));
    assert_eq!(
        words("gpu/fused/1").as_deref(),
        Some("partly from the L2 cache")
    );
    assert_eq!(words("gpu/fused/2"), None);
    assert_eq!(
        words("gpu/fused/3").as_deref(),
        Some("75 % of memory bandwidth")
    );
    assert_eq!(words("cpu/simd/1"), None);
}

#[test]
fn a_cpu_is_held_against_its_caches_and_memory() {
    let (machine, _) = machine(|f| {
        f.ceiling("cpu_fma_1", 200e9, "FLOP/s");
        f.ceiling("cpu_fma_all", 2e12, "FLOP/s");
        f.bandwidth(
            "cpu_read",
            &[(1 << 20, 1e12), (16 << 20, 4e11), (256 << 20, 1e11)],
        );
        f.bandwidth(
            "cpu_copy",
            &[(1 << 20, 8e11), (16 << 20, 5e11), (256 << 20, 8e10)],
        );
        f.bandwidth("cpu_write", &[(16 << 20, 2.5e11), (256 << 20, 5e10)]);
        for (name, written) in [("reads", 0.0), ("writes", 100e6), ("copies", 50e6)] {
            let id = format!("memory/cpu/{name}/1");
            let cost = Cost {
                written: Some(written),
                ..bytes(100e6, 1)
            };
            f.plant(&Planted::new(&id, Wall, 100e6 / 40e9 * 1e9).cost(cost));
        }
        for (size, of) in [(1, 100e3), (2, 2e6), (3, 100e6), (4, 1e9), (5, 400e6)] {
            let id = format!("nested_sine/cpu/simd/{size}");
            f.plant(&Planted::new(&id, Wall, of / 50e9 * 1e9).cost(bytes(of, 1)));
        }
        for name in ["best", "best-1-thread"] {
            let cost = Cost {
                flop: Some(100e3),
                ..bytes(500e3, 1)
            };
            plant(f, &format!("matmul/cpu/{name}/64"), Wall, cost);
        }
    });
    for (id, expected) in [
        // Smaller than any that was measured.
        ("nested_sine/cpu/simd/1", "5.0 % of cache bandwidth"),
        ("nested_sine/cpu/simd/2", "5.0 % of cache bandwidth"),
        // Copying was faster than reading.
        ("nested_sine/cpu/simd/3", "10 % of cache bandwidth"),
        ("nested_sine/cpu/simd/4", "50 % of memory bandwidth"),
        // What it reads may stay in the caches, if its results are stored past them.
        ("nested_sine/cpu/simd/5", "10 % of cache bandwidth"),
        ("matmul/cpu/best/64", "50 % of cache bandwidth"),
        // Each against the rate of what it does, which is below that of copying.
        ("memory/cpu/reads/1", "10 % of cache bandwidth"),
        ("memory/cpu/writes/1", "16 % of cache bandwidth"),
        ("memory/cpu/copies/1", "8.0 % of cache bandwidth"),
        // One core's peak, and not the bandwidth of all.
        ("matmul/cpu/best-1-thread/64", "50 % of FMA peak of 1 core"),
    ] {
        assert_eq!(words(&machine, id).as_deref(), Some(expected), "{id}");
    }
}

#[test]
fn the_link_carries_both_ways_and_the_longer_one_counts() {
    let (machine, _) = machine(|f| {
        f.ceiling("h2d_pinned", 50e9, "B/s");
        f.ceiling("d2h_pinned", 40e9, "B/s");
        for (size, to_device, to_host) in [
            (1, 25e3, 0.0),
            (2, 0.0, 10e3),
            (3, 30e3, 30e3),
            (4, 40e3, 4.0),
            (5, 51e3, 51e3),
        ] {
            let id = format!("streams/gpu/copies/{size}");
            plant(f, &id, Wall, link(to_device, to_host));
        }
    });
    for (size, expected) in [
        (1, "50 % of PCIe rate"),
        (2, "25 % of PCIe rate"),
        (3, "75 % of PCIe rate"),
        (4, "80 % of PCIe rate"),
        (5, "above the PCIe rate, so no share"),
    ] {
        let words = words(&machine, &format!("streams/gpu/copies/{size}"));
        assert_eq!(words.as_deref(), Some(expected), "{size}");
    }
}

#[test]
fn nothing_is_said_to_reach_more_than_all_of_a_limit() {
    let (machine, _) = machine(|f| {
        f.ceiling("cpu_fma_1", 100e9, "FLOP/s");
        for (size, of) in [(1, 102e3), (2, 111e3)] {
            let id = format!("matmul/cpu/best-1-thread/{size}");
            plant(f, &id, Wall, flop(of));
        }
    });
    let at = |size: u32| share(&machine, &format!("matmul/cpu/best-1-thread/{size}")).unwrap();
    // As far above it as noise carries it.
    assert_eq!(at(1).words(), "100 % of FMA peak of 1 core");
    assert_eq!(at(2).words(), "above the FMA peak of 1 core, so no share");
    assert_eq!(
        (at(2).limit(), at(2).fraction()),
        (Some("FMA peak of 1 core"), None)
    );
}

#[test]
fn a_rate_is_impossible_by_documents_and_else_above_a_limit() {
    let (machine, _) = machine(|f| {
        f.ceiling("gpu_sgemm", 10e12, "FLOP/s");
        f.ceiling("cpu_fma_all", 1e12, "FLOP/s");
        let peak = 132.0 * 4096.0 * 1980e6 * 1e-6;
        plant(f, "precision/gpu/fp16/64", EventsGated, flop(1.02 * peak));
        plant(f, "precision/gpu/bf16/64", EventsGated, flop(1.1 * peak));
        plant(f, "precision/cpu/best/64", Wall, flop(1.1e6));
        // cuBLAS takes tensor cores in float64, which are twice as fast as the FP64 cores here.
        let cores = 132.0 * 128.0 * 1980e6 * 1e-6;
        for (id, library) in [
            ("product/gpu/f64/64", Some(Library::Cublas)),
            ("sine/gpu/f64/64", None),
        ] {
            let mut planted = Planted::new(id, EventsGated, 1e3).cost(flop(1.8 * cores));
            planted.role = Some(Role {
                format: Format::F64,
                library,
                ..Role::gpu()
            });
            f.plant(&planted);
        }
    });
    let series = |name| machine.group("precision").unwrap().find(name).unwrap();
    let impossible = |name| limits::impossible(series(name), &machine.limits);
    assert_eq!(impossible("gpu/fp16"), None);
    let said = impossible("gpu/bf16").unwrap();
    assert!(
        said.starts_with("1.18 PFLOP/s is more than the 1.07 PFLOP/s"),
        "{said}"
    );
    let f64 = |group| machine.group(group).unwrap().find("gpu/f64").unwrap();
    assert_eq!(limits::impossible(f64("product"), &machine.limits), None);
    assert!(limits::impossible(f64("sine"), &machine.limits).is_some());
    // What was measured may have been measured too low.
    assert_eq!(impossible("cpu/best"), None);
    let exceeded = limits::exceeded(series("cpu/best"), &machine.limits).unwrap();
    assert_eq!(exceeded.words(), "above the FMA peak, so no share");
}
