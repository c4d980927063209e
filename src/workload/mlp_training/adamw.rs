//! AdamW as PyTorch computes it, with decoupled weight decay:
//! <https://docs.pytorch.org/docs/stable/generated/torch.optim.AdamW.html>. The constants are
//! those of `kernels/mlp_training.cu`.

pub(super) const RATE: f64 = 1e-3;
pub(super) const BETA_1: f64 = 0.9;
pub(super) const BETA_2: f64 = 0.999;
pub(super) const EPSILON: f64 = 1e-8;
pub(super) const DECAY: f64 = 0.01;

/// The step counter and the factors that follow from it, in the form in device memory.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(super) struct Counter {
    power_1: f64,
    power_2: f64,
    steps: f64,
    /// The learning rate over the bias correction of the first moment.
    pub(super) rate: f64,
    /// The factor that corrects the root of the second moment.
    pub(super) root: f64,
}

impl Counter {
    /// The counter after `steps` steps.
    pub(super) fn after(steps: u32) -> Self {
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
    pub(super) fn next(self) -> Self {
        Self::of(
            self.power_1 * BETA_1,
            self.power_2 * BETA_2,
            self.steps + 1.0,
        )
    }

    /// Its values in the order of the kernel's struct.
    pub(super) fn values(self) -> [f64; 5] {
        [self.power_1, self.power_2, self.steps, self.rate, self.root]
    }
}

/// A parameter and its moments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Value {
    pub(super) w: f64,
    pub(super) m: f64,
    pub(super) v: f64,
}

impl Value {
    /// The value after a step with gradient `g`, in float64. `counter` has counted that step.
    pub(super) fn updated(self, g: f64, counter: Counter) -> Self {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::mlp_training::problem::MLP_TRAINING;

    /// The definition as PyTorch's page writes it down, step by step.
    #[test]
    fn an_update_is_that_of_the_definition() {
        let mut value = Value {
            w: 0.5,
            m: 0.0,
            v: 0.0,
        };
        let (mut counter, mut m, mut v, mut w) = (Counter::after(0), 0.0f64, 0.0f64, 0.5f64);
        for (t, g) in [(1, 0.1f64), (2, -0.2), (3, 0.3)] {
            counter = counter.next();
            value = value.updated(g, counter);
            m = 0.9 * m + 0.1 * g;
            v = 0.999 * v + 0.001 * g * g;
            let (m_hat, v_hat) = (m / (1.0 - 0.9f64.powi(t)), v / (1.0 - 0.999f64.powi(t)));
            w = w - 0.001 * 0.01 * w - 0.001 * m_hat / (v_hat.sqrt() + 1e-8);
            assert!((value.w - w).abs() < 1e-15 && (value.m - m).abs() < 1e-15);
            assert!((value.v - v).abs() < 1e-15, "{value:?}");
        }
    }

    #[test]
    fn a_counter_that_counts_is_one_that_starts_later() {
        let counted = (0..10).fold(Counter::after(0), |counter, _| counter.next());
        let started = Counter::after(10).values();
        for (a, b) in counted.values().into_iter().zip(started) {
            assert!((a / b - 1.0).abs() < 1e-14 || a == b, "{a} {b}");
        }
    }

    #[test]
    fn the_constants_are_those_of_the_source() {
        for text in [
            "RATE = 1e-3",
            "BETA_1 = 0.9",
            "BETA_2 = 0.999",
            "EPSILON = 1e-8",
            "DECAY = 0.01",
            "CLASSES = 512",
        ] {
            assert!(MLP_TRAINING.text.contains(text), "{text}");
        }
        let ours = (RATE, BETA_1, BETA_2, EPSILON, DECAY);
        assert_eq!(ours, (1e-3, 0.9, 0.999, 1e-8, 0.01));
    }
}
