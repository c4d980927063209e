//! The host memory of operands and results.

use cudarc::driver::{DeviceRepr, PinnedHostSlice, ValidAsZeroBits};
use rayon::prelude::*;

use crate::device::{
    Gpu,
    copies_and_events::{pinned, pinned_mut},
};
use crate::model::Residency;
use crate::timing::CudaError;

/// How host memory is allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostMemory {
    /// Ordinary memory: the driver copies it through a pinned buffer of its own.
    Pageable,
    /// Allocated page-locked: the device reads and writes it directly, and the CPU caches it as it
    /// does ordinary memory.
    Pinned,
}

impl From<HostMemory> for Residency {
    fn from(memory: HostMemory) -> Self {
        match memory {
            HostMemory::Pageable => Residency::Ordinary,
            HostMemory::Pinned => Residency::Pinned,
        }
    }
}

/// Values in host memory of one kind.
pub(crate) enum Buffer<T> {
    Pageable(Vec<T>),
    Pinned(PinnedHostSlice<T>),
}

impl<T: Copy + Send + Sync + DeviceRepr + ValidAsZeroBits> Buffer<T> {
    /// `len` times `value`. Writing them makes the system provide the pages before anything is
    /// timed.
    pub(crate) fn filled(
        gpu: &Gpu,
        memory: HostMemory,
        value: T,
        len: usize,
    ) -> Result<Self, CudaError> {
        Ok(match memory {
            HostMemory::Pageable => Self::Pageable(vec![value; len]),
            HostMemory::Pinned => {
                let mut slice = gpu.alloc_pinned(len)?;
                fill(pinned_mut(&mut slice)?, value);
                Self::Pinned(slice)
            }
        })
    }

    /// A copy of `values`.
    pub(crate) fn of(gpu: &Gpu, memory: HostMemory, values: &[T]) -> Result<Self, CudaError> {
        Ok(match memory {
            HostMemory::Pageable => Self::Pageable(values.to_vec()),
            HostMemory::Pinned => Self::Pinned(pinned_copy(gpu, values)?),
        })
    }

    pub(crate) fn values(&self) -> Result<&[T], CudaError> {
        match self {
            Self::Pageable(values) => Ok(values),
            Self::Pinned(slice) => pinned(slice),
        }
    }

    pub(crate) fn values_mut(&mut self) -> Result<&mut [T], CudaError> {
        match self {
            Self::Pageable(values) => Ok(values),
            Self::Pinned(slice) => pinned_mut(slice),
        }
    }
}

/// A copy of `values` in pinned memory.
fn pinned_copy<T: Copy + Send + Sync + DeviceRepr + ValidAsZeroBits>(
    gpu: &Gpu,
    values: &[T],
) -> Result<PinnedHostSlice<T>, CudaError> {
    let mut copy = gpu.alloc_pinned(values.len())?;
    (pinned_mut(&mut copy)?.par_chunks_mut(PIECE))
        .zip(values.par_chunks(PIECE))
        .for_each(|(to, from)| to.copy_from_slice(from));
    Ok(copy)
}

/// Values that a thread fills or copies at once.
const PIECE: usize = 1 << 20;

/// Sets all `values` on all cores, because one core would take longer for gigabytes than the samples
/// that follow. Not for timed code, nor for fresh ordinary memory: the system places a page near the
/// core that first writes it, while pinned memory has its pages from the start.
pub(crate) fn fill<T: Copy + Send + Sync>(values: &mut [T], value: T) {
    values
        .par_chunks_mut(PIECE)
        .for_each(|values| values.fill(value));
}
