//! A product of matrices for cuBLAS and cuBLASLt: checking, logging and enqueueing it.

use std::ffi::{c_int, c_void};
use std::fmt;

use crate::call::{Library, Statuses, get};
use crate::fault::Fault;
use crate::log;
use crate::memory::Memory;
use crate::objects::Used;
use crate::state::{Outcome, State};

/// cuBLAS and cuBLASLt, with numbers of cublasStatus_t.
pub(crate) const CUBLAS: Library = Library {
    statuses: Some(Statuses {
        all: &[1, 3, 7, 8, 11, 13, 14, 15, 16],
        invalid: 7,
        no_memory: 3,
        failed: 13,
    }),
    logged: true,
};

/// The type of an element; cudaDataType.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F16,
    Bf16,
    F32,
    F64,
    E4m3,
}

impl Element {
    pub(crate) fn of(data_type: c_int) -> Outcome<Self> {
        Ok(match data_type {
            0 => Self::F32,
            1 => Self::F64,
            2 => Self::F16,
            14 => Self::Bf16,
            28 => Self::E4m3,
            other => return Err(Fault::unknown("data type", other)),
        })
    }

    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::E4m3 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::E4m3 => "e4m3",
        })
    }
}

/// How sums are computed; cublasComputeType_t, without `CUBLAS_COMPUTE_`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compute {
    F32,
    F32FastTf32,
    F64,
}

impl Compute {
    pub(crate) fn of(compute_type: c_int) -> Outcome<Self> {
        Ok(match compute_type {
            68 => Self::F32,
            70 => Self::F64,
            77 => Self::F32FastTf32,
            other => return Err(Fault::unknown("compute type", other)),
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::F32 => "32F",
            Self::F32FastTf32 => "32F_FAST_TF32",
            Self::F64 => "64F",
        }
    }

    /// The type of alpha and beta.
    pub(crate) fn scalars(self) -> Element {
        match self {
            Self::F32 | Self::F32FastTf32 => Element::F32,
            Self::F64 => Element::F64,
        }
    }

    /// A scalar, which the library reads when it is called.
    pub(crate) fn scalar(self, address: *const c_void) -> Outcome<f64> {
        Ok(match self.scalars() {
            Element::F64 => get(address.cast::<f64>())?,
            _ => f64::from(get(address.cast::<f32>())?),
        })
    }
}

/// Matrices by columns, at distances of `stride` elements.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) address: u64,
    pub(crate) element: Element,
    /// Rows and columns as stored.
    pub(crate) rows: i64,
    pub(crate) columns: i64,
    /// Elements from one column to the next.
    pub(crate) pitch: i64,
    pub(crate) stride: i64,
    pub(crate) transposed: bool,
}

impl Matrix {
    /// Rows and columns as used.
    fn shape(&self) -> (i64, i64) {
        match self.transposed {
            true => (self.columns, self.rows),
            false => (self.rows, self.columns),
        }
    }

    /// Bytes from the first element of the first matrix to the end of the last.
    fn bytes(&self, batch: i64) -> u64 {
        let between = (batch - 1) * self.stride + (self.columns - 1) * self.pitch;
        (between + self.rows) as u64 * self.element.bytes()
    }

    fn check(&self, name: &str) -> Outcome {
        let Self {
            rows,
            columns,
            pitch,
            stride,
            ..
        } = self;
        if *rows < 0 || *columns < 0 || *stride < 0 || *pitch < (*rows).max(1) {
            let why = format!("{name} is {rows} x {columns} with a stride of {stride}, ld {pitch}");
            return Err(Fault::invalid(why));
        }
        Ok(())
    }

    /// Its address, and those parts of its layout that are not dense.
    fn text(&self, batch: i64, memory: &Memory) -> String {
        let mut text = memory.name_of(self.address);
        if self.transposed {
            text += "^T";
        }
        if self.pitch != self.rows {
            text += &format!(" ld {}", self.pitch);
        }
        if batch != 1 {
            text += &format!(" every {}", self.stride);
        }
        text
    }
}

/// D = alpha A B + beta C.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) function: &'static str,
    pub(crate) a: Matrix,
    pub(crate) b: Matrix,
    pub(crate) c: Matrix,
    pub(crate) d: Matrix,
    pub(crate) batch: i64,
    pub(crate) alpha: f64,
    pub(crate) beta: f64,
    pub(crate) compute: Compute,
    /// Memory besides the matrices.
    pub(crate) beside: Vec<Used>,
    /// The epilogue and the type of the computation, in words.
    pub(crate) notes: String,
}

impl Product {
    /// The checks that the library makes in the call.
    pub(crate) fn check(&self) -> Outcome {
        let Self { a, b, c, d, .. } = self;
        for (name, matrix) in [("a", a), ("b", b), ("c", c), ("d", d)] {
            matrix.check(name)?;
        }
        let ((m, k), (of_b, n)) = (a.shape(), b.shape());
        if k != of_b || c.shape() != (m, n) || d.shape() != (m, n) || self.batch < 0 {
            let (rows, columns) = d.shape();
            return Err(Fault::invalid(format!(
                "{} products of {m} x {k} and {of_b} x {n} into {rows} x {columns}",
                self.batch
            )));
        }
        Ok(())
    }

    /// Whether C is read, from another place than D is written to.
    fn adds_c(&self) -> bool {
        self.beta != 0.0 && self.c.address != self.d.address
    }

    /// All memory that the product reads and writes, the result first.
    fn used(&self) -> Vec<Used> {
        let Self { a, b, c, d, .. } = self;
        let mut matrices = vec![("d", d), ("a", a), ("b", b)];
        matrices.extend(self.adds_c().then_some(("c", c)));
        let used = matrices.into_iter().map(|(name, matrix)| Used {
            name,
            address: matrix.address,
            bytes: matrix.bytes(self.batch),
        });
        used.chain(self.beside.iter().cloned()).collect()
    }

    /// # Errors
    /// An operand is not in its allocation, or the result lies in an operand: the real library would
    /// corrupt memory.
    fn check_memory(memory: &Memory, used: &[Used]) -> Outcome {
        memory.check_used(used)?;
        let (result, others) = used.split_first().expect("the result is the first");
        let end = |used: &Used| used.address + used.bytes;
        let overlaps = |other: &&Used| other.address < end(result) && result.address < end(other);
        match others.iter().find(overlaps) {
            Some(Used { name, .. }) => {
                let place = memory.name_of(result.address);
                Err(Fault::corrupts(format!(
                    "the result at {place} lies in {name}"
                )))
            }
            None => Ok(()),
        }
    }

    /// Sizes m x n x k, types, and the matrices by where they lie; alpha only if it is not 1.
    fn text(&self, memory: &Memory) -> String {
        let Self {
            a, b, c, d, batch, ..
        } = self;
        let matrix = |matrix: &Matrix| matrix.text(*batch, memory);
        let ((m, n), (_, k)) = (d.shape(), a.shape());
        let mut text = format!("{} {m} x {n} x {k} {}", self.function, a.element);
        if d.element != a.element {
            text += &format!(" into {}", d.element);
        }
        text += &format!(" in {}", self.compute.name());
        if *batch != 1 {
            text += &format!(", {batch} times");
        }
        text += &format!(": {} =", matrix(d));
        if self.alpha != 1.0 {
            text += &format!(" {}", self.alpha);
        }
        text += &format!(" {} {}", matrix(a), matrix(b));
        if self.beta != 0.0 {
            text += &format!(" + {} {}", self.beta, matrix(c));
        }
        text += &self.notes;
        for Used {
            name,
            address,
            bytes,
        } in &self.beside
        {
            text += &format!(", {name} {bytes} B at {}", memory.name_of(*address));
        }
        text
    }

    /// Checks the product, logs it and puts it into `stream`. When it runs, its memory must still
    /// exist.
    pub(crate) fn enqueue(self, state: &mut State, stream: u64) -> Outcome {
        self.check()?;
        let ((m, n), (_, k)) = (self.d.shape(), self.a.shape());
        let used = self.used();
        Self::check_memory(&state.memory, &used)?;
        let text = match log::enabled() {
            true => self.text(&state.memory),
            false => String::new(),
        };
        let flop = 2.0 * (m * n * k * self.batch) as f64;
        state.launch_library(stream, &text, flop, used)
    }
}
