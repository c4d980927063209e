//! Groups of products in which a size is another length than the order.

use std::marker::PhantomData;
use std::rc::Rc;

use crate::device::kernel::Source;
use crate::workload::matmul::problem::Matmul;
use crate::workload::product::{CUBLAS_WORKSPACE, FEW_ROWS, MATMUL, Shape};
use crate::workload::routine::Workload;

/// The meaning of a size in a group of products.
pub trait Family: 'static {
    /// The lengths of the product, or of the batch of products.
    fn shape(size: u64) -> Shape;

    /// As [`Workload::host_bytes`]: the inputs, and all three matrices once more in pinned
    /// memory.
    fn host_bytes(size: u64) -> u64 {
        8 * Self::shape(size).elements() as u64
    }

    /// As [`Workload::kernels`].
    fn kernels() -> &'static [&'static Source] {
        const { &[&MATMUL] }
    }

    /// As [`Workload::device_bytes`]: the inputs that implementations share, all three
    /// matrices for one with transfers, and the library's workspace.
    fn device_bytes(size: u64) -> u64 {
        8 * Self::shape(size).elements() as u64 + CUBLAS_WORKSPACE
    }
}

/// Many small square products of order `size`, none of which fills a GPU by itself.
pub struct Batched;

impl Batched {
    /// Products in a batch.
    pub const PRODUCTS: usize = 64;
}

impl Family for Batched {
    fn shape(n: u64) -> Shape {
        Shape {
            batch: Self::PRODUCTS,
            ..Shape::square(n as usize)
        }
    }
}

/// `size` rows times a large square matrix, as in a neural network that answers a few requests at a
/// time: B is read once and hardly reused.
pub struct Skinny;

impl Skinny {
    /// Rows and columns of B.
    pub const ORDER: usize = 4096;
}

impl Family for Skinny {
    fn shape(m: u64) -> Shape {
        Shape {
            m: m as usize,
            ..Shape::square(Self::ORDER)
        }
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&MATMUL, &FEW_ROWS] }
    }
}

/// The inputs of a product, or a batch of them, in one group.
pub struct Shaped<F> {
    matmul: Rc<Matmul>,
    family: PhantomData<F>,
}

impl<F> Shaped<F> {
    /// The product itself.
    pub fn matmul(&self) -> &Rc<Matmul> {
        &self.matmul
    }
}

impl<F: Family> Workload for Shaped<F> {
    fn new(size: u64) -> Self {
        Self {
            matmul: Rc::new(Matmul::of(F::shape(size))),
            family: PhantomData,
        }
    }

    fn host_bytes(size: u64) -> u64 {
        F::host_bytes(size)
    }

    fn device_bytes(size: u64) -> u64 {
        F::device_bytes(size)
    }

    fn kernels() -> &'static [&'static Source] {
        F::kernels()
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        self.matmul.visit_inputs(visit);
    }
}
