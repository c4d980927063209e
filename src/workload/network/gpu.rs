//! A network on the GPU: its parameters, what lies between its operations, and the list of what an
//! iteration enqueues, which is run as it grows.

use std::rc::Rc;

use cudarc::driver::{CudaStream, sys::CUdeviceptr};

use crate::device::{Gpu, calls::synchronize};
use crate::model::Launches;
use crate::timing::{CudaError, Launch};
use crate::workload::network::chosen::ChosenProduct;
use crate::workload::network::format::Format;
use crate::workload::network::kernels::{add_bias, relu};
use crate::workload::network::linear::Linear;
use crate::workload::network::tensor::{Element, Tensor};
use crate::workload::prepare::steps::Call;
use crate::workload::prepare::{Epilogue, On, Operand, Prepared, Product, Steps, Workspace, timed};
use crate::workload::routine::RoutineError;

/// What follows the product of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Bias,
    ReluBias,
}

/// How parts that may run at the same time follow one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// At the same time: products that leave multiprocessors idle fill them together. Those beside
    /// are the first of both to be enqueued, which the device may keep to.
    BesideFirst,
    /// The same the other way round.
    BesideLast,
    /// Products that fill the chip only take cache and bandwidth from each other.
    InTurn,
}

/// A part of an iteration.
#[derive(Clone)]
struct Part {
    phase: &'static str,
    /// On a stream beside the GPU's.
    beside: bool,
    launches: u32,
    run: Rc<Call>,
}

/// A network while its routine is being prepared.
pub(crate) struct Network {
    pub(crate) gpu: Rc<Gpu>,
    pub(crate) work: Prepared,
    pub(crate) format: Format,
    /// Whether an operation takes as few kernels as can be; else each step of it takes one, and the
    /// library computes all products.
    pub(crate) fused: bool,
    /// Inputs, or tokens.
    pub(crate) rows: usize,
    /// The parameters in f32, and in BF16 where products read those.
    pub(crate) parameters: Tensor,
    pub(crate) copies: Option<Tensor>,
    /// What is added from here on is a part of this phase, which a profile shows as a range.
    pub(crate) phase: &'static str,
    /// Whether it may run at the same time as what is added behind it.
    pub(crate) beside: bool,
    workspace: Rc<Workspace>,
    workspace_beside: Option<Rc<Workspace>>,
    parts: Vec<Part>,
    /// Bytes in device memory: of parameters and what belongs to them, and of inputs and what lies
    /// between the operations.
    pub(crate) bytes: [usize; 2],
}

impl Network {
    /// With these parameters, and no operations yet.
    ///
    /// # Errors
    /// A device that is too old for the format, errors of CUDA and its libraries.
    pub(crate) fn new(
        mut work: Prepared,
        parameters: &[f32],
        format: Format,
        fused: bool,
        rows: usize,
    ) -> Result<Self, RoutineError> {
        let gpu = work.memory.gpu().clone();
        format.require(&gpu)?;
        let all = Tensor::of(&mut work, Element::F32, parameters)?;
        let copies = match format.element() {
            Element::F32 => None,
            Element::Bf16 => Some(Tensor::of(&mut work, Element::Bf16, parameters)?),
        };
        Ok(Self {
            bytes: [
                all.device.bytes() + copies.map_or(0, |c| c.device.bytes()),
                0,
            ],
            workspace: Workspace::new(&gpu)?,
            workspace_beside: None,
            gpu,
            work,
            format,
            fused,
            rows,
            parameters: all,
            copies,
            phase: "forward",
            beside: false,
            parts: Vec::new(),
        })
    }

    /// A workspace for products that run beside others.
    pub(crate) fn with_workspace_beside(mut self) -> Result<Self, RoutineError> {
        self.workspace_beside = Some(Workspace::new(&self.gpu)?);
        Ok(self)
    }

    /// Values between operations, `width` for each row.
    pub(crate) fn rows_of(&mut self, element: Element, width: usize) -> Result<Tensor, CudaError> {
        self.values(element, self.rows * width)
    }

    /// Values between operations.
    pub(crate) fn values(&mut self, element: Element, len: usize) -> Result<Tensor, CudaError> {
        let tensor = Tensor::output(&mut self.work, element, len)?;
        self.bytes[1] += tensor.device.bytes();
        Ok(tensor)
    }

    /// Parameters from this place on as values of this type.
    ///
    /// # Panics
    /// In BF16 where no product reads that.
    pub(crate) fn parameters(&self, element: Element, place: usize) -> CUdeviceptr {
        match element {
            Element::F32 => self.parameters.at(place),
            Element::Bf16 => self.copies.expect("made for this format").at(place),
        }
    }

    /// A matrix with a row for each input or token.
    pub(crate) fn matrix(&self, of: &Tensor, columns: usize) -> Operand {
        operand(of.address(), of.element, self.rows, columns)
    }

    /// The weights of a layer whose inputs are of this type.
    pub(crate) fn weights(&self, linear: &Linear, element: Element) -> Operand {
        let address = self.parameters(element, linear.weights.start);
        operand(address, element, linear.outputs(), linear.inputs())
    }

    /// Adds a note, once: layers may have the same products.
    pub(crate) fn note(&mut self, note: String) {
        if !self.work.notes.contains(&note) {
            self.work.notes.push(note);
        }
    }

    /// Adds kernels that follow each other.
    ///
    /// # Safety
    /// Their arguments must be those that they declare, and their memory that of the routine.
    pub(crate) unsafe fn kernels(
        &mut self,
        kernels: impl IntoIterator<Item = Launch>,
    ) -> Result<(), CudaError> {
        for kernel in kernels {
            // SAFETY: the caller's promise.
            self.push(1, move |stream| unsafe { kernel.launch(stream) })?;
        }
        Ok(())
    }

    /// Adds a part and runs it once: the next product is calibrated on what it leaves.
    fn push(
        &mut self,
        launches: u32,
        run: impl Fn(&CudaStream) -> Result<(), CudaError> + 'static,
    ) -> Result<(), CudaError> {
        run(self.gpu.stream())?;
        self.gpu.synchronize()?;
        self.parts.push(Part {
            phase: self.phase,
            beside: self.beside,
            launches,
            run: Rc::new(Box::new(run)),
        });
        Ok(())
    }

    /// Makes the host wait for what was added so far.
    pub(crate) fn wait(&mut self) -> Result<(), CudaError> {
        self.push(0, synchronize)
    }

    /// Adds C = A B, or `count` such products that lie one behind the other.
    ///
    /// # Safety
    /// The operands must be memory of the routine with these sizes, and C none of the others.
    pub(crate) unsafe fn product(
        &mut self,
        name: &'static str,
        [a, b, c]: [Operand; 3],
        count: usize,
    ) -> Result<(), RoutineError> {
        let product = self.describe(name, [a, b, c], count);
        // SAFETY: the caller's promise.
        match unsafe { self.chosen(product) }? {
            true => Ok(()),
            false => Err(format!("cuBLASLt has no algorithm for a product of {name}").into()),
        }
    }

    fn describe(&self, name: &'static str, [a, b, c]: [Operand; 3], count: usize) -> Product {
        Product {
            name,
            a,
            b,
            c,
            arithmetic: self.format.arithmetic(),
            factor: 1.0,
            epilogue: Epilogue::Nothing,
            added: None,
            count,
            own: self.fused,
        }
    }

    /// Adds the linear layer from the rows `x` to the rows `y`, its bias and what follows, added to
    /// `added`: in one kernel of the library or of our own, or in a kernel for each step. Where nothing
    /// has this epilogue, more kernels follow, and a note says so.
    pub(crate) fn linear(
        &mut self,
        name: &'static str,
        linear: &Linear,
        [x, y]: [&Tensor; 2],
        then: Then,
        added: Option<&Tensor>,
    ) -> Result<(), RoutineError> {
        let operands = [
            self.matrix(x, linear.inputs()),
            self.weights(linear, x.element).t(),
            self.matrix(y, linear.outputs()),
        ];
        // A bias has the type of what it is added to.
        let bias = self.parameters(y.element, linear.bias.start);
        let added = added.map(Tensor::address);
        let plain = Product {
            added,
            ..self.describe(name, operands, 1)
        };
        let whole = Product {
            epilogue: match then {
                Then::Bias => Epilogue::Bias(bias),
                Then::ReluBias => Epilogue::ReluBias(bias),
            },
            ..plain
        };
        if self.fused {
            // SAFETY: the operands are the routine's, with these sizes; no product's result is one of
            // its operands.
            if unsafe { self.chosen(whole) }? {
                return Ok(());
            }
            self.note(format!(
                "{name}: the library has no such epilogue here; kernels follow it"
            ));
        }
        // SAFETY: as above.
        if !unsafe { self.chosen(plain) }? {
            return Err(format!("cuBLASLt has no algorithm for a product of {name}").into());
        }
        let mut kernels = vec![add_bias(&self.gpu, y, bias, linear.outputs())?];
        if then == Then::ReluBias {
            kernels.push(relu(&self.gpu, y)?);
        }
        // SAFETY: the kernels' arguments are made with them, of the same memory.
        Ok(unsafe { self.kernels(kernels) }?)
    }

    /// Adds a product, and how it is computed to the notes; false where nothing computes it.
    ///
    /// # Safety
    /// As for [`product`](Self::product).
    unsafe fn chosen(&mut self, product: Product) -> Result<bool, RoutineError> {
        let workspace = match &self.workspace_beside {
            Some(workspace) if self.beside => workspace.clone(),
            _ => self.workspace.clone(),
        };
        // SAFETY: the caller's promise.
        let Some(made) = (unsafe { ChosenProduct::fastest(&self.gpu, &workspace, product) })?
        else {
            return Ok(false);
        };
        self.note(made.note());
        // SAFETY: as above.
        self.push(made.launches(), move |stream| unsafe {
            made.enqueue(stream)
        })?;
        Ok(true)
    }

    /// The parts in this order. Those beside others run on a stream of their own.
    fn steps(&self, order: Order) -> Result<Steps, CudaError> {
        let first = self.parts.iter().position(|part| part.beside);
        let (before, rest) = self.parts.split_at(first.unwrap_or(self.parts.len()));
        let (beside, rest): (Vec<&Part>, Vec<&Part>) = rest.iter().partition(|part| part.beside);
        // What follows both is another phase.
        let phase = beside.first().map_or("", |part| part.phase);
        let (here, after): (Vec<&Part>, Vec<&Part>) =
            rest.into_iter().partition(|part| part.phase == phase);
        let divides = order != Order::InTurn && !beside.is_empty();
        let mut steps = match divides {
            true => Steps::with_streams(&self.gpu)?,
            false => Steps::new(&self.gpu)?,
        };
        let mut shown = "";
        let mut add = |steps: &mut Steps, parts: &[&Part], on| {
            for part in parts {
                if part.phase != shown {
                    shown = part.phase;
                    steps.named(shown);
                }
                let run = part.run.clone();
                steps.call_on(on, part.launches, move |stream| run(stream));
            }
        };
        add(&mut steps, &before.iter().collect::<Vec<_>>(), On::Compute);
        if divides {
            steps.order(On::Compute, On::Up)?;
            if order == Order::BesideLast {
                add(&mut steps, &here, On::Compute);
            }
            add(&mut steps, &beside, On::Up);
            if order == Order::BesideFirst {
                add(&mut steps, &here, On::Compute);
            }
            steps.order(On::Up, On::Compute)?;
        } else {
            add(&mut steps, &beside, On::Compute);
            add(&mut steps, &here, On::Compute);
        }
        add(&mut steps, &after, On::Compute);
        Ok(steps)
    }

    /// The order that is fastest as a graph, by a calibration that runs the network.
    pub(crate) fn fastest_order(
        &mut self,
        choice: &str,
        names: impl Fn(Order) -> &'static str,
    ) -> Result<(Order, &'static str), RoutineError> {
        let orders = [Order::BesideFirst, Order::BesideLast, Order::InTurn];
        let steps = orders.map(|order| self.steps(order));
        let [first, last, in_turn] = steps;
        let steps = [first?, last?, in_turn?];
        let names = orders.map(names);
        let at = timed::fastest(&self.gpu, choice, &names, |at| steps[at].enqueue())?;
        Ok((orders[at], names[at]))
    }

    /// The routine, of which an iteration runs all parts in this order, as a graph or not, behind the
    /// steps that it has.
    pub(crate) fn finish(mut self, order: Order, replayed: bool) -> Result<Prepared, CudaError> {
        let mut steps = self.steps(order)?;
        if replayed {
            steps.replay()?;
        }
        if self.work.steps.is_empty() {
            self.work.steps = steps;
        } else {
            let launches = steps.launches();
            (self.work.steps).call_on(On::Compute, launches, move |_| steps.enqueue());
        }
        let workspaces = [Some(&self.workspace), self.workspace_beside.as_ref()];
        let workspace: usize = workspaces.into_iter().flatten().map(|w| w.bytes()).sum();
        let [parameters, activations] = self.bytes;
        let memory = self.gpu.properties().memory_bytes as usize;
        let room = memory.saturating_sub(parameters + workspace);
        // All of it is allocated at once, so the peak is the sum.
        self.work.figures = [
            ("parameters_bytes", parameters),
            ("activations_bytes", activations),
            ("workspace_bytes", workspace),
            ("peak_bytes", parameters + activations + workspace),
        ]
        .map(|(key, bytes)| (key.to_owned(), bytes as f64))
        .into();
        let largest = room as f64 * self.rows as f64 / activations as f64;
        (self.work.figures).insert("largest_batch".to_owned(), largest.floor());
        Ok(self.work)
    }
}

/// Whether a network so launched has few kernels, and whether they are replayed as a graph.
///
/// # Errors
/// No network is launched so.
pub(crate) fn fused_and_replayed(launches: Launches) -> Result<(bool, bool), RoutineError> {
    match launches {
        Launches::OneByOne => Ok((false, false)),
        Launches::Fused => Ok((true, false)),
        Launches::Graph => Ok((true, true)),
        other => Err(format!("a network is not launched {other:?}").into()),
    }
}

/// A row-major matrix at this address.
pub(crate) fn operand(
    address: CUdeviceptr,
    element: Element,
    rows: usize,
    columns: usize,
) -> Operand {
    Operand {
        address,
        element: element.data_type(),
        rows,
        columns,
        transposed: false,
    }
}
