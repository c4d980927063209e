//! Profiling where nothing can be recorded: one line says why, and the benchmark runs on.
#![cfg(feature = "profiler")]

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use crossover_timing::criterion::Criterion;
use crossover_timing::profiler::{CudaProfiler, NoProfile};
use crossover_timing::range;
use crossover_timing::{CudaBencherExt, CudaTime, TimingError};

#[test]
fn each_benchmark_runs_and_says_why_it_has_no_profile() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let time = CudaTime::host_only();
    let reasons = Rc::new(RefCell::new(Vec::new()));
    let heard = reasons.clone();
    let profiler = CudaProfiler::new(&time)
        .on_profile(|profile, _| panic!("a profile without a GPU: {profile}"))
        .on_no_profile(move |id, why| heard.borrow_mut().push((id.to_owned(), why.clone())));
    let mut criterion = Criterion::default()
        .with_measurement(time.clone())
        .with_profiler(profiler)
        .output_directory(root)
        .without_plots()
        // Nothing follows the warm-up of one second.
        .profile_time(Some(Duration::from_secs(1)));
    let (mut on_cpu, mut on_gpu, mut uncounted) = (0u64, 0u64, 0u64);
    criterion.bench_function("cpu", |b| {
        b.iter_cpu(|| {
            on_cpu += 1;
            let _step = range("step");
        });
    });
    criterion.bench_function("gpu", |b| {
        b.iter_wall(&time, 1, || {
            on_gpu += 1;
            Ok::<(), TimingError>(())
        });
    });
    criterion.bench_function("uncounted", |b| b.iter(|| uncounted += 1));
    drop(criterion);
    for runs in [on_cpu, on_gpu, uncounted] {
        assert!(runs > 10, "{runs}");
    }
    let expected = [
        ("cpu".to_owned(), NoProfile::NoDevice),
        ("gpu".to_owned(), NoProfile::NoDevice),
        ("uncounted".to_owned(), NoProfile::NoDevice),
    ];
    assert_eq!(*reasons.borrow(), expected);
    // Criterion makes the folder; nothing of ours is in it.
    assert!(!root.join("cpu/profile/profile.json").exists());
}
