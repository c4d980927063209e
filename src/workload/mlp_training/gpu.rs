//! A step on the GPU: in one kernel per operation or in few kernels, launched one by one or as a
//! graph, on a batch in device memory or from host memory.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::{Format, Launches};
use crate::timing::Launch;
use crate::workload::mlp_training::problem::{GRADIENTS, MLP_TRAINING, PARAMETERS, Training};
use crate::workload::mlp_training::verify::{Outputs, verified, verified_forward};
use crate::workload::network::{
    Network, Tensor, fused_and_replayed,
    layers::{elementwise, on_fours},
};
use crate::workload::prepare::{Device, HostMemory, Prepared};
use crate::workload::routine::{Result, Routine};

/// Threads of a block: `THREADS` in the source.
const THREADS: u32 = 256;
/// Rows of logits that a block takes, a warp each.
const ROWS: u32 = THREADS / 32;
/// Places of f32 that the counter takes after the parameters and their moments.
const COUNTER_PLACES: usize = 16;

/// A step, launched one by one, in few kernels or as the graph of those.
///
/// One by one, in f32, it has a kernel per operation, as code without fusion launches them: the
/// library's products, biases, ReLU, the loss in three kernels, each operation of AdamW over all
/// parameters. In few kernels bias and ReLU are in the product, the loss has its gradient, the
/// derivative of ReLU the sums of a bias, and all parameters are updated at once.
///
/// With host memory of one kind the batch and its labels are uploaded before that and the loss is
/// downloaded after it. It synchronises then: time it on the wall clock.
///
/// # Errors
/// Other launches, a device too old for the format, errors of CUDA and its libraries.
pub fn step(
    gpu: &Rc<Gpu>,
    problem: &Rc<Training>,
    format: Format,
    launches: Launches,
    memory: Option<HostMemory>,
) -> Result<Box<dyn Routine>> {
    let (fused, replayed) = fused_and_replayed(launches)?;
    let mut step = GpuStep::new(gpu, problem, format, fused, memory)?;
    step.enqueued()?;
    step.finish(replayed, memory)
}

/// A step while it is being prepared.
struct GpuStep {
    network: Network,
    problem: Rc<Training>,
    labels: Tensor,
    /// The first and second moments, and the counter.
    moments: Tensor,
    gradients: Tensor,
    /// The loss, preceded by the blocks' parts of its sum.
    loss: Tensor,
    /// Number of blocks that have arrived: zero between steps.
    arrived: Device<u32>,
    /// Sums over some of the rows, from which the gradients of both biases are computed.
    partial: Vec<Tensor>,
}

impl GpuStep {
    /// The memory, with the state that a step starts from.
    fn new(
        gpu: &Rc<Gpu>,
        problem: &Rc<Training>,
        format: Format,
        fused: bool,
        from: Option<HostMemory>,
    ) -> Result<Self> {
        let (batch, start) = (problem.batch, &problem.start);
        let mut work = Prepared::new(gpu)?;
        let inputs = if format == Format::F32 {
            Tensor::input(&mut work, from, problem, |problem| &problem.inputs)?
        } else {
            Tensor::of(&mut work, format, &problem.inputs)?
        };
        let labels = Tensor::indices(&mut work, from, problem, |problem| &problem.labels)?;
        let mut moments = [&start.first[..], &start.second].concat();
        for value in start.counter.values() {
            // Two f32 hold the bits of a float64, the lower ones first.
            let bits = value.to_bits();
            moments.extend([bits as u32, (bits >> 32) as u32].map(f32::from_bits));
        }
        moments.resize(2 * PARAMETERS + COUNTER_PLACES, 0.0);
        let [moments, moments_before] = [
            Tensor::of(&mut work, Format::F32, &moments)?,
            Tensor::of(&mut work, Format::F32, &moments)?,
        ];
        let before = Tensor::of(&mut work, Format::F32, &start.parameters)?;
        let gradients = Tensor::output(&mut work, Format::F32, PARAMETERS)?;
        let arrived = work.state(&[0])?;
        let (model, parameters) = (&problem.model, &start.parameters);
        let mut network = Network::new(work, model, parameters, format, fused, batch)?;
        let work = &mut network.work;
        work.restore(moments.device, moments_before.device);
        work.restore(network.parameters.device, before.device);
        if let Some(copies) = network.copies {
            let before = Tensor::of(work, Format::Bf16, parameters)?;
            work.restore(copies.device, before.device);
        }
        network.bytes[0] += moments.device.bytes() + gradients.device.bytes();
        network.bytes[1] += labels.device.bytes();
        network.activations(inputs, true)?;
        let loss = network.values(Format::F32, batch + 1)?;
        let partial = network.partial_sums()?;
        Ok(Self {
            network,
            problem: problem.clone(),
            labels,
            moments,
            gradients,
            loss,
            arrived,
            partial,
        })
    }

    /// Nine kernels: two products with what follows them, the loss with its gradient, three products
    /// of gradients and two sums of biases (two kernels each for more than 256 rows), the update. Or 22
    /// in f32, a kernel for each part.
    fn enqueued(&mut self) -> Result<()> {
        let loss = self.loss_kernels()?;
        let update = self.update_kernels()?;
        let network = &mut self.network;
        network.forward()?;
        // SAFETY: `loss_kernels` made each kernel with its arguments, of memory of the routine.
        unsafe { network.kernels(loss) }?;
        network.backward(&GRADIENTS, self.gradients, &self.partial)?;
        network.phase = "update";
        // SAFETY: `update_kernels` made each kernel with its arguments, of memory of the routine.
        Ok(unsafe { network.kernels(update) }?)
    }

    fn counter(&self) -> CUdeviceptr {
        self.moments.at(2 * PARAMETERS)
    }

    /// The kernels of the loss, its gradient and the step counter. Unfused, the loss takes three
    /// kernels: the first leaves the logarithms of the softmax in the gradient's memory, and the last
    /// one computes the gradient from them.
    fn loss_kernels(&self) -> Result<Vec<Launch>> {
        let gpu = &self.network.gpu;
        let rows = u32::try_from(self.problem.batch)?;
        let (logits, gradient) = (self.network.values[2], self.network.of_values[2]);
        let (logits, of_logits) = (logits.address(), gradient.address());
        // Weight of a row in the mean.
        let share = 1.0 / self.problem.batch as f32;
        let loss = self.loss.at(self.problem.batch);
        let on = |name: &str, blocks| gpu.launch(&MLP_TRAINING, name, blocks, THREADS);
        // A warp for each row of the batch.
        let blocks = rows.div_ceil(ROWS);
        if self.network.fused {
            let name = format!("cross_entropy_{}", gradient.suffix());
            let launch = on(&name, blocks)?.arg(logits).arg(self.labels.address());
            let launch = launch.arg(rows).arg(share).arg(of_logits);
            let launch = launch.arg(self.loss.address()).arg(loss);
            return Ok(vec![launch.arg(self.arrived.address).arg(self.counter())]);
        }
        let labels = self.labels.address();
        let softmax = on("log_softmax", blocks)?.arg(logits);
        let softmax = softmax.arg(of_logits).arg(rows);
        let mean = on("mean_loss", 1)?.arg(of_logits).arg(labels);
        let mean = mean.arg(rows).arg(share).arg(loss);
        let (gradient, count) = on_fours(gpu, &MLP_TRAINING, "loss_gradient", gradient.len)?;
        let gradient = gradient.arg(of_logits).arg(labels).arg(count);
        Ok(vec![softmax, mean, gradient.arg(share).arg(of_logits)])
    }

    /// AdamW over all parameters, or in a kernel for each operation, the step counter first.
    fn update_kernels(&mut self) -> Result<Vec<Launch>> {
        let gpu = self.network.gpu.clone();
        let (w, g) = (self.network.parameters.address(), self.gradients.address());
        let (m, v) = (self.moments.address(), self.moments.at(PARAMETERS));
        let counter = self.counter();
        let each = |name: &str, addresses: &[CUdeviceptr]| {
            elementwise(&gpu, &MLP_TRAINING, name, PARAMETERS, addresses)
        };
        if self.network.fused {
            return Ok(vec![match self.network.copies {
                None => each("adamw_f32", &[w, g, m, v, counter])?,
                Some(copies) => each("adamw_bf16", &[w, g, m, v, copies.address(), counter])?,
            }]);
        }
        let root = self.network.values(Format::F32, PARAMETERS)?.address();
        let advance = gpu.launch(&MLP_TRAINING, "adamw_advance", 1, 1)?;
        let mut kernels = vec![advance.arg(counter)];
        for (name, addresses) in [
            ("adamw_decay", &[w][..]),
            ("adamw_first", &[m, g]),
            ("adamw_age", &[v]),
            ("adamw_second", &[v, g]),
            ("adamw_root", &[v, root]),
            ("adamw_denominator", &[root, counter]),
            ("adamw_move", &[w, m, root, counter]),
        ] {
            kernels.push(each(name, addresses)?);
        }
        Ok(kernels)
    }

    /// The routine, as a graph if `replayed`. With host memory, the uploads of `new` come first, and
    /// the loss is downloaded.
    fn finish(self, replayed: bool, to: Option<HostMemory>) -> Result<Box<dyn Routine>> {
        let (problem, loss) = (self.problem, self.loss);
        let loss = (loss, problem.batch..loss.len);
        let (network, moments, gradients) = (self.network, self.moments, self.gradients);
        let (parameters, copies, format) = (network.parameters, network.copies, network.format);
        let (hidden, logits) = (network.values[1], network.values[2]);
        network.finish(replayed, to, loss, move |memory, loss| {
            let moments = moments.values(memory)?;
            let (first, rest) = moments.split_at(PARAMETERS);
            let copies = copies.map(|copies| copies.values(memory)).transpose()?;
            let outputs = Outputs {
                hidden: &hidden.values(memory)?,
                logits: &logits.values(memory)?,
                loss: loss[0],
                gradients: &gradients.values(memory)?,
                parameters: &parameters.values(memory)?,
                first,
                second: &rest[..PARAMETERS],
                copies: copies.as_deref(),
                counter: std::array::from_fn(|at| {
                    let half = |half: usize| u64::from(rest[PARAMETERS + 2 * at + half].to_bits());
                    f64::from_bits(half(1) << 32 | half(0))
                }),
            };
            Ok(verified(&problem, format, &outputs))
        })
    }
}

/// On data in device memory: a kernel for each operation, launched one by one, with
/// [`Launches::Synchronised`] with a wait of the host after each layer.
///
/// # Errors
/// Another way to launch, errors of CUDA and its libraries.
pub fn forward(
    gpu: &Rc<Gpu>,
    problem: &Rc<Training>,
    launching: Launches,
) -> Result<Box<dyn Routine>> {
    if ![Launches::OneByOne, Launches::Synchronised].contains(&launching) {
        return Err(format!("a forward pass is not launched {launching:?}").into());
    }
    let mut work = Prepared::new(gpu)?;
    let inputs = Tensor::input(&mut work, None, problem, |problem| &problem.inputs)?;
    let (model, parameters, batch) = (&problem.model, &problem.start.parameters, problem.batch);
    let mut network = Network::new(work, model, parameters, Format::F32, false, batch)?;
    network.activations(inputs, false)?;
    for (layer, phase) in model.layers.iter().zip(["first layer", "second layer"]) {
        if launching == Launches::Synchronised && phase == "second layer" {
            network.wait()?;
        }
        network.phase = phase;
        network.layer(layer)?;
    }
    let [_, hidden, logits] = network.values[..] else {
        return Err("a perceptron has two layers".into());
    };
    let (problem, all) = (problem.clone(), (hidden, 0..hidden.len));
    network.finish(false, None, all, move |memory, hidden| {
        Ok(verified_forward(&problem, hidden, &logits.values(memory)?))
    })
}
