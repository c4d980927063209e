//! The number formats of a network's products, and their errors.

use crate::device::{Absence, Gpu};
use crate::model::role;
use crate::workload::matmul::UNIT_ROUNDOFF;
use crate::workload::network::tensor::Element;

/// The format of the operands of a network's products. All sums are in f32, and so are the parameters
/// that an update reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// f32 as it is.
    F32,
    /// BF16, 7 bits of fraction: inputs, copies of the parameters, and activations.
    Bf16,
}

impl From<Format> for role::Format {
    fn from(format: Format) -> Self {
        match format {
            Format::F32 => role::Format::F32,
            Format::Bf16 => role::Format::Bf16,
        }
    }
}

impl Format {
    /// Requires a device with tensor cores for the format.
    ///
    /// # Errors
    /// [`Absence::DeviceLacks`] on an older device.
    pub(crate) fn require(self, gpu: &Gpu) -> Result<(), Absence> {
        match self {
            Format::F32 => Ok(()),
            Format::Bf16 => gpu.require((8, 0), "BF16 tensor cores"),
        }
    }

    /// The type of the products' operands.
    pub(crate) fn element(self) -> Element {
        match self {
            Format::F32 => Element::F32,
            Format::Bf16 => Element::Bf16,
        }
    }

    /// The error of an operand, relative to it, plus that of the sums, relative to what they
    /// would be if their terms were independent.
    ///
    /// An operand is rounded to nearest in BF16, by up to 2^-8. Sums of k terms in f32 err by sqrt(k) u, u = 2^-24, as in
    /// [`Matmul::verified`](crate::workload::matmul::Matmul::verified), taken twice here for
    /// those whose terms have a common sign; tensor cores cut off up to 2 u of each block of 8
    /// terms. `terms` are those of the longest sums.
    pub(crate) fn unit(self, terms: usize) -> f64 {
        let terms = terms as f64;
        let sums = 2.0 * UNIT_ROUNDOFF * terms.sqrt();
        let cut_off = 0.25 * UNIT_ROUNDOFF * terms;
        match self {
            Format::F32 => sums,
            Format::Bf16 => 2f64.powi(-8) + sums + cut_off,
        }
    }
}
