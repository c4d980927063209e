//! Student's t around zero, of scale 1.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The quantile with four degrees of freedom
/// ([`CLASS_FREEDOM`](crate::statistics::spread::CLASS_FREEDOM)) that an interval of 95 % reaches: some
/// benchmarks of a class spread more than others.
pub(crate) const TWO_SIDED_95: f64 = 2.776;

/// The value that a fraction `probability` of the distribution lies below.
pub fn quantile(freedom: f64, probability: f64) -> f64 {
    student(freedom).inverse_cdf(probability)
}

/// Probability of more than `t`.
pub fn upper_tail(freedom: f64, t: f64) -> f64 {
    student(freedom).sf(t)
}

fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("the degrees of freedom are above zero")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::spread::CLASS_FREEDOM;

    #[test]
    fn the_interval_reaches_as_far_as_students_t() {
        assert!((quantile(CLASS_FREEDOM, 0.975) - TWO_SIDED_95).abs() < 1e-3);
        assert!((upper_tail(CLASS_FREEDOM, TWO_SIDED_95) - 0.025).abs() < 1e-4);
    }
}
