//! The inputs, their cost, and which elements a check compares.

use std::cell::OnceCell;
use std::ops::Range;

use crate::device::kernel::Source;
use crate::model::Cost;
use crate::workload::nested_sine::format::Sine;
use crate::workload::number::{Number, in_f64};
use crate::workload::prepare::{in_blocks, seed};
use crate::workload::routine::{Workload, visit_numbers};
use crossover_arithmetic::sine;
use crossover_arithmetic::sine_f64;

/// Sines per element.
pub(super) const PASSES: u32 = 4;

/// n inputs and, once something is checked, their results in float64 (for f64 in two of these).
///
/// The inputs are uniform in [-3, 3), from a fixed seed. Inputs that a sine is likely to get wrong are
/// verified in a run of their own ([`Workload::edge_cases`]) and never timed, because they take other
/// branches than users' values do.
pub struct NestedSine<T: Sine = f32> {
    pub(super) x: Vec<T>,
    pub(super) expected: OnceCell<Vec<T::Wide>>,
}

impl NestedSine {
    /// n inputs, 4n bytes of host memory.
    pub fn new(n: u64) -> Self {
        Self::of(uniform(n as usize))
    }

    /// The operation on given inputs.
    pub fn of(x: Vec<f32>) -> Self {
        Self::with(x)
    }

    /// Inputs that a sine is likely to get wrong: NaN, infinities, zeros, subnormals, powers
    /// of two and their neighbours, multiples of π/2 and their neighbours, large arguments,
    /// all with both signs.
    pub fn adversarial() -> Vec<f32> {
        f32::adversarial()
    }
}

impl<T: Sine> NestedSine<T> {
    pub(super) fn with(x: Vec<T>) -> Self {
        Self {
            x,
            expected: OnceCell::new(),
        }
    }

    /// The inputs.
    pub fn input(&self) -> &[T] {
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

impl<T: Sine> Workload for NestedSine<T> {
    fn new(n: u64) -> Self {
        Self::with(uniform(n as usize))
    }

    fn host_bytes(n: u64) -> u64 {
        // Input and output, both once more in pinned memory.
        4 * size_of::<T>() as u64 * n
    }

    fn device_bytes(n: u64) -> u64 {
        2 * size_of::<T>() as u64 * n
    }

    fn kernels() -> &'static [&'static Source] {
        T::SOURCES
    }

    // Each adversarial element is in several blocks of a kernel and several tasks of the CPU.
    fn edge_cases() -> Option<Self> {
        // No timed size, so that choices calibrated on these inputs are used for no other.
        const ELEMENTS: usize = 60_007;
        let all = T::adversarial().into_iter().cycle();
        Some(Self::with(all.take(ELEMENTS).collect()))
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

/// As [`cost`], in float64.
pub fn cost_f64(n: u64) -> Cost {
    in_f64(cost(n))
}

/// As [`cost_vector`], in float64: 73 FLOP per element by this module's polynomials, on the CPU and the
/// GPU.
pub fn cost_vector_f64(n: u64) -> Cost {
    cost_f64(n).flop(f64::from(sine_f64::FLOP) * n as f64)
}

const SEED: u64 = 0x6e65_7374_6564;

/// Inputs uniform in [-3, 3).
fn uniform<T: Number>(n: usize) -> Vec<T> {
    let first = seed(SEED);
    in_blocks(n, 3.0, |block| first + block)
}
