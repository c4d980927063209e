//! Batches of images from host memory to a consumer on the device, as in a training loop: gathered
//! in shuffled order into a host buffer, copied, consumed. What does pinning the buffer save, what
//! a thread that prefetches, what several, and how much of the time does a kernel run?
//!
//! The size is the bytes of a batch; one iteration is an epoch of [`BATCHES`] of them.

mod consumer;
mod epoch;
mod images;
mod problem;

pub use epoch::{Feed, epoch};
pub use images::{BATCHES, IMAGE};
pub use problem::{LOADER, Loader, cost};
