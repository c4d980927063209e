//! The terms, the cost of adding them, and the accepted error of a sum.

use std::cell::OnceCell;

use rayon::prelude::*;

use crate::device::kernel::Source;
use crate::model::{Cost, Verified};
use crate::workload::matmul::{UNIT_ROUNDOFF, uniform};
use crate::workload::prepare::kernels;
use crate::workload::routine::{Workload, visit_f32};

/// The kernels.
pub(super) static REDUCTION: Source = kernels!("reduction.cu");

/// n terms uniform in [-1, 1), the same in every run, and what their sum is checked against.
pub struct Sum {
    pub(super) x: Vec<f32>,
    /// In float64: the sum, the sum of |x|, and the root of the sum of x².
    reference: OnceCell<[f64; 3]>,
}

impl Sum {
    pub(super) fn of(x: Vec<f32>) -> Self {
        let reference = OnceCell::new();
        Self { x, reference }
    }

    fn reference(&self) -> &[f64; 3] {
        self.reference.get_or_init(|| {
            let part = |x: &[f32]| {
                let wide = || x.iter().map(|&x| f64::from(x));
                let magnitudes = wide().map(f64::abs).sum();
                [wide().sum(), magnitudes, wide().map(|x| x * x).sum()]
            };
            let parts: Vec<[f64; 3]> = self.x.par_chunks(1 << 16).map(part).collect();
            let [sum, magnitudes, squares] =
                [0, 1, 2].map(|i| parts.iter().map(|part| part[i]).sum::<f64>());
            [sum, magnitudes, squares.sqrt()]
        })
    }

    /// Compares a sum with float64, if no term takes part in more than `longest` additions of f32. The
    /// error is relative to the sum of magnitudes Σ|x|: it is the relative error divided by the
    /// condition Σ|x| / |Σx|, because no order of summation can do more about terms that cancel.
    ///
    /// Roundings are independent, of relative size u = 2^-24 at most, and each is of a partial sum. In
    /// chains of d additions, partial sums of terms with independent signs grow as the root of their
    /// number, so the roundings of all chains together are some 0.4 u sqrt(d) ‖x‖₂. Ten times this, and
    /// one rounding of the result, are accepted.
    ///
    /// A missing term is found if it is larger than the bound: 0.03 in 2^26 terms of a sum in chains of
    /// 512, which 97 % of the terms exceed.
    pub(super) fn check(&self, longest: usize, y: &[f32]) -> Verified {
        let [sum, magnitudes, norm] = *self.reference();
        let lost = (longest.min(self.x.len()) as f64).sqrt();
        let roundings = UNIT_ROUNDOFF * (sum.abs() + 4.0 * lost * norm);
        Verified {
            error: (f64::from(y[0]) - sum).abs() / magnitudes,
            bound: roundings / magnitudes,
            method: "error relative to the sum of magnitudes".to_owned(),
        }
    }
}

impl Workload for Sum {
    fn new(n: u64) -> Self {
        Self::of(uniform(n as usize, 0x30))
    }

    fn host_bytes(n: u64) -> u64 {
        // The terms, and once more in pinned memory.
        8 * n
    }

    fn device_bytes(n: u64) -> u64 {
        4 * n + (1 << 20)
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&REDUCTION] }
    }

    // Terms of very different size that almost cancel: a condition above 10^8.
    fn edge_cases() -> Option<Self> {
        const PAIRS: usize = 30_003;
        let exponents = uniform::<f32>(PAIRS, 0x31);
        let large = uniform::<f32>(PAIRS, 0x32).into_iter().zip(exponents);
        let mut x: Vec<f32> = large.map(|(x, e)| x * (20.0 * e).exp2()).collect();
        x.extend(x.clone().iter().rev().map(|x| -x));
        x.push(0.75);
        Some(Self::of(x))
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit_f32(&self.x, visit);
    }
}

/// Cost of a sum whose terms lie where it is computed: each is read once.
pub fn cost(n: u64) -> Cost {
    Cost::default()
        .bytes(4.0 * n as f64)
        .written(0.0)
        .launches(1)
}
