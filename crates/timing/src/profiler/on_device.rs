//! The recording of a benchmark on a real device.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::absence::NoProfile;
use super::buffers;
use super::library::{Cupti, Subscription};
use super::ranges;
use super::recorder::{Bench, MARKS, Stop};
use super::records::{DRIVER, Record, read};
use crate::cuda_time::CudaTime;
use crate::device::{ClockedDevice, Routine};
use crate::error::TimingError;
use crate::prepared_launch::{bind, synchronize_context};
use crate::sequence;
use crossover_profile::name;
use crossover_profile::recording::{CallRecord, RangeRecord, Raw};
use crossover_words::Clock;

/// Whether a module was unloaded since the recording began. The names of kernels in CUPTI's records lie in
/// their modules. No module is unloaded while this is locked.
static UNLOADED: Mutex<bool> = Mutex::new(false);

fn unloaded() -> MutexGuard<'static, bool> {
    UNLOADED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// CUPTI calls this on the thread that unloads a module, before it goes.
unsafe extern "C" fn unloading(_: *mut c_void, _domain: u32, _event: u32, _: *const c_void) {
    *unloaded() = true;
}

pub(super) struct OnDevice<'a> {
    pub(super) cupti: &'static Cupti,
    time: &'a CudaTime,
    device: &'a ClockedDevice,
    /// The kinds of activity to record.
    kinds: &'static [u32],
    /// The clock that times the routine.
    clock: Clock,
    routine: Routine<'a>,
    /// Exists only while recording, because it makes every call longer.
    subscription: Option<Subscription>,
    /// Kinds of activity that are switched on.
    enabled: Vec<u32>,
    /// Names of functions, by their number and whether they belong to the runtime or the driver.
    functions: HashMap<(bool, u32), Arc<str>>,
}

impl<'a> OnDevice<'a> {
    pub(super) fn new(
        time: &'a CudaTime,
        kinds: &'static [u32],
        clock: Clock,
        routine: Routine<'a>,
    ) -> Result<Self, NoProfile> {
        Ok(Self {
            device: time.device().ok_or(NoProfile::NoDevice)?,
            cupti: Cupti::get()?,
            time,
            kinds,
            clock,
            routine,
            subscription: None,
            enabled: Vec::new(),
            functions: HashMap::new(),
        })
    }

    /// The GPU's name, for readers of the profile.
    pub(super) fn gpu_name(&self) -> String {
        let name = self.device.context.name();
        name.unwrap_or_else(|_| "GPU".to_owned())
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
                let calls = if call.is_of_the_runtime() {
                    outer
                } else {
                    &mut raw.calls
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

    fn run_marked(&mut self) -> Result<bool, Stop> {
        let (cupti, device, routine) = (self.cupti, self.device, &mut self.routine);
        let empty = device.gate.borrow().empty();
        let mark = || {
            // The routine may have left another context current.
            bind(&device.context)?;
            cupti.push(MARKS);
            // SAFETY: the kernel takes no arguments.
            let launched = unsafe { empty.launch(&device.stream) };
            cupti.pop();
            launched
        };
        let has_gate = device.gate.borrow().off().is_none();
        let is_held = has_gate && matches!(self.clock, Clock::EventsGated | Clock::EventsCold);
        let mut marked = || {
            mark()?;
            if !is_held {
                // The routine's first work on another stream could begin before the mark.
                synchronize_context(&device.context)?;
            }
            routine()?;
            Ok(mark()?)
        };
        let window = device.window(&mut marked).map_err(TimingError::from);
        let ran = window.and_then(|mut window| {
            window.is_trial = true;
            match is_held {
                // Work that does not wait for the timed stream begins while the gate holds the window.
                true => sequence::gated(&mut window, 1, 1),
                false => sequence::events(&mut window, 1),
            }
        });
        match ran {
            Ok(_) => Ok(true),
            // The routine waits for its work, or for room in the queue.
            Err(TimingError::GateTimeout) => Ok(false),
            Err(error) => Err(Stop::Benchmark(error)),
        }
    }

    fn synchronize(&mut self) -> Result<(), Stop> {
        self.time.wait_for_work().map_err(Stop::Benchmark)
    }

    fn evict(&mut self) -> Result<(), Stop> {
        (self.device.evict()).map_err(|e| Stop::Benchmark(e.into()))
    }

    fn now(&mut self) -> Result<u64, Stop> {
        Ok(self.cupti.timestamp()?)
    }

    fn start(&mut self) -> Result<(), Stop> {
        // SAFETY: `unloading` reads no argument and does not panic.
        self.subscription = Some(unsafe { self.cupti.subscribe(unloading) }?);
        // No other thread records now, and the records of earlier recordings are dropped below.
        *unloaded() = false;
        // SAFETY: `buffers` hands out and takes back buffers as CUPTI asks; a panic there would end the process.
        unsafe { self.cupti.register(buffers::request, buffers::complete) }?;
        // Drops the records of an earlier recording that failed, since modules of their kernels may be gone. An
        // error is left to `collect`, which flushes too.
        let _ = self.cupti.flush();
        drop(buffers::take());
        for &kind in self.kinds {
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
        let mut found = Vec::new();
        let mut buffers = buffers::take();
        for buffer in &mut buffers {
            let bytes = buffer.words.as_mut_ptr().cast::<u8>();
            let mut record = std::ptr::null_mut();
            // SAFETY: CUPTI handed `buffer` back with so many valid bytes, and `record` is null or the one
            // before.
            while let Some(next) = unsafe { self.cupti.next_record(bytes, buffer.valid, record) }? {
                found.push(next);
                record = next;
            }
        }
        let unloaded = unloaded();
        // Demangling takes longest, and only recordings with calls use the names.
        let has_names = self.kinds.contains(&DRIVER) && !*unloaded;
        let read = |&record: &*mut u8| {
            // SAFETY: a record of a version that `Cupti::of` accepted, in `buffers`. If no module was
            // unloaded, all names are there, and the lock keeps them.
            unsafe { read(record, has_names) }
        };
        let records: Vec<Record> = found.iter().map(read).collect();
        // CUPTI, which names the functions below, may wait for a thread that waits for the lock.
        drop(unloaded);
        let mut outer = Vec::new();
        for record in records {
            self.take_in(record, &mut raw, &mut outer);
        }
        raw.add_outer(outer);
        Ok(raw)
    }

    fn stop(&mut self) -> Vec<RangeRecord> {
        // Another recording keeps its ranges if this one was refused, and if it begins once this one is detached.
        let ranges = self.subscription.as_ref().map(|_| ranges::end());
        self.disable();
        ranges.unwrap_or_default()
    }
}

/// Also where the benchmark panics.
impl Drop for OnDevice<'_> {
    fn drop(&mut self) {
        self.stop();
    }
}
