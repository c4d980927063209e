//! A program with two streams, whose use of a slice cudarc orders by events.

use crossover_timing::criterion::Criterion;
use crossover_timing::cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use crossover_timing::{BoxError, CudaBencherExt, CudaTime, compile};

const ADD: &str = r#"
extern "C" __global__ void add(const float *x, float *y) {
    y[blockIdx.x * blockDim.x + threadIdx.x] += x[blockIdx.x * blockDim.x + threadIdx.x];
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let time = CudaTime::of_process(0)?;
    let context = CudaContext::new(0)?;
    let [first, second] = [context.new_stream()?, context.new_stream()?];
    let add = compile(&context, ADD)?.load_function("add")?;
    let n = 1 << 24;
    let x = first.alloc_zeros::<f32>(n)?;
    let mut sums = [first.alloc_zeros::<f32>(n)?, second.alloc_zeros::<f32>(n)?];
    let mut criterion = Criterion::default()
        .with_measurement(time.clone())
        .configure_from_args();
    criterion.bench_function("two streams", |b| {
        b.iter_activity(&time, || -> Result<(), BoxError> {
            for (stream, sum) in [&first, &second].into_iter().zip(&mut sums) {
                let mut builder = stream.launch_builder(&add);
                builder.arg(&x).arg(sum);
                // SAFETY: a thread for each of the `n` values of both slices.
                unsafe { builder.launch(LaunchConfig::for_num_elems(n as u32)) }?;
            }
            Ok(())
        });
    });
    criterion.final_summary();
    Ok(())
}
