//! Kernels of cubecl, which launches them from a thread of its own on streams that it keeps to itself.

use crossover_timing::{BoxError, CudaTime};
use cubecl::cuda::{CudaDevice, CudaRuntime};
use cubecl::future::block_on;
use cubecl::prelude::*;
use cubecl::server::Handle;

const ITERATIONS: u64 = 1_000;
const THREADS: usize = 256;
/// Threads of a sum, between which the values are divided.
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

fn main() -> Result<(), BoxError> {
    let time = CudaTime::of_process(0)?;
    let client = CudaRuntime::client(&CudaDevice::default());
    let waits = client.clone();
    time.wait_by(move || block_on(waits.sync()));
    for n in [1 << 20, 1 << 24] {
        let x = client.create_from_slice(f32::as_bytes(&vec![1.0; n]));
        let y = client.empty(n * size_of::<f32>());
        // SAFETY: both buffers have `n` values, and `n` is at most that.
        let array = |of: &Handle, n| unsafe { ArrayArg::from_raw_parts(of.clone(), n) };
        let grid = |threads: usize| CubeCount::new_1d((threads / THREADS) as u32);
        let block = CubeDim::new_1d(THREADS as u32);
        let activity = time.measure_activity(ITERATIONS, || -> Result<(), BoxError> {
            let (x, y) = (array(&x, n), array(&y, n));
            // SAFETY: no thread leaves the arrays.
            unsafe { gelu::launch_unchecked::<CudaRuntime>(&client, grid(n), block, x, y) };
            Ok(())
        })?;
        println!("GELU of {n} values: {activity:?}");
        let activity = time.measure_activity(ITERATIONS, || -> Result<(), BoxError> {
            let (x, y) = (array(&x, n), array(&y, SUMS));
            // SAFETY: there are as many threads as sums.
            unsafe { sums::launch_unchecked::<CudaRuntime>(&client, grid(SUMS), block, x, y) };
            Ok(())
        })?;
        println!("sums of {n} values: {activity:?}");
    }
    Ok(())
}
