//! Batches of images from host memory to a consumer on the device, as in a training loop: gathered
//! in shuffled order into a host buffer, copied, consumed. What does pinning the buffer save, what
//! a thread that prefetches, what several, and how much of the time does a kernel run?
//!
//! The size is the bytes of a batch; one iteration is an epoch of [`BATCHES`] of them.

mod epoch;
mod problem;

pub use epoch::{Feed, epoch};
pub use problem::{BATCHES, IMAGE, LOADER, Loader, cost};
