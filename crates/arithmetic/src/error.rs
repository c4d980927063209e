//! The errors of results, relative to expected values.

/// The larger of two errors. `f64::max` would drop a NaN, and with it elements that were never
/// written.
#[inline]
pub fn worse(x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        f64::NAN
    } else {
        x.max(y)
    }
}

/// An error relative to a scale. Zero relative to zero is zero.
#[inline]
pub fn relative(error: f64, scale: f64) -> f64 {
    if error == 0.0 { 0.0 } else { error / scale }
}

/// The largest difference of any two values; `least` is a lower bound on the expected ones (0 after
/// ReLU).
///
/// # Panics
/// If there are not as many values as are expected.
pub fn largest(found: &[f32], expected: &[f64], least: f64) -> f64 {
    assert_eq!(found.len(), expected.len(), "values to compare");
    let pairs = found.iter().zip(expected);
    let errors = pairs.map(|(&found, &expected)| (f64::from(found) - expected.max(least)).abs());
    errors.fold(0.0, worse)
}

/// The largest difference relative to the expected value.
///
/// # Panics
/// As [`largest`].
pub fn largest_relative(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len(), "values to compare");
    let pairs = found
        .iter()
        .zip(expected)
        .map(|(&x, &y)| (f64::from(x), f64::from(y)));
    pairs.fold(0.0, |error, (found, expected)| {
        worse(error, relative((found - expected).abs(), expected.abs()))
    })
}
