//! Known answers on a real device: a kernel that spins for an exact time, on each clock that
//! claims device time.

mod device;

use crossover::device::kernel::{Launch, Source};
use crossover::timing::{Clock, CudaTime, GateMode, LAUNCHES_PER_GATE, TimingError};
use cudarc::driver::{CudaFunction, CudaSlice, DevicePtr};
use device::one_at_a_time;

type TestResult = Result<(), Box<dyn std::error::Error>>;

const KERNELS: Source = Source {
    name: "known_answers.cu",
    text: r#"
extern "C" __global__ void spin(unsigned long long nanoseconds) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (now - begin < nanoseconds);
}

// Reads `n` floats and keeps nothing, though the compiler cannot know.
extern "C" __global__ void read(const float *x, unsigned long long n, float *sink) {
    float sum = 0.0f;
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        sum += x[i];
    if (sum == 12345.678f) *sink = sum;
}
"#,
    options: &[],
    oldest: (7, 5),
};

/// Under a profiler or sanitizer there is no gate to test, and CROSSOVER_GATE=off says so; on
/// a plain machine there must be one.
fn gate_is_off(time: &CudaTime) -> bool {
    let Some(reason) = time.gate_off() else {
        return false;
    };
    assert!(
        std::env::var("CROSSOVER_GATE").is_ok_and(|v| v == "off"),
        "the gate is off on a plain machine: {reason}"
    );
    println!("(the gate is off: {reason})");
    true
}

fn function(time: &CudaTime, name: &str) -> Result<CudaFunction, Box<dyn std::error::Error>> {
    let context = time.context().expect("opened on a device");
    let arch = context.compute_capability()?;
    let module = KERNELS
        .compile((arch.0 as u32, arch.1 as u32))?
        .load(context)?;
    Ok(module.function(name)?)
}

/// Nanoseconds of one kernel that spins for `ns`, the median of some samples.
fn measured(time: &CudaTime, clock: Clock, ns: u64) -> Result<f64, Box<dyn std::error::Error>> {
    let spin = Launch::new(function(time, "spin")?, (1, 1, 1), (1, 1, 1)).arg(ns);
    let stream = time.stream().expect("opened on a device");
    let iterations = (20_000_000 / ns).clamp(3, 400);
    let mut samples = Vec::new();
    for i in 0..9 {
        // SAFETY: the kernel takes one 64-bit number.
        let sample = time.measure(clock, iterations, 1, || unsafe { spin.launch(stream) })?;
        if i > 1 {
            samples.push(sample / iterations as f64);
        }
    }
    samples.sort_by(f64::total_cmp);
    Ok(samples[samples.len() / 2])
}

fn known_answers(clock: Clock) -> TestResult {
    let _one = one_at_a_time();
    let time = CudaTime::new(0)?;
    time.wake()?;
    let times = [5_000u64, 20_000, 100_000, 1_000_000, 10_000_000];
    let mut constants = Vec::new();
    for ns in times {
        let answer = measured(&time, clock, ns)?;
        println!(
            "{clock}: spin {ns} ns measured {answer:.1} ns, {:.1} over",
            answer - ns as f64
        );
        constants.push(answer - ns as f64);
    }
    // Each kernel in a stream carries a constant (about 1.6 µs on an H200, an event pair
    // more on the cold clock), so it is differences that are known exactly.
    for (i, pair) in times.windows(2).enumerate() {
        let known = (pair[1] - pair[0]) as f64;
        let difference = known + constants[i + 1] - constants[i];
        let tolerance = (0.01 * known).max(500.0);
        assert!(
            (difference - known).abs() <= tolerance,
            "{clock}: {} ns apart, measured {difference:.1}",
            known
        );
    }
    for (ns, constant) in times.into_iter().zip(&constants) {
        assert!(
            *constant >= 0.0,
            "{clock}: measured less than the kernel spins"
        );
        assert!(
            *constant < 5_000.0,
            "{clock}: more than launch and event: {constants:?}"
        );
        // `%globaltimer`, which the kernel spins by, and the clock of the events run apart by
        // up to 100 ppm on an H200: 1 µs in 10 ms.
        let moved = (constant - constants[0]).abs();
        assert!(
            moved <= 700.0 + 1.5e-4 * ns as f64,
            "{clock}: the constant moves: {constants:?}"
        );
    }
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn gated_known_answers() -> TestResult {
    known_answers(Clock::EventsGated)
}

#[test]
#[ignore = "needs a CUDA device"]
fn events_known_answers() -> TestResult {
    known_answers(Clock::Events)
}

#[test]
#[ignore = "needs a CUDA device"]
fn cold_known_answers() -> TestResult {
    // The flush takes tens of microseconds: were it in the window, the constant would show it.
    known_answers(Clock::EventsCold)
}

#[test]
#[ignore = "needs a CUDA device"]
fn wall_covers_the_device_and_submit_does_not() -> TestResult {
    let _one = one_at_a_time();
    let time = CudaTime::new(0)?;
    let ns = 2_000_000;
    let wall = measured(&time, Clock::Wall, ns)?;
    let submit = measured(&time, Clock::Submit, ns)?;
    assert!(
        wall >= ns as f64,
        "wall clock {wall} ns for a kernel of {ns} ns"
    );
    assert!(submit < 0.1 * ns as f64, "submitting took {submit} ns");
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn cold_finds_the_cache_empty_and_gated_finds_it_full() -> TestResult {
    let _one = one_at_a_time();
    let time = CudaTime::new(0)?;
    time.wake()?;
    let stream = time.stream().expect("opened on a device").clone();
    // A tenth of an H200's L2, and less than half of a small card's.
    let n = 1 << 20;
    let x: CudaSlice<f32> = stream.alloc_zeros(n)?;
    let sink: CudaSlice<f32> = stream.alloc_zeros(1)?;
    let (address, _x) = x.device_ptr(&stream);
    let (sink, _sink) = sink.device_ptr(&stream);
    let read = Launch::new(function(&time, "read")?, (256, 1, 1), (256, 1, 1))
        .arg(address)
        .arg(n as u64)
        .arg(sink);
    let sample = |clock| -> Result<f64, TimingError> {
        let mut samples = Vec::new();
        for _ in 0..15 {
            // SAFETY: the buffers hold what the kernel reads and outlive it.
            samples.push(time.measure(clock, 20, 1, || unsafe { read.launch(&stream) })? / 20.0);
        }
        samples.sort_by(f64::total_cmp);
        Ok(samples[7])
    };
    let (warm, cold) = (sample(Clock::EventsGated)?, sample(Clock::EventsCold)?);
    // The cold clock's own constant, without any data.
    let empty = time.empty_kernel().expect("opened on a device");
    // SAFETY: no arguments.
    let constant = time.measure(Clock::EventsCold, 50, 1, || unsafe {
        empty.launch(&stream)
    })? / 50.0;
    println!("reading 4 MiB: warm {warm:.0} ns, cold {cold:.0} ns, empty cold {constant:.0} ns");
    assert!(
        cold - constant > 1.1 * (warm - 1_300.0).max(0.0),
        "the flush evicted nothing"
    );
    assert!(
        constant < 5_000.0,
        "the flush is in the window: an empty kernel took {constant} ns"
    );
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn work_on_another_stream_is_not_in_the_window() -> TestResult {
    let _one = one_at_a_time();
    let time = CudaTime::new(0)?;
    time.wake()?;
    let context = time.context().expect("opened on a device").clone();
    let other = context.new_stream()?;
    let spin = function(&time, "spin")?;
    let alone = measured(&time, Clock::EventsGated, 20_000)?;
    let long = Launch::new(spin, (1, 1, 1), (1, 1, 1)).arg(300_000_000u64);
    // SAFETY: the kernel takes one 64-bit number.
    unsafe { long.launch(&other) }?;
    let beside = measured(&time, Clock::EventsGated, 20_000)?;
    other.synchronize()?;
    assert!(
        (alone - beside).abs() < 1_000.0,
        "alone {alone} ns, beside another stream {beside} ns"
    );
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn gated_empty_kernel_is_steady() -> TestResult {
    let _one = one_at_a_time();
    let time = CudaTime::new(0)?;
    time.wake()?;
    if gate_is_off(&time) {
        return Ok(());
    }
    let stream = time.stream().expect("opened on a device");
    let empty = time.empty_kernel().expect("opened on a device");
    let one_argument = Launch::new(function(&time, "spin")?, (1, 1, 1), (1, 1, 1)).arg(0u64);
    for (name, kernel, clock) in [
        ("empty kernel", &empty, Clock::EventsGated),
        ("empty kernel", &empty, Clock::Events),
        (
            "kernel with an argument that ends at once",
            &one_argument,
            Clock::EventsGated,
        ),
    ] {
        let mut samples = Vec::new();
        for _ in 0..52 {
            // SAFETY: no arguments, or the one that the kernel declares.
            let ns = time.measure(clock, 9_000, 1, || unsafe { kernel.launch(stream) })?;
            samples.push(ns / 9_000.0);
        }
        let samples = &samples[2..];
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let variance =
            samples.iter().map(|s| (s - mean).powi(2)).sum::<f64>() / (samples.len() - 1) as f64;
        println!(
            "{name}, {clock}: {mean:.2} ns, standard deviation {:.4} % over {} samples",
            100.0 * variance.sqrt() / mean,
            samples.len()
        );
    }
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn a_routine_that_synchronises_behind_the_gate_is_an_error_and_the_clock_survives() -> TestResult {
    let _one = one_at_a_time();
    let time = CudaTime::new(0)?;
    if gate_is_off(&time) {
        return Ok(());
    }
    let stream = time.stream().expect("opened on a device");
    let empty = time.empty_kernel().expect("opened on a device");
    let error = time
        .measure(Clock::EventsGated, 2, 1, || {
            // SAFETY: no arguments.
            unsafe { empty.launch(stream) }.map_err(|e| e.to_string())?;
            stream.synchronize().map_err(|e| e.to_string())
        })
        .unwrap_err();
    assert!(matches!(error, TimingError::GateTimeout { .. }), "{error}");
    assert!(error.to_string().contains("wall clock"), "{error}");
    // SAFETY: no arguments.
    let ns = time.measure(Clock::EventsGated, 100, 1, || unsafe {
        empty.launch(stream)
    })?;
    assert!(ns > 0.0);
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn more_launches_than_fit_behind_a_gate_are_refused() -> TestResult {
    let _one = one_at_a_time();
    let time = CudaTime::new(0)?;
    if gate_is_off(&time) {
        return Ok(());
    }
    let error = time
        .measure(Clock::EventsGated, 1, LAUNCHES_PER_GATE + 1, || {
            Ok::<(), String>(())
        })
        .unwrap_err();
    assert!(
        matches!(error, TimingError::TooManyLaunches { .. }),
        "{error}"
    );
    Ok(())
}

#[test]
#[ignore = "needs a CUDA device"]
fn without_its_gate_the_clock_says_events() -> TestResult {
    let _one = one_at_a_time();
    let opened = CudaTime::new(0)?;
    let stream = opened.stream().expect("opened on a device");
    let time = CudaTime::on_stream(stream, GateMode::Off)?;
    assert_eq!(time.effective(Clock::EventsGated), Clock::Events);
    if opened.gate_off().is_none() {
        assert_eq!(opened.effective(Clock::EventsGated), Clock::EventsGated);
    }
    let empty = time.empty_kernel().expect("opened on a device");
    // SAFETY: no arguments.
    let ns = time.measure(Clock::EventsGated, 100, 1, || unsafe {
        empty.launch(stream)
    })?;
    assert!(ns > 0.0);
    Ok(())
}
