//! The images of an epoch and the order in which they are drawn.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crate::workload::prepare::seed;

/// Batches of an epoch.
pub const BATCHES: usize = 32;

/// Bytes of an image: 64 by 64 pixels of one byte.
pub const IMAGE: usize = 4096;

/// The images of an epoch in host memory, and the order in which they are drawn.
pub(super) struct Images {
    pixels: Vec<u8>,
    order: Vec<u32>,
    batch_bytes: usize,
}

impl Images {
    pub(super) fn new(batch_bytes: usize) -> Self {
        assert!(
            batch_bytes > 0 && batch_bytes.is_multiple_of(IMAGE),
            "a batch is a whole number of images of {IMAGE} bytes, not {batch_bytes} bytes"
        );
        let mut pixels = vec![0; BATCHES * batch_bytes];
        let first = seed(0);
        pixels
            .par_chunks_mut(IMAGE)
            .enumerate()
            .for_each(|(i, image)| {
                Xoshiro256PlusPlus::seed_from_u64(first + i as u64).fill_bytes(image);
            });
        let mut order: Vec<u32> = (0..(pixels.len() / IMAGE) as u32).collect();
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(batch_bytes as u64));
        Self {
            pixels,
            order,
            batch_bytes,
        }
    }

    pub(super) fn batch_bytes(&self) -> usize {
        self.batch_bytes
    }

    /// The images of a batch, in its order.
    pub(super) fn batch(&self, batch: usize) -> impl Iterator<Item = &[u8]> {
        let images = self.batch_bytes / IMAGE;
        self.order[batch * images..(batch + 1) * images]
            .iter()
            .map(|&image| &self.pixels[image as usize * IMAGE..][..IMAGE])
    }

    /// Gathers the images of a batch into `to`, which has room for exactly one.
    pub(super) fn gather(&self, batch: usize, to: &mut [u8]) {
        for (to, image) in to.chunks_exact_mut(IMAGE).zip(self.batch(batch)) {
            to.copy_from_slice(image);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_draws_every_image_once_and_no_batch_is_another() {
        let images = Images::new(2 * IMAGE);
        let mut epoch = vec![0; 2 * BATCHES * IMAGE];
        for (batch, to) in epoch.chunks_mut(2 * IMAGE).enumerate() {
            images.gather(batch, to);
        }
        let sorted = |pixels: &[u8]| {
            let mut images: Vec<Vec<u8>> = pixels.chunks(IMAGE).map(<[u8]>::to_vec).collect();
            images.sort_unstable();
            images
        };
        let drawn = sorted(&epoch);
        assert_eq!(drawn, sorted(&images.pixels));
        assert!(drawn.windows(2).all(|pair| pair[0] != pair[1]));
        assert_ne!(epoch, images.pixels, "shuffled");
    }

    #[test]
    #[should_panic(expected = "whole number of images")]
    fn part_of_an_image_is_refused() {
        Images::new(IMAGE + 1);
    }
}
