//! AdamW against its definition.

use crossover_arithmetic::adamw::{Counter, Value};

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
