//! A library for a program in C that has a stream and a function which launches work on it:
//! `double gated_ns(cudaStream_t stream, int (*launch)(cudaStream_t))`.

use std::ffi::{c_int, c_void};

use crossover_timing::{BoxError, Clock, CudaTime, GateMode};

const ITERATIONS: u64 = 1_000;

/// The time of a launch on device 0, in nanoseconds; NaN, and a line on stderr, if it cannot be measured.
///
/// # Safety
/// `stream` must be a stream of device 0 that stays alive during the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gated_ns(
    stream: *mut c_void,
    launch: extern "C" fn(*mut c_void) -> c_int,
) -> f64 {
    let measure = || -> Result<f64, BoxError> {
        // SAFETY: the caller keeps the stream alive, and the clock ends before this returns.
        let time = unsafe { CudaTime::on_raw_stream(0, stream, GateMode::Auto) }?;
        let ns = time.measure(Clock::EventsGated, ITERATIONS, || match launch(stream) {
            0 => Ok(()),
            status => Err(format!("the launch returned {status}")),
        })?;
        Ok(ns / ITERATIONS as f64)
    };
    measure().unwrap_or_else(|error| {
        eprintln!("not measured: {error}");
        f64::NAN
    })
}
