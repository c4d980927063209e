//! The sum of f32 over all devices, by NCCL.

use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::device::Gpu;
use crate::model::record::DEVICES;
use crate::timing::CudaError;
use crate::workload::devices::OnDevices;
use crate::workload::matmul::uniform;
use crate::workload::prepare::{Stream, version};
use crate::workload::routine::{RoutineError, Workload, visit_f32};
use crate::workload::simple::compare;
use crossover_machine::nccl;

/// Entries of all streams' queues for the operation on one device: its kernel, and what the library orders it
/// by.
const LAUNCHES: u32 = 4;
/// Number of values by which the input of a device is ahead of the previous device's.
const AHEAD: usize = 17;

/// The inputs of all devices.
pub struct AllReduce {
    values: Vec<f32>,
    version: u64,
}

/// The size of the values of a device, and their version: other processes make the same ones from it.
pub(super) type Identity = (u64, u64);

impl AllReduce {
    pub(super) fn identity(&self) -> Identity {
        (size_of_val(&*self.values) as u64, self.version)
    }

    /// Value `at` of a device.
    fn value(&self, device: usize, at: usize) -> f32 {
        self.values[(at + AHEAD * device) % self.values.len()]
    }

    /// The values of a device.
    fn of_device(&self, device: usize) -> Vec<f32> {
        let mut values = self.values.clone();
        values.rotate_left(AHEAD * device % self.values.len());
        values
    }
}

impl Workload for AllReduce {
    fn new(bytes: u64) -> Self {
        let values = uniform(bytes as usize / size_of::<f32>(), 1);
        let version = version();
        Self { values, version }
    }

    fn host_bytes(bytes: u64) -> u64 {
        // The values, those of one device, and the result of one.
        3 * bytes
    }

    fn device_bytes(bytes: u64) -> u64 {
        2 * bytes
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit_f32(&self.values, visit);
    }
}

/// Where the sums are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Results {
    /// Over the values. Each further iteration adds the sums of the one before.
    InPlace,
    /// Beside them.
    OutOfPlace,
}

/// The part of the sum that the devices of this process have.
pub(super) fn of_this_process(
    gpu: &Rc<Gpu>,
    problem: &Rc<AllReduce>,
    results: Results,
) -> Result<OnDevices, RoutineError> {
    let mut work = OnDevices::new(gpu)?;
    let collectives = gpu.collectives()?;
    let (own, devices) = (work.gpus.len(), collectives.devices);
    // No device completes an iteration before the first one has begun it.
    work.orders_itself = true;
    let mut places = Vec::new();
    for (at, part) in work.parts.iter_mut().enumerate() {
        let values = part.upload(&problem.of_device(collectives.first + at))?;
        let (from, sums) = match results {
            Results::OutOfPlace => (values, part.output::<f32>(problem.values.len())?),
            Results::InPlace => {
                let sums = part.alloc(problem.values.len())?;
                part.poison(move |memory| Ok(memory.copy(values, sums)?));
                (sums, sums)
            }
        };
        places.push([from.address, sums.address]);
        let problem = problem.clone();
        // A sum of d values in (-1, 1) is rounded d - 1 times.
        let bound = (devices * (devices - 1)) as f64 * f64::from(f32::EPSILON) / 2.0;
        part.check_values(None, sums, f32::NAN, move |sums| {
            let sum = |at| {
                (0..devices)
                    .map(|device| f64::from(problem.value(device, at)))
                    .sum()
            };
            compare(sums, (0..problem.values.len()).map(sum), 1.0, bound)
        })?;
    }
    let (first, gpus) = (&mut work.parts[0], work.gpus.clone());
    first.notes.push(format!("NCCL {}", nccl::version()?));
    first.figures.insert(DEVICES.to_owned(), devices as f64);
    let values = problem.values.len();
    let reduce = move |_: &_| -> Result<(), CudaError> {
        let devices = places
            .iter()
            .zip(&gpus)
            .map(|(places, gpu)| (*places, &**gpu.stream()));
        // SAFETY: the routine owns the places, which have that number of values. All streams wait for the timed stream
        // before the first iteration after a change of memory, NCCL orders later iterations, and the timed stream
        // waits for the others in each.
        let reduced = unsafe { collectives.all_reduce(values, devices) };
        reduced.and(gpus[0].bind())
    };
    let launches = LAUNCHES * own as u32;
    first.steps.call_on(Stream::Compute, launches, reduce);
    work.join((1..own).map(OnDevices::work))?;
    Ok(work.ready()?)
}
