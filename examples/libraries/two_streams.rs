//! A program with two streams, whose use of a slice cudarc orders by events.

use crossover_timing::cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use crossover_timing::{BoxError, CudaTime, compile};

const ADD: &str = r#"
extern "C" __global__ void add(const float *x, float *y) {
    y[blockIdx.x * blockDim.x + threadIdx.x] += x[blockIdx.x * blockDim.x + threadIdx.x];
}"#;

fn main() -> Result<(), BoxError> {
    let time = CudaTime::of_process(0)?;
    let context = CudaContext::new(0)?;
    let streams = [context.new_stream()?, context.new_stream()?];
    let add = compile(&context, ADD)?.load_function("add")?;
    let n = 1 << 24;
    let zeros = || streams[0].alloc_zeros::<f32>(n);
    let (x, mut sums) = (zeros()?, [zeros()?, zeros()?]);
    let activity = time.measure_activity(100, || -> Result<(), BoxError> {
        for (stream, sum) in streams.iter().zip(&mut sums) {
            let mut builder = stream.launch_builder(&add);
            builder.arg(&x).arg(sum);
            // SAFETY: a thread for each of the `n` values of both slices.
            unsafe { builder.launch(LaunchConfig::for_num_elems(n as u32)) }?;
        }
        Ok(())
    })?;
    println!("{activity:#?}");
    Ok(())
}
