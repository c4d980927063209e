//! Runs a product without a pause, times it, and reads NVML meanwhile.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use cudarc::driver::CudaEvent;

use crate::device::{Gpu, copies_and_events::record, kernel::Source, recorded};
use crate::machine::Monitor;
use crate::machine::monitor::reading::Source as _;
use crate::model::{Telemetry, Verified};
use crate::timing::CudaError;
use crate::workload::lessons::sustained::curve::{Curve, SAMPLES};
use crate::workload::lessons::timing_methods::SPIN;
use crate::workload::matmul::precision::{PRECISION, Precision};
use crate::workload::matmul::{Family, Matmul};
use crate::workload::prepare::{nanoseconds, timing_event};
use crate::workload::routine::{Made, Routine, RoutineError, Workload};
use crossover_words::units;

/// Order of the product: large enough to fill a device, small enough for groups of 10 ms.
pub const ORDER: u64 = 4096;
/// The shortest time since the start that a group of benchmarks has, ns.
pub const SHORTEST: u64 = 100_000_000;
/// The longest time, ns, and the length of a recording.
pub const LONGEST: u64 = 20_000_000_000;

/// How long the device idles before a recording, so that it cools and its power budget recovers.
const PAUSE: Duration = Duration::from_secs(5);
/// After the pause a kernel of one thread runs for this long, ns. It brings the clock up and takes
/// little power: an H200 reaches its full SM clock within this time.
const WAKE: u64 = 150_000_000;
/// Time that the products of a group take about, ns.
const GROUP: f64 = 10e6;
/// Upper bound on the products of a group: with [`AHEAD`] groups and two kernels per product, about
/// half of what fits in a stream's queue (about 1,000 launches).
const MOST_PRODUCTS: f64 = 80.0;
/// Groups in the queue: the host has this many times 10 ms to read NVML.
const AHEAD: usize = 3;
/// Time between two readings of NVML.
const READ_EVERY: Duration = Duration::from_millis(50);

/// A time since a product began without a pause: the size, in nanoseconds.
pub struct Sustained {
    nanoseconds: u64,
}

impl Workload for Sustained {
    fn new(size: u64) -> Self {
        Self { nanoseconds: size }
    }

    fn host_bytes(_: u64) -> u64 {
        Precision::host_bytes(ORDER)
    }

    fn device_bytes(_: u64) -> u64 {
        Precision::device_bytes(ORDER)
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&PRECISION, &SPIN] }
    }
}

/// Sets up the routine of a product.
type Product = Box<dyn Fn(&Rc<Gpu>, &Rc<Matmul>) -> Made>;

/// One product, recorded when the first of its times is asked for.
pub struct Recording {
    product: Product,
    recorded: RefCell<Option<Rc<Recorded>>>,
}

struct Recorded {
    curve: Curve,
    /// Products per group.
    products: u32,
    /// The larger error of the comparisons before and after the recording.
    verified: Verified,
}

impl Recording {
    /// A recording of the routine that `product` sets up, which must only enqueue its product. Nothing
    /// runs yet.
    pub fn new(product: impl Fn(&Rc<Gpu>, &Rc<Matmul>) -> Made + 'static) -> Rc<Self> {
        Rc::new(Self {
            product: Box::new(product),
            recorded: RefCell::default(),
        })
    }

    /// The recording, at least `nanoseconds` long. A time below [`SHORTEST`], as in tests, is
    /// recorded without the pause and no longer than it is.
    fn reaching(&self, gpu: &Rc<Gpu>, nanoseconds: u64) -> Result<Rc<Recorded>, RoutineError> {
        let known = self.recorded.borrow().clone();
        if let Some(recorded) = known.filter(|r| r.curve.reaches(nanoseconds as f64)) {
            return Ok(recorded);
        }
        let (pause, length) = match nanoseconds < SHORTEST {
            true => (Duration::ZERO, nanoseconds),
            false => (PAUSE, nanoseconds.max(LONGEST)),
        };
        let recorded = Rc::new(self.record(gpu, pause, length as f64)?);
        *self.recorded.borrow_mut() = Some(recorded.clone());
        Ok(recorded)
    }

    fn record(
        &self,
        gpu: &Rc<Gpu>,
        pause: Duration,
        length_ns: f64,
    ) -> Result<Recorded, RoutineError> {
        let mut product = (self.product)(gpu, &Rc::new(Matmul::new(ORDER)))?;
        let before = verified(gpu, &mut *product)?;
        let marks = Marks::new(gpu)?;
        // Estimates the time of a product by a few of them.
        let few = 3;
        marks.begin(gpu)?;
        marks.group(gpu, &mut *product, 0, few)?;
        let each = marks.took(0)? / f64::from(few);
        let products = (GROUP / each).ceil().clamp(1.0, MOST_PRODUCTS) as u32;

        std::thread::sleep(pause);
        let spin = gpu.launch(&SPIN, "spin", 1, 1)?.arg(WAKE);
        // SAFETY: the argument is the one that the kernel declares.
        unsafe { spin.launch(gpu.stream()) }?;
        gpu.synchronize()?;
        let curve = without_a_pause(gpu, &mut *product, &marks, products, length_ns)?;

        let after = verified(gpu, &mut *product)?;
        Ok(Recorded {
            curve,
            products,
            verified: if after.error > before.error {
                after
            } else {
                before
            },
        })
    }
}

/// Poisons, runs once and compares; a wrong product is not recorded.
fn verified(gpu: &Gpu, product: &mut dyn Routine) -> Result<Verified, RoutineError> {
    product.poison()?;
    product.run()?;
    gpu.synchronize()?;
    let verified = product.check()?;
    match recorded::failure(&verified, true) {
        None => Ok(verified),
        Some(wrong) => Err(wrong.into()),
    }
}

/// Keeps the device busy for `length_ns` of its own time: whenever a group of products ends, others
/// are in the queue.
fn without_a_pause(
    gpu: &Gpu,
    product: &mut dyn Routine,
    marks: &Marks,
    products: u32,
    length_ns: f64,
) -> Result<Curve, RoutineError> {
    let monitor = Monitor::open(gpu.properties());
    let mut curve = Curve::default();
    let see = |curve: &mut Curve| {
        if let Some(monitor) = &monitor {
            curve.saw(monitor.read(), monitor.energy_j());
        }
    };
    see(&mut curve);
    let mut read = Instant::now();
    marks.begin(gpu)?;
    let (mut queued, mut done) = (0, 0);
    while !curve.reaches(length_ns) {
        while queued < done + AHEAD {
            marks.group(gpu, product, queued, products)?;
            queued += 1;
        }
        curve.ran(products, marks.took(done)?);
        done += 1;
        if read.elapsed() >= READ_EVERY {
            read = Instant::now();
            see(&mut curve);
        }
    }
    gpu.synchronize()?;
    Ok(curve)
}

/// Events that end one group and begin the next, in a ring.
struct Marks(Vec<CudaEvent>);

impl Marks {
    fn new(gpu: &Gpu) -> Result<Self, CudaError> {
        (0..=AHEAD)
            .map(|_| timing_event(gpu))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Records the beginning of group 0.
    fn begin(&self, gpu: &Gpu) -> Result<(), CudaError> {
        record(&self.0[0], gpu.stream())
    }

    /// Enqueues a group and the event that ends it.
    fn group(
        &self,
        gpu: &Gpu,
        product: &mut dyn Routine,
        group: usize,
        products: u32,
    ) -> Result<(), RoutineError> {
        for _ in 0..products {
            product.run()?;
        }
        Ok(record(self.end(group), gpu.stream())?)
    }

    /// Waits for a group, and returns the time that it took, ns. The event at its beginning was
    /// waited for with the group before.
    fn took(&self, group: usize) -> Result<f64, CudaError> {
        let end = self.end(group);
        end.synchronize()
            .map_err(|e| CudaError::new("cuEventSynchronize", e))?;
        nanoseconds(&self.0[group % self.0.len()], end)
    }

    fn end(&self, group: usize) -> &CudaEvent {
        &self.0[(group + 1) % self.0.len()]
    }
}

/// A recording at one time since its start, as a routine that returns its times.
///
/// # Errors
/// Those of the product.
pub fn window(gpu: &Rc<Gpu>, problem: &Rc<Sustained>, recording: &Rc<Recording>) -> Made {
    gpu.bind()?;
    Ok(Box::new(Window {
        gpu: gpu.clone(),
        recording: recording.clone(),
        nanoseconds: problem.nanoseconds,
        next: 0,
    }))
}

struct Window {
    gpu: Rc<Gpu>,
    recording: Rc<Recording>,
    nanoseconds: u64,
    next: usize,
}

impl Window {
    fn recorded(&self) -> Result<Rc<Recorded>, RoutineError> {
        self.recording.reaching(&self.gpu, self.nanoseconds)
    }
}

impl Routine for Window {
    fn poison(&mut self) -> Result<(), RoutineError> {
        // The recording poisons its own output.
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        self.recorded().map(drop)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(self.recorded()?.verified.clone())
    }

    fn time(&mut self, iterations: u64) -> Option<Result<f64, RoutineError>> {
        let sample = self.recorded().map(|recorded| {
            let samples = recorded.curve.samples(self.nanoseconds as f64);
            samples[self.next % samples.len()]
        });
        self.next += 1;
        Some(sample.map(|ns| ns * iterations as f64))
    }

    fn telemetry(&mut self) -> Option<Telemetry> {
        let recorded = self.recorded().ok()?;
        recorded.curve.telemetry(self.nanoseconds as f64)
    }

    fn notes(&self) -> Vec<String> {
        let products = self.recorded().map_or(0, |recorded| recorded.products);
        vec![format!(
            "N = {ORDER}; one recording for all sizes, after {} s of idling; {SAMPLES} groups of \
             {} each",
            PAUSE.as_secs(),
            units::counted(products as usize, "product")
        )]
    }
}
