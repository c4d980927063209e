//! Profiling where nothing can be recorded: the benchmark runs on, and no profile is written.
#![cfg(feature = "profiler")]

use std::time::Duration;

use crossover_timing::criterion::Criterion;
use crossover_timing::profiler::CudaProfiler;
use crossover_timing::{CudaBencherExt, CudaTime, TimingError, range};

#[test]
fn each_benchmark_runs_without_a_profile() {
    let dir = tempfile::tempdir().unwrap();
    let time = CudaTime::host_only();
    let mut criterion = Criterion::default()
        .with_measurement(time.clone())
        .with_profiler(CudaProfiler::new(&time))
        .output_directory(dir.path())
        .without_plots()
        // Nothing follows the warm-up of one second.
        .profile_time(Some(Duration::from_secs(1)));
    let mut runs = 0u64;
    criterion.bench_function("gpu", |b| {
        b.iter_wall(&time, 1, || {
            runs += 1;
            let _step = range("a name with a \0 in it");
            Ok::<(), TimingError>(())
        });
    });
    drop(criterion);
    assert!(runs > 10, "{runs}");
    assert!(!dir.path().join("gpu/profile/profile.json").exists());
}
