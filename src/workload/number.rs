//! The number formats that users compute in, and the wider arithmetic that results are compared with.

use ndarray::LinalgScalar;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::model::{Cost, LinkBytes};
use crate::workload::prepare::Value;

/// f32 or f64.
pub trait Number: Value + LinalgScalar + From<f32> + Into<f64> + PartialOrd {
    /// Its reference is computed in this: float64 for f32, and two float64 for f64.
    type Wide: Wide<Self>;
    /// Half of the distance from 1 to the next larger number.
    const UNIT_ROUNDOFF: f64;
    /// Bits of the fraction, and the exponent of the smallest normal number.
    const LAYOUT: (i32, i32);
    /// Not a number.
    const NAN: Self;
    /// Uniform in [0, 1), from as many random bits as it has.
    fn unit(random: &mut Xoshiro256PlusPlus) -> Self;
    /// Appends its little-endian bytes.
    fn append_to(self, bytes: &mut Vec<u8>);
}

/// Arithmetic that is wider than that of `T`.
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

            fn unit(random: &mut Xoshiro256PlusPlus) -> Self {
                random.random()
            }

            fn append_to(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }
        }
    };
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

/// a + b and what it rounds off, of any two.
fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let of_b = sum - a;
    (sum, (a - (sum - of_b)) + (b - of_b))
}

impl DoubleDouble {
    /// `high + low`, where `high` is zero or not smaller.
    fn new(high: f64, low: f64) -> Self {
        let sum = high + low;
        let low = low - (sum - high);
        Self { high: sum, low }
    }

    fn plus(self, other: Self) -> Self {
        let (high, of_high) = two_sum(self.high, other.high);
        let (low, of_low) = two_sum(self.low, other.low);
        let sum = Self::new(high, of_high + low);
        Self::new(sum.high, sum.low + of_low)
    }

    fn times(self, other: Self) -> Self {
        let high = self.high * other.high;
        let low = self.high.mul_add(other.high, -high);
        Self::new(high, low + (self.high * other.low + self.low * other.high))
    }

    fn over(self, divisor: f64) -> Self {
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

    /// Within 2⁻⁷⁰ of itself up to 2²⁰: x - k π with 161 bits of π, and the series of the sine, whose terms
    /// from the sixth on are less than 2⁻¹⁸ of the sum and computed in float64. Above, and for what is
    /// no number, it is the C library's, which glibc documents to be within 1 ulp.
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
            Self::from(1.0).plus(square.times(sum).over(-divisor(i)))
        });
        let sign = if k % 2.0 == 0.0 { 1.0 } else { -1.0 };
        r.times(series).times(sign.into())
    }
}

/// What the names of choices say of the format.
pub(crate) fn in_format<T: Number>() -> &'static str {
    match size_of::<T>() {
        4 => "",
        _ => " in f64",
    }
}

/// The cost of the same in f64: twice the bytes.
pub(crate) fn in_f64(cost: Cost) -> Cost {
    let link = |bytes: LinkBytes| LinkBytes::new(2.0 * bytes.to_device, 2.0 * bytes.to_host);
    Cost {
        bytes: cost.bytes.map(|bytes| 2.0 * bytes),
        written: cost.written.map(|bytes| 2.0 * bytes),
        link_bytes: cost.link_bytes.map(link),
        ..cost
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::{FRAC_PI_2, PI};

    use super::*;

    /// What float64 cannot hold: 0.1², and its sum with -0.01.
    #[test]
    fn a_product_keeps_what_float64_rounds_off() {
        let square = DoubleDouble::from(0.0).plus_product(0.1, 0.1f64.into());
        let rest = square.minus(DoubleDouble::from(0.1 * 0.1));
        assert_eq!(rest, 0.1f64.mul_add(0.1, -(0.1 * 0.1)));
        assert!(rest != 0.0 && rest.abs() < 1e-18);
        let large = DoubleDouble::from(1e30).plus_product(1.0, 1f64.into());
        assert_eq!(large.minus(DoubleDouble::from(1e30)), 1.0);
        let third = DoubleDouble::from(1.0).over(3.0);
        assert_eq!(third.times(3f64.into()).minus(1f64.into()), 0.0);
    }

    /// Sines to 32 digits, as two float64, by mpmath; beside multiples of π almost all of x cancels.
    #[test]
    fn sines_are_right_far_beyond_float64() {
        for (x, high, low) in [
            (1.0, 0.8414709848078965, 1.776845092935536e-18),
            (0.5, 0.479425538604203, -5.103969860556013e-18),
            (-3.0, -0.1411200080598672, -8.577269787017502e-18),
            (PI, 1.2246467991473532e-16, -2.99476980971834e-33),
            (FRAC_PI_2, 1.0, -1.874699728327322e-33),
            (22.0, -0.008851309290403876, 2.8485303089220057e-19),
            (355.0, -3.014435335948845e-05, 1.3012643991046347e-21),
            (1e-05, 9.999999999833334e-06, 6.182336062862823e-22),
            (100000.0, 0.03574879797201651, 1.5429743706109861e-18),
            (103993.0, -1.9129335778423752e-05, 1.6616884502200222e-21),
            (1048576.0, 0.3304931400217347, -1.6543399442668335e-17),
        ] {
            let sine = DoubleDouble::from(x).sin();
            let error = sine.minus(DoubleDouble::new(high, low)) / high;
            assert!(error.abs() < 2f64.powi(-69), "{x}: {error:e}");
        }
        let pi = DoubleDouble::new(PI, 1.224_646_799_147_353_2e-16);
        assert!(pi.sin().value().abs() < 1e-32);
        assert!(DoubleDouble::from(f64::INFINITY).sin().value().is_nan());
    }
}
