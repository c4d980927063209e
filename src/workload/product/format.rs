//! The number formats of operands.

use crate::device::{Absence, Gpu};
use crate::model::Format;

/// The factor of FP8 operands, as in `kernels/precision.cu`. It leaves through the factor of the
/// product.
pub(crate) const FP8_SCALE: f32 = 256.0;

/// The properties of a format of operands.
#[derive(Clone, Copy)]
pub(crate) struct Properties {
    /// Half the distance of neighbouring numbers, relative to the number; zero where operands are not
    /// rounded.
    pub(crate) unit_roundoff: f64,
    /// Bytes of an element.
    pub(crate) bytes: usize,
    /// Suffix of the names of kernels.
    pub(crate) suffix: &'static str,
    /// The numbers of rows and columns must be multiples of this for the libraries.
    pub(crate) multiple: usize,
    /// Oldest compute capability whose tensor cores take the format, and what an older device lacks.
    oldest: (u32, u32),
    tensor_cores: &'static str,
}

#[rustfmt::skip]
pub(crate) fn properties(format: Format) -> Properties {
    let (unit_roundoff, bytes, suffix, multiple, oldest, tensor_cores) = match format {
        Format::F32 => (0.0, 4, "f32", 1, (0, 0), ""),
        Format::F64 => (0.0, 8, "f64", 1, (0, 0), ""),
        Format::Tf32 => (1.0 / 2048.0, 4, "tf32", 1, (8, 0), "TF32 tensor cores"),
        Format::Fp16 => (1.0 / 2048.0, 2, "f16", 1, (7, 5), "FP16 tensor cores"),
        Format::Bf16 => (1.0 / 256.0, 2, "bf16", 1, (8, 0), "BF16 tensor cores"),
        Format::Fp8 => (1.0 / 16.0, 1, "e4m3", 16, (8, 9), "FP8 tensor cores"),
    };
    Properties { unit_roundoff, bytes, suffix, multiple, oldest, tensor_cores }
}

impl Properties {
    /// Requires a device whose tensor cores take the format.
    ///
    /// # Errors
    /// [`Absence::DeviceLacks`] on an older device.
    pub(crate) fn require(self, gpu: &Gpu) -> Result<(), Absence> {
        gpu.require(self.oldest, self.tensor_cores)
    }
}
