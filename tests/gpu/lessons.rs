//! What the lessons measure beside the time. Needs a device and NVRTC.

use std::rc::Rc;

use crossover_suite::device::Gpu;
use crossover_suite::workload::HostMemory::{Pageable, Pinned};
use crossover_suite::workload::loader::{Feed, Loader, epoch};
use crossover_suite::workload::{RoutineError, Workload};

use crate::device::one_at_a_time;

#[test]
#[ignore = "needs a CUDA device"]
fn a_loader_says_for_how_long_kernels_ran() -> Result<(), RoutineError> {
    let _one = one_at_a_time();
    let gpu = Rc::new(Gpu::open(0)?);
    let problem = Rc::new(Loader::new(1 << 22));
    for feed in [
        Feed::InSequence(Pageable),
        Feed::InSequence(Pinned),
        Feed::Threads(4),
    ] {
        let mut routine = epoch(&gpu, &problem, feed)?;
        routine.run()?;
        let share = routine.extra()?["kernel_running_share"];
        println!("{feed:?}: a kernel ran {:.1} % of the time", 100.0 * share);
        // One stream: its kernels do not overlap.
        assert!(share > 0.0 && share <= 1.0, "{feed:?}: {share}");
    }
    Ok(())
}
