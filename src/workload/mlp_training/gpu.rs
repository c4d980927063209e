//! A step on the GPU: in one kernel per operation or in few kernels, launched one by one or as a
//! graph, on a batch in device memory or from host memory.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::{Launches, Verified, role};
use crate::timing::Launch;
use crate::workload::mlp_training::model::{
    B1, B2, CLASSES, HIDDEN, INPUTS, PARAMETERS, W1, W2, layers,
};
use crate::workload::mlp_training::problem::MLP_TRAINING;
use crate::workload::mlp_training::problem::Training;
use crate::workload::mlp_training::verify::{Outputs, verified};
use crate::workload::network::{
    Element, Format, Network, Order, Tensor, Then, bytes_of, fused_and_replayed,
    kernels::{Sums, on_fours, partial_sums, relu_backward, relu_backward_sums, sum_rows},
    operand,
};
use crate::workload::prepare::{Device, HostMemory, Memory, On, Prepared};
use crate::workload::routine::{Made, RoutineError};

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
/// derivative of ReLU the sums of a bias, and all parameters are updated at once; the gradient of the
/// second layer is computed beside that of the first, on a second stream.
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
) -> Made {
    let (fused, replayed) = fused_and_replayed(launches)?;
    let step = Step::new(gpu, problem, format, fused, memory)?;
    Ok(Box::new(step.finish(replayed, memory)?))
}

/// A step while it is being prepared.
struct Step {
    network: Network,
    problem: Rc<Training>,
    inputs: Tensor,
    labels: Device<u32>,
    /// The first and second moments, and the counter.
    moments: Tensor,
    gradients: Tensor,
    hidden: Tensor,
    of_hidden: Tensor,
    logits: Tensor,
    of_logits: Tensor,
    /// The loss, and before it the sums of the blocks that add it up.
    loss: Tensor,
    /// How many of those blocks have arrived: zero between steps.
    arrived: Device<u32>,
    /// Sums over some of the rows, of which the gradients of both biases are made.
    partial: [Tensor; 2],
}

impl Step {
    /// The memory, with the state that a step starts from, and all that the step enqueues.
    fn new(
        gpu: &Rc<Gpu>,
        problem: &Rc<Training>,
        format: Format,
        fused: bool,
        from: Option<HostMemory>,
    ) -> Result<Self, RoutineError> {
        format.require(gpu)?;
        let (element, batch, start) = (format.element(), problem.batch, &problem.start);
        let mut work = Prepared::new(gpu)?;
        let inputs = match element {
            Element::Bf16 => Tensor::of(&mut work, element, &problem.inputs)?,
            Element::F32 => Tensor {
                device: work.input(from, problem, |problem| bytes_of(&problem.inputs))?,
                element,
                len: problem.inputs.len(),
            },
        };
        let labels = work.input(from, problem, |problem| &problem.labels)?;
        if from.is_some() {
            // Most rows do not have this label. With an invalid one the kernels would read far
            // beyond the logits.
            work.poison_by(labels, 0);
            // What follows is calibrated on the batch.
            work.steps.run()?;
        }
        let mut moments = [&start.first[..], &start.second].concat();
        for value in start.counter.values() {
            // Two f32 hold the bits of a float64, the lower ones first.
            let bits = value.to_bits();
            moments.extend([bits as u32, (bits >> 32) as u32].map(f32::from_bits));
        }
        moments.resize(2 * PARAMETERS + COUNTER_PLACES, 0.0);
        let [moments, moments_before] = [
            Tensor::of(&mut work, Element::F32, &moments)?,
            Tensor::of(&mut work, Element::F32, &moments)?,
        ];
        let before = Tensor::of(&mut work, Element::F32, &start.parameters)?;
        let gradients = Tensor::output(&mut work, Element::F32, PARAMETERS)?;
        let arrived = work.state(&[0])?;
        let mut network = Network::new(work, &start.parameters, format, fused, batch)?;
        network.work.restore(moments.device, moments_before.device);
        network
            .work
            .restore(network.parameters.device, before.device);
        if let Some(copies) = network.copies {
            let before = Tensor::of(&mut network.work, Element::Bf16, &start.parameters)?;
            network.work.restore(copies.device, before.device);
        }
        network.bytes[0] += moments.device.bytes() + gradients.device.bytes();
        network.bytes[1] += inputs.device.bytes() + labels.bytes();
        let partial = partial_sums(batch);
        let mut step = Self {
            hidden: network.rows_of(element, HIDDEN)?,
            of_hidden: network.rows_of(element, HIDDEN)?,
            logits: network.rows_of(Element::F32, CLASSES)?,
            of_logits: network.rows_of(element, CLASSES)?,
            loss: network.values(Element::F32, batch + 1)?,
            partial: [
                network.values(Element::F32, partial * HIDDEN)?,
                network.values(Element::F32, partial * CLASSES)?,
            ],
            problem: problem.clone(),
            network: match fused {
                // Two products run at the same time.
                true => network.with_workspace_beside()?,
                false => network,
            },
            inputs,
            labels,
            moments,
            gradients,
            arrived,
        };
        step.enqueued()?;
        Ok(step)
    }

    /// Nine kernels: two products with what follows them, the loss with its gradient, three products
    /// of gradients and two sums of biases (two kernels each for more than 256 rows), the update. Or 22
    /// in f32, a kernel for each part.
    fn enqueued(&mut self) -> Result<(), RoutineError> {
        let [first, second] = layers();
        let (inputs, hidden, logits) = (self.inputs, self.hidden, self.logits);
        let (of_hidden, of_logits) = (self.of_hidden, self.of_logits);
        let (b1, b2) = (self.sums(0, B1.start), self.sums(1, B2.start));
        let loss = self.loss_kernels()?;
        let update = self.update_kernels()?;
        let fused = self.network.fused;
        let net = &mut self.network;
        let gpu = net.gpu.clone();
        net.linear(
            "activations",
            &first,
            [&inputs, &hidden],
            Then::ReluBias,
            None,
        )?;
        net.linear("logits", &second, [&hidden, &logits], Then::Bias, None)?;

        let f32 = Element::F32;
        let gradient = |place, rows, columns| operand(place, f32, rows, columns);
        let of_w1 = gradient(self.gradients.at(W1.start), HIDDEN, INPUTS);
        let of_w2 = gradient(self.gradients.at(W2.start), CLASSES, HIDDEN);
        let [x, h, of_h, of_z] = [
            (&inputs, INPUTS),
            (&hidden, HIDDEN),
            (&of_hidden, HIDDEN),
            (&of_logits, CLASSES),
        ]
        .map(|(of, columns)| net.matrix(of, columns));
        let w2 = net.weights(&second, hidden.element);
        // SAFETY: the operands are the routine's, with these sizes, no product's result is one of its
        // operands, and the kernels' arguments are made with them.
        unsafe {
            net.kernels(loss)?;
            (net.phase, net.beside) = ("backward", true);
            net.product("gradient of W2", [of_z.t(), h, of_w2], 1)?;
            net.kernels(sum_rows(&gpu, &of_logits, b2)?)?;
            net.beside = false;
            net.product("gradient of the activations", [of_z, w2, of_h], 1)?;
            match fused {
                true => net.kernels(relu_backward_sums(&gpu, &of_hidden, &hidden, b1)?)?,
                false => net.kernels([relu_backward(&gpu, &of_hidden, &hidden)?])?,
            }
            net.product("gradient of W1", [of_h.t(), x, of_w1], 1)?;
            if !fused {
                net.kernels(sum_rows(&gpu, &of_hidden, b1)?)?;
            }
            net.phase = "update";
            net.kernels(update)?;
        }
        Ok(())
    }

    /// Where the gradient of a bias goes.
    fn sums(&self, layer: usize, bias: usize) -> Sums {
        Sums {
            width: [HIDDEN, CLASSES][layer],
            to: self.gradients.at(bias),
            partial: self.partial[layer].address(),
        }
    }

    fn counter(&self) -> CUdeviceptr {
        self.moments.at(2 * PARAMETERS)
    }

    /// The loss, its gradient, and the step counter; or the loss in three kernels, where the logarithms
    /// of the softmax take the place of the gradient, which the last one makes of them.
    fn loss_kernels(&self) -> Result<Vec<Launch>, RoutineError> {
        let gpu = &self.network.gpu;
        let rows = u32::try_from(self.problem.batch)?;
        let (logits, of_logits) = (self.logits.address(), self.of_logits.address());
        // What a row adds to the mean.
        let share = 1.0 / self.problem.batch as f32;
        let loss = self.loss.at(self.problem.batch);
        let on = |name: &str, blocks| -> Result<Launch, RoutineError> {
            let function = gpu.function(&MLP_TRAINING, name)?;
            Ok(Launch::new(function, (blocks, 1, 1), (THREADS, 1, 1)))
        };
        // A warp for each row of the batch.
        let blocks = rows.div_ceil(ROWS);
        if self.network.fused {
            let name = format!("cross_entropy_{}", self.of_logits.element.suffix());
            let launch = on(&name, blocks)?.arg(logits).arg(self.labels.address);
            let launch = launch.arg(rows).arg(share).arg(of_logits);
            let launch = launch.arg(self.loss.address()).arg(loss);
            return Ok(vec![launch.arg(self.arrived.address).arg(self.counter())]);
        }
        let softmax = on("log_softmax", blocks)?
            .arg(logits)
            .arg(of_logits)
            .arg(rows);
        let mean = on("mean_loss", 1)?.arg(of_logits).arg(self.labels.address);
        let mean = mean.arg(rows).arg(share).arg(loss);
        let (gradient, count) = on_fours(gpu, &MLP_TRAINING, "loss_gradient", self.of_logits.len)?;
        let gradient = gradient.arg(of_logits).arg(self.labels.address);
        Ok(vec![
            softmax,
            mean,
            gradient.arg(count).arg(share).arg(of_logits),
        ])
    }

    /// AdamW over all parameters, or in a kernel for each operation, the step counter first.
    fn update_kernels(&mut self) -> Result<Vec<Launch>, RoutineError> {
        let gpu = self.network.gpu.clone();
        let (w, g) = (self.network.parameters.address(), self.gradients.address());
        let (m, v) = (self.moments.address(), self.moments.at(PARAMETERS));
        let counter = self.counter();
        let each = |name| on_fours(&gpu, &MLP_TRAINING, name, PARAMETERS);
        if self.network.fused {
            let (name, copies) = match self.network.copies {
                None => ("adamw_f32", None),
                Some(copies) => ("adamw_bf16", Some(copies.address())),
            };
            let (launch, count) = each(name)?;
            let launch = launch.arg(w).arg(g).arg(m).arg(v);
            let launch = match copies {
                None => launch,
                Some(copies) => launch.arg(copies),
            };
            return Ok(vec![launch.arg(counter).arg(count)]);
        }
        let root = self.network.values(Element::F32, PARAMETERS)?.address();
        let advance = gpu.function(&MLP_TRAINING, "adamw_advance")?;
        let mut kernels = vec![Launch::new(advance, (1, 1, 1), (1, 1, 1)).arg(counter)];
        for (name, arguments) in [
            ("adamw_decay", &[w][..]),
            ("adamw_first", &[m, g]),
            ("adamw_age", &[v]),
            ("adamw_second", &[v, g]),
            ("adamw_root", &[v, root]),
            ("adamw_denominator", &[root, counter]),
            ("adamw_move", &[w, m, root, counter]),
        ] {
            let (launch, count) = each(name)?;
            let launch = arguments
                .iter()
                .fold(launch, |launch, &address| launch.arg(address));
            kernels.push(launch.arg(count));
        }
        Ok(kernels)
    }

    /// The routine, as a graph or not; with host memory, what `new` uploads comes first, and the loss is
    /// downloaded.
    fn finish(mut self, replayed: bool, to: Option<HostMemory>) -> Result<Prepared, RoutineError> {
        let order = match (replayed, self.network.fused) {
            (true, _) => {
                let format = role::Format::from(self.network.format).name();
                let step = format!("batch {} in {format}", self.problem.batch);
                let device = &self.network.gpu.properties().name;
                let of = "gradients of both layers";
                let choice = format!("order of the {of}, {step}, on {device}");
                let (order, words) = self.network.fastest_order(&choice, |order| match order {
                    Order::BesideFirst => "at the same time, those of the second layer first",
                    Order::BesideLast => "at the same time, those of the first layer first",
                    Order::InTurn => "one after the other",
                })?;
                self.network.note(format!("{of}: {words}"));
                order
            }
            (false, true) => Order::BesideFirst,
            (false, false) => Order::InTurn,
        };
        let (network, loss) = (self.network, self.loss);
        let (parameters, copies, format) = (network.parameters, network.copies, network.format);
        let mut work = network.finish(order, replayed)?;
        let arrived = match to {
            None => None,
            Some(memory) => {
                let host = work.host_output(memory, f32::NAN, 1)?;
                let from = loss.at(self.problem.batch);
                // SAFETY: one value lies there, which the routine waits for.
                unsafe { work.steps.download(On::Compute, from, host.values) };
                work.waits = true;
                Some(host)
            }
        };
        let Self {
            problem,
            hidden,
            logits,
            gradients,
            moments,
            ..
        } = self;
        work.check_by(move |memory: &Memory| -> Result<Verified, RoutineError> {
            let loss = match arrived {
                Some(host) => memory.values(host)?[0],
                None => loss.values(memory)?[problem.batch],
            };
            let moments = moments.values(memory)?;
            let (first, rest) = moments.split_at(PARAMETERS);
            let copies = copies.map(|copies| copies.values(memory)).transpose()?;
            let outputs = Outputs {
                hidden: &hidden.values(memory)?,
                logits: &logits.values(memory)?,
                loss,
                gradients: &gradients.values(memory)?,
                parameters: &parameters.values(memory)?,
                first,
                second: &rest[..PARAMETERS],
                copies: copies.as_deref(),
            };
            Ok(verified(&problem, format, &outputs))
        });
        Ok(work)
    }
}
