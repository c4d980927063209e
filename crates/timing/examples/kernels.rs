//! Times SAXPY on the CPU and on the GPU in one Criterion group: the kernel alone (behind a gate), and
//! with its launches.
//!
//! `cargo run --release --example kernels -- --bench`

use crossover_timing::criterion::{Criterion, Throughput};
use crossover_timing::cudarc::driver::{LaunchConfig, PushKernelArg};
use crossover_timing::cudarc::nvrtc::compile_ptx;
use crossover_timing::{CudaBencherExt, CudaTime, Rate};

const SAXPY: &str = r#"
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (time, absence) = CudaTime::new_or_host_only(0);
    if let Some(absence) = absence {
        eprintln!("CPU alone: {absence}");
    }
    let mut criterion = Criterion::default()
        .with_measurement(time.clone())
        .configure_from_args();
    let mut group = criterion.benchmark_group("saxpy");
    let n = 1 << 24;
    time.set_rate(Rate::bytes(|n| 12.0 * n));
    group.throughput(Throughput::Elements(n as u64));

    let (x, mut y) = (vec![1.0f32; n], vec![2.0f32; n]);
    group.bench_function("cpu", |b| {
        b.iter_cpu(|| y.iter_mut().zip(&x).for_each(|(y, x)| *y += 2.0 * x));
    });
    if let Some(stream) = time.stream() {
        let module = stream.context().load_module(compile_ptx(SAXPY)?)?;
        let saxpy = module.load_function("saxpy")?;
        let (x, mut y) = (stream.clone_htod(&x)?, stream.clone_htod(&y)?);
        let count = n as i32;
        let mut launch = || {
            let mut builder = stream.launch_builder(&saxpy);
            builder.arg(&2.0f32).arg(&x).arg(&mut y).arg(&count);
            // SAFETY: the arguments are those that the kernel declares, of `n` elements each.
            unsafe { builder.launch(LaunchConfig::for_num_elems(n as u32)) }.map(drop)
        };
        group.bench_function("gpu", |b| b.iter_gated(&time, 1, &mut launch));
        group.bench_function("gpu-eager", |b| {
            b.iter(|| launch().expect("saxpy launches"));
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
