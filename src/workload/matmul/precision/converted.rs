//! Products on tensor cores of operands that are converted once, outside of what is timed.

use std::rc::Rc;

use cudarc::driver::CudaSlice;

use crate::device::absence::Absence;
use crate::device::gpu::Gpu;
use crate::model::verified::Verified;
use crate::timing::CudaError;
use crate::workload::matmul::operands::address;
use crate::workload::matmul::output::Output;
use crate::workload::matmul::precision::convert::converted;
use crate::workload::matmul::precision::format::{Format, INT8_SCALE};
use crate::workload::matmul::precision::gemm_ex::{Call, GemmEx};
use crate::workload::matmul::precision::lt::LtMatmul;
use crate::workload::matmul::problem::Matmul;
use crate::workload::prepare::launches::launches;
use crate::workload::routine::{Made, Routine, RoutineError};

/// A product of operands in one format by cuBLAS, or in FP8 by cuBLASLt.
///
/// # Errors
/// An order that the library does not take in this format, a device that is too old for it
/// ([`Absence::DeviceLacks`](crate::device::Absence::DeviceLacks)), and errors of CUDA and
/// cuBLAS.
pub fn product(gpu: &Rc<Gpu>, problem: &Rc<Matmul>, format: Format) -> Made {
    gpu.require(format.oldest(), format.tensor_cores())?;
    let n = problem.shape().n;
    if !n.is_multiple_of(format.multiple()) {
        let takes = format!(
            "the library multiplies {format:?} only at orders that are a multiple of {}, not {n}",
            format.multiple()
        );
        return Err(Absence::Size { takes }.into());
    }
    let inputs = problem.device_inputs(gpu)?;
    // SAFETY: the inputs are n x n floats each.
    let (a, b) = unsafe {
        (
            converted(gpu, format, inputs.a(), n, false)?,
            converted(gpu, format, inputs.b(), n, format.transposes_b())?,
        )
    };
    let output = Output::new(gpu, problem)?;
    let call = Call {
        m: n,
        n,
        k: n,
        a: address(gpu, &a),
        a_pitch: n,
        b: address(gpu, &b),
        b_pitch: n,
        c: output.address(),
        accumulates: false,
    };
    let product = match format {
        Format::Fp8 => Product::Lt(LtMatmul::fp8(gpu, n, call.a, call.b, call.c)?),
        _ => Product::GemmEx(GemmEx::new(gpu, format, call)?),
    };
    // SAFETY: the addresses are those of the slices above.
    let launches = launches(gpu, || unsafe { product.enqueue() })?;
    Ok(Box::new(Converted {
        format,
        product,
        launches,
        _operands: [a, b],
        output,
    }))
}

enum Product {
    GemmEx(GemmEx),
    Lt(LtMatmul),
}

impl Product {
    /// # Safety
    /// As for the library's call.
    unsafe fn enqueue(&self) -> Result<(), CudaError> {
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Product::GemmEx(gemm) => gemm.enqueue(),
                Product::Lt(matmul) => matmul.enqueue(),
            }
        }
    }
}

struct Converted {
    format: Format,
    product: Product,
    launches: u32,
    // These and `output` keep the memory alive whose addresses `product` has.
    _operands: [CudaSlice<u8>; 2],
    output: Output,
}

/// Four of these bytes are an integer that no sum at the suite's sizes reaches.
const INTEGER_POISON: u8 = 0x7f;

/// Turns the bits of integers into the values of C.
fn from_integers(values: &mut [f32]) {
    let poison = i32::from_ne_bytes([INTEGER_POISON; 4]);
    for value in values {
        let sum = value.to_bits() as i32;
        *value = if sum == poison {
            f32::NAN
        } else {
            sum as f32 / (INT8_SCALE * INT8_SCALE)
        };
    }
}

impl Routine for Converted {
    fn poison(&mut self) -> Result<(), RoutineError> {
        Ok(match self.format {
            Format::Int8 => self.output.fill(INTEGER_POISON),
            _ => self.output.poison(),
        }?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        // SAFETY: operands and result live in `self`, are n x n elements of the format's types
        // each, and are distinct.
        Ok(unsafe { self.product.enqueue() }?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let error = match self.format {
            Format::Int8 => self.output.error(from_integers),
            _ => self.output.error(|_| {}),
        }?;
        let problem = self.output.problem();
        Ok(Verified {
            bound: self.format.bound(problem.shape().n),
            ..problem.verified(error)
        })
    }

    fn launches(&self) -> u32 {
        self.launches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_scaled_and_poison_is_no_number() {
        let poison = i32::from_ne_bytes([INTEGER_POISON; 4]);
        let mut values = [0, 16_129, -32_258, poison].map(|sum: i32| f32::from_bits(sum as u32));
        from_integers(&mut values);
        assert_eq!(values[..3], [0.0, 1.0, -2.0]);
        assert!(values[3].is_nan());
        let largest = crate::workload::matmul::problem::LARGEST as i64 * 127 * 127;
        assert!(largest < i64::from(poison));
    }
}
