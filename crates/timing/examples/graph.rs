//! A CUDA graph: twenty short kernels launched one by one, and replayed as one graph.
//!
//! `cargo bench -p crossover-timing --example graph`

use std::error::Error;

use crossover_timing::criterion::Criterion;
use crossover_timing::cudarc::driver::{LaunchConfig, PushKernelArg};
use crossover_timing::{CudaBencherExt, CudaTime, compile};

const STEP: &str = r#"
extern "C" __global__ void step(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 0.5f * x[i] + 1.0f;
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
    let module = compile(stream.context(), STEP)?;
    let step = module.load_function("step")?;
    let n = 1 << 12;
    let mut x = stream.alloc_zeros::<f32>(n as usize)?;
    let mut steps = || {
        (0..20).try_for_each(|_| {
            let mut builder = stream.launch_builder(&step);
            builder.arg(&mut x).arg(&n);
            // SAFETY: the arguments are those that the kernel declares, `n` elements and their number.
            unsafe { builder.launch(LaunchConfig::for_num_elems(n as u32)) }.map(drop)
        })
    };

    let mut group = criterion.benchmark_group("steps");
    // The device's time for the kernels in a row, and for the replay, neither with its launch.
    group.bench_function("gated", |b| b.iter_gated(&time, &mut steps));
    group.bench_function("graph", |b| b.iter_graph(&time, &mut steps));
    // What a loop takes that launches them one by one, and what a caller waits who needs the result.
    group.bench_function("eager", |b| b.iter(|| steps().expect("the kernels launch")));
    group.bench_function("awaited", |b| b.iter_wall(&time, &mut steps));
    group.finish();
    criterion.final_summary();
    Ok(())
}
