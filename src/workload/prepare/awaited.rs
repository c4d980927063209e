//! One call awaited: the host waits for what a routine enqueued.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::device::Gpu;
use crate::model::Verified;
use crate::timing::DeviceMemory;
use crate::workload::routine::{Routine, RoutineError};

/// The routine `inner`, after each run of which the host waits until the GPU's stream is idle.
pub fn awaited(gpu: &Rc<Gpu>, inner: Box<dyn Routine>) -> Box<dyn Routine> {
    Box::new(Awaited {
        gpu: gpu.clone(),
        inner,
    })
}

struct Awaited {
    gpu: Rc<Gpu>,
    inner: Box<dyn Routine>,
}

impl Routine for Awaited {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.inner.poison()
    }

    fn restore(&mut self) -> Result<(), RoutineError> {
        self.inner.restore()
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        self.inner.run()?;
        Ok(self.gpu.synchronize()?)
    }

    fn park(&mut self) {
        self.inner.park();
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        self.inner.check()
    }

    fn time(&mut self, iterations: u64) -> Option<Result<f64, RoutineError>> {
        self.inner.time(iterations)
    }

    fn inputs(&self) -> Vec<DeviceMemory> {
        self.inner.inputs()
    }

    fn outputs(&self) -> Vec<DeviceMemory> {
        self.inner.outputs()
    }

    fn launches(&self) -> u32 {
        self.inner.launches()
    }

    fn extra(&mut self) -> Result<BTreeMap<String, f64>, RoutineError> {
        self.inner.extra()
    }

    fn notes(&self) -> Vec<String> {
        self.inner.notes()
    }
}
