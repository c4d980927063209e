//! Checks, outside the timed window, for errors and cheats that a clock does not notice.

use std::marker::PhantomData;
use std::time::Instant;

use cudarc::driver::{CudaSlice, DevicePtr, result, sys::CUdeviceptr};

use crate::cuda_error::{Called, CudaError};
use crate::cuda_time::CudaTime;
use crate::device::{ClockedDevice, Iteration, Sample};
use crate::error::{BoxError, TimingError};
use crate::prepared_launch::{LAUNCHES_PER_GATE, bind};
use crossover_words::units::time;
use crossover_words::{Clock, fnv1a};

/// At most this many bytes of an array are read, in pieces from the first to the last byte.
const READ: usize = 2 << 20;
/// Bytes of a piece. Up to this size the start of a copy takes most of its time.
const PIECE: usize = 16 << 10;
/// Iterations that are compared with the first one on new inputs.
const REPEATS: usize = 5;
/// The first iteration may take this many times as long: its data may be in memory instead of the
/// cache.
const COLD_FACTOR: f64 = 3.0;
/// A copy of the same number of bytes may take this many times as long as code that only reads.
const COPY_FACTOR: f64 = 2.0;
/// Extra time, ns, for a host that is taken off its core for a moment.
const HICCUP: f64 = 100_000.0;
/// About the length of the window whose time is compared with the benchmark's.
const WINDOW: f64 = 5e6;

/// Device memory that is borrowed: `(&slice).into()` of a [`CudaSlice`]. cudarc does not order its readers
/// behind the work of its stream: [`CudaTime::guard`] waits for all streams after each
/// [`renew`](Guarded::renew), before it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory<'a> {
    address: CUdeviceptr,
    bytes: usize,
    owner: PhantomData<&'a ()>,
}

impl DeviceMemory<'_> {
    /// Memory that cudarc did not allocate.
    ///
    /// # Safety
    /// The `bytes` bytes from `address` on must be device memory of one allocation, which is not freed
    /// as long as the returned value or a copy of it is used.
    pub unsafe fn from_raw(address: CUdeviceptr, bytes: usize) -> Self {
        Self {
            address,
            bytes,
            owner: PhantomData,
        }
    }

    /// The address of its first byte.
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// Its length.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl<'a, T> From<&'a CudaSlice<T>> for DeviceMemory<'a> {
    fn from(slice: &'a CudaSlice<T>) -> Self {
        let (address, _read) = slice.device_ptr(slice.stream());
        // SAFETY: the slice owns the memory and is borrowed for `'a`.
        unsafe { Self::from_raw(address, slice.num_bytes()) }
    }
}

/// The code of a benchmark, as [`CudaTime::guard`] runs it.
pub trait Guarded {
    /// Takes inputs with other values, and inputs and output at other addresses: allocate them before
    /// the old ones are freed.
    ///
    /// # Errors
    /// The driver's.
    fn renew(&mut self) -> Result<(), BoxError>;

    /// Restores the state that an iteration changes, and overwrites the output with a value that it
    /// cannot have, such as NaN. Enqueue this on [`CudaTime::stream`].
    ///
    /// # Errors
    /// The driver's.
    fn poison(&mut self) -> Result<(), BoxError>;

    /// One iteration, as it is timed.
    ///
    /// # Errors
    /// The driver's.
    fn run(&mut self) -> Result<(), BoxError>;

    /// Compares the output with a reference for these inputs.
    ///
    /// # Errors
    /// A sentence that names the difference.
    fn check(&mut self) -> Result<(), BoxError>;

    /// The memory that an iteration reads and does not change.
    fn inputs(&self) -> Vec<DeviceMemory<'_>>;

    /// The memory that an iteration writes: the same from one [`renew`](Self::renew) to the next. It is read
    /// without a wait for the streams that an iteration would allocate other memory on.
    fn output(&self) -> Vec<DeviceMemory<'_>>;
}

/// The time that a benchmark reports, with its clock and amount of work.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Claim {
    /// The clock of its time.
    pub clock: Clock,
    /// Launches of an iteration.
    pub launches: u32,
    /// Time of an iteration, ns.
    pub ns: f64,
    /// Lower bound on the bytes that an iteration reads and writes in device memory, if known.
    pub bytes: Option<f64>,
}

impl Claim {
    /// A time of which no bytes are known.
    pub fn new(clock: Clock, launches: u32, ns: f64) -> Self {
        Self {
            clock,
            launches,
            ns,
            bytes: None,
        }
    }
}

/// A reason not to believe a time. Printed, it names the observation and the remedy.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Doubt {
    /// The output changed while the timed stream was idle.
    #[error(
        "the output still changed after the timed window: work is on another stream or was put off to a later \
         call; have the timed stream do it, or wait for it"
    )]
    Late,
    /// An input changed.
    #[error(
        "input {0} changed: later iterations compute something else; restore it, or write elsewhere"
    )]
    Input(usize),
    /// The output is wrong: on new inputs, or on their second use.
    #[error(
        "{}",
        if *first {
            format!("on new inputs the output is wrong: {why}")
        } else {
            format!(
                "a second iteration leaves a wrong output ({why}): it depends on the output of the first"
            )
        }
    )]
    Wrong {
        /// On new inputs.
        first: bool,
        /// The difference.
        why: String,
    },
    /// Other iterations are much faster than the one on new inputs, or into a poisoned output.
    #[error(
        "an iteration on new inputs or into a poisoned output takes {}, others {}: the benchmark times a \
         stored result; compute it in each iteration",
        time(*first_ns), time(*again_ns)
    )]
    Replayed {
        /// The time of that iteration, ns.
        first_ns: f64,
        /// The time of the other iterations, ns.
        again_ns: f64,
    },
    /// The benchmark's time is less than the time of its iterations.
    #[error(
        "the benchmark reports {} and an iteration takes {}: its clock was read before the work was done; wait \
         for the device first",
        time(*reported_ns), time(*ns)
    )]
    TooEarly {
        /// The benchmark's time, ns.
        reported_ns: f64,
        /// The time of an iteration among many, ns.
        ns: f64,
    },
    /// The benchmark's time is less than the time of a copy of its bytes.
    #[error(
        "the benchmark reports {} and a copy of as many bytes takes {}: it does less work than it declares, or moves \
         fewer bytes",
        time(*reported_ns), time(*copy_ns)
    )]
    AboveMemory {
        /// The benchmark's time, ns.
        reported_ns: f64,
        /// The time of a copy of as many bytes, ns.
        copy_ns: f64,
    },
    /// Equal iterations take very different times.
    #[error(
        "equal iterations take {} to {}: other work shares the device; end it (see `nvidia-smi`) and measure \
         again",
        time(*least_ns), time(*most_ns)
    )]
    Disturbed {
        /// The fastest, ns.
        least_ns: f64,
        /// The slowest, ns.
        most_ns: f64,
    },
}

impl Doubt {
    /// Whether it is based on values. Times may change with the load of the machine.
    pub fn is_proof(&self) -> bool {
        matches!(self, Doubt::Late | Doubt::Input(_) | Doubt::Wrong { .. })
    }
}

impl CudaTime {
    /// Looks for reasons not to believe the time of a benchmark; without any the list is empty. It runs
    /// the code on new inputs and on a poisoned output, and compares outputs, inputs and times. Nothing
    /// of this is within a timed window: call it before or after the benchmark.
    ///
    /// If memory is larger than 2 MiB, 2 MiB of it are read, in pieces from the first to the last byte.
    ///
    /// # Errors
    /// As [`measure`](Self::measure).
    pub fn guard(&self, claim: &Claim, code: &mut impl Guarded) -> Result<Vec<Doubt>, TimingError> {
        let device = self.guarded_device(claim.clock)?;
        // Loads code lazily loaded by the routine, because the first run on new inputs is timed.
        code.run()?;
        self.settle()?;
        code.renew()?;
        // Another stream may allocate and write the new memory, and the timed one may use it only afterwards.
        self.settle()?;
        let before = self.checksums(&code.inputs())?;
        let mut doubts = self.doubts_of_runs(claim.clock, code)?;
        doubts.extend(self.doubts_of_time(claim, code)?);
        let after = self.checksums(&code.inputs())?;
        let changed = (before.iter().zip(&after).enumerate()).filter(|(_, (old, new))| old != new);
        doubts.extend(changed.map(|(at, _)| Doubt::Input(at)));
        device.last_use.set(Some(Instant::now()));
        Ok(doubts)
    }

    /// Runs on new inputs into a poisoned output: whether each is right, complete when its time ends, and as long as
    /// the others.
    fn doubts_of_runs(
        &self,
        clock: Clock,
        code: &mut impl Guarded,
    ) -> Result<Vec<Doubt>, TimingError> {
        let mut doubts = Vec::new();
        code.poison()?;
        self.settle()?;
        // Without a gate, behind which lazily loaded code would wait.
        let clock = match clock {
            Clock::Wall | Clock::Submit | Clock::Activity => Clock::Wall,
            _ => Clock::Events,
        };
        let first_ns = self.once(clock, || code.run())?;
        let there = self.checksums(&code.output())?;
        self.settle()?;
        let mut is_wrong = |code: &mut dyn FnMut() -> Result<(), BoxError>, first| {
            let wrong = code().err().map(|why| Doubt::Wrong {
                first,
                why: why.to_string(),
            });
            doubts.extend(wrong.clone());
            wrong.is_some()
        };
        is_wrong(&mut || code.check(), true);
        let late = self.checksums(&code.output())? != there;
        let mut again = Vec::new();
        let mut is_known = false;
        for repeat in 1..=REPEATS {
            code.poison()?;
            self.settle()?;
            again.push(self.once(clock, || code.run())?);
            self.settle()?;
            // Rounding may differ.
            let differs = || Ok::<_, TimingError>(self.checksums(&code.output())? != there);
            if !is_known && (repeat == REPEATS || differs()?) {
                is_known = is_wrong(&mut || code.check(), false);
            }
        }
        if late {
            // The other doubts follow from this one.
            doubts = vec![Doubt::Late];
        }
        again.sort_by(f64::total_cmp);
        let (least_ns, again_ns, most_ns) = (again[0], again[REPEATS / 2], again[REPEATS - 1]);
        if first_ns > COLD_FACTOR * again_ns + HICCUP {
            doubts.push(Doubt::Replayed { first_ns, again_ns });
        } else if most_ns > COLD_FACTOR * least_ns + HICCUP {
            doubts.push(Doubt::Disturbed { least_ns, most_ns });
        }
        Ok(doubts)
    }

    /// Compares the claimed time with a plain measurement, and with a copy of as many bytes.
    fn doubts_of_time(
        &self,
        claim: &Claim,
        code: &mut impl Guarded,
    ) -> Result<Vec<Doubt>, TimingError> {
        let mut doubts = Vec::new();
        let most = u64::from(LAUNCHES_PER_GATE / claim.launches.max(1)).max(1);
        let many = ((WINDOW / claim.ns) as u64).clamp(1, most);
        let run = &mut || Ok(code.run()?);
        let sample = Sample {
            clock: claim.clock,
            iterations: many,
            iteration: match claim.clock {
                Clock::Wall => Iteration::Awaited,
                _ => Iteration::Launches(claim.launches),
            },
        };
        let ns = self.measure_plainly(sample, run)? / many as f64;
        let reported_ns = claim.ns;
        if ns > 2.0 * reported_ns + HICCUP / many as f64 {
            doubts.push(Doubt::TooEarly { reported_ns, ns });
        }
        if let Some(copy_ns) = self.copied(claim)?
            && COPY_FACTOR * reported_ns < copy_ns
        {
            doubts.push(Doubt::AboveMemory {
                reported_ns,
                copy_ns,
            });
        }
        Ok(doubts)
    }

    /// The time of one iteration, ns, which is not run once before. On `submit` and `activity` it is that of `wall`.
    #[doc(hidden)]
    pub fn once<E: Into<BoxError>>(
        &self,
        clock: Clock,
        mut routine: impl FnMut() -> Result<(), E>,
    ) -> Result<f64, TimingError> {
        let device = self.guarded_device(clock)?;
        let mut routine = || routine().map_err(|e| TimingError::from(e.into()));
        let sample = Sample {
            clock: match clock {
                Clock::Submit | Clock::Activity => Clock::Wall,
                other => other,
            },
            iterations: 1,
            iteration: Iteration::Launches(1),
        };
        self.sample(device, &mut device.window(&mut routine)?, sample)
    }

    /// A checksum of each, as the timed stream sees it after the work that is on it. It does not wait for
    /// other streams: memory that one of them allocates must be there, as after [`settle`](Self::settle).
    ///
    /// # Errors
    /// The driver's.
    #[doc(hidden)]
    pub fn checksums(&self, memory: &[DeviceMemory<'_>]) -> Result<Vec<u64>, TimingError> {
        let device = self.guarded_device(Clock::Events)?;
        bind(&device.context)?;
        (memory.iter())
            .map(|memory| Ok(checksum(device, *memory)?))
            .collect()
    }

    fn guarded_device(&self, clock: Clock) -> Result<&ClockedDevice, TimingError> {
        self.device().ok_or(TimingError::NoDevice { clock })
    }

    /// The time of a copy that reads and writes as many bytes together, ns; `None` if memory is short.
    fn copied(&self, claim: &Claim) -> Result<Option<f64>, TimingError> {
        let Some(half) = claim.bytes.map(|bytes| (bytes / 2.0) as usize) else {
            return Ok(None);
        };
        let device = self.guarded_device(claim.clock)?;
        let stream = &device.stream;
        // SAFETY: nothing reads the values of the memory, which is unset.
        let alloc = || unsafe { stream.alloc::<u8>(half.max(1)) };
        let (Ok(from), Ok(to)) = (alloc(), alloc()) else {
            return Ok(None);
        };
        let ((from, _from), (to, _to)) = (from.device_ptr(stream), to.device_ptr(stream));
        // SAFETY: both slices have at least `half` bytes, and live until the copies were waited for.
        let mut copy = || unsafe { result::memcpy_dtod_async(to, from, half, stream.cu_stream()) };
        let clock = match claim.clock {
            Clock::EventsCold => Clock::EventsCold,
            _ => Clock::EventsGated,
        };
        self.measure_launches(clock, 1, 1, &mut copy)?;
        Ok(Some(self.measure_launches(clock, 10, 1, &mut copy)? / 10.0))
    }
}

fn checksum(device: &ClockedDevice, memory: DeviceMemory<'_>) -> Result<u64, CudaError> {
    let mut piece = vec![0u8; memory.bytes.min(READ)];
    let pieces = if memory.bytes > READ { READ / PIECE } else { 1 };
    let len = piece.len() / pieces;
    let stream = device.stream.cu_stream();
    let mut parts = piece.chunks_exact_mut(len.max(1)).enumerate();
    let copied = parts.try_for_each(|(at, part)| {
        let from = memory.address + ((memory.bytes - len) / (pieces - 1).max(1) * at) as u64;
        // SAFETY: the range lies within `memory`, which is borrowed. `part` lives until the wait below.
        unsafe { result::memcpy_dtoh_async(part, from, stream) }.called("cuMemcpyDtoHAsync")
    });
    device.synchronize()?;
    copied?;
    // Any change of one value changes the hash.
    let words = piece.chunks(8).map(|word| {
        let mut bytes = [0; 8];
        bytes[..word.len()].copy_from_slice(word);
        u64::from_le_bytes(bytes)
    });
    Ok(fnv1a(words))
}
