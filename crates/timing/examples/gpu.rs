//! Times a kernel of your own, given as a string, on the device alone (behind a gate) and as an
//! eager launch costs it.
//!
//! `cargo run --release --example gpu -- --bench`

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
    let time = CudaTime::new(0)?;
    let stream = time.stream().expect("opened on a device").clone();
    let module = stream.context().load_module(compile_ptx(SAXPY)?)?;
    let saxpy = module.load_function("saxpy")?;

    let n = 1 << 24;
    let count = n as i32;
    let x = stream.alloc_zeros::<f32>(n)?;
    let mut y = stream.alloc_zeros::<f32>(n)?;
    let mut launch = || {
        let mut builder = stream.launch_builder(&saxpy);
        builder.arg(&2.0f32).arg(&x).arg(&mut y).arg(&count);
        // SAFETY: the arguments are those that the kernel declares, of `n` elements each.
        unsafe { builder.launch(LaunchConfig::for_num_elems(n as u32)) }.map(drop)
    };

    let mut criterion = Criterion::default()
        .with_measurement(time.clone())
        .configure_from_args();
    let mut group = criterion.benchmark_group("saxpy");
    time.set_rate(Rate::bytes(|n| 12.0 * n));
    group.throughput(Throughput::Elements(n as u64));
    group.bench_function("gated", |b| b.iter_gated(&time, 1, &mut launch));
    group.bench_function("eager", |b| b.iter(|| launch().expect("saxpy launches")));
    group.finish();
    criterion.final_summary();
    Ok(())
}
