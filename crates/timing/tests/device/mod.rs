//! Code that tests on a real device share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crossover_timing::cudarc::driver::{CudaFunction, CudaStream, DriverError};
use crossover_timing::cudarc::nvrtc::Ptx;
use crossover_timing::{CudaError, CudaTime, Launch, TimingError, compile};

pub(crate) type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Reads `n` floats and keeps nothing, though the compiler cannot know.
pub(crate) const READ: &str = r#"
extern "C" __global__ void read(const float *x, unsigned long long n, float *sink) {
    float sum = 0.0f;
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        sum += x[i];
    if (sum == 12345.678f) *sink = sum;
}
"#;

/// A device that one test has at a time, its clocks and the stream that they time. A test of another
/// thread that synchronises or loads a module would wait behind this one's gate, and the gate for it;
/// and CUPTI makes one recording of a process at a time.
pub(crate) struct Opened {
    pub(crate) time: CudaTime,
    pub(crate) stream: Arc<CudaStream>,
    _one_at_a_time: MutexGuard<'static, ()>,
}

impl Opened {
    pub(crate) fn new() -> TestResult<Self> {
        static DEVICE: Mutex<()> = Mutex::new(());
        let one_at_a_time = DEVICE.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: tests order the streams that they use.
        let time = unsafe { CudaTime::new(0) }?;
        time.wake()?;
        Ok(Self {
            stream: time.stream().expect("opened on a device").clone(),
            time,
            _one_at_a_time: one_at_a_time,
        })
    }
}

/// Whether the recording driver stands in for the device: its time is virtual, and the host's clock does not show it.
pub(crate) fn is_virtual() -> bool {
    std::env::var_os("RECORDING_DRIVER_DEVICES").is_some()
}

/// Launches of a kernel that spins for so many nanoseconds, by the device's clock.
pub(crate) fn spins(
    stream: &Arc<CudaStream>,
    ns: u64,
) -> Result<impl Fn() -> Result<(), CudaError> + use<>, DriverError> {
    let ptx = Ptx::from_src(include_str!("../../src/gate.ptx"));
    let module = stream.context().load_module(ptx)?;
    let spin = Launch::new(
        module.load_function("crossover_spin")?,
        (1, 1, 1),
        (1, 1, 1),
    )
    .arg(ns);
    let stream = stream.clone();
    // SAFETY: the kernel takes one 64-bit number.
    Ok(move || unsafe { spin.launch(&stream) })
}

/// Launches of a kernel that does nothing, on the timed stream.
pub(crate) fn nothing(time: &CudaTime) -> impl Fn() -> Result<(), CudaError> + use<> {
    let empty = time.empty_kernel().expect("opened on a device");
    let stream = time.stream().expect("opened on a device").clone();
    // SAFETY: the kernel takes no arguments.
    move || unsafe { empty.launch(&stream) }
}

/// The median of an odd number of samples.
pub(crate) fn middle(
    samples: usize,
    mut sample: impl FnMut() -> Result<f64, TimingError>,
) -> Result<f64, TimingError> {
    let samples = (0..samples).map(|_| sample());
    let mut samples = samples.collect::<Result<Vec<f64>, TimingError>>()?;
    samples.sort_by(f64::total_cmp);
    Ok(samples[samples.len() / 2])
}

/// A kernel of `source`, compiled for the device of `time`.
pub(crate) fn function(time: &CudaTime, source: &str, name: &str) -> TestResult<CudaFunction> {
    let context = time.stream().expect("opened on a device").context();
    Ok(compile(context, source)?.load_function(name)?)
}
