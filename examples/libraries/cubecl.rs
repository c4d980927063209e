//! Kernels of cubecl, which launches them from a thread of its own on streams that it keeps to itself.

use crossover_timing::criterion::{BenchmarkId, Criterion};
use crossover_timing::{CudaBencherExt, CudaTime};
use cubecl::cuda::{CudaDevice, CudaRuntime};
use cubecl::future::block_on;
use cubecl::prelude::*;

const THREADS: usize = 256;
/// Threads of a sum, each of which adds up as many values.
const SUMS: usize = 1 << 16;

#[cube(launch_unchecked)]
fn gelu(x: &Array<f32>, y: &mut Array<f32>) {
    if ABSOLUTE_POS < x.len() {
        let value = x[ABSOLUTE_POS];
        y[ABSOLUTE_POS] = value * (Erf::erf(value * 0.707_106_77) + 1.0) / 2.0;
    }
}

#[cube(launch_unchecked)]
fn sums(x: &Array<f32>, y: &mut Array<f32>) {
    let mut sum = 0.0f32;
    for i in range_stepped(ABSOLUTE_POS, x.len(), y.len()) {
        sum += x[i];
    }
    y[ABSOLUTE_POS] = sum;
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let time = CudaTime::of_process(0)?;
    let client = CudaRuntime::client(&CudaDevice::default());
    let waits = client.clone();
    time.wait_by(move || block_on(waits.sync()));
    let mut criterion = Criterion::default()
        .with_measurement(time.clone())
        .configure_from_args();
    let mut group = criterion.benchmark_group("cubecl");
    for n in [1 << 20, 1 << 24] {
        let x = client.create_from_slice(f32::as_bytes(&vec![1.0; n]));
        let y = client.empty(n * size_of::<f32>());
        let array = |handle: &cubecl::server::Handle, n| {
            // SAFETY: the buffer has `n` values.
            unsafe { ArrayArg::from_raw_parts(handle.clone(), n) }
        };
        let grid = |threads: usize| CubeCount::new_1d((threads / THREADS) as u32);
        let block = CubeDim::new_1d(THREADS as u32);
        group.bench_function(BenchmarkId::new("gelu", n), |b| {
            b.iter_activity(&time, || {
                let (x, y) = (array(&x, n), array(&y, n));
                // SAFETY: no thread leaves the arrays.
                unsafe { gelu::launch_unchecked::<CudaRuntime>(&client, grid(n), block, x, y) };
                Ok::<(), String>(())
            });
        });
        group.bench_function(BenchmarkId::new("sums", n), |b| {
            b.iter_activity(&time, || {
                let (x, y) = (array(&x, n), array(&y, SUMS));
                // SAFETY: there are as many threads as sums.
                unsafe { sums::launch_unchecked::<CudaRuntime>(&client, grid(SUMS), block, x, y) };
                Ok::<(), String>(())
            });
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
