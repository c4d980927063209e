//! Batches of images from host memory to a consumer on the device, as a training loop has
//! them: gathered in shuffled order into a host buffer, copied, used up. What does pinning
//! the buffer save, what a thread that prefetches, what several, and how busy is the device?
//!
//! The size is the bytes of a batch; one iteration is an epoch of [`BATCHES`] of them.

mod consumer;
mod epoch;
mod images;
mod worker;

use std::rc::Rc;
use std::sync::Arc;

use rayon::prelude::*;

use super::{Routine, RoutineError, Workload};
use crate::device::Gpu;
use crate::record::Cost;

use consumer::Expected;
pub use consumer::LOADER;
use epoch::{Epoch, Feed};
pub use images::IMAGE;
use images::Images;

/// Batches of an epoch.
pub const BATCHES: usize = 32;

/// The images of an epoch, their order, and what the consumer makes of each batch.
pub struct Loader {
    images: Arc<Images>,
    expected: Vec<Expected>,
}

impl Workload for Loader {
    /// # Panics
    /// Where `size` is not a whole number of images.
    fn new(size: u64) -> Self {
        let images = Images::new(size as usize);
        let expected = (0..BATCHES)
            .into_par_iter()
            .map(|batch| Expected::of(&images, batch))
            .collect();
        Self {
            images: Arc::new(images),
            expected,
        }
    }

    fn host_bytes(size: u64) -> u64 {
        // The images, and a buffer for each of up to four threads and one more.
        (BATCHES as u64 + 5) * size
    }

    fn device_bytes(size: u64) -> u64 {
        2 * size + (16 << 20)
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        for batch in 0..BATCHES {
            self.images.batch(batch).for_each(&mut *visit);
        }
    }
}

/// Every batch crosses the link once and is consumed by one launch.
pub fn cost(size: u64) -> Cost {
    let bytes = BATCHES as f64 * size as f64;
    Cost {
        flop: Some(bytes * consumer::FLOP_A_BYTE),
        bytes: Some(bytes),
        link_bytes: Some(bytes),
        launches: Some(BATCHES as u32),
    }
}

/// Routines for `cargo bench`: one constructor an implementation.
pub mod gpu {
    use super::*;

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
}
