//! A kernel alone: its device time for several sizes, with the data in the L2 cache and from memory. Twenty of them:
//! launched one by one, and replayed as one CUDA graph.
//!
//! `cargo bench -p crossover-timing --example kernel`

use std::error::Error;

use crossover_timing::criterion::{BenchmarkId, Criterion, Throughput};
use crossover_timing::cudarc::driver::{LaunchConfig, PushKernelArg};
use crossover_timing::{CudaBencherExt, CudaTime, Rate, compile};

const SCALE: &str = r#"
extern "C" __global__ void scale(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}"#;

fn main() -> Result<(), Box<dyn Error>> {
    // SAFETY: it is the only stream of the program.
    let time = match unsafe { CudaTime::new(0) } {
        Ok(time) => time,
        Err(absence) => {
            eprintln!("nothing to time: {absence}");
            return Ok(());
        }
    };
    let mut criterion = Criterion::default()
        .with_measurement(time.clone())
        .configure_from_args();
    let stream = time.stream().ok_or("the clock was opened on a device")?;
    let module = compile(stream.context(), SCALE)?;
    let scale = module.load_function("scale")?;

    let mut group = criterion.benchmark_group("scale");
    // Criterion prints GB/s: an element is read and written once.
    let _rate = time.set_rate(Rate::bytes(|n| 8.0 * n));
    for n in [1 << 16, 1 << 20, 1 << 24] {
        group.throughput(Throughput::Elements(n));
        let x = stream.clone_htod(&vec![1.0f32; n as usize])?;
        let mut y = stream.alloc_zeros::<f32>(n as usize)?;
        let count = n as i32;
        let mut launch = || {
            let mut builder = stream.launch_builder(&scale);
            builder.arg(&2.0f32).arg(&x).arg(&mut y).arg(&count);
            // SAFETY: the arguments are those that the kernel declares, of `n` elements each.
            unsafe { builder.launch(LaunchConfig::for_num_elems(n as u32)) }.map(drop)
        };
        group.bench_function(BenchmarkId::new("gated", n), |b| {
            b.iter_gated(&time, &mut launch);
        });
        group.bench_function(BenchmarkId::new("cold", n), |b| {
            b.iter_cold(&time, &mut launch);
        });
        group.throughput(Throughput::Elements(20 * n));
        let mut twenty = || (0..20).try_for_each(|_| launch());
        // The time of a loop that launches them, and the wait of a caller who needs the result.
        group.bench_function(BenchmarkId::new("twenty-eager", n), |b| {
            b.iter(|| twenty().expect("the kernels launch"));
        });
        group.bench_function(BenchmarkId::new("twenty-awaited", n), |b| {
            b.iter_wall(&time, &mut twenty);
        });
        group.bench_function(BenchmarkId::new("twenty-graph", n), |b| {
            b.iter_graph(&time, &mut twenty);
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
