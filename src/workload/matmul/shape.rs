//! The lengths of a product, and its cost.

use crate::model::{Cost, LinkBytes};

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
    pub(super) fn elements(self) -> usize {
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
