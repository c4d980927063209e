//! A network on the GPU: its parameters, its activations, and the steps of an iteration. Each step runs
//! once when it is added.

use std::ops::Range;
use std::rc::Rc;

use cudarc::driver::{CudaStream, sys::CUdeviceptr};

use crate::device::{Gpu, copies_and_events::synchronize};
use crate::model::{Format, Launches, Verified};
use crate::timing::{CudaError, Launch};
use crate::workload::network::model::{Activation, Linear, Model};
use crate::workload::network::tensor::Tensor;
use crate::workload::prepare::{HostMemory, Memory, Prepared, Steps, Stream};
use crate::workload::product::{self, Matrix, Product, Workspace, properties};
use crate::workload::routine::{Result, Routine};

/// A network while its routine is being prepared.
pub(crate) struct Network {
    pub(crate) gpu: Rc<Gpu>,
    pub(crate) work: Prepared,
    pub(crate) format: Format,
    /// Whether an operation takes as few kernels as possible. Otherwise each of its steps takes one
    /// kernel, and the library computes all products.
    pub(crate) fused: bool,
    /// Number of inputs or tokens.
    pub(crate) rows: usize,
    /// The parameters in f32, and in BF16 where products read those.
    pub(crate) parameters: Tensor,
    pub(crate) copies: Option<Tensor>,
    pub(super) model: Rc<Model>,
    /// The activations. The first are the inputs.
    pub(crate) values: Vec<Tensor>,
    /// The gradients of the activations, in the type that products read; the first is empty.
    pub(crate) of_values: Vec<Tensor>,
    /// For unfused attention, where each head of each sequence is a matrix: all queries, all keys and
    /// all values; the scores; the results.
    pub(super) matrices: Vec<Tensor>,
    /// The tokens and the table of an embedding that is fused into the next norm.
    pub(super) embeds: Option<[CUdeviceptr; 2]>,
    /// The phase to which added steps belong; a profile shows it as a range.
    pub(crate) phase: &'static str,
    /// The phase of the newest step.
    named: &'static str,
    workspace: Rc<Workspace>,
    /// The steps of an iteration, behind uploads.
    steps: Steps,
    /// Bytes of device memory: of the parameters and their gradients and moments; and of inputs and
    /// activations.
    pub(crate) bytes: [usize; 2],
}

impl Network {
    /// A network with these parameters and no steps yet.
    ///
    /// # Errors
    /// A format that networks do not have or that the device is too old for, errors of CUDA and its
    /// libraries.
    pub(crate) fn new(
        mut work: Prepared,
        model: &Rc<Model>,
        parameters: &[f32],
        format: Format,
        fused: bool,
        rows: usize,
    ) -> Result<Self> {
        let gpu = work.memory.gpu.clone();
        if ![Format::F32, Format::Bf16].contains(&format) {
            return Err(format!("no network has operands in {}", format.name()).into());
        }
        properties(format).require(&gpu)?;
        let in_f32 = Tensor::of(&mut work, Format::F32, parameters)?;
        let copies = if format == Format::F32 {
            None
        } else {
            Some(Tensor::of(&mut work, format, parameters)?)
        };
        let bytes = in_f32.device.bytes() + copies.map_or(0, |c| c.device.bytes());
        Ok(Self {
            bytes: [bytes, 0],
            workspace: Workspace::new(&gpu)?,
            steps: Steps::new(&gpu)?,
            gpu,
            work,
            format,
            fused,
            rows,
            parameters: in_f32,
            copies,
            model: model.clone(),
            values: Vec::new(),
            of_values: Vec::new(),
            matrices: Vec::new(),
            embeds: None,
            phase: "forward",
            named: "",
        })
    }

    /// Memory for `width` values for each row.
    pub(crate) fn rows_of(&mut self, format: Format, width: usize) -> Result<Tensor, CudaError> {
        self.values(format, self.rows * width)
    }

    /// Memory for values between operations.
    pub(crate) fn values(&mut self, format: Format, len: usize) -> Result<Tensor, CudaError> {
        let tensor = Tensor::output(&mut self.work, format, len)?;
        self.bytes[1] += tensor.device.bytes();
        Ok(tensor)
    }

    /// The address of the parameters from this place on, in this format.
    ///
    /// # Panics
    /// In BF16 where no product reads that.
    pub(crate) fn parameters(&self, format: Format, place: usize) -> CUdeviceptr {
        match format {
            Format::F32 => self.parameters.at(place),
            _ => self.copies.expect("made for this format").at(place),
        }
    }

    /// A matrix with a row for each input or token.
    pub(crate) fn matrix(&self, of: &Tensor, columns: usize) -> Matrix {
        of.matrix(self.rows, columns)
    }

    /// The weights of a layer, in the format of its inputs.
    pub(crate) fn weights(&self, of: &Linear, format: Format, [y, x]: [Activation; 2]) -> Matrix {
        let address = self.parameters(format, of.weights.start);
        Matrix::new(address, format, y.width, x.width)
    }

    /// Adds a note once, although several layers may have the same products.
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
            // SAFETY: the caller gave the arguments that it declares, of memory that outlives the steps.
            self.push(1, move |stream| unsafe { kernel.launch(stream) })?;
        }
        Ok(())
    }

    /// Adds a step and runs it once, because the next product is calibrated on its results.
    fn push(
        &mut self,
        launches: u32,
        run: impl Fn(&CudaStream) -> Result<(), CudaError> + 'static,
    ) -> Result<(), CudaError> {
        run(self.gpu.stream())?;
        self.gpu.synchronize()?;
        if self.phase != self.named {
            self.named = self.phase;
            self.steps.named(self.phase);
        }
        self.steps.call_on(Stream::Compute, launches, run);
        Ok(())
    }

    /// Makes the host wait for the steps added so far.
    pub(crate) fn wait(&mut self) -> Result<(), CudaError> {
        self.push(0, synchronize)
    }

    /// Adds a product.
    ///
    /// # Safety
    /// The operands must be memory of the routine with these sizes, and C none of the others.
    pub(super) unsafe fn product(&mut self, product: Product) -> Result<()> {
        // SAFETY: the caller promises the same of the operands.
        if unsafe { self.chosen(product) }? {
            return Ok(());
        }
        let name = product.name;
        Err(format!("cuBLASLt has no algorithm for a product of {name}").into())
    }

    /// Adds a product, with a note of the way chosen; returns false if no way has this epilogue.
    ///
    /// # Safety
    /// As for [`product`](Self::product).
    pub(super) unsafe fn chosen(&mut self, product: Product) -> Result<bool> {
        // SAFETY: the caller gave operands of the routine, which outlive the way, and C is none of the others.
        let fastest = unsafe { product::fastest(&self.gpu, &self.workspace, product) }?;
        let Some((plan, launches)) = fastest else {
            return Ok(false);
        };
        self.note(format!("{}: {plan}", product.name));
        // SAFETY: the steps follow each other on one stream, so none uses the workspace of another.
        self.push(launches, move |stream| unsafe { plan.enqueue(stream) })?;
        Ok(true)
    }

    /// The routine, of which an iteration runs all steps, as a graph if asked for.
    /// `check` gets the values of this part of `output`; with host memory, each iteration downloads
    /// them.
    pub(crate) fn finish(
        self,
        replayed: bool,
        to: Option<HostMemory>,
        (output, part): (Tensor, Range<usize>),
        check: impl Fn(&Memory, &[f32]) -> Result<Verified> + 'static,
    ) -> Result<Box<dyn Routine>> {
        let mut work = self.prepared(replayed)?;
        let Some(to) = to else {
            work.check_by(move |memory| check(memory, &output.values(memory)?[part.clone()]));
            return Ok(Box::new(work));
        };
        let host = work.host_output(to, f32::NAN, part.len())?;
        let from = output.at(part.start);
        // SAFETY: the output has this part, `host` its length, and `waits` keeps the host from it.
        unsafe { work.steps.download(Stream::Compute, from, host.values) };
        work.waits = true;
        work.check_by(move |memory| check(memory, memory.values(host)));
        Ok(Box::new(work))
    }

    /// Appends the steps to the uploads, and counts the memory that they take.
    fn prepared(self, replayed: bool) -> Result<Prepared, CudaError> {
        let (mut steps, mut work) = (self.steps, self.work);
        if replayed {
            steps.replay()?;
        }
        if work.steps.is_empty() {
            work.steps = steps;
        } else {
            let launches = steps.launches();
            (work.steps).call_on(Stream::Compute, launches, move |_| steps.enqueue());
        }
        let workspace = self.workspace.bytes();
        let [parameters, activations] = self.bytes;
        let memory = self.gpu.properties().memory_bytes as usize;
        let room = memory.saturating_sub(parameters + workspace);
        // All of it is allocated at once, so the peak is the sum.
        work.figures = [
            ("parameters_bytes", parameters),
            ("activations_bytes", activations),
            ("workspace_bytes", workspace),
            ("peak_bytes", parameters + activations + workspace),
        ]
        .map(|(key, bytes)| (key.to_owned(), bytes as f64))
        .into();
        let largest = room as f64 * self.rows as f64 / activations as f64;
        (work.figures).insert("largest_batch".to_owned(), largest.floor());
        Ok(work)
    }
}

/// Whether a network with these launches is fused, and whether it is replayed as a graph.
///
/// # Errors
/// On launches that no network has.
pub(crate) fn fused_and_replayed(launches: Launches) -> Result<(bool, bool)> {
    match launches {
        Launches::OneByOne => Ok((false, false)),
        Launches::Fused => Ok((true, false)),
        Launches::Graph => Ok((true, true)),
        other => Err(format!("a network is not launched {other:?}").into()),
    }
}
