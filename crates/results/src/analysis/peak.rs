//! The arithmetic of a multiprocessor per clock, by architecture and number format.
//!
//! A peak is multiprocessors times this times the SM clock. The f32 rows are the FP32 cores of a
//! multiprocessor in NVIDIA's CUDA C++ Programming Guide ([compute capabilities][cc], the same
//! figures as in its table of arithmetic throughput), each a fused multiply-add per clock. So are the f64 rows
//! its FP64 cores, which the section of each compute capability states under "Architecture":
//!
//! | compute capability | FP64 cores per multiprocessor, by the guide | and by |
//! | --- | --- | --- |
//! | 7.0 | 32 | [Tesla V100 white paper][v100]: 7.8 TFLOP/s with 80 multiprocessors at 1,530 MHz |
//! | 7.5 | 2 (footnote to 7.x), 1/32 of f32 | [Turing white paper][turing]: two per multiprocessor, 1/32 of the rate in FP32 |
//! | 8.0 | 32 | [A100 white paper][a100]: 9.7 TFLOP/s with 108 at 1,410 MHz |
//! | 8.6, 8.7, 8.9 | 2, 1/64 of f32 | [GA102 white paper][ga102]: two per multiprocessor, 1/64 |
//! | 9.0 | 64 | [H100 white paper][h100]: 33.5 TFLOP/s with 132 at 1,980 MHz |
//! | 10.0 | 64 | [HGX B200 data sheet][b200]: 37 TFLOP/s, an eighth of 296 |
//! | 12.0, 12.1 | 2, 1/64 of f32 | [RTX Blackwell white paper][gb202]: 384 in the 192 multiprocessors of GB202, 1/64 |
//!
//! The tensor cores' rows are for dense matrices, f32 accumulation:
//!
//! | compute capability | source |
//! | --- | --- |
//! | 7.0 | [Tesla V100 white paper][v100]: 8 tensor cores of 64 multiply-adds per clock; 125 TFLOP/s with 80 multiprocessors at 1,530 MHz |
//! | 8.0 | [A100 white paper][a100]: 1,024 FP16 multiply-adds per clock and multiprocessor, TF32 half of that; 156 and 312 TFLOP/s with 108 at 1,410 MHz; 19.5 in FP64, where the FP64 cores have 9.7 |
//! | 9.0 | [H100 white paper][h100]: 494.7 TFLOP/s TF32, 989.4 FP16 and BF16, 1,978.9 FP8 with 132 multiprocessors at 1,830 MHz; 66.9 in FP64 at 1,980 MHz, where the FP64 cores have 33.5 |
//! | 10.0, 10.3 | [HGX B200 and B300 data sheet][b200]: 9 PFLOP/s TF32, 18 FP16 and BF16, 36 FP8 of eight devices, twice the figures per multiprocessor of 9.0; of 10.0 296 TFLOP/s in FP64, on tensor cores as beside them |
//!
//! A row is missing where no document has the figure (f64 of 10.3 and 11.0), and where devices of one compute
//! capability differ: GeForce boards of 7.5, 8.6, 8.9 and 12.0 accumulate in f32 at half the rate of the
//! professional ones.
//!
//! [cc]: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-capabilities
//! [v100]: https://images.nvidia.com/content/volta-architecture/pdf/volta-architecture-whitepaper.pdf
//! [turing]: https://images.nvidia.com/aem-dam/en-zz/Solutions/design-visualization/technologies/turing-architecture/NVIDIA-Turing-Architecture-Whitepaper.pdf
//! [a100]: https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/nvidia-ampere-architecture-whitepaper.pdf
//! [ga102]: https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf
//! [h100]: https://resources.nvidia.com/en-us-tensor-core/gtc22-whitepaper-hopper
//! [gb202]: https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf
//! [b200]: https://www.nvidia.com/en-us/data-center/hgx/

use crate::model::role::Format;
use crossover_words::f32_flop_per_clock;

/// FLOP per clock and multiprocessor, a multiply-add
/// counted as two; `None` where the table of this module has no source for it.
pub fn flop_per_clock(compute_capability: (u32, u32), format: Format) -> Option<f64> {
    use Format::{Bf16, F32, F64, Fp8, Fp16, Tf32};
    let flop = match (compute_capability, format) {
        (_, F32) => f32_flop_per_clock(compute_capability)?,
        ((7, 5) | (8, 6) | (8, 7) | (8, 9) | (12, 0) | (12, 1), F64) => 4,
        ((7, 0) | (8, 0), F64) => 64,
        ((9, 0) | (10, 0), F64) => 128,
        ((7, 0), Fp16) => 1024,
        ((8, 0), Tf32) => 1024,
        ((8, 0), Fp16 | Bf16) => 2048,
        ((9, 0), Tf32) => 2048,
        ((9, 0), Fp16 | Bf16) => 4096,
        ((9, 0), Fp8) => 8192,
        ((10, 0) | (10, 3), Tf32) => 4096,
        ((10, 0) | (10, 3), Fp16 | Bf16) => 8192,
        ((10, 0) | (10, 3), Fp8) => 16384,
        _ => return None,
    };
    Some(f64::from(flop))
}

/// The speedup of tensor cores over the FP64 cores in float64; 1 if there are none for it, or none that
/// are faster.
pub fn f64_on_tensor_cores(compute_capability: (u32, u32)) -> f64 {
    match compute_capability {
        (8, 0) | (9, 0) => 2.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of the documents, which they round to a digit or more. Two more rows are of f64 on
    /// tensor cores.
    #[test]
    fn the_table_gives_the_vendors_figures() {
        use Format::{Bf16, F32, F64, Fp8, Fp16, Tf32};
        let (v100, a100) = (((7, 0), 80.0, 1530.0), ((8, 0), 108.0, 1410.0));
        let (boost, tensor) = (((9, 0), 132.0, 1980.0), ((9, 0), 132.0, 1830.0));
        // An eighth of the data sheet's figures, at the clock that all of them give.
        let b200 = ((10, 0), 148.0, 1856.0);
        for ((at, multiprocessors, mhz), format, tera) in [
            (v100, F32, 15.7),
            (v100, F64, 7.8),
            (v100, Fp16, 125.0),
            (((7, 5), 68.0, 1635.0), F32, 14.2),
            (a100, F32, 19.5),
            (a100, F64, 9.7),
            (a100, Tf32, 156.0),
            (a100, Fp16, 312.0),
            (a100, Bf16, 312.0),
            (((8, 6), 68.0, 1710.0), F32, 29.8),
            (boost, F32, 66.9),
            (boost, F64, 33.5),
            (tensor, Tf32, 494.7),
            (tensor, Fp16, 989.4),
            (tensor, Bf16, 989.4),
            (tensor, Fp8, 1978.9),
            (b200, Tf32, 1125.0),
            (b200, Bf16, 2250.0),
            (b200, Fp8, 4500.0),
            (a100, F64, 19.5 / f64_on_tensor_cores((8, 0))),
            (boost, F64, 66.9 / f64_on_tensor_cores((9, 0))),
        ] {
            let flop = flop_per_clock(at, format).unwrap();
            let ratio = flop * multiprocessors * mhz * 1e6 / (tera * 1e12);
            assert!((ratio - 1.0).abs() < 0.005, "{at:?} {format:?}: {ratio}");
        }
    }

    /// Gaming boards have 1/32 or 1/64 of the rate in f32. Other architectures are unknown.
    #[test]
    fn f64_is_slow_on_gaming_boards() {
        for (at, slower) in [
            ((7, 5), 32.0),
            ((8, 6), 64.0),
            ((8, 9), 64.0),
            ((12, 0), 64.0),
            ((12, 1), 64.0),
        ] {
            let [f32, f64] = [Format::F32, Format::F64].map(|format| flop_per_clock(at, format));
            assert_eq!(f32.unwrap(), slower * f64.unwrap(), "{at:?}");
            assert_eq!(f64_on_tensor_cores(at), 1.0, "{at:?}");
        }
        for (at, format) in [
            ((10, 3), Format::F64),
            ((8, 9), Format::Fp16),
            ((6, 1), Format::F32),
        ] {
            assert_eq!(flop_per_clock(at, format), None);
        }
    }
}
