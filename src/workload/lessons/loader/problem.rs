//! The images of an epoch and what the consumer makes of them.

use std::cell::OnceCell;
use std::sync::Arc;

use rayon::prelude::*;

use crate::device::kernel::Source;
use crate::model::{Cost, LinkBytes};
use crate::workload::lessons::loader::expected::{Expected, FLOP_PER_BYTE};
use crate::workload::lessons::loader::images::{BATCHES, Images};
use crate::workload::prepare::kernels;
use crate::workload::routine::Workload;

/// The consumer's kernel.
pub static LOADER: Source = kernels!("loader.cu");

/// The images of an epoch, their order, and what the consumer makes of each batch.
pub struct Loader {
    pub(super) images: Arc<Images>,
    /// Computed when something is first compared with it.
    expected: OnceCell<Vec<Expected>>,
}

impl Loader {
    pub(super) fn expected(&self) -> &[Expected] {
        self.expected.get_or_init(|| {
            let batches = (0..BATCHES).into_par_iter();
            let images = &self.images;
            batches.map(|batch| Expected::of(images, batch)).collect()
        })
    }
}

impl Workload for Loader {
    /// # Panics
    /// Where `size` is not a whole number of images.
    fn new(size: u64) -> Self {
        Self {
            images: Arc::new(Images::new(size as usize)),
            expected: OnceCell::new(),
        }
    }

    fn host_bytes(size: u64) -> u64 {
        // The images, and a buffer for each of up to four threads and one more.
        (BATCHES as u64 + 5) * size
    }

    fn device_bytes(size: u64) -> u64 {
        2 * size + (16 << 20)
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&LOADER] }
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
        flop: Some(bytes * FLOP_PER_BYTE),
        bytes: Some(bytes),
        written: Some(0.0),
        link_bytes: Some(LinkBytes::new(bytes, 0.0)),
        launches: Some(BATCHES as u32),
    }
}
