//! Whole planted machines.

use std::path::Path;

use crate::tests::fixture::Fixture;
use crossover_results::export::export;
use crossover_results::model::{Cost, LinkBytes};
use crossover_results::store::machine_record::MACHINES;
use crossover_words::Clock;

pub(crate) fn powers(from: u32, to: u32, step: usize) -> Vec<u64> {
    (from..=to).step_by(step).map(|e| 1u64 << e).collect()
}

/// The CPU curves of a machine like the ones this suite is for.
pub(crate) fn plant_cpu(f: &mut Fixture, scale: f64) {
    use Clock::Wall;
    f.ceiling("cpu_fma_1", 0.24e12 / scale, "FLOP/s");
    f.ceiling("cpu_fma_all", 3.0e12 / scale, "FLOP/s");
    for (name, rate) in [("cpu_read", 200e9), ("cpu_copy", 180e9)] {
        let rate = rate / scale;
        f.bandwidth(
            name,
            &[
                (1 << 20, 10.0 * rate),
                (32 << 20, 2.0 * rate),
                (256 << 20, rate),
            ],
        );
    }
    let product = |n: f64| Cost {
        flop: Some(2.0 * n * n * n),
        bytes: Some(12.0 * n * n),
        ..Cost::default()
    };
    let flop = |n: f64| 2.0 * n * n * n;
    let sizes = powers(2, 13, 1);
    let curve = |f: &Fixture, name: &str, sizes: &[u64], peak: f64, fixed: f64| {
        f.curve(
            name,
            Wall,
            sizes,
            |n| fixed + scale * flop(n) / peak * 1e9,
            product,
        );
    };
    curve(f, "matmul/cpu/naive", &powers(2, 9, 1), 1.6e9, 4.0);
    curve(f, "matmul/cpu/ndarray", &sizes, 1.9e11, 90.0);
    curve(f, "matmul/cpu/rayon", &sizes, 6.0e11, 9e3);
    f.curve(
        "matmul/cpu/best",
        Wall,
        &sizes,
        |n| {
            let one = 60.0 + scale * flop(n) / 2.2e11 * 1e9;
            let all = 7e3 + scale * flop(n) / 2.3e12 * 1e9;
            one.min(all)
        },
        product,
    );
    let wave = |n: f64| Cost {
        bytes: Some(8.0 * n),
        ..Cost::default()
    };
    let sizes = powers(10, 28, 2);
    f.curve(
        "nested_sine/cpu/std",
        Wall,
        &sizes,
        |n| 20.0 + scale * n * 7.0,
        wave,
    );
    f.curve(
        "nested_sine/cpu/simd",
        Wall,
        &sizes,
        |n| 30.0 + scale * (n * 0.5).min(6e3 + n * 0.06),
        wave,
    );
}

/// The GPU curves of one.
pub(crate) fn plant_gpu(f: &mut Fixture) {
    use Clock::{Events, EventsGated, Submit, Wall};
    for (name, value, unit) in [
        ("gpu_fma", 66.7e12, "FLOP/s"),
        ("gpu_copy", 4.26e12, "B/s"),
        ("gpu_sgemm", 51.3e12, "FLOP/s"),
        ("h2d_pinned", 55.6e9, "B/s"),
        ("d2h_pinned", 55.4e9, "B/s"),
        ("launch_latency", 2450.0, "ns"),
        ("empty_kernel", 1380.0, "ns"),
    ] {
        f.ceiling(name, value, unit);
    }
    for (name, rate) in [("gpu_read", 4.4e12), ("gpu_copy", 4.26e12)] {
        f.bandwidth(
            name,
            &[
                (1 << 20, 1.4 * rate),
                (32 << 20, 1.3 * rate),
                (2 << 30, rate),
            ],
        );
    }
    let product = |launches| {
        move |n: f64| Cost {
            flop: Some(2.0 * n * n * n),
            bytes: Some(12.0 * n * n),
            written: None,
            link_bytes: None,
            launches: Some(launches),
        }
    };
    let moved = |n: f64| Cost {
        link_bytes: Some(LinkBytes::new(8.0 * n * n, 4.0 * n * n)),
        ..product(1)(n)
    };
    let flop = |n: f64| 2.0 * n * n * n;
    let sizes = powers(2, 13, 1);
    let sgemm = |n: f64| 1.9e3 + flop(n) / 50.5e12 * 1e9;
    f.curve("matmul/gpu/cublas", EventsGated, &sizes, sgemm, product(1));
    f.curve(
        "matmul/gpu/cublas-eager",
        Events,
        &sizes,
        |n| sgemm(n).max(4.4e3),
        product(1),
    );
    f.curve(
        "matmul/gpu/tiled",
        EventsGated,
        &sizes,
        |n| 2.2e3 + flop(n) / 36e3,
        product(1),
    );
    f.curve(
        "matmul/gpu/naive",
        EventsGated,
        &powers(2, 12, 1),
        |n| 1.8e3 + flop(n) / 5e3,
        product(1),
    );
    let link = |n: f64, rate: f64| 12.0 * n * n / rate * 1e9;
    f.curve(
        "matmul/gpu/transfer",
        Wall,
        &sizes,
        |n| 26e3 + sgemm(n) + link(n, 12e9),
        moved,
    );
    f.curve(
        "matmul/gpu/transfer-pinned",
        Wall,
        &sizes,
        |n| 21e3 + sgemm(n) + link(n, 55e9),
        moved,
    );
    f.curve("matmul/gpu/submit", Submit, &sizes, |_| 3.1e3, product(1));

    let passes = |k: f64, launches| {
        move |n: f64| Cost {
            bytes: Some(8.0 * n * k),
            launches: Some(launches),
            ..Cost::default()
        }
    };
    let sizes = powers(10, 28, 2);
    let pass = |n: f64| 1.38e3 + 8.0 * n / 4.2e12 * 1e9;
    let fused = |n: f64| 1.5e3 + 8.0 * n / 4.05e12 * 1e9;
    f.curve(
        "nested_sine/gpu/per-kernel",
        Events,
        &sizes,
        |n| (4.0 * pass(n)).max(10.1e3),
        passes(4.0, 4),
    );
    f.curve(
        "nested_sine/gpu/per-kernel-gated",
        EventsGated,
        &sizes,
        |n| 4.0 * pass(n),
        passes(4.0, 4),
    );
    f.curve(
        "nested_sine/gpu/fused",
        Events,
        &sizes,
        |n| fused(n).max(2.6e3),
        passes(1.0, 1),
    );
    f.curve(
        "nested_sine/gpu/fused-gated",
        EventsGated,
        &sizes,
        fused,
        passes(1.0, 1),
    );
    f.curve(
        "nested_sine/gpu/graph",
        Events,
        &sizes,
        |n| 5.6e3 + 3.9 * (pass(n) - 1.38e3),
        passes(4.0, 1),
    );
    f.curve(
        "nested_sine/gpu/transfer-pinned",
        Wall,
        &sizes,
        |n| 18e3 + fused(n) + 8.0 * n / 55.5,
        |n| Cost {
            link_bytes: Some(LinkBytes::new(4.0 * n, 4.0 * n)),
            ..passes(1.0, 1)(n)
        },
    );

    let chain = |launches| {
        move |n: f64| Cost {
            bytes: Some(8.0 * 32.0 * n),
            launches: Some(launches),
            ..Cost::default()
        }
    };
    let sizes = [1 << 10, 1 << 16, 1 << 20];
    f.curve(
        "graph_replay/gpu/eager",
        Wall,
        &sizes,
        |n| 82e3 + n / 20.0,
        chain(32),
    );
    f.curve(
        "graph_replay/gpu/sync-each",
        Wall,
        &sizes,
        |n| 290e3 + n / 20.0,
        chain(32),
    );
    f.curve(
        "graph_replay/gpu/graph",
        Wall,
        &sizes,
        |n| 47e3 + n / 20.0,
        chain(1),
    );
    f.curve(
        "graph_replay/gpu/eager-events",
        Events,
        &sizes,
        |n| 76e3 + n / 20.0,
        chain(32),
    );
    f.curve(
        "graph_replay/gpu/graph-events",
        Events,
        &sizes,
        |n| 43e3 + n / 20.0,
        chain(1),
    );
}

/// A machine with a GPU, all groups.
pub(crate) fn full(root: &Path, gpu: &str) -> Fixture {
    let mut f = Fixture::new(root, Some(gpu));
    plant_cpu(&mut f, 1.0);
    plant_gpu(&mut f);
    f
}

/// A laptop: CPU curves alone.
pub(crate) fn laptop(root: &Path) -> Fixture {
    let mut f = Fixture::new(root, None);
    plant_cpu(&mut f, 3.0);
    f.skip("matmul/gpu", "no NVIDIA driver found; install one");
    f
}

/// Puts the record of what `plant` plants among the committed machines of the page in `out`.
pub(crate) fn commit(out: &Path, plant: impl FnOnce(&Path) -> Fixture) {
    let root = crate::tests::folder();
    plant(root.path());
    export(root.path(), &out.join(MACHINES)).expect("a record");
}

/// Times and sizes as a damaged file has them, or a routine that measures itself: `least` at
/// size 1, `most` from there to the largest size that an id can have.
pub(crate) fn absurd(root: &Path, least: f64, most: f64) {
    let f = Fixture::new(root, Some("Example GPU"));
    let cost = |size: f64| Cost {
        flop: Some(1e300),
        bytes: Some(size),
        ..Cost::default()
    };
    let sizes = [1, 1 << 40, u64::MAX];
    let time = |size: f64| if size < 2.0 { least } else { most };
    f.curve("matmul/cpu/best", Clock::Wall, &sizes, time, cost);
    let turned = |size: f64| 1e3 / time(size);
    f.curve("matmul/gpu/cublas", Clock::Events, &sizes, turned, cost);
}
