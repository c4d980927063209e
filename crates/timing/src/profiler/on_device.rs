//! The recording of a benchmark on a real device.

use std::collections::HashMap;
use std::sync::Arc;

use super::buffers;
use super::library::{Cupti, Subscription};
use super::ranges;
use super::recorder::{Bench, Stop};
use super::records::{KINDS, Record, read};
use crate::cuda_error::CudaError;
use crate::device::Device;
use crate::error::TimingError;
use crate::prepared_launch::bind;
use crossover_profile::name;
use crossover_profile::recording::{CallRecord, RangeRecord, Raw};

pub(super) struct OnDevice<'a> {
    cupti: &'static Cupti,
    device: &'a Device,
    routine: &'a mut dyn FnMut() -> Result<(), TimingError>,
    /// Exists only while recording, because it makes every call longer.
    subscription: Option<Subscription>,
    /// Kinds of activity that are switched on.
    enabled: Vec<u32>,
    /// Names of functions, by their number and whether they belong to the runtime or the driver.
    functions: HashMap<(bool, u32), Arc<str>>,
}

impl<'a> OnDevice<'a> {
    pub(super) fn new(
        cupti: &'static Cupti,
        device: &'a Device,
        routine: &'a mut dyn FnMut() -> Result<(), TimingError>,
    ) -> Result<Self, TimingError> {
        bind(&device.context)?;
        Ok(Self {
            cupti,
            device,
            routine,
            subscription: None,
            enabled: Vec::new(),
            functions: HashMap::new(),
        })
    }

    fn disable(&mut self) {
        for kind in self.enabled.drain(..) {
            // A kind that stays on costs time and changes no result.
            let _ = self.cupti.disable(kind);
        }
        self.subscription = None;
    }

    /// Adds a record to `raw`, or to `outer` where it is a call of the CUDA runtime.
    fn take_in(&mut self, record: Record, raw: &mut Raw, outer: &mut Vec<CallRecord>) {
        match record {
            // CUPTI writes zeros where it could not take a time.
            Record::Work(work) if work.start == 0 || work.end < work.start => raw.untimed += 1,
            Record::Work(work) => raw.work.push(work),
            Record::Call(call) => {
                let function = (call.is_of_the_runtime(), call.function);
                let cupti = self.cupti;
                let name = self.functions.entry(function).or_insert_with(|| {
                    match cupti.function(function.0, function.1) {
                        Some(symbol) => name::call(&symbol).into(),
                        None => format!("function {} without a name", call.function).into(),
                    }
                });
                let calls = match call.is_of_the_runtime() {
                    true => outer,
                    false => &mut raw.calls,
                };
                calls.push(CallRecord {
                    name: name.clone(),
                    start: call.start,
                    end: call.end.max(call.start),
                    thread: call.thread,
                    correlation: call.correlation,
                });
            }
            Record::InRange { correlation, range } => raw.in_range.push((correlation, range)),
            Record::Other => {}
        }
    }
}

impl Bench for OnDevice<'_> {
    fn run(&mut self) -> Result<(), Stop> {
        (self.routine)().map_err(Stop::Benchmark)
    }

    fn synchronize(&mut self) -> Result<(), Stop> {
        // Waits for all streams, since a benchmark may have its own.
        let done = self.device.context.synchronize();
        done.map_err(|e| Stop::Benchmark(CudaError::new("cuCtxSynchronize", e).into()))
    }

    fn evict(&mut self) -> Result<(), Stop> {
        (self.device.evict()).map_err(|e| Stop::Benchmark(e.into()))
    }

    fn now(&mut self) -> Result<u64, Stop> {
        Ok(self.cupti.timestamp()?)
    }

    fn start(&mut self) -> Result<(), Stop> {
        self.subscription = Some(self.cupti.subscribe()?);
        // Drops the records of an earlier recording.
        drop(buffers::take());
        // SAFETY: the functions hand out and take back buffers as CUPTI asks, and live as long as
        // the process; a panic in one would end the process.
        unsafe { self.cupti.register(buffers::request, buffers::complete) }?;
        for kind in KINDS {
            self.cupti.enable(kind)?;
            self.enabled.push(kind);
        }
        ranges::begin();
        Ok(())
    }

    fn collect(&mut self) -> Result<Raw, Stop> {
        self.cupti.flush()?;
        let mut raw = Raw {
            dropped: self.cupti.dropped()?,
            ..Raw::default()
        };
        let mut outer = Vec::new();
        for mut buffer in buffers::take() {
            let bytes = buffer.words.as_mut_ptr().cast::<u8>();
            let mut record = std::ptr::null_mut();
            // SAFETY: the buffer came back from CUPTI with so many valid bytes, and `record` is
            // null or the one before.
            while let Some(next) = unsafe { self.cupti.next_record(bytes, buffer.valid, record) }? {
                // SAFETY: a record of the loaded library, whose version was accepted. Kernels'
                // modules are alive: their benchmark is.
                let read = unsafe { read(next) };
                self.take_in(read, &mut raw, &mut outer);
                record = next;
            }
        }
        raw.add_outer(outer);
        Ok(raw)
    }

    fn stop(&mut self) -> Vec<RangeRecord> {
        self.disable();
        ranges::end()
    }
}

/// Also where the benchmark panics.
impl Drop for OnDevice<'_> {
    fn drop(&mut self) {
        if !self.enabled.is_empty() {
            self.disable();
            ranges::end();
        }
    }
}

/// The GPU's name, for readers of the profile.
pub(super) fn gpu_name(device: &Device) -> String {
    device.context.name().unwrap_or_else(|_| "GPU".to_owned())
}
