//! A step as a list of what is enqueued, on one stream or two.

use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use cudarc::driver::{CudaEvent, CudaStream};

use crate::device::calls::{record, wait};
use crate::device::gpu::Gpu;
use crate::timing::{CudaError, Launch, Range, range};
use crate::workload::mlp_training::gpu::memory::Memory;
use crate::workload::mlp_training::model::{B1, B2, CLASSES, HIDDEN, INPUTS, W1, W2};
use crate::workload::network::chosen::ChosenProduct;
use crate::workload::network::part::Part;
use crate::workload::network::tensor::Element;
use crate::workload::network::tensor::Tensor;
use crate::workload::prepare::cublaslt::{Arithmetic, Epilogue, Operand, Product, Workspace};
use crate::workload::prepare::timed;
use crate::workload::routine::RoutineError;

/// Where in a step a part runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Branch {
    /// Before it divides.
    Before,
    /// On the GPU's stream.
    Here,
    /// At the same time, on a stream of its own.
    Beside,
    /// After both.
    After,
}

/// A part of a step by what it does, which a profile shows as a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Up to the loss and its gradient.
    Forward,
    Backward,
    Update,
}

impl Phase {
    fn name(self) -> &'static str {
        match self {
            Phase::Forward => "forward",
            Phase::Backward => "backward",
            Phase::Update => "update",
        }
    }
}

/// How the gradients of both layers follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// At the same time: products that leave multiprocessors idle fill them together. Those of the
    /// second layer are the first of both to be enqueued, which the device may keep to.
    SecondLayerFirst,
    /// The same the other way round.
    FirstLayerFirst,
    /// Products that fill the chip only take cache and bandwidth from each other.
    InTurn,
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Order::SecondLayerFirst => "at the same time, those of the second layer first",
            Order::FirstLayerFirst => "at the same time, those of the first layer first",
            Order::InTurn => "one after the other",
        })
    }
}

/// What a step enqueues: all on the GPU's stream, but for what may run beside it.
pub(super) struct Step {
    gpu: Rc<Gpu>,
    order: Order,
    parts: Vec<(Branch, Phase, Part)>,
    phase: Phase,
    beside: Arc<CudaStream>,
    /// Where the parts beside may begin, and where they have ended.
    forked: CudaEvent,
    joined: CudaEvent,
    pub(super) notes: Vec<String>,
}

impl Step {
    /// An empty step.
    pub(super) fn new(gpu: &Rc<Gpu>) -> Result<Self, CudaError> {
        Ok(Self {
            gpu: gpu.clone(),
            order: Order::SecondLayerFirst,
            parts: Vec::new(),
            phase: Phase::Forward,
            beside: gpu.new_stream()?,
            forked: gpu.new_event()?,
            joined: gpu.new_event()?,
            notes: Vec::new(),
        })
    }

    /// What is added from here on belongs to this phase.
    pub(super) fn begin(&mut self, phase: Phase) {
        self.phase = phase;
    }

    /// Adds a product to a branch, and how it is computed to the notes.
    pub(super) fn product(&mut self, branch: Branch, product: ChosenProduct) {
        self.notes.push(product.note());
        self.parts
            .push((branch, self.phase, Part::Product(product)));
    }

    /// Adds a kernel to a branch.
    pub(super) fn kernel(&mut self, branch: Branch, kernel: Launch) {
        self.parts.push((branch, self.phase, Part::Kernel(kernel)));
    }

    /// Adds kernels that follow each other.
    pub(super) fn kernels(&mut self, branch: Branch, kernels: Vec<Launch>) {
        for kernel in kernels {
            self.kernel(branch, kernel);
        }
    }

    /// Chooses the order of the gradients of both layers that is fastest in a step replayed as a
    /// graph, by a calibration that runs steps, and notes it.
    ///
    /// # Errors
    /// The driver's.
    ///
    /// # Safety
    /// As for [`Self::enqueue`].
    pub(super) unsafe fn in_fastest_order(mut self, step: &str) -> Result<Self, RoutineError> {
        let device = &self.gpu.properties().name;
        let choice = format!("order of the gradients of both layers, {step}, on {device}");
        let orders = [
            Order::SecondLayerFirst,
            Order::FirstLayerFirst,
            Order::InTurn,
        ];
        self.order = timed::fastest(&self.gpu, &choice, &orders, |order| {
            // SAFETY: the caller's promise; `timed` waits for what it enqueues.
            unsafe { self.enqueue_in(order) }
        })?;
        self.notes
            .push(format!("gradients of both layers: {}", self.order));
        Ok(self)
    }

    fn divides(&self, order: Order) -> bool {
        let mut branches = self.parts.iter().map(|(branch, ..)| *branch);
        order != Order::InTurn && branches.any(|branch| branch == Branch::Beside)
    }

    /// Enqueues the step. What follows on the GPU's stream waits for all of it.
    ///
    /// # Safety
    /// The memory that the parts were made for must live until the step has run, and the
    /// context must be current on this thread.
    pub(super) unsafe fn enqueue(&self) -> Result<(), CudaError> {
        // SAFETY: the caller's promise.
        unsafe { self.enqueue_in(self.order) }
    }

    /// # Safety
    /// As for [`Self::enqueue`].
    unsafe fn enqueue_in(&self, order: Order) -> Result<(), CudaError> {
        let stream = self.gpu.stream();
        // SAFETY: the caller's promise. Parts on one stream run one after the other, and the
        // branches write different memory.
        unsafe {
            self.branch(Branch::Before, stream)?;
            if self.divides(order) {
                record(&self.forked, stream)?;
                wait(&self.beside, &self.forked)?;
                if order == Order::FirstLayerFirst {
                    self.branch(Branch::Here, stream)?;
                }
                self.branch(Branch::Beside, &self.beside)?;
                record(&self.joined, &self.beside)?;
                if order == Order::SecondLayerFirst {
                    self.branch(Branch::Here, stream)?;
                }
                wait(stream, &self.joined)?;
            } else {
                self.branch(Branch::Beside, stream)?;
                self.branch(Branch::Here, stream)?;
            }
            self.branch(Branch::After, stream)
        }
    }

    /// # Safety
    /// As for [`Self::enqueue`].
    unsafe fn branch(&self, branch: Branch, stream: &CudaStream) -> Result<(), CudaError> {
        let parts = self.parts.iter().filter(|(of, ..)| *of == branch);
        let mut shown: Option<(Phase, Range)> = None;
        for (_, phase, part) in parts {
            if shown.as_ref().is_none_or(|(shown, _)| shown != phase) {
                // A range ends before the next begins.
                drop(shown.take());
                shown = Some((*phase, range(phase.name())));
            }
            // SAFETY: the arguments are those that each kernel declares; the rest is the
            // caller's.
            unsafe { part.enqueue(stream) }?;
        }
        Ok(())
    }

    /// Upper bound on the places that a step takes in the stream's queue.
    pub(super) fn launches(&self) -> u32 {
        let parts = self.parts.iter().map(|(.., part)| part.launches());
        // Both events are recorded and waited for.
        parts.sum::<u32>() + if self.divides(self.order) { 4 } else { 0 }
    }
}

/// Makes the products of a step.
pub(super) struct Products<'a> {
    pub(super) memory: &'a Memory,
    pub(super) arithmetic: Arithmetic,
    /// Whether kernels of our own may compute them.
    pub(super) own: bool,
}

impl Products<'_> {
    /// The product that `which` describes, run once: the next one is calibrated on its result.
    /// `None` where nothing computes it with this epilogue.
    pub(super) fn make(
        &self,
        workspace: &Rc<Workspace>,
        which: Which,
        epilogue: Epilogue,
    ) -> Result<Option<ChosenProduct>, RoutineError> {
        let gpu = &self.memory.gpu;
        let product = self.describe(which, epilogue);
        // SAFETY: the operands are the step's memory, which lives beside the product in one
        // routine, and have these sizes; no product's result is one of its operands.
        let Some(made) = (unsafe { ChosenProduct::fastest(gpu, workspace, product) })? else {
            return Ok(None);
        };
        // SAFETY: as above; nothing else is on the stream.
        unsafe { made.enqueue(gpu.stream()) }?;
        gpu.synchronize()?;
        Ok(Some(made))
    }

    /// The same without an epilogue, which every library has.
    pub(super) fn plain(
        &self,
        workspace: &Rc<Workspace>,
        which: Which,
    ) -> Result<ChosenProduct, RoutineError> {
        let made = self.make(workspace, which, Epilogue::Nothing)?;
        made.ok_or_else(|| format!("cuBLASLt has no algorithm for a product of {which:?}").into())
    }

    fn describe(&self, which: Which, epilogue: Epilogue) -> Product {
        let memory = self.memory;
        let rows = |tensor: &Tensor, columns| Operand {
            address: tensor.address(),
            element: tensor.element().data_type(),
            rows: memory.batch(),
            columns,
            transposed: false,
        };
        let weights = |first: usize, rows, columns| Operand {
            address: memory.operands(first),
            element: memory.inputs.element().data_type(),
            rows,
            columns,
            transposed: false,
        };
        let gradient = |first: usize, rows, columns| Operand {
            address: memory.gradients.at(first),
            element: Element::F32.data_type(),
            rows,
            columns,
            transposed: false,
        };
        let x = rows(&memory.inputs, INPUTS);
        let hidden = rows(&memory.hidden, HIDDEN);
        let of_hidden = rows(&memory.of_hidden, HIDDEN);
        let logits = rows(&memory.logits, CLASSES);
        let of_logits = rows(&memory.of_logits, CLASSES);
        let w1 = weights(W1.start, HIDDEN, INPUTS);
        let w2 = weights(W2.start, CLASSES, HIDDEN);
        let (name, a, b, c) = match which {
            Which::Hidden => ("activations", x, w1.t(), hidden),
            Which::Logits => ("logits", hidden, w2.t(), logits),
            Which::OfW2 => {
                let to = gradient(W2.start, CLASSES, HIDDEN);
                ("gradient of W2", of_logits.t(), hidden, to)
            }
            Which::OfHidden => ("gradient of the activations", of_logits, w2, of_hidden),
            Which::OfW1 => {
                let to = gradient(W1.start, HIDDEN, INPUTS);
                ("gradient of W1", of_hidden.t(), x, to)
            }
        };
        Product {
            name,
            a,
            b,
            c,
            arithmetic: self.arithmetic,
            factor: 1.0,
            epilogue,
            added: None,
            count: 1,
            own: self.own,
        }
    }

    /// The bias of the first layer, of the type of the activations.
    pub(super) fn b1(&self) -> u64 {
        self.memory.operands(B1.start)
    }

    /// The bias of the second layer, in f32 as the logits are.
    pub(super) fn b2(&self) -> u64 {
        self.memory.parameters(B2.start)
    }
}

/// One of the five products of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    Hidden,
    Logits,
    OfW2,
    OfHidden,
    OfW1,
}
