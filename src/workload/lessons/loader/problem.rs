//! The images of an epoch, the order in which they are drawn, and what the consumer makes of them.

use std::cell::OnceCell;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;

use crossover_arithmetic::error::worse;

use crate::device::kernel::Source;
use crate::model::{Cost, Verified};
use crate::workload::prepare::{kernels, seed};
use crate::workload::routine::Workload;

/// The consumer's kernel.
pub static LOADER: Source = kernels!("loader.cu");

/// The images of an epoch, their order, and what the consumer makes of each batch.
pub struct Loader {
    pub(super) images: Images,
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
            images: Images::new(size as usize),
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
    Cost::default()
        .flop(bytes * FLOP_PER_BYTE)
        .bytes(bytes)
        .written(0.0)
        .over_link(bytes, 0.0)
        .launches(BATCHES as u32)
}

/// Turns of each value. With this number an H200 takes about as long to consume a batch as to
/// receive it.
pub(super) const STEPS: u32 = 128;
/// Two products and two multiply-adds per turn.
pub(super) const FLOP_PER_BYTE: f64 = 6.0 * STEPS as f64;
/// Cosine and sine of a turn by 0.05. All turns together go round once and a little more, so that
/// the sum depends on every value as strongly as at the start.
pub(super) const COSINE: f32 = 0.998_750_26;
pub(super) const SINE: f32 = 0.049_979_17;

/// The consumer's results of a batch.
#[derive(Debug, PartialEq)]
pub(super) struct Expected {
    /// Mean of the turned values, in float64.
    pub(super) mean: f64,
    /// Sum of the bytes, byte i times 2 i + 1, modulo 2^64.
    pub(super) bytes: u64,
}

impl Expected {
    pub(super) fn of(images: &Images, batch: usize) -> Self {
        let mut counts = [0u64; 256];
        let mut bytes = 0u64;
        for (place, &pixel) in images.batch(batch).flatten().enumerate() {
            counts[usize::from(pixel)] += 1;
            bytes = bytes.wrapping_add(u64::from(pixel) * (2 * place as u64 + 1));
        }
        let sum: f64 = (0u8..=255)
            .zip(counts)
            .map(|(pixel, count)| count as f64 * turned(pixel))
            .sum();
        Self {
            mean: sum / images.batch_bytes as f64,
            bytes,
        }
    }
}

/// A pixel after all turns, in float64.
fn turned(pixel: u8) -> f64 {
    let (cosine, sine) = (f64::from(COSINE), f64::from(SINE));
    let start = (f64::from(pixel) / 127.5 - 1.0, 0.5);
    let turn = |(x, y)| (cosine * x - sine * y, sine * x + cosine * y);
    (0..STEPS).fold(start, |point, _| turn(point)).0
}

/// Compares with float64. A turn rounds each coordinate of a vector no longer than 1.12 twice, and
/// keeps the length of the error so far: at most four half-ulps of 1 per turn.
pub(super) fn verify(found: &[Expected], expected: &[Expected]) -> Verified {
    let of_batch = |(found, expected): (&Expected, &Expected)| {
        if found.bytes == expected.bytes {
            (found.mean - expected.mean).abs()
        } else {
            f64::INFINITY
        }
    };
    let errors = found.iter().zip(expected).map(of_batch);
    Verified {
        error: if found.len() == expected.len() {
            errors.fold(0.0, worse)
        } else {
            f64::INFINITY
        },
        bound: 4.0 * f64::from(STEPS) * f64::from(f32::EPSILON) / 2.0,
        method: "largest error of a batch's mean, infinite where a byte is wrong or out of place, every batch"
            .to_owned(),
    }
}

/// Batches of an epoch.
pub const BATCHES: usize = 32;

/// Bytes of an image: 64 by 64 pixels of one byte.
pub const IMAGE: usize = 4096;

/// The images of an epoch in host memory, and the order in which they are drawn.
pub(super) struct Images {
    pixels: Vec<u8>,
    order: Vec<u32>,
    pub(super) batch_bytes: usize,
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
    use crate::workload::lessons::loader::problem::IMAGE;

    /// The kernel's arithmetic on the host.
    fn computed(pixels: &[u8]) -> Expected {
        let mut sum = 0.0;
        let mut bytes = 0u64;
        for (place, &pixel) in pixels.iter().enumerate() {
            let mut x = f32::from(pixel).mul_add(1.0 / 127.5, -1.0);
            let mut y = 0.5f32;
            for _ in 0..STEPS {
                let turned = COSINE.mul_add(x, -(SINE * y));
                y = SINE.mul_add(x, COSINE * y);
                x = turned;
            }
            sum += f64::from(x);
            bytes = bytes.wrapping_add(u64::from(pixel) * (2 * place as u64 + 1));
        }
        Expected {
            mean: sum / pixels.len() as f64,
            bytes,
        }
    }

    #[test]
    fn float32_passes_and_a_wrong_byte_or_place_or_batch_does_not() {
        let images = Images::new(2 * IMAGE);
        let expected = [Expected::of(&images, 0), Expected::of(&images, 1)];
        let mut pixels = [vec![0; 2 * IMAGE], vec![0; 2 * IMAGE]];
        images.gather(0, &mut pixels[0]);
        images.gather(1, &mut pixels[1]);
        let passes = |a: &[u8], b: &[u8]| verify(&[computed(a), computed(b)], &expected).passed();
        let [a, b] = &pixels;
        assert!(passes(a, b));
        assert!(!passes(b, a), "batches exchanged");
        assert!(!passes(a, a), "a batch twice");
        let mut wrong = a.clone();
        wrong[4711] ^= 1;
        assert!(!passes(&wrong, b), "one bit");
        let mut moved = a.clone();
        moved.swap(17, 4000);
        assert!(moved == *a || !passes(&moved, b), "two bytes exchanged");
        for off in [f64::NAN, 1e-4] {
            let mut wrong = computed(a);
            wrong.mean += off;
            assert!(!verify(&[wrong, computed(b)], &expected).passed(), "{off}");
        }
        assert!(!verify(&[computed(a)], &expected).passed(), "one missing");
    }

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
}
