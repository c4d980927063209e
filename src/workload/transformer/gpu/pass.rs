//! The list of what a batch enqueues, which is run as it grows.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::timing::{CudaError, Launch};
use crate::workload::network::chosen::ChosenProduct;
use crate::workload::network::kernels::{add_bias, relu};
use crate::workload::network::part::Part;
use crate::workload::network::tensor::Element;
use crate::workload::network::tensor::Tensor;
use crate::workload::prepare::cublaslt::{Arithmetic, Epilogue, Operand, Product, Workspace};
use crate::workload::routine::RoutineError;
use crate::workload::transformer::gpu::memory::{Matrices, Memory};
use crate::workload::transformer::model::{HEAD, HEADS, Linear, SEQUENCE, WIDTH};

/// What follows the product of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Then {
    Nothing,
    Bias,
    ReluBias,
}

/// The parts of a pass, one after the other on the GPU's stream. Each is run once when it is
/// added: the next product is calibrated on what it left.
pub(super) struct Pass<'a> {
    pub(super) memory: &'a Memory,
    workspace: &'a Rc<Workspace>,
    arithmetic: Arithmetic,
    parts: Vec<Part>,
    notes: Vec<String>,
}

impl<'a> Pass<'a> {
    /// An empty pass.
    pub(super) fn new(memory: &'a Memory, workspace: &'a Rc<Workspace>) -> Self {
        Self {
            memory,
            workspace,
            arithmetic: memory.format.arithmetic(),
            parts: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// The parts, and what was chosen.
    pub(super) fn into_parts(self) -> (Vec<Part>, Vec<String>) {
        (self.parts, self.notes)
    }

    /// Adds a kernel.
    ///
    /// # Safety
    /// Its arguments must be those that it declares, and their memory that of the pass.
    pub(super) unsafe fn kernel(&mut self, kernel: Launch) -> Result<(), CudaError> {
        // SAFETY: the caller's promise.
        unsafe { self.push(Part::Kernel(kernel)) }
    }

    /// # Safety
    /// As [`Part::enqueue`].
    unsafe fn push(&mut self, part: Part) -> Result<(), CudaError> {
        let gpu = &self.memory.gpu;
        // SAFETY: the caller's promise; nothing else is on the stream.
        unsafe { part.enqueue(gpu.stream()) }?;
        gpu.synchronize()?;
        self.parts.push(part);
        Ok(())
    }

    /// Adds a note, once: the layers have the same products.
    pub(super) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Adds the linear layer from the rows `x` to the rows `y`, and what follows it, in one kernel of
    /// the library or of our own. Where neither has this epilogue, more kernels follow, and a note
    /// says so.
    pub(super) fn linear(
        &mut self,
        name: &'static str,
        linear: &Linear,
        tensors: [&Tensor; 2],
        then: Then,
        added: Option<&Tensor>,
    ) -> Result<(), RoutineError> {
        self.layer(name, linear, tensors, then, added, true)
    }

    /// `own` is whether kernels of our own may compute the product.
    fn layer(
        &mut self,
        name: &'static str,
        linear: &Linear,
        [x, y]: [&Tensor; 2],
        then: Then,
        added: Option<&Tensor>,
        own: bool,
    ) -> Result<(), RoutineError> {
        let rows = |tensor: &Tensor, columns| Operand {
            address: tensor.address(),
            element: tensor.element().data_type(),
            rows: self.memory.problem.rows(),
            columns,
            transposed: false,
        };
        let weights = Operand {
            address: self.memory.parameters(x.element(), &linear.weights),
            element: x.element().data_type(),
            rows: linear.outputs(),
            columns: linear.inputs(),
            transposed: false,
        };
        // A bias has the type of what it is added to.
        let bias = self.memory.parameters(y.element(), &linear.bias);
        let product = |epilogue| Product {
            name,
            a: rows(x, linear.inputs()),
            b: weights.t(),
            c: rows(y, linear.outputs()),
            arithmetic: self.arithmetic,
            factor: 1.0,
            epilogue,
            added: added.map(Tensor::address),
            count: 1,
            own,
        };
        let epilogue = match then {
            Then::Nothing => Epilogue::Nothing,
            Then::Bias => Epilogue::Bias(bias),
            Then::ReluBias => Epilogue::ReluBias(bias),
        };
        let (whole, plain) = (product(epilogue), product(Epilogue::Nothing));
        if self.product(whole)? {
            return Ok(());
        }
        self.note(format!(
            "{name}: the library has no such epilogue here; kernels follow it"
        ));
        self.required(plain)?;
        self.biased(y, bias, linear.outputs(), then)
    }

    fn biased(
        &mut self,
        y: &Tensor,
        bias: CUdeviceptr,
        width: usize,
        then: Then,
    ) -> Result<(), RoutineError> {
        let gpu = self.memory.gpu.clone();
        // SAFETY: the kernels' arguments are made with them, and the memory is the pass's.
        unsafe {
            if then != Then::Nothing {
                self.kernel(add_bias(&gpu, y, bias, width)?)?;
            }
            if then == Then::ReluBias {
                self.kernel(relu(&gpu, y)?)?;
            }
        }
        Ok(())
    }

    /// Adds the linear layer, its bias and ReLU, a kernel for each, the product by the library.
    pub(super) fn linear_in_steps(
        &mut self,
        name: &'static str,
        linear: &Linear,
        [x, y]: [&Tensor; 2],
        then: Then,
    ) -> Result<(), RoutineError> {
        self.layer(name, linear, [x, y], Then::Nothing, None, false)?;
        let bias = self.memory.parameters(y.element(), &linear.bias);
        self.biased(y, bias, linear.outputs(), then)
    }

    /// Adds the scores of all heads: queries times keys.
    pub(super) fn scores(&mut self, of: &Matrices) -> Result<(), RoutineError> {
        let (queries, keys) = (self.of_heads(of, 0), self.of_heads(of, 1));
        let scores = self.matrices(of.scores.address(), SEQUENCE);
        self.batched("scores", [queries, keys.t(), scores])
    }

    /// Adds the results of all heads: shares times values.
    pub(super) fn results(&mut self, of: &Matrices) -> Result<(), RoutineError> {
        let shares = self.matrices(of.scores.address(), SEQUENCE);
        let results = self.matrices(of.results.address(), HEAD);
        self.batched("shares of values", [shares, self.of_heads(of, 2), results])
    }

    fn batched(&mut self, name: &'static str, [a, b, c]: [Operand; 3]) -> Result<(), RoutineError> {
        self.required(Product {
            name,
            a,
            b,
            c,
            arithmetic: self.arithmetic,
            factor: 1.0,
            epilogue: Epilogue::Nothing,
            added: None,
            count: self.memory.problem.batch * HEADS,
            own: false,
        })
    }

    /// The first matrix of queries (0), keys (1) or values (2).
    fn of_heads(&self, of: &Matrices, which: usize) -> Operand {
        let all = self.memory.problem.rows() * WIDTH;
        self.matrices(of.qkv.at(which * all), HEAD)
    }

    /// The first of the matrices from this address on, a row for each token of a sequence.
    fn matrices(&self, address: CUdeviceptr, columns: usize) -> Operand {
        Operand {
            address,
            element: Element::F32.data_type(),
            rows: SEQUENCE,
            columns,
            transposed: false,
        }
    }

    /// Adds a product, and how it is computed to the notes; false where nothing computes it.
    fn product(&mut self, product: Product) -> Result<bool, RoutineError> {
        // SAFETY: the operands are the pass's memory, which lives beside the product in one
        // routine, and have these sizes; no product's result is one of its operands.
        let made = unsafe { ChosenProduct::fastest(&self.memory.gpu, self.workspace, product) }?;
        let Some(made) = made else {
            return Ok(false);
        };
        self.note(made.note());
        // SAFETY: as above.
        unsafe { self.push(Part::Product(made)) }?;
        Ok(true)
    }

    fn required(&mut self, product: Product) -> Result<(), RoutineError> {
        let name = product.name;
        match self.product(product)? {
            true => Ok(()),
            false => Err(format!("cuBLASLt has no algorithm for a product of {name}").into()),
        }
    }
}
