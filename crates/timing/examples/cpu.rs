//! Times CPU code beside which GPU code may be timed, on a machine with a GPU or without.
//!
//! `cargo run --release --example cpu -- --bench`

use crossover_timing::criterion::{Criterion, Throughput};
use crossover_timing::{CudaBencherExt, CudaTime};

fn main() {
    let (time, absence) = CudaTime::new_or_host_only(0);
    if let Some(absence) = absence {
        eprintln!("CPU alone: {absence}");
    }
    let numbers: Vec<f32> = (0..1 << 20).map(|i| i as f32).collect();
    let mut criterion = Criterion::default()
        .with_measurement(time)
        .configure_from_args();
    let mut group = criterion.benchmark_group("sum");
    group.throughput(Throughput::Elements(numbers.len() as u64));
    group.bench_function("cpu", |b| b.iter_cpu(|| numbers.iter().sum::<f32>()));
    group.finish();
    criterion.final_summary();
}
