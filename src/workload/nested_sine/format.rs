//! The differences between nested sines of f32 and of f64.

use std::f64::consts::FRAC_PI_2;

use crate::device::kernel::Source;
use crate::workload::nested_sine::kernel::{Kernel, NESTED_SINE, NESTED_SINE_F64};
use crate::workload::number::Number;
use crossover_arithmetic::Isa;
use crossover_arithmetic::sine::Stores;
use crossover_arithmetic::sine_f64;

/// Bytes of the value that outputs are filled with before a run: 3.004 as float32, which no
/// sine is. NaN would not do, since some results are NaN.
pub(super) const POISON_BYTE: u8 = 0x40;
/// [`POISON_BYTE`] four times.
pub(crate) const POISON: f32 = f32::from_bits(u32::from_ne_bytes([POISON_BYTE; 4]));

/// A format that nested sines are computed in.
pub trait Sine: Number {
    /// The sources of its kernels.
    const SOURCES: &'static [&'static Source];
    /// The kernel that fuses the four passes.
    const FUSED: Kernel;
    /// The content of outputs before a run: no sine, and no NaN, which some results are.
    const POISON: Self;
    /// Whether [`nested`](Self::nested) can store past the caches.
    const STREAMS: bool;
    /// The sine of the standard library.
    fn sine(self) -> Self;
    /// y = sin(sin(sin(sin x))) in the widest vectors that the CPU has, on the calling thread.
    fn nested(x: &[Self], y: &mut [Self], stores: Stores);
    /// Inputs that a sine is likely to get wrong.
    fn adversarial() -> Vec<Self>;
}

impl Sine for f32 {
    const SOURCES: &'static [&'static Source] = &[&NESTED_SINE];
    const FUSED: Kernel = Kernel {
        source: &NESTED_SINE,
        name: "sine_fused",
        vectors: 2,
    };
    const POISON: Self = POISON;
    const STREAMS: bool = true;

    fn sine(self) -> Self {
        self.sin()
    }

    fn nested(x: &[Self], y: &mut [Self], stores: Stores) {
        Isa::best().nested_sine(x, y, stores);
    }

    /// The inputs that [`NestedSine::adversarial`](super::NestedSine::adversarial) describes, 4,096 of
    /// them, one of each kind first.
    fn adversarial() -> Vec<Self> {
        let neighbours = |x: f32| [x, x.next_up(), x.next_down()];
        let mut all = vec![
            f32::NAN,
            f32::INFINITY,
            f32::MAX,
            f32::from_bits(1),
            std::f32::consts::PI,
            // Of all float32, the nearest to a multiple of π/2.
            16_367_173.0 * 2f32.powi(72),
            0.0,
            f32::MIN_POSITIVE.next_down(),
            f32::NAN.copysign(-1.0),
        ];
        all.extend(neighbours(crossover_arithmetic::sine::LARGE));
        for exponent in -149..=127 {
            all.extend(neighbours(2f64.powi(exponent) as f32));
            all.push((1.618_034 * 2f64.powi(exponent)) as f32);
        }
        let magnitudes = 4096 / 2;
        // Multiples of π/2, first one by one, then ever further apart up to 2^60.
        let mut multiple = 1.0f64;
        while all.len() < magnitudes {
            all.extend(neighbours((multiple * FRAC_PI_2) as f32));
            multiple = (multiple * 1.15).max(multiple + 1.0).floor();
        }
        all.truncate(magnitudes);
        all.iter().flat_map(|&x| [x, -x]).collect()
    }
}

impl Sine for f64 {
    const SOURCES: &'static [&'static Source] = &[&NESTED_SINE_F64];
    const FUSED: Kernel = Kernel {
        source: &NESTED_SINE_F64,
        name: "sine_fused_f64",
        vectors: 2,
    };
    /// 32.5.
    const POISON: Self = f64::from_bits(0x4040_4040_4040_4040);
    const STREAMS: bool = false;

    fn sine(self) -> Self {
        self.sin()
    }

    fn nested(x: &[Self], y: &mut [Self], _: Stores) {
        sine_f64::nested_sine(x, y);
    }

    /// The inputs of f32, the multiples of π/2 nearest in float64, and values that only float64 has.
    fn adversarial() -> Vec<Self> {
        let mut all: Vec<f64> = f32::adversarial().into_iter().map(f64::from).collect();
        for k in 1..=18_000 {
            let multiple = f64::from(k) * FRAC_PI_2;
            all.extend([multiple, -multiple.next_up(), multiple.next_down()]);
        }
        all.extend([f64::MAX, -f64::MAX, f64::MIN_POSITIVE, f64::from_bits(1)]);
        all.extend([sine_f64::LARGE, sine_f64::LARGE.next_up()]);
        // Of all float64, the nearest to a multiple of π/2.
        all.push(6_381_956_970_095_103.0 * 2f64.powi(797));
        all
    }
}
