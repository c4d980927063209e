//! The processes that the phases are measured in.

use std::rc::Rc;

use crate::device::kernel::Source;
use crate::model::Cost;
use crate::workload::prepare::{Processes, Task, kernels};
use crate::workload::routine::Workload;

/// The kernel of the first launch.
pub static COLD_START: Source = kernels!("cold_start.cu");

/// The measured processes.
pub struct ColdStart {
    pub(super) processes: Rc<Processes>,
}

impl Workload for ColdStart {
    fn new(_: u64) -> Self {
        Self {
            processes: Rc::new(Processes::new(Task::ColdStart)),
        }
    }

    fn host_bytes(_: u64) -> u64 {
        0
    }

    fn device_bytes(_: u64) -> u64 {
        1 << 30
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&COLD_START] }
    }
}

/// The cost of a phase: it has none but time.
pub fn cost(_: u64) -> Cost {
    Cost::default()
}
