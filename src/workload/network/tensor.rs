//! Values in device memory, in f32 or BF16.

use std::rc::Rc;

use cudarc::cublaslt::sys::cudaDataType;
use cudarc::driver::{CudaSlice, DevicePtr, result, sys::CUdeviceptr};

use crate::device::gpu::Gpu;
use crate::timing::CudaError;

/// How a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F32,
    /// The upper half of an f32.
    Bf16,
}

impl Element {
    /// cuBLASLt's name of it.
    pub(crate) fn data_type(self) -> cudaDataType {
        match self {
            Element::F32 => cudaDataType::CUDA_R_32F,
            Element::Bf16 => cudaDataType::CUDA_R_16BF,
        }
    }

    /// How the names of the kernels for it end.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Element::F32 => "f32",
            Element::Bf16 => "bf16",
        }
    }

    pub(crate) fn bytes(self) -> usize {
        match self {
            Element::F32 => 4,
            Element::Bf16 => 2,
        }
    }
}

/// Values in device memory. The address stays as long as this lives; ordering the work on it is up
/// to those who enqueue it.
pub(crate) struct Tensor {
    gpu: Rc<Gpu>,
    memory: CudaSlice<u8>,
    element: Element,
    len: usize,
}

impl Tensor {
    /// `len` zeros.
    ///
    /// # Errors
    /// The driver's, out of memory included.
    pub(crate) fn zeros(gpu: &Rc<Gpu>, element: Element, len: usize) -> Result<Self, CudaError> {
        let memory = gpu.alloc(len * element.bytes())?;
        let tensor = Self {
            gpu: gpu.clone(),
            memory,
            element,
            len,
        };
        tensor.fill(0)?;
        Ok(tensor)
    }

    /// A copy of `values`, rounded where the element has fewer bits. Waits until it has arrived.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    pub(crate) fn of(gpu: &Rc<Gpu>, element: Element, values: &[f32]) -> Result<Self, CudaError> {
        let bytes: Vec<u8> = match element {
            Element::F32 => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Element::Bf16 => {
                let halves = values.iter().map(|&v| bf16(v));
                halves.flat_map(u16::to_le_bytes).collect()
            }
        };
        Ok(Self {
            gpu: gpu.clone(),
            memory: gpu.upload(&bytes)?,
            element,
            len: values.len(),
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn element(&self) -> Element {
        self.element
    }

    /// Bytes of device memory.
    pub(crate) fn bytes(&self) -> usize {
        self.memory.num_bytes()
    }

    pub(crate) fn address(&self) -> CUdeviceptr {
        self.memory.device_ptr(self.gpu.stream()).0
    }

    /// The address of the value with this index.
    pub(crate) fn at(&self, place: usize) -> CUdeviceptr {
        assert!(place < self.len, "{place} of {} values", self.len);
        self.address() + (place * self.element.bytes()) as CUdeviceptr
    }

    /// Enqueues that each byte becomes 0xFF: NaN in either element.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn poison(&self) -> Result<(), CudaError> {
        self.fill(0xFF)
    }

    fn fill(&self, byte: u8) -> Result<(), CudaError> {
        let stream = self.gpu.stream().cu_stream();
        // SAFETY: the range is this tensor's own memory.
        unsafe { result::memset_d8_async(self.address(), byte, self.bytes(), stream) }
            .map_err(|e| CudaError::new("cuMemsetD8Async", e))
    }

    /// Enqueues a copy of all of `from`, which is as long.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn copy_from(&self, from: &Tensor) -> Result<(), CudaError> {
        assert_eq!(self.bytes(), from.bytes(), "bytes of a copy");
        let stream = self.gpu.stream().cu_stream();
        // SAFETY: both ranges are the tensors' own memory, whose freeing waits for its turn on
        // the stream.
        unsafe { result::memcpy_dtod_async(self.address(), from.address(), self.bytes(), stream) }
            .map_err(|e| CudaError::new("cuMemcpyDtoDAsync", e))
    }

    /// The values, as f32. Waits until they have arrived.
    ///
    /// # Errors
    /// The driver's.
    pub(crate) fn values(&self) -> Result<Vec<f32>, CudaError> {
        let bytes = self.gpu.download(&self.memory)?;
        let (fours, _) = bytes.as_chunks::<4>();
        let (twos, _) = bytes.as_chunks::<2>();
        Ok(match self.element {
            Element::F32 => fours.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            Element::Bf16 => {
                let halves = twos.iter().map(|b| u32::from(u16::from_le_bytes(*b)));
                halves.map(|half| f32::from_bits(half << 16)).collect()
            }
        })
    }
}

/// Rounds to BF16, to nearest, ties to even, as the kernels do.
pub(crate) fn bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    ((bits.wrapping_add(0x7fff + (bits >> 16 & 1))) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bf16_is_rounded_to_nearest_and_ties_to_even() {
        let rounded = |v: f32| f32::from_bits(u32::from(bf16(v)) << 16);
        for (value, expected) in [
            (1.0, 1.0),
            (1.0 + 1.0 / 256.0, 1.0),
            (1.0 + 3.0 / 256.0, 1.0 + 4.0 / 256.0),
            (-1.0 - 1.1 / 256.0, -1.0 - 2.0 / 256.0),
            (0.0, 0.0),
        ] {
            assert_eq!(rounded(value), expected, "{value}");
        }
    }
}
