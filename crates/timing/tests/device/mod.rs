//! What tests on a real device share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crossover_timing::CudaTime;
use crossover_timing::cudarc::driver::CudaFunction;
use crossover_timing::cudarc::nvrtc::{CompileOptions, compile_ptx_with_opts};

pub(crate) type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A kernel that spins for an exact time, by the device's clock.
pub(crate) const SPIN: &str = r#"
extern "C" __global__ void spin(unsigned long long nanoseconds) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
}
"#;

/// Reads `n` floats and keeps nothing, though the compiler cannot know.
#[allow(dead_code, reason = "the profiler reads nothing")]
pub(crate) const READ: &str = r#"
extern "C" __global__ void read(const float *x, unsigned long long n, float *sink) {
    float sum = 0.0f;
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        sum += x[i];
    if (sum == 12345.678f) *sink = sum;
}
"#;

/// Held by a test for as long as it uses the device. A test of another thread that synchronises or
/// loads a module would wait behind this one's gate, and the gate for it; and CUPTI makes one
/// recording of a process at a time.
pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
    static DEVICE: Mutex<()> = Mutex::new(());
    DEVICE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A kernel of `source`, compiled for the device of `time`.
pub(crate) fn function(time: &CudaTime, source: &str, name: &str) -> TestResult<CudaFunction> {
    let context = time.context().expect("opened on a device");
    let (major, minor) = context.compute_capability()?;
    // NVRTC's own default is the oldest architecture that it knows.
    let options = CompileOptions {
        options: vec![format!("--gpu-architecture=compute_{major}{minor}")],
        ..CompileOptions::default()
    };
    let ptx = compile_ptx_with_opts(source, options)?;
    Ok(context.load_module(ptx)?.load_function(name)?)
}
