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
    /// Bits of the fraction, and the exponent of the smallest normal number.
    const LAYOUT: (i32, i32);
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

    /// Distance from `expected` in ulp, the spacing of `Self` at the expected value. 0 where both are NaN,
    /// infinite where one is.
    fn ulp_error(self, expected: Self::Wide) -> f64;
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
    /// The sine.
    fn sin(self) -> Self;
}

macro_rules! number {
    ($type:ident, $wide:ident) => {
        impl Number for $type {
            type Wide = $wide;
            const UNIT_ROUNDOFF: f64 = $type::EPSILON as f64 / 2.0;
            const LAYOUT: (i32, i32) = ($type::MANTISSA_DIGITS as i32 - 1, $type::MIN_EXP - 1);
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

            fn ulp_error(self, expected: $wide) -> f64 {
                ulp_error(self, expected)
            }
        }
    };
}

fn ulp_error<T: Number>(y: T, expected: T::Wide) -> f64 {
    let (value, rounded): (f64, f64) = (y.into(), expected.value());
    match (value.is_nan(), rounded.is_nan()) {
        (true, true) => 0.0,
        (false, false) => T::Wide::from(y).minus(expected).abs() / ulp::<T>(rounded),
        _ => f64::INFINITY,
    }
}

/// Spacing of `T` at |x| ≤ 1, in the binade below where x is a power of two.
fn ulp<T: Number>(x: f64) -> f64 {
    let (fraction, smallest) = T::LAYOUT;
    // The exponent of the float64, so that a value that only rounds up to a power of two
    // counts by the finer spacing that it lies in.
    let exponent = (x.abs().to_bits() >> 52) as i32 - 1023;
    f64::from(exponent.max(smallest) - fraction).exp2()
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

    fn sin(self) -> Self {
        f64::sin(self)
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

    /// The quotient.
    pub fn over(self, divisor: f64) -> Self {
        let high = self.high / divisor;
        Self::new(
            high,
            (high.mul_add(-divisor, self.high) + self.low) / divisor,
        )
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

    /// Within 2⁻⁷⁰ relative up to 2²⁰: x - k π with 161 bits of π, and the series of the sine, whose
    /// terms from the sixth on are less than 2⁻¹⁸ of the sum and computed in float64. Above, and for
    /// NaN, it is the C library's sine, which glibc documents to be within 1 ulp.
    fn sin(self) -> Self {
        const PI: [f64; 3] = [
            std::f64::consts::PI,
            1.224_646_799_147_353_2e-16,
            -2.994_769_809_718_339_7e-33,
        ];
        const LARGEST: f64 = (1 << 20) as f64;
        if self.high.is_nan() || self.high.abs() > LARGEST {
            return self.high.sin().into();
        }
        let k = (self.high * std::f64::consts::FRAC_1_PI).round();
        let r = PI
            .iter()
            .fold(self, |r, &part| r.plus_product(-k, part.into()));
        // sin r = r (1 - r²/(2·3) (1 - r²/(4·5) (1 - ...))).
        let square = r.times(r);
        let divisor = |i: i32| f64::from(2 * i * (2 * i + 1));
        let tail = (6..=13).rev();
        let tail = tail.fold(1.0, |sum, i| 1.0 - square.high / divisor(i) * sum);
        let series = (1..=5).rev().fold(Self::from(tail), |sum, i| {
            Self::from(1.0).plus(square.over(-divisor(i)).times(sum))
        });
        let sign = if k % 2.0 == 0.0 { 1.0 } else { -1.0 };
        r.times(series).times(sign.into())
    }
}
