//! The inputs, their cost, which elements a check compares, the reference in float64, and how far each
//! implementation may be from it.

use std::cell::OnceCell;
use std::convert::Infallible;
use std::f64::consts::FRAC_PI_2;
use std::ops::Range;

use rayon::prelude::*;

use crossover_arithmetic::number::largest_ulp_error;
use crossover_arithmetic::sine;

use crate::device::kernel::Source;
use crate::model::{Cost, Verified};
use crate::workload::prepare::{in_blocks, kernels, seed};
use crate::workload::routine::{Workload, visit_numbers};

/// The kernels.
pub static NESTED_SINE: Source = kernels!("nested_sine.cu");

/// Sines per element.
pub(super) const PASSES: u32 = 4;

/// Bytes of the value that outputs are filled with before a run: 3.004 as float32, which no
/// sine is. NaN would not do, since some results are NaN.
pub(super) const POISON_BYTE: u8 = 0x40;
/// [`POISON_BYTE`] four times.
pub(crate) const POISON: f32 = f32::from_bits(u32::from_ne_bytes([POISON_BYTE; 4]));

/// n inputs and, once something is checked, their results in float64.
///
/// The inputs are uniform in [-3, 3), from a fixed seed. Inputs that a sine is likely to get wrong are
/// verified in a run of their own ([`Workload::edge_cases`]) and never timed, because they take other
/// branches than users' values do.
pub struct NestedSine {
    pub(super) x: Vec<f32>,
    pub(super) expected: OnceCell<Vec<f64>>,
}

impl NestedSine {
    /// The operation on given inputs.
    pub fn of(x: Vec<f32>) -> Self {
        Self {
            x,
            expected: OnceCell::new(),
        }
    }

    /// Inputs that a sine is likely to get wrong: NaN, infinities, zeros, subnormals, powers
    /// of two and their neighbours, multiples of π/2 and their neighbours, large arguments,
    /// all with both signs: 4,096 of them, one of each kind first.
    pub fn adversarial() -> Vec<f32> {
        let neighbours = |x: f32| [x, x.next_up(), x.next_down()];
        let mut inputs = vec![
            f32::NAN,
            f32::INFINITY,
            f32::MAX,
            f32::from_bits(1),
            std::f32::consts::PI,
            // Of all float32, the nearest to a multiple of π/2.
            16_367_173.0 * 2f32.powi(72),
            0.0,
            f32::MIN_POSITIVE.next_down(),
            f32::NAN.copysign(-1.0),
        ];
        inputs.extend(neighbours(sine::LARGE));
        for exponent in -149..=127 {
            inputs.extend(neighbours(2f64.powi(exponent) as f32));
            inputs.push((1.618_034 * 2f64.powi(exponent)) as f32);
        }
        let magnitudes = 4096 / 2;
        // Multiples of π/2, first one by one, then ever further apart up to 2^60.
        let mut multiple = 1.0f64;
        while inputs.len() < magnitudes {
            inputs.extend(neighbours((multiple * FRAC_PI_2) as f32));
            multiple = (multiple * 1.15).max(multiple + 1.0).floor();
        }
        inputs.truncate(magnitudes);
        inputs.iter().flat_map(|&x| [x, -x]).collect()
    }

    /// The inputs.
    pub fn input(&self) -> &[f32] {
        &self.x
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.x.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.x.is_empty()
    }

    /// The elements that a check compares: all of up to 2^20, else 256 windows of 4,096 from the
    /// first elements, where adversarial ones may be, to the last.
    pub(super) fn windows(&self) -> Vec<Range<usize>> {
        const FULL: usize = 1 << 20;
        const WINDOWS: usize = 256;
        const LENGTH: usize = FULL / WINDOWS;
        if self.len() <= FULL {
            return std::iter::once(0..self.len()).collect();
        }
        let span = self.len() - LENGTH;
        (0..WINDOWS)
            .map(|i| (span as u128 * i as u128 / (WINDOWS as u128 - 1)) as usize)
            .map(|start| start..start + LENGTH)
            .collect()
    }
}

impl Workload for NestedSine {
    fn new(n: u64) -> Self {
        Self::of(uniform(n as usize))
    }

    fn host_bytes(n: u64) -> u64 {
        // Input and output, both once more in pinned memory.
        16 * n
    }

    fn device_bytes(n: u64) -> u64 {
        8 * n
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&NESTED_SINE] }
    }

    // Each adversarial element is in several blocks of a kernel and several tasks of the CPU.
    fn edge_cases() -> Option<Self> {
        // No timed size, so that choices calibrated on these inputs are used for no other.
        const ELEMENTS: usize = 60_007;
        let inputs = Self::adversarial().into_iter().cycle();
        Some(Self::of(inputs.take(ELEMENTS).collect()))
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit_numbers(&self.x, visit);
    }
}

/// Cost of the fused computation, from and to the memory that it works in: 8 bytes per element. A
/// sine has no agreed number of operations, so its FLOP are unknown except in [`cost_vector`].
pub fn cost(n: u64) -> Cost {
    Cost::default()
        .bytes(8.0 * n as f64)
        .written(4.0 * n as f64)
        .launches(1)
}

/// Cost of the fused computation by this module's polynomials in vectors. At one FLOP for an
/// addition or a multiplication they cannot reach more than 45 / 54 of the peak that fused
/// multiply-adds alone have.
pub fn cost_vector(n: u64) -> Cost {
    cost(n).flop(f64::from(sine::FLOP) * n as f64)
}

/// Cost with one kernel per pass: each reads and writes every element.
pub fn cost_per_kernel(n: u64) -> Cost {
    Cost::default()
        .bytes(8.0 * f64::from(PASSES) * n as f64)
        .written(4.0 * f64::from(PASSES) * n as f64)
        .launches(PASSES)
}

/// Cost of the fused computation from and to host memory: 4 bytes per element each way.
pub fn cost_transfer(n: u64) -> Cost {
    cost(n).over_link(4.0 * n as f64, 4.0 * n as f64)
}

/// As [`cost_transfer`], with one kernel per pass.
pub fn cost_transfer_per_kernel(n: u64) -> Cost {
    Cost {
        link_bytes: cost_transfer(n).link_bytes,
        ..cost_per_kernel(n)
    }
}

const SEED: u64 = 0x6e65_7374_6564;

/// Inputs uniform in [-3, 3).
fn uniform(n: usize) -> Vec<f32> {
    let first = seed(SEED);
    in_blocks(n, 3.0, |block| first + block)
}

/// Accuracy of every pass of the polynomials, in ulp, as tested, and of CUDA's `sinf`:
/// <https://docs.nvidia.com/cuda/cuda-c-programming-guide/#mathematical-functions-appendix>
pub(super) const ACCURATE: f64 = 2.0;

impl NestedSine {
    /// sin(sin(sin(sin x))) of the elements in the windows, one after the other.
    fn expected(&self) -> &[f64] {
        self.expected.get_or_init(|| {
            let nested = |&x: &f32| (0..PASSES).fold(f64::from(x), |x, _| x.sin());
            let mut expected = Vec::new();
            for window in self.windows() {
                expected.par_extend(self.x[window].par_iter().map(nested));
            }
            expected
        })
    }

    /// Compares an output in host memory with the reference, each pass accurate to [`ACCURATE`]. Outside the
    /// windows too, each element must be written.
    pub(crate) fn check_output(&self, y: &[f32]) -> Verified {
        self.check_to(ACCURATE, y)
    }

    /// As [`check_output`](Self::check_output), each pass accurate to `ulp`.
    pub(super) fn check_to(&self, ulp: f64, y: &[f32]) -> Verified {
        let read = |window: Range<usize>| Ok::<_, Infallible>(y[window].to_vec());
        let Ok(mut verified) = self.compare(ulp, read);
        // Rounded, a sine may lie above 1.
        let is_sine = |(x, y): (&f32, &f32)| y.abs() <= 1.001 || y.is_nan() && !x.is_finite();
        if !self.x.par_iter().zip(y).all(is_sine) {
            verified.error = f64::INFINITY;
        }
        verified
    }

    /// Compares an output with the reference, each pass accurate to `ulp` for every input; `read`
    /// fetches a window of it.
    ///
    /// A later pass does not magnify a relative error, since |x cos x / sin x| ≤ 1 on
    /// [-1, 1]. An ulp is 2^-24 to 2^-23 of a value, so an error of e ulp grows to at most
    /// 2e ulp of the final result: over four passes 2e + 2e + 2e + e = 7e.
    pub(super) fn compare<E>(
        &self,
        ulp: f64,
        mut read: impl FnMut(Range<usize>) -> Result<Vec<f32>, E>,
    ) -> Result<Verified, E> {
        /// Values that a task compares.
        const TASK: usize = 1 << 14;
        let mut expected = self.expected();
        let mut error = 0f64;
        let windows = self.windows();
        let how_much = match windows.len() {
            1 => "every element".to_owned(),
            n => format!("{n} windows of the output"),
        };
        for window in windows {
            let (here, after) = expected.split_at(window.len());
            expected = after;
            let found = read(window)?;
            let compared = found.par_chunks(TASK).zip(here.par_chunks(TASK));
            let errors = compared.map(|(y, expected)| largest_ulp_error(y, expected));
            error = error.max(errors.reduce(|| 0.0, f64::max));
        }
        Ok(Verified {
            error,
            bound: 7.0 * ulp,
            method: format!("max error in ulp of the float32 result, {how_much}"),
        })
    }
}
