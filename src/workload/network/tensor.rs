//! Values in device memory, in f32 or, as the upper half of an f32, in BF16.

use std::rc::Rc;

use bytemuck::NoUninit;
use cudarc::driver::sys::CUdeviceptr;
use rayon::prelude::*;

use crate::model::Format;
use crate::timing::CudaError;
use crate::workload::prepare::{Device, HostMemory, Memory, Prepared};
use crate::workload::product::{Matrix, properties};

/// Values in the device memory of a routine.
#[derive(Clone, Copy)]
pub(crate) struct Tensor {
    pub(crate) device: Device<u8>,
    pub(crate) format: Format,
    pub(crate) len: usize,
}

impl Tensor {
    /// `len` zeros, which become NaN before a run whose result is checked.
    pub(crate) fn output(
        work: &mut Prepared,
        format: Format,
        len: usize,
    ) -> Result<Self, CudaError> {
        let device = work.output(len * properties(format).bytes)?;
        work.memory.fill(device, 0)?;
        Ok(Self {
            device,
            format,
            len,
        })
    }

    /// A copy of `values`, rounded where the format has fewer bits. Waits until it has arrived.
    pub(crate) fn of(
        work: &mut Prepared,
        format: Format,
        values: &[f32],
    ) -> Result<Self, CudaError> {
        let device = if format == Format::Bf16 {
            let halves = values.iter().flat_map(|&v| bf16(v).to_le_bytes());
            work.upload(&halves.collect::<Vec<u8>>())?
        } else {
            work.upload(bytemuck::cast_slice(values))?
        };
        Ok(Self {
            device,
            format,
            len: values.len(),
        })
    }

    /// Numbers of four bytes of `owner`, copied once, or by the steps from host memory of one kind.
    pub(crate) fn input<W: 'static, T: NoUninit>(
        work: &mut Prepared,
        from: Option<HostMemory>,
        owner: &Rc<W>,
        values: impl Fn(&W) -> &[T],
    ) -> Result<Self, CudaError> {
        const { assert!(size_of::<T>() == 4) };
        Ok(Self {
            device: work.input(from, owner, |owner| bytemuck::cast_slice(values(owner)))?,
            format: Format::F32,
            len: values(owner).len(),
        })
    }

    /// As [`input`](Self::input), for indices. From host memory they have arrived when this returns,
    /// for the calibrations that follow. Before a checked run they become zero, not NaN: with an
    /// invalid index the kernels would read outside their memory.
    pub(crate) fn indices<W: 'static>(
        work: &mut Prepared,
        from: Option<HostMemory>,
        owner: &Rc<W>,
        values: impl Fn(&W) -> &[u32],
    ) -> Result<Self, CudaError> {
        let indices = Self::input(work, from, owner, values)?;
        if from.is_some() {
            work.poison_by(indices.device, 0);
            work.steps.run()?;
        }
        Ok(indices)
    }

    pub(crate) fn address(&self) -> CUdeviceptr {
        self.device.address
    }

    /// The address of the value with this index.
    pub(crate) fn at(&self, place: usize) -> CUdeviceptr {
        self.device.at(place * properties(self.format).bytes)
    }

    /// All values as a row-major matrix.
    pub(crate) fn matrix(&self, rows: usize, columns: usize) -> Matrix {
        Matrix::new(self.address(), self.format, rows, columns)
    }

    /// The suffix of the names of its kernels.
    pub(crate) fn suffix(&self) -> &'static str {
        properties(self.format).suffix
    }

    /// The values, as f32. Waits until they have arrived.
    pub(crate) fn values(&self, memory: &Memory) -> Result<Vec<f32>, CudaError> {
        let bytes = memory.read(self.device)?;
        if self.format != Format::Bf16 {
            let mut values = vec![0.0; self.len];
            bytemuck::cast_slice_mut(&mut values).copy_from_slice(&bytes);
            return Ok(values);
        }
        let (twos, _) = bytes.as_chunks::<2>();
        let halves = twos.par_iter().map(|b| u32::from(u16::from_le_bytes(*b)));
        Ok(halves.map(|half| f32::from_bits(half << 16)).collect())
    }
}

/// Rounds to BF16, to nearest, ties to even, as the kernels do.
pub(crate) fn bf16(value: f32) -> u16 {
    half::bf16::from_f32(value).to_bits()
}

#[cfg(test)]
mod tests {
    use super::rounded::{to_bf16, to_nearest};

    #[test]
    fn bf16_is_rounded_to_nearest_and_ties_to_even() {
        for (value, expected) in [
            (1.0 + 1.0 / 256.0, 1.0),
            (1.0 + 3.0 / 256.0, 1.0 + 4.0 / 256.0),
            (-1.0 - 1.1 / 256.0, -1.0 - 2.0 / 256.0),
            (0.0, 0.0),
        ] {
            assert_eq!(to_bf16(value), expected, "{value}");
            assert_eq!(to_nearest(value, 7), expected, "{value}");
        }
        for nan in [0x7fff_ffff, 0xffff_ffff, 0x7f80_0001] {
            assert!(to_bf16(f32::from_bits(nan)).is_nan(), "{nan:#x}");
        }
    }
}

/// The number formats that the tests of networks round operands to.
#[cfg(test)]
pub(crate) mod rounded {
    use super::bf16;

    pub(crate) type Round = fn(f32) -> f32;

    pub(crate) fn to_tf32(value: f32) -> f32 {
        // Cut off, as the hardware may.
        f32::from_bits(value.to_bits() & !0x1fff)
    }

    pub(crate) fn to_bf16(value: f32) -> f32 {
        f32::from_bits(u32::from(bf16(value)) << 16)
    }

    /// Rounds to nearest, ties to even, with `bits` bits of fraction, as if no value were subnormal.
    pub(crate) fn to_nearest(value: f32, bits: u32) -> f32 {
        let (all, drop) = (value.to_bits(), 23 - bits);
        let half = (1 << (drop - 1)) - 1 + (all >> drop & 1);
        f32::from_bits((all + half) >> drop << drop)
    }
}
