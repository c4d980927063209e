//! A step of AdamW, and its reference in float64, as PyTorch computes it, with decoupled weight decay:
//! <https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html>. The constants are
//! those of `kernels/mlp_training.cu`.

use std::ops::Range;

use crate::error::{relative, worse};
use crate::wide;

/// Learning rate.
pub const RATE: f64 = 1e-3;
/// Decay of the first moment.
pub const BETA_1: f64 = 0.9;
/// Decay of the second moment.
pub const BETA_2: f64 = 0.999;
/// Keeps the quotient of the moments finite.
pub const EPSILON: f64 = 1e-8;
/// Weight decay.
pub const DECAY: f64 = 0.01;

/// The step counter and the factors that follow from it, in the form in device memory.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub struct Counter {
    power_1: f64,
    power_2: f64,
    steps: f64,
    /// The learning rate over the bias correction of the first moment.
    pub rate: f64,
    /// The factor that corrects the root of the second moment.
    pub root: f64,
}

impl Counter {
    /// The counter after `steps` steps.
    pub fn after(steps: u32) -> Self {
        let exponent = steps as i32;
        Self::of(
            BETA_1.powi(exponent),
            BETA_2.powi(exponent),
            f64::from(steps),
        )
    }

    fn of(power_1: f64, power_2: f64, steps: f64) -> Self {
        Self {
            power_1,
            power_2,
            steps,
            rate: RATE / (1.0 - power_1),
            root: 1.0 / (1.0 - power_2).sqrt(),
        }
    }

    /// The counter after one more step.
    pub fn next(self) -> Self {
        Self::of(
            self.power_1 * BETA_1,
            self.power_2 * BETA_2,
            self.steps + 1.0,
        )
    }

    /// The values in the order of the kernel's struct.
    pub fn values(self) -> [f64; 5] {
        [self.power_1, self.power_2, self.steps, self.rate, self.root]
    }
}

/// A parameter and its moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The parameter.
    pub w: f64,
    /// The first moment.
    pub m: f64,
    /// The second moment.
    pub v: f64,
}

impl Value {
    /// The value after a step with gradient `g`, in float64. `counter` has counted that step.
    pub fn updated(self, g: f64, counter: Counter) -> Self {
        let m = self.m + (1.0 - BETA_1) * (g - self.m);
        let v = BETA_2 * self.v + (1.0 - BETA_2) * g * g;
        let w = self.w * (1.0 - RATE * DECAY);
        Self {
            w: w - counter.rate * m / (v.sqrt() * counter.root + EPSILON),
            m,
            v,
        }
    }
}

/// Parameters and their moments.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// The parameters.
    pub parameters: &'a [f32],
    /// The first moments.
    pub first: &'a [f32],
    /// The second moments.
    pub second: &'a [f32],
}

impl State<'_> {
    /// The values with these indices.
    pub fn part(&self, range: Range<usize>) -> Self {
        Self {
            parameters: &self.parameters[range.clone()],
            first: &self.first[range.clone()],
            second: &self.second[range],
        }
    }

    /// One value of each parameter and its moments.
    pub fn values(&self) -> impl Iterator<Item = Value> {
        let moments = self.first.iter().zip(self.second);
        let values = self.parameters.iter().zip(moments);
        values.map(|(&w, (&m, &v))| Value {
            w: w.into(),
            m: m.into(),
            v: v.into(),
        })
    }

    /// The largest errors of the parameters, of the first and of the second moments in `after`, the
    /// state after a step with these gradients; each relative to the sum of magnitudes of its terms, so
    /// that cancellation does not matter.
    pub fn errors(&self, gradients: &[f32], counter: Counter, after: State<'_>) -> [f64; 3] {
        let mut largest = [0.0; 3];
        for ((before, &g), found) in self.values().zip(gradients).zip(after.values()) {
            let g = f64::from(g);
            let after = before.updated(g, counter);
            let terms = Value {
                m: before.m.abs(),
                ..before
            };
            let size = terms.updated(g.abs(), counter);
            let step = (size.w - before.w * (1.0 - RATE * DECAY)).abs();
            let errors = [
                relative((found.w - after.w).abs(), before.w.abs() + step),
                relative((found.m - after.m).abs(), size.m),
                relative((found.v - after.v).abs(), after.v),
            ];
            for (largest, error) in largest.iter_mut().zip(errors) {
                *largest = worse(*largest, error);
            }
        }
        largest
    }
}

wide! {
    /// A step with gradients `g`, in place and in f32; `rate` and `root` are those of the [`Counter`].
    pub fn step_in_f32(w: &mut [f32], g: &[f32], m: &mut [f32], v: &mut [f32], rate: f32, root: f32) {
        for (((w, g), m), v) in w.iter_mut().zip(g).zip(m).zip(v) {
            *m += (1.0 - BETA_1) as f32 * (g - *m);
            *v = BETA_2 as f32 * *v + (1.0 - BETA_2) as f32 * g * g;
            let kept = *w * (1.0 - RATE * DECAY) as f32;
            *w = kept - rate * (*m / (v.sqrt() * root + EPSILON as f32));
        }
    }
}
