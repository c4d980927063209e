//! The measurement and the profiler without a device, as Criterion drives them.
#![cfg(feature = "criterion")]

use std::fs;
use std::time::{Duration, Instant};

use crossover_timing::criterion::measurement::Measurement;
use crossover_timing::criterion::{BenchmarkId, Criterion, Throughput};
use crossover_timing::{Absence, Clock, CudaBencherExt, CudaTime, Rate, TimingError};
use crossover_words::sidecar;

#[test]
fn criterion_measures_on_the_wall_clock_and_another_clock_ends_with_its_error() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let time = CudaTime::host_only();
    time.set_output_directory(root);
    let mut criterion = Criterion::default()
        .with_measurement(time.clone())
        .output_directory(root)
        .without_plots()
        .sample_size(10)
        .nresamples(1_001)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_millis(5));
    let mut group = criterion.benchmark_group("sum");
    let _rate = time.set_rate(Rate::flop(|n| n));
    let mut runs = 0u64;
    for n in [1_000u64, 4_000] {
        group.throughput(Throughput::Elements(n));
        group.bench_with_input(BenchmarkId::new("fold", n), &n, |b, &n| {
            b.iter_cpu(|| {
                runs += 1;
                (0..n).fold(0, |a, i| a ^ i)
            });
        });
    }
    assert!(runs > 20, "{runs}");
    group.bench_function("wall", |b| {
        b.iter_wall(&time, || Ok::<(), TimingError>(()));
    });
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        group.bench_function("gated", |b| {
            b.iter_gated(&time, || Ok::<(), TimingError>(()));
        });
    }));
    let message = outcome.unwrap_err().downcast::<String>().unwrap();
    assert!(
        message.contains("the events-gated clock needs a GPU"),
        "{message}"
    );
    group.finish();
    drop((criterion, _rate, time));
    // Beside the samples of a benchmark that this measurement knows of, and of no other.
    let clock = |of: &str| sidecar::read(&root.join(of), &[])?.clock();
    assert_eq!(clock("sum/wall/new"), Some(Clock::Wall));
    assert_eq!(clock("sum/wall/base"), Some(Clock::Wall));
    assert_eq!(clock("sum/fold/4000/new"), None);
    let estimates = fs::read_to_string(root.join("sum/fold/4000/new/estimates.json")).unwrap();
    assert!(estimates.contains("median"), "{estimates}");
}

#[test]
fn host_only_measures_the_wall_clock_and_refuses_the_others() {
    let time = CudaTime::host_only();
    let (mut runs, mut slept) = (0, 0.0);
    let started = time.start();
    let ns = time.measure(Clock::Wall, 5, || {
        runs += 1;
        let before = Instant::now();
        std::thread::sleep(Duration::from_millis(1));
        slept += before.elapsed().as_nanos() as f64;
        Ok::<(), TimingError>(())
    });
    let (ns, spanned) = (ns.unwrap(), time.end(started));
    assert_eq!(runs, 5);
    assert!(slept <= ns && ns <= spanned, "{slept} of {ns} of {spanned}");
    let nothing = || Ok::<(), TimingError>(());
    for &clock in Clock::OF_STREAM.iter().filter(|&&it| it != Clock::Wall) {
        let refused = time.measure(clock, 1, nothing);
        assert!(matches!(refused, Err(TimingError::NoDevice { .. })));
    }
    let none = time.measure(Clock::Wall, 0, nothing);
    assert!(matches!(none, Err(TimingError::NoIterations)));
}

#[test]
fn the_readme_shows_what_a_machine_without_a_driver_prints() {
    let line = format!("\nCPU alone: {}\n", Absence::NoDriver);
    assert!(include_str!("../README.md").contains(&line), "{line}");
}
