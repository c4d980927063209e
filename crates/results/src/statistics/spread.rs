//! The spread of values, with its degrees of freedom, and Student's t.
//!
//! A few processes say little about how much the next one differs, so their spread is pooled with that
//! of their class, which counts for some degrees of freedom: the moderated variance of Smyth, "Linear
//! models and empirical Bayes methods for assessing differential expression in microarray experiments",
//! Statistical Applications in Genetics and Molecular Biology 3 (2004). Code whose time has two modes
//! keeps its wide interval, and does not widen those of the others.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Degrees of freedom that the spread of a class counts for beside a benchmark's own, where the
/// class does not tell how alike its benchmarks are.
pub const CLASS_FREEDOM: f64 = 4.0;

/// The quantile of Student's t with [`CLASS_FREEDOM`] that an interval of 95 % reaches: some benchmarks of a
/// class spread more than others.
pub(crate) const TWO_SIDED_95: f64 = 2.776;

/// A sum of squares, and its degrees of freedom.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Sum of the squared distances from what was expected.
    pub squares: f64,
    /// How many of them are free.
    pub freedom: f64,
}

impl Spread {
    /// The spread of values around their mean.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n.max(1.0);
        Self {
            squares: values.iter().map(|v| (v - mean).powi(2)).sum(),
            freedom: (n - 1.0).max(0.0),
        }
    }

    /// A variance that counts for these degrees of freedom.
    pub fn known(variance: f64, freedom: f64) -> Self {
        Self {
            squares: variance * freedom,
            freedom,
        }
    }

    /// Both pooled.
    pub fn and(self, other: Self) -> Self {
        Self {
            squares: self.squares + other.squares,
            freedom: self.freedom + other.freedom,
        }
    }

    /// The mean square; `None` without any degree of freedom.
    pub fn variance(self) -> Option<f64> {
        (self.freedom > 0.0).then(|| self.squares / self.freedom)
    }
}

/// Degrees of freedom of a sum of variances, each with its own (Satterthwaite, "An approximate
/// distribution of estimates of variance components", Biometrics Bulletin 2, 1946); infinite where
/// all are certain.
pub fn freedom_of_sum(parts: &[(f64, f64)]) -> f64 {
    let sum: f64 = parts.iter().map(|(variance, _)| variance).sum();
    // In shares, because the square of a large variance overflows.
    let doubt = parts
        .iter()
        .map(|(variance, freedom)| (variance / sum).powi(2) / freedom);
    doubt.sum::<f64>().recip()
}

/// The value that a fraction `probability` of Student's t around zero, of scale 1, lies below.
pub fn quantile(freedom: f64, probability: f64) -> f64 {
    student(freedom).inverse_cdf(probability)
}

/// Probability that Student's t is more than `t`.
pub fn upper_tail(freedom: f64, t: f64) -> f64 {
    student(freedom).sf(t)
}

fn student(freedom: f64) -> StudentsT {
    StudentsT::new(0.0, 1.0, freedom).expect("the degrees of freedom are above zero")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variance_of_a_class_moderates_that_of_a_few_values() {
        let own = Spread::of(&[1.0, 2.0, 3.0]);
        assert_eq!((own.variance(), own.freedom), (Some(1.0), 2.0));
        let moderated = own.and(Spread::known(4.0, CLASS_FREEDOM));
        assert_eq!(moderated.variance(), Some((2.0 + 16.0) / 6.0));
        assert_eq!(Spread::of(&[5.0]).variance(), None);
        assert_eq!(Spread::default().variance(), None);
    }

    #[test]
    fn a_sum_of_variances_is_as_free_as_its_parts_allow() {
        assert_eq!(freedom_of_sum(&[(3.0, 7.0)]), 7.0);
        // Two equal ones of equal freedom have that of both.
        assert_eq!(freedom_of_sum(&[(2.0, 5.0), (2.0, 5.0)]), 10.0);
        assert_eq!(freedom_of_sum(&[(1e300, 5.0), (1e-300, 1.0)]), 5.0);
        let certain = freedom_of_sum(&[(1.0, 4.0), (3.0, f64::INFINITY)]);
        assert!((certain - 64.0).abs() < 1e-9);
    }
    #[test]
    fn the_interval_reaches_as_far_as_students_t() {
        assert!((quantile(CLASS_FREEDOM, 0.975) - TWO_SIDED_95).abs() < 1e-3);
        assert!((upper_tail(CLASS_FREEDOM, TWO_SIDED_95) - 0.025).abs() < 1e-4);
    }
}
