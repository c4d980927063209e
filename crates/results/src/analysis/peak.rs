//! What arithmetic a multiprocessor does per clock, by architecture and number format.
//!
//! A peak is multiprocessors times this times the SM clock. The f32 rows are the FP32 cores of a
//! multiprocessor in NVIDIA's CUDA C++ Programming Guide ([compute capabilities][cc], the same
//! figures as in its table of arithmetic throughput), each a fused multiply-add per clock. The
//! tensor cores' rows are for dense matrices, f32 accumulation (32-bit integers for INT8):
//!
//! | compute capability | source |
//! | --- | --- |
//! | 7.0 | [Tesla V100 white paper][v100]: 8 tensor cores of 64 multiply-adds per clock; 125 TFLOP/s with 80 multiprocessors at 1,530 MHz |
//! | 7.5 | [Turing white paper][turing]: 227.7 TOP/s INT8 with 68 multiprocessors at 1,635 MHz |
//! | 8.0 | [A100 white paper][a100]: 1,024 FP16 multiply-adds per clock and multiprocessor, TF32 half and INT8 twice of that; 156, 312 and 624 TFLOP/s with 108 at 1,410 MHz |
//! | 8.6 | [GA102 white paper][ga102]: 238 TOP/s INT8 with 68 multiprocessors at 1,710 MHz |
//! | 9.0 | [H100 white paper][h100]: 494.7 TFLOP/s TF32, 989.4 FP16 and BF16, 1,978.9 FP8 and INT8 with 132 multiprocessors at 1,830 MHz |
//!
//! A row is missing where no document has the figure, and where devices of one compute capability
//! differ: GeForce boards of 7.5, 8.6, 8.9 and 12.0 accumulate in f32 at half the rate of the
//! professional ones.
//!
//! [cc]: https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#compute-capabilities
//! [v100]: https://images.nvidia.com/content/volta-architecture/pdf/volta-architecture-whitepaper.pdf
//! [turing]: https://images.nvidia.com/aem-dam/en-zz/Solutions/design-visualization/technologies/turing-architecture/NVIDIA-Turing-Architecture-Whitepaper.pdf
//! [a100]: https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/nvidia-ampere-architecture-whitepaper.pdf
//! [ga102]: https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf
//! [h100]: https://resources.nvidia.com/en-us-tensor-core/gtc22-whitepaper-hopper

use crate::model::role::Format;

/// FLOP per clock and multiprocessor (integer operations for [`Format::Int8`]), a multiply-add
/// counted as two; `None` where the table of this module has no source for it.
pub fn flop_per_clock(compute_capability: (u32, u32), format: Format) -> Option<f64> {
    use Format::{Bf16, F32, Fp8, Fp16, Int8, Tf32};
    let flop = match (compute_capability, format) {
        ((7, 0) | (7, 5) | (8, 0), F32) => 128,
        ((8, 6) | (8, 7) | (8, 9) | (9, 0) | (10, 0) | (12, 0), F32) => 256,
        ((7, 0), Fp16) => 1024,
        ((7, 5) | (8, 6), Int8) => 2048,
        ((8, 0), Tf32) => 1024,
        ((8, 0), Fp16 | Bf16) => 2048,
        ((8, 0), Int8) => 4096,
        ((9, 0), Tf32) => 2048,
        ((9, 0), Fp16 | Bf16) => 4096,
        ((9, 0), Fp8 | Int8) => 8192,
        _ => return None,
    };
    Some(f64::from(flop))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures that the documents give, which they round to a digit or more.
    #[test]
    fn the_table_gives_the_vendors_figures() {
        use Format::{Bf16, F32, Fp8, Fp16, Int8, Tf32};
        for (device, at, multiprocessors, mhz, format, tera) in [
            ("V100", (7, 0), 80.0, 1530.0, F32, 15.7),
            ("V100", (7, 0), 80.0, 1530.0, Fp16, 125.0),
            ("RTX 2080 Ti", (7, 5), 68.0, 1635.0, F32, 14.2),
            ("RTX 2080 Ti", (7, 5), 68.0, 1635.0, Int8, 227.7),
            ("A100", (8, 0), 108.0, 1410.0, F32, 19.5),
            ("A100", (8, 0), 108.0, 1410.0, Tf32, 156.0),
            ("A100", (8, 0), 108.0, 1410.0, Fp16, 312.0),
            ("A100", (8, 0), 108.0, 1410.0, Bf16, 312.0),
            ("A100", (8, 0), 108.0, 1410.0, Int8, 624.0),
            ("RTX 3080", (8, 6), 68.0, 1710.0, F32, 29.8),
            ("RTX 3080", (8, 6), 68.0, 1710.0, Int8, 238.0),
            ("H100 SXM5", (9, 0), 132.0, 1980.0, F32, 66.9),
            ("H100 SXM5", (9, 0), 132.0, 1830.0, Tf32, 494.7),
            ("H100 SXM5", (9, 0), 132.0, 1830.0, Fp16, 989.4),
            ("H100 SXM5", (9, 0), 132.0, 1830.0, Bf16, 989.4),
            ("H100 SXM5", (9, 0), 132.0, 1830.0, Fp8, 1978.9),
            ("H100 SXM5", (9, 0), 132.0, 1830.0, Int8, 1978.9),
        ] {
            let flop = flop_per_clock(at, format).unwrap();
            let ratio = flop * multiprocessors * mhz * 1e6 / (tera * 1e12);
            assert!((ratio - 1.0).abs() < 0.005, "{device} {format:?}: {ratio}");
        }
    }

    #[test]
    fn what_no_document_says_is_unknown() {
        assert_eq!(flop_per_clock((10, 0), Format::Fp8), None);
        assert_eq!(flop_per_clock((8, 9), Format::Fp16), None);
        assert_eq!(flop_per_clock((6, 1), Format::F32), None);
    }
}
