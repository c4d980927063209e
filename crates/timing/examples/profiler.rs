//! Shows where the time of an iteration goes that copies, runs a kernel twice and copies back.
//!
//! `cargo run --release --features profiler --example profiler -- --bench --profile-time 3`

use crossover_timing::criterion::Criterion;
use crossover_timing::cudarc::driver::{LaunchConfig, PushKernelArg};
use crossover_timing::cudarc::nvrtc::compile_ptx;
use crossover_timing::profiler::CudaProfiler;
use crossover_timing::range;
use crossover_timing::{BoxError, CudaBencherExt, CudaTime};

const SCALE: &str = r#"
extern "C" __global__ void scale(float a, float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
}"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let time = CudaTime::new(0)?;
    let stream = time.stream().expect("opened on a device").clone();
    let module = stream.context().load_module(compile_ptx(SCALE)?)?;
    let scale = module.load_function("scale")?;

    let n = 1 << 24;
    let mut host = vec![1.0f32; n];
    let mut device = stream.alloc_zeros::<f32>(n)?;
    let mut iteration = || -> Result<(), BoxError> {
        let upload = range("upload");
        stream.memcpy_htod(&host, &mut device)?;
        drop(upload);
        let compute = range("compute");
        for factor in [2.0f32, 0.5] {
            let mut launch = stream.launch_builder(&scale);
            let count = n as i32;
            launch.arg(&factor).arg(&mut device).arg(&count);
            // SAFETY: the arguments are those that the kernel declares, of `n` elements.
            unsafe { launch.launch(LaunchConfig::for_num_elems(n as u32)) }?;
        }
        drop(compute);
        let _download = range("download");
        stream.memcpy_dtoh(&device, &mut host)?;
        Ok(())
    };

    let mut criterion = Criterion::default()
        .with_measurement(time.clone())
        .with_profiler(CudaProfiler::new(&time))
        .configure_from_args();
    criterion.bench_function("scale", |b| b.iter_wall(&time, 2, &mut iteration));
    criterion.final_summary();
    Ok(())
}
