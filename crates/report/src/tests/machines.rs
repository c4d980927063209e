//! Whole planted machines.

use std::path::Path;

use crate::report::Options;
use crate::tests::fixture::Fixture;
use crate::write;
use crossover_results::export::export;
use crossover_results::model::{Cost, LinkBytes};
use crossover_results::store::machine_record::MACHINES;
use crossover_words::Clock;

pub(crate) fn powers(from: u32, to: u32, step: usize) -> Vec<u64> {
    (from..=to).step_by(step).map(|e| 1u64 << e).collect()
}

/// A square product of order N in so many launches.
fn product(launches: u32) -> impl Fn(f64) -> Cost {
    move |n| Cost {
        flop: Some(2.0 * n.powi(3)),
        bytes: Some(12.0 * n * n),
        launches: (launches > 0).then_some(launches),
        ..Cost::default()
    }
}

/// As many passes over N elements, in so many launches.
fn passes(passes: f64, launches: u32) -> impl Fn(f64) -> Cost {
    move |n| Cost {
        bytes: Some(8.0 * n * passes),
        launches: (launches > 0).then_some(launches),
        ..Cost::default()
    }
}

/// The same with bytes that cross the link, for each size.
fn moved(
    cost: impl Fn(f64) -> Cost,
    to: fn(f64) -> f64,
    back: fn(f64) -> f64,
) -> impl Fn(f64) -> Cost {
    move |n| Cost {
        link_bytes: Some(LinkBytes::new(to(n), back(n))),
        ..cost(n)
    }
}

/// A rate within caches and beyond.
fn bandwidth(f: &mut Fixture, name: &str, rate: f64, points: [(u64, f64); 3]) {
    f.bandwidth(name, &points.map(|(bytes, above)| (bytes, above * rate)));
}

/// The CPU curves of a machine like the ones this suite is for.
pub(crate) fn plant_cpu(f: &mut Fixture, scale: f64) {
    f.ceiling("cpu_fma_1", 0.24e12 / scale, "FLOP/s");
    f.ceiling("cpu_fma_all", 3.0e12 / scale, "FLOP/s");
    for (name, rate) in [("cpu_read", 200e9), ("cpu_copy", 180e9)] {
        let points = [(1 << 20, 10.0), (32 << 20, 2.0), (256 << 20, 1.0)];
        bandwidth(f, name, rate / scale, points);
    }
    let flop = |n: f64| 2.0 * n * n * n;
    let at = move |peak: f64, fixed: f64| move |n: f64| fixed + scale * flop(n) / peak * 1e9;
    let matmul = |name: &str, last, time: &dyn Fn(f64) -> f64| {
        let name = format!("matmul/cpu/{name}");
        f.curve(&name, Clock::Wall, &powers(2, last, 1), time, product(0));
    };
    matmul("naive", 9, &at(1.6e9, 4.0));
    matmul("ndarray", 13, &at(1.9e11, 90.0));
    matmul("rayon", 13, &at(6.0e11, 9e3));
    let (one, all) = (at(2.2e11, 60.0), at(2.3e12, 7e3));
    matmul("best", 13, &|n| one(n).min(all(n)));
    let sine = |name: &str, time: &dyn Fn(f64) -> f64| {
        let name = format!("nested_sine/cpu/{name}");
        f.curve(&name, Clock::Wall, &powers(10, 28, 2), time, passes(1.0, 0));
    };
    sine("std", &|n| 20.0 + scale * n * 7.0);
    sine("simd", &|n| 30.0 + scale * (n * 0.5).min(6e3 + n * 0.06));
}

/// The GPU curves of one.
pub(crate) fn plant_gpu(f: &mut Fixture) {
    use Clock::{Events, EventsGated, Submit, Wall};
    for (name, value, unit) in [
        ("gpu_fma", 66.7e12, "FLOP/s"),
        ("h2d_pinned", 55.6e9, "B/s"),
        ("d2h_pinned", 55.4e9, "B/s"),
        ("launch_latency", 2450.0, "ns"),
        ("empty_kernel", 1380.0, "ns"),
    ] {
        f.ceiling(name, value, unit);
    }
    for (name, rate) in [("gpu_read", 4.4e12), ("gpu_copy", 4.26e12)] {
        let points = [(1 << 20, 1.4), (32 << 20, 1.3), (2 << 30, 1.0)];
        bandwidth(f, name, rate, points);
    }
    type Costs<'c> = &'c dyn Fn(f64) -> Cost;
    let flop = |n: f64| 2.0 * n * n * n;
    let sgemm = |n: f64| 1.9e3 + flop(n) / 50.5e12 * 1e9;
    let link = |n: f64, rate: f64| 12.0 * n * n / rate * 1e9;
    let matmul = |name: &str, clock, last, cost: Costs, time: &dyn Fn(f64) -> f64| {
        let name = format!("matmul/gpu/{name}");
        f.curve(&name, clock, &powers(2, last, 1), time, cost);
    };
    let (one, host) = (
        product(1),
        moved(product(1), |n| 8.0 * n * n, |n| 4.0 * n * n),
    );
    matmul("cublas", EventsGated, 13, &one, &sgemm);
    matmul("cublas-eager", Events, 13, &one, &|n| sgemm(n).max(4.4e3));
    matmul("tiled", EventsGated, 13, &one, &|n| 2.2e3 + flop(n) / 36e3);
    matmul("naive", EventsGated, 12, &one, &|n| 1.8e3 + flop(n) / 5e3);
    matmul("transfer", Wall, 13, &host, &|n| {
        26e3 + sgemm(n) + link(n, 12e9)
    });
    matmul("transfer-pinned", Wall, 13, &host, &|n| {
        21e3 + sgemm(n) + link(n, 55e9)
    });
    matmul("submit", Submit, 13, &one, &|_| 3.1e3);

    let pass = |n: f64| 1.38e3 + 8.0 * n / 4.2e12 * 1e9;
    let fused = |n: f64| 1.5e3 + 8.0 * n / 4.05e12 * 1e9;
    let sine = |name: &str, clock, cost: Costs, time: &dyn Fn(f64) -> f64| {
        let name = format!("nested_sine/gpu/{name}");
        f.curve(&name, clock, &powers(10, 28, 2), time, cost);
    };
    let (four, one) = (passes(4.0, 4), passes(1.0, 1));
    sine("per-kernel", Events, &four, &|n| {
        (4.0 * pass(n)).max(10.1e3)
    });
    sine("per-kernel-gated", EventsGated, &four, &|n| 4.0 * pass(n));
    sine("fused", Events, &one, &|n| fused(n).max(2.6e3));
    sine("fused-gated", EventsGated, &one, &fused);
    sine("graph", Events, &passes(4.0, 1), &|n| {
        5.6e3 + 3.9 * (pass(n) - 1.38e3)
    });
    let host = moved(one, |n| 4.0 * n, |n| 4.0 * n);
    sine("transfer-pinned", Wall, &host, &|n| {
        18e3 + fused(n) + 8.0 * n / 55.5
    });
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
    let (dir, root) = crate::tests::folders();
    plant(&root);
    write::refresh(&root, dir.path(), &Options::default()).expect("a report");
    export(dir.path(), &out.join(MACHINES)).expect("a record");
}

/// Times and sizes as a damaged file has them, or a routine that measures itself: `least` at
/// size 1, `most` from there to the largest size that an id can have.
#[cfg(unix)]
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
