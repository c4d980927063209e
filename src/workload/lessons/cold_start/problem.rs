//! The processes that the phases are measured in.

use std::rc::Rc;

use crate::device::kernel::Source;
use crate::model::cost::Cost;
use crate::workload::prepare::child_process::{Processes, Task};
use crate::workload::routine::Workload;

/// The kernel of the first launch.
pub static COLD_START: Source = Source {
    name: "cold_start.cu",
    text: include_str!(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/kernels/cold_start.cu"
    )),
    options: &[],
    oldest: (7, 5),
};

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
