//! A product of matrices for cuBLAS and cuBLASLt: checking, logging and enqueueing it.

use std::ffi::{c_int, c_void};

use crate::call::{Library, get};
use crate::effects::Effect;
use crate::fault::Fault;
use crate::log;
use crate::memory::Memory;
use crate::objects::Used;
use crate::state::{Outcome, State};

/// cuBLAS and cuBLASLt, with numbers of cublasStatus_t.
pub(crate) const CUBLAS: Library = Library {
    all: &[1, 3, 7, 8, 11, 13, 14, 15, 16],
    invalid: 7,
    no_memory: 3,
    failed: 13,
};

/// Bytes of an element; cudaDataType of f32, f64, f16, bf16 and e4m3.
pub(crate) fn element_bytes(data_type: c_int) -> Outcome<u64> {
    Ok(match data_type {
        0 => 4,
        1 => 8,
        2 | 14 => 2,
        28 => 1,
        other => return Err(Fault::unknown("data type", other)),
    })
}

/// cublasComputeType_t: `32F` and `32F_FAST_TF32`; `64F`, whose alpha and beta are f64 too.
const SINGLE: [c_int; 2] = [68, 77];
const DOUBLE: c_int = 70;

/// Matrices by columns, at distances of `stride` elements.
#[derive(Clone, Debug)]
pub(crate) struct Matrix {
    pub(crate) address: u64,
    pub(crate) element_bytes: u64,
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
        if self.transposed {
            (self.columns, self.rows)
        } else {
            (self.rows, self.columns)
        }
    }

    /// The memory of so many matrices, from the first element to the last.
    fn used(&self, name: &'static str, batch: i64) -> Outcome<Used> {
        let (rows, columns, pitch, stride) = (self.rows, self.columns, self.pitch, self.stride);
        if rows < 0 || columns < 0 || stride < 0 || pitch < rows.max(1) {
            return Err(fault!(
                INVALID_VALUE,
                "{name} is {rows} x {columns} with a stride of {stride}, ld {pitch}"
            ));
        }
        let elements = (batch - 1) * stride + (columns - 1) * pitch + rows;
        Ok(Used {
            name,
            address: self.address,
            bytes: elements as u64 * self.element_bytes,
        })
    }
}

/// D = alpha A B + beta C.
#[derive(Clone, Debug)]
pub(crate) struct Product {
    pub(crate) function: &'static str,
    /// A, B, C and D.
    pub(crate) matrices: [Matrix; 4],
    pub(crate) batch: i64,
    pub(crate) compute: c_int,
    /// Alpha and beta; null where the product is only described.
    pub(crate) scalars: [*const c_void; 2],
    /// Memory besides the matrices.
    pub(crate) beside: Vec<Used>,
}

impl Product {
    /// The checks that the library makes in the call. Returns the memory that the product uses, the
    /// result first.
    pub(crate) fn check(&self) -> Outcome<Vec<Used>> {
        let [a, b, c, d] = &self.matrices;
        let ((m, k), (of_b, n)) = (a.shape(), b.shape());
        if k != of_b || c.shape() != (m, n) || d.shape() != (m, n) || self.batch < 0 {
            let (rows, columns) = d.shape();
            return Err(fault!(
                INVALID_VALUE,
                "{} products of {m} x {k} and {of_b} x {n} into {rows} x {columns}",
                self.batch
            ));
        }
        let named = [("d", d), ("a", a), ("b", b), ("c", c)];
        let used = named.map(|(name, matrix)| matrix.used(name, self.batch));
        used.into_iter().collect()
    }

    /// # Errors
    /// An operand is not in its allocation, or the result lies in an operand: the real library would
    /// corrupt memory.
    fn check_memory(memory: &Memory, used: &[Used]) -> Outcome {
        memory.check_used(used)?;
        let (result, others) = used.split_first().expect("the result is the first");
        let end = |used: &Used| used.address + used.bytes;
        let overlaps = |other: &&Used| other.address < end(result) && result.address < end(other);
        others.iter().find(overlaps).map_or(Ok(()), |other| {
            let place = memory.name_of(result.address);
            let why = format!("the result at {place} lies in {}", other.name);
            Err(Fault::corrupts(why))
        })
    }

    /// Checks the product, logs it and puts it into `stream`. When it runs, its memory must still
    /// exist.
    pub(crate) fn enqueue(self, state: &mut State, stream: u64) -> Outcome {
        let [alpha, beta] = self.scalars.map(|scalar| match self.compute {
            DOUBLE => get(scalar.cast::<f64>()),
            single if SINGLE.contains(&single) => get(scalar.cast::<f32>()).map(f64::from),
            other => Err(Fault::unknown("compute type", other)),
        });
        // A null alpha is a fault, too.
        let (_, beta) = (alpha?, beta?);
        let mut used = self.check()?;
        let [a, b, c, d] = &self.matrices;
        // C is read only then, and may lie where D does.
        if beta == 0.0 || c.address == d.address {
            used.pop();
        }
        used.extend(self.beside.iter().cloned());
        let (memory, batch) = (&state.memory, self.batch);
        Self::check_memory(memory, &used)?;
        let ((m, n), (_, k)) = (d.shape(), a.shape());
        let mut text = String::new();
        if log::enabled() {
            let [a, b, d] = [a, b, d].map(|matrix| memory.name_of(matrix.address));
            text = format!(
                "{} {m} x {n} x {k}, {batch} times: {d} = {a} {b}",
                self.function
            );
        }
        let effect = Effect::Operations(2.0 * (m * n * k * batch) as f64);
        state.launch(stream, effect, used, |on| format!("{text} on {on}"))
    }
}
