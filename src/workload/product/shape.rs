//! The lengths of a product, its operands with their number formats, and its epilogue.

use std::ops::Range;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::{Absence, Gpu};
use crate::model::{Cost, Format, LinkBytes};
use crate::workload::routine::RoutineError;

/// Sizes of a product C = A B of row-major matrices, or of `batch` independent ones that lie
/// one after the other: A is `m` x `k`, B is `k` x `n`, C is `m` x `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Number of products.
    pub batch: usize,
    /// Rows of A and of C.
    pub m: usize,
    /// Columns of B and of C.
    pub n: usize,
    /// Terms of each sum: columns of A, rows of B.
    pub k: usize,
}

impl Shape {
    /// One product of `n` x `n` matrices.
    pub fn square(n: usize) -> Self {
        Self {
            batch: 1,
            m: n,
            n,
            k: n,
        }
    }

    /// Elements of A, of all products together.
    pub fn a_len(self) -> usize {
        self.batch * self.m * self.k
    }

    /// Elements of B, of all products together.
    pub fn b_len(self) -> usize {
        self.batch * self.k * self.n
    }

    /// Elements of C, of all products together.
    pub fn c_len(self) -> usize {
        self.rows() * self.n
    }

    /// Rows of C, of all products together.
    pub fn rows(self) -> usize {
        self.batch * self.m
    }

    /// Multiply-adds of all products together.
    pub fn multiply_adds(self) -> usize {
        self.c_len() * self.k
    }

    /// Elements of the three matrices together.
    pub(crate) fn elements(self) -> usize {
        self.a_len() + self.b_len() + self.c_len()
    }

    /// Cost of the products with f32 operands that lie where they are computed: each matrix moved
    /// once.
    pub fn cost(self) -> Cost {
        Cost::default()
            .flop(2.0 * self.multiply_adds() as f64)
            .bytes(4.0 * self.elements() as f64)
            .written(4.0 * self.c_len() as f64)
            .launches(1)
    }

    /// Bytes of A and B on their way to the device, and of C on its way back.
    pub fn link_bytes(self) -> LinkBytes {
        let operands = 4.0 * (self.a_len() + self.b_len()) as f64;
        LinkBytes::new(operands, 4.0 * self.c_len() as f64)
    }
}

/// A row-major matrix in device memory, or a block of one, used as it is or transposed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix {
    /// Address of the first element.
    pub(crate) address: CUdeviceptr,
    pub(crate) format: Format,
    /// Rows and columns as stored.
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Elements from one row to the next.
    pub(crate) pitch: usize,
    pub(crate) transposed: bool,
}

impl Matrix {
    /// A whole matrix.
    pub(crate) fn new(address: CUdeviceptr, format: Format, rows: usize, columns: usize) -> Self {
        Self {
            address,
            format,
            rows,
            columns,
            pitch: columns,
            transposed: false,
        }
    }

    /// The transposed matrix.
    pub(crate) fn t(self) -> Self {
        Self {
            transposed: !self.transposed,
            ..self
        }
    }

    /// The block of these rows and columns.
    pub(crate) fn block(self, rows: &Range<usize>, columns: &Range<usize>) -> Self {
        let before = (rows.start * self.pitch + columns.start) * properties(self.format).bytes;
        Self {
            address: self.address + before as CUdeviceptr,
            rows: rows.len(),
            columns: columns.len(),
            ..self
        }
    }

    /// Rows and columns as used.
    fn shape(self) -> (usize, usize) {
        if self.transposed {
            (self.columns, self.rows)
        } else {
            (self.rows, self.columns)
        }
    }
}

/// C = A B on the GPU, or several such products of equal sizes, and what follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Product {
    /// A description of the product, for notes and choices.
    pub(crate) name: &'static str,
    pub(crate) a: Matrix,
    pub(crate) b: Matrix,
    pub(crate) c: Matrix,
    /// The factor of the product.
    pub(crate) factor: f32,
    /// A matrix of the type and size of C that is added to the product. For cuBLAS it is C.
    pub(crate) added: Option<CUdeviceptr>,
    /// The epilogue: a value for each column, of the result's type, that is added, and then ReLU.
    pub(crate) bias: Option<CUdeviceptr>,
    pub(crate) relu: bool,
    /// Number of products. The matrices of each operand lie one after the other without gaps, the
    /// first at the operand's address.
    pub(crate) batch: usize,
    /// Whether our own kernels may compute it. Code that leaves all products to the library is measured
    /// too.
    pub(crate) own: bool,
}

impl Product {
    /// One product of these matrices, by a library, with nothing behind it.
    pub(crate) fn new(name: &'static str, [a, b, c]: [Matrix; 3]) -> Self {
        Self {
            name,
            a,
            b,
            c,
            factor: 1.0,
            added: None,
            bias: None,
            relu: false,
            batch: 1,
            own: false,
        }
    }

    /// The products of this shape, of whole matrices of one format at these addresses.
    pub(crate) fn whole(shape: Shape, format: Format, [a, b, c]: [CUdeviceptr; 3]) -> Self {
        let Shape { batch, m, n, k } = shape;
        let matrices = [(a, m, k), (b, k, n), (c, m, n)];
        let matrices = matrices.map(|(at, rows, columns)| Matrix::new(at, format, rows, columns));
        Self {
            batch,
            ..Self::new("a product", matrices)
        }
    }

    /// The lengths.
    ///
    /// # Errors
    /// They do not fit.
    pub(crate) fn shape(&self) -> Result<Shape, RoutineError> {
        let ((m, k), (b_rows, n)) = (self.a.shape(), self.b.shape());
        if b_rows != k || self.c.shape() != (m, n) || self.c.transposed {
            return Err(format!("{}: the lengths do not fit", self.name).into());
        }
        let batch = self.batch;
        Ok(Shape { batch, m, n, k })
    }
}

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
