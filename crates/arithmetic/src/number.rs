//! f32 and f64: random values, bytes, and sums in the wider arithmetic that results are checked with.

use ndarray::LinalgScalar;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// f32 or f64.
pub trait Number: LinalgScalar + Send + Sync + From<f32> + Into<f64> + PartialOrd {
    /// The type of its reference: float64 for f32, and two float64 for f64.
    type Wide: Wide<Self>;
    /// Half of the distance from 1 to the next larger number.
    const UNIT_ROUNDOFF: f64;
    /// Not a number.
    const NAN: Self;

    /// Fills with values uniform in [-`reach`, `reach`), each from as many random bits as the format has.
    fn fill_uniform(values: &mut [Self], reach: f32, random: &mut Xoshiro256PlusPlus);

    /// Appends the little-endian bytes of the values.
    fn append(values: &[Self], bytes: &mut Vec<u8>);

    /// Adds `a` times each value of `b` to the sum in the same place.
    fn add_products(sums: &mut [Self::Wide], a: Self, b: &[Self]);

    /// A dot product in eight partial sums, which the compiler turns into vector code.
    fn dot(row: &[Self], x: &[Self::Wide]) -> Self::Wide;
}

/// So many equal values. In this crate because the profile `dev` optimises it.
pub fn equal(count: usize, value: f32) -> Vec<f32> {
    vec![value; count]
}

/// How many values differ from this one. In this crate as [`equal`] is.
pub fn different(values: &[f32], value: f32) -> usize {
    values.iter().filter(|&&other| other != value).count()
}

/// Arithmetic with more precision than `T`.
pub trait Wide<T>: Copy + Send + Sync + From<T> + 'static {
    /// `self + a * b`.
    fn plus_product(self, a: T, b: Self) -> Self;
    /// `self - other`, rounded to float64.
    fn minus(self, other: Self) -> f64;
    /// Rounded to float64.
    fn value(self) -> f64;
}

macro_rules! number {
    ($type:ident, $wide:ident) => {
        impl Number for $type {
            type Wide = $wide;
            const UNIT_ROUNDOFF: f64 = $type::EPSILON as f64 / 2.0;
            const NAN: Self = $type::NAN;

            fn fill_uniform(values: &mut [Self], reach: f32, random: &mut Xoshiro256PlusPlus) {
                let reach = $type::from(reach);
                for value in values {
                    *value = 2.0 * reach * random.random::<$type>() - reach;
                }
            }

            fn append(values: &[Self], bytes: &mut Vec<u8>) {
                bytes.reserve(size_of_val(values));
                for value in values {
                    bytes.extend(value.to_le_bytes());
                }
            }

            fn add_products(sums: &mut [$wide], a: Self, b: &[Self]) {
                for (sum, &b) in sums.iter_mut().zip(b) {
                    *sum = sum.plus_product(a, b.into());
                }
            }

            fn dot(row: &[Self], x: &[$wide]) -> $wide {
                let zero = $wide::from(0.0);
                let mut sums = [zero; 8];
                let (rows, xs) = (row.chunks_exact(8), x.chunks_exact(8));
                let rest = rows.remainder().iter().zip(xs.remainder());
                let rest = rest.fold(zero, |sum, (&c, &x)| sum.plus_product(c, x));
                for (c, x) in rows.zip(xs) {
                    for i in 0..8 {
                        sums[i] = sums[i].plus_product(c[i], x[i]);
                    }
                }
                sums.iter()
                    .fold(rest, |sum, &part| sum.plus_product(1.0, part))
            }
        }
    };
}

/// Distance of `y` from `expected` in ulp, the spacing of float32 at the expected value. 0 if both are NaN,
/// infinite if one is.
pub fn ulp_error(y: f32, expected: f64) -> f64 {
    match (y.is_nan(), expected.is_nan()) {
        (true, true) => 0.0,
        (false, false) => (f64::from(y) - expected).abs() / ulp(expected),
        _ => f64::INFINITY,
    }
}

/// The largest [`ulp_error`] of values against as many expected ones.
pub fn largest_ulp_error(found: &[f32], expected: &[f64]) -> f64 {
    let errors = found
        .iter()
        .zip(expected)
        .map(|(&y, &expected)| ulp_error(y, expected));
    errors.fold(0.0, f64::max)
}

/// Spacing of float32 at |x| ≤ 1, in the binade below where x is a power of two.
fn ulp(x: f64) -> f64 {
    const FRACTION_BITS: i32 = f32::MANTISSA_DIGITS as i32 - 1;
    // The exponent of the float64, so that a value that only rounds up to a power of two
    // counts by the finer spacing that it lies in.
    let exponent = (x.abs().to_bits() >> 52) as i32 - 1023;
    f64::from(exponent.max(f32::MIN_EXP - 1) - FRACTION_BITS).exp2()
}

number!(f32, f64);
number!(f64, DoubleDouble);

impl Wide<f32> for f64 {
    fn plus_product(self, a: f32, b: Self) -> Self {
        self + f64::from(a) * b
    }

    fn minus(self, other: Self) -> f64 {
        self - other
    }

    fn value(self) -> f64 {
        self
    }
}

/// The unevaluated sum of two float64, of which the second is at most half an ulp of the first: 106 bits
/// (T. J. Dekker, A floating-point technique for extending the available precision, Numerische
/// Mathematik 18, 1971; the algorithms of M. Joldes, J.-M. Muller and V. Popescu, Tight and rigorous
/// error bounds for basic building blocks of double-word arithmetic, ACM TOMS 44, 2017).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DoubleDouble {
    high: f64,
    low: f64,
}

/// a + b, rounded, and its rounding error, for any two numbers.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

impl DoubleDouble {
    /// `high + low`, where `high` is zero or not smaller.
    pub fn new(high: f64, low: f64) -> Self {
        let sum = high + low;
        let low = low - (sum - high);
        Self { high: sum, low }
    }

    /// The sum.
    pub fn plus(self, other: Self) -> Self {
        let (high, of_high) = two_sum(self.high, other.high);
        let (low, of_low) = two_sum(self.low, other.low);
        let sum = Self::new(high, of_high + low);
        Self::new(sum.high, sum.low + of_low)
    }

    /// The product.
    pub fn times(self, other: Self) -> Self {
        let high = self.high * other.high;
        let low = self.high.mul_add(other.high, -high);
        Self::new(high, low + (self.high * other.low + self.low * other.high))
    }
}

impl From<f64> for DoubleDouble {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Wide<f64> for DoubleDouble {
    fn plus_product(self, a: f64, b: Self) -> Self {
        self.plus(b.times(a.into()))
    }

    fn minus(self, other: Self) -> f64 {
        let (high, low) = (-other.high, -other.low);
        self.plus(Self { high, low }).value()
    }

    fn value(self) -> f64 {
        self.high + self.low
    }
}
