//! CPU against GPU: the sum of two vectors by one thread, by the GPU with the vectors in its memory, and by
//! the GPU with copies in both directions.
//!
//! `cargo bench -p crossover-timing --example cpu_and_gpu`

use std::error::Error;

use crossover_timing::criterion::{BenchmarkId, Criterion, Throughput};
use crossover_timing::cudarc::driver::{LaunchConfig, PushKernelArg};
use crossover_timing::{CudaBencherExt, CudaTime, Rate, compile};

const ADD: &str = r#"
extern "C" __global__ void add(const float *x, const float *y, float *z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) z[i] = x[i] + y[i];
}"#;

fn main() -> Result<(), Box<dyn Error>> {
    // Without a GPU the benchmarks of the CPU run alone.
    // SAFETY: it is the only stream of the program.
    let (time, absence) = unsafe { CudaTime::new_or_host_only(0) };
    if let Some(absence) = absence {
        eprintln!("CPU alone: {absence}");
    }
    let mut criterion = Criterion::default()
        .with_measurement(time.clone())
        .configure_from_args();
    let mut group = criterion.benchmark_group("add");
    let _rate = time.set_rate(Rate::bytes(|n| 12.0 * n));
    for n in [1usize << 12, 1 << 18, 1 << 22] {
        group.throughput(Throughput::Elements(n as u64));
        let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let (y, mut z) = (vec![1.0f32; n], vec![0.0f32; n]);
        let add = |z: &mut [f32]| {
            let sums = z.iter_mut().zip(x.iter().zip(&y));
            sums.for_each(|(z, (x, y))| *z = x + y);
        };
        group.bench_function(BenchmarkId::new("cpu", n), |b| b.iter_cpu(|| add(&mut z)));

        let Some(stream) = time.stream() else {
            continue;
        };
        let module = compile(stream.context(), ADD)?;
        let kernel = module.load_function("add")?;
        let (mut of_x, mut of_y) = (stream.clone_htod(&x)?, stream.clone_htod(&y)?);
        let mut of_z = stream.alloc_zeros::<f32>(n)?;
        let count = n as i32;
        let launch = |x: &_, y: &_, z: &mut _| {
            let mut builder = stream.launch_builder(&kernel);
            builder.arg(x).arg(y).arg(z).arg(&count);
            // SAFETY: the arguments are those that the kernel declares, of `n` elements each.
            unsafe { builder.launch(LaunchConfig::for_num_elems(n as u32)) }.map(drop)
        };
        // A wrong result has no time.
        launch(&of_x, &of_y, &mut of_z)?;
        add(&mut z);
        if stream.clone_dtoh(&of_z)? != z {
            return Err("the sums of the GPU are wrong".into());
        }
        // The host waits for one call, as it does for the CPU's.
        group.bench_function(BenchmarkId::new("gpu-device-memory", n), |b| {
            b.iter_wall(&time, || launch(&of_x, &of_y, &mut of_z));
        });
        // A copy to a `Vec` waits by itself.
        group.bench_function(BenchmarkId::new("gpu-with-copies", n), |b| {
            b.iter_awaited(&time, || {
                stream.memcpy_htod(&x, &mut of_x)?;
                stream.memcpy_htod(&y, &mut of_y)?;
                launch(&of_x, &of_y, &mut of_z)?;
                stream.memcpy_dtoh(&of_z, &mut z)?;
                stream.synchronize()
            });
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
