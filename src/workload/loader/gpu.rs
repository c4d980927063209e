//! Routines for `cargo bench`: one constructor per implementation.

use std::rc::Rc;

use crate::device::gpu::Gpu;
use crate::workload::loader::epoch::{Epoch, Feed};
use crate::workload::loader::problem::Loader;
use crate::workload::routine::{Routine, RoutineError};

type Made = Result<Box<dyn Routine>, RoutineError>;

/// One thread and one pageable buffer: gather, copy, consume, wait, in sequence.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn pageable(gpu: &Rc<Gpu>, problem: &Rc<Loader>) -> Made {
    Ok(Box::new(Epoch::new(gpu, problem, Feed::pageable(problem))?))
}

/// The same with a pinned buffer.
///
/// # Errors
/// As [`pageable`].
pub fn pinned(gpu: &Rc<Gpu>, problem: &Rc<Loader>) -> Made {
    let feed = Feed::pinned(gpu, problem)?;
    Ok(Box::new(Epoch::new(gpu, problem, feed)?))
}

/// A thread gathers the next batch into a second pinned buffer while the device copies
/// and consumes, the copy on a stream of its own.
///
/// # Errors
/// As [`pageable`], and a thread that cannot be started.
pub fn prefetch(gpu: &Rc<Gpu>, problem: &Rc<Loader>) -> Made {
    threads(gpu, problem, 1)
}

/// The same with two threads and three buffers.
///
/// # Errors
/// As [`prefetch`].
pub fn threads_2(gpu: &Rc<Gpu>, problem: &Rc<Loader>) -> Made {
    threads(gpu, problem, 2)
}

/// The same with four threads and five buffers.
///
/// # Errors
/// As [`prefetch`].
pub fn threads_4(gpu: &Rc<Gpu>, problem: &Rc<Loader>) -> Made {
    threads(gpu, problem, 4)
}

fn threads(gpu: &Rc<Gpu>, problem: &Rc<Loader>, threads: usize) -> Made {
    let feed = Feed::threads(gpu, problem, threads)?;
    Ok(Box::new(Epoch::new(gpu, problem, feed)?))
}
