//! The network on the GPU: in one kernel per step or in few kernels, launched one by one or as a
//! graph, on tokens in device memory or from host memory.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::{Gpu, kernel::Source};
use crate::model::{Launches, role};
use crate::timing::Launch;
use crate::workload::network::{
    Element, Format, Linear, Network, Order, Tensor, Then, fused_and_replayed, kernels::on_fours,
    operand,
};
use crate::workload::prepare::{Device, HostMemory, On, Prepared, timed};
use crate::workload::routine::{Made, RoutineError};
use crate::workload::transformer::model::{
    HEAD, HEADS, HIDDEN, Norm, QKV, SEQUENCE, VOCABULARY, WIDTH,
};
use crate::workload::transformer::problem::Inference;
use crate::workload::transformer::problem::{ATTENTION, TRANSFORMER};
use crate::workload::transformer::verify::verified;

/// Threads of a block, but of attention in f32: `THREADS` in both sources.
const THREADS: u32 = 256;
/// Rows that a block takes where a warp has each.
const ROWS: u32 = THREADS / 32;
/// How many queries a block of attention has, and its threads: in f32, and on tensor cores.
const F32_ATTENTION: [[u32; 2]; 2] = [[16, 128], [32, 64]];
const ATTENTION_ON_TENSOR_CORES: [[u32; 2]; 2] = [[32, THREADS], [64, THREADS]];

/// A batch, launched one by one, in few kernels or as the graph of those.
///
/// One by one, in f32, it has a kernel per step, as code without fusion launches them: the library's
/// products, biases, ReLU, norms and sums; for attention copies that give each head a matrix of its
/// own, batched products, and softmax. In few kernels bias, ReLU and residual are in the products,
/// attention is one kernel that keeps its scores on the multiprocessor, a layer norm takes one pass,
/// and the first norm has the embedding.
///
/// With host memory of one kind the tokens are uploaded before that and the logits are downloaded after
/// it. It synchronises then: time it on the wall clock.
///
/// # Errors
/// Other launches, a device too old for the format, errors of CUDA and its libraries.
pub fn pass(
    gpu: &Rc<Gpu>,
    problem: &Rc<Inference>,
    format: Format,
    launches: Launches,
    memory: Option<HostMemory>,
) -> Made {
    let (fused, replayed) = fused_and_replayed(launches)?;
    let pass = Pass::new(gpu, problem, format, fused, memory)?;
    Ok(Box::new(pass.finish(replayed, memory)?))
}

/// A batch while it is being prepared: rows of tokens, but for what says otherwise.
struct Pass {
    network: Network,
    problem: Rc<Inference>,
    tokens: Device<u32>,
    /// The residual, always f32, which each part of a layer adds to. In few kernels a part reads one
    /// of the two and writes the other; in one kernel per step the second is what is added to the
    /// first.
    residual: [Tensor; 2],
    normed: Tensor,
    qkv: Tensor,
    /// What the heads give, side by side.
    heads: Tensor,
    hidden: Tensor,
    logits: Tensor,
}

impl Pass {
    /// The memory, and all that a batch enqueues.
    fn new(
        gpu: &Rc<Gpu>,
        problem: &Rc<Inference>,
        format: Format,
        fused: bool,
        from: Option<HostMemory>,
    ) -> Result<Self, RoutineError> {
        format.require(gpu)?;
        let mut work = Prepared::new(gpu)?;
        let tokens = work.input(from, problem, |problem| &problem.tokens)?;
        if from.is_some() {
            // The first of the vocabulary. With an invalid token the kernels would read far beyond
            // the embedding.
            work.poison_by(tokens, 0);
            // What follows is calibrated on the batch.
            work.steps.run()?;
        }
        let parameters = &problem.parameters;
        let mut network = Network::new(work, parameters, format, fused, problem.rows())?;
        network.bytes[1] += tokens.bytes();
        let (element, f32) = (format.element(), Element::F32);
        let mut pass = Self {
            residual: [network.rows_of(f32, WIDTH)?, network.rows_of(f32, WIDTH)?],
            normed: network.rows_of(element, WIDTH)?,
            qkv: network.rows_of(element, QKV)?,
            heads: network.rows_of(element, WIDTH)?,
            hidden: network.rows_of(element, HIDDEN)?,
            logits: network.rows_of(element, VOCABULARY)?,
            network,
            problem: problem.clone(),
            tokens,
        };
        pass.enqueued()?;
        Ok(pass)
    }

    /// 29 kernels: 7 per layer, of which the first norm of all has the embedding, and the logits; in
    /// BF16 one more, since the residual is f32 and the product of the logits reads BF16. Or 75 in f32,
    /// 18 per layer, the embedding, the logits and their bias.
    fn enqueued(&mut self) -> Result<(), RoutineError> {
        let problem = self.problem.clone();
        let (normed, qkv, heads, hidden) = (self.normed, self.qkv, self.heads, self.hidden);
        let x = self.residual[0];
        // Where a part of a layer that adds to the residual leaves it.
        let [behind_attention, behind] = match self.network.fused {
            true => [self.residual[1], x],
            false => [x, x],
        };
        let matrices = match self.network.fused {
            true => None,
            false => Some(Matrices::new(&mut self.network)?),
        };
        for (at, layer) in problem.model.layers.iter().enumerate() {
            self.norm(at == 0, &x, &layer.before_attention)?;
            let name = "queries, keys and values";
            (self.network).linear(name, &layer.qkv, [&normed, &qkv], Then::Bias, None)?;
            match &matrices {
                None => self.attention()?,
                Some(matrices) => self.attention_in_steps(matrices)?,
            }
            let onto = [&x, &behind_attention];
            self.add("projection", &layer.projection, &heads, onto)?;
            self.norm(false, &behind_attention, &layer.before_hidden)?;
            let rows = [&normed, &hidden];
            (self.network).linear("way in", &layer.hidden, rows, Then::ReluBias, None)?;
            self.add(
                "way back",
                &layer.back,
                &hidden,
                [&behind_attention, &behind],
            )?;
        }
        let from = match self.logits.element {
            Element::F32 => x,
            Element::Bf16 => {
                // In the place of what a norm gives.
                let (narrow, count) = self.on_values("narrow", &x)?;
                let narrow = narrow.arg(x.address()).arg(normed.address());
                self.kernel(narrow.arg(count))?;
                normed
            }
        };
        let rows = [&from, &self.logits];
        (self.network).linear("logits", &problem.model.logits, rows, Then::Bias, None)
    }

    fn kernel(&mut self, kernel: Launch) -> Result<(), RoutineError> {
        // SAFETY: each kernel's arguments are made with it here, and its memory is the routine's.
        Ok(unsafe { self.network.kernels([kernel]) }?)
    }

    /// A warp for each of so many rows, whose number is to be the last argument.
    fn on_rows(&self, name: &str, rows: usize) -> Result<(Launch, u32), RoutineError> {
        let rows = u32::try_from(rows)?;
        let function = self.network.gpu.function(&TRANSFORMER, name)?;
        let blocks = rows.div_ceil(ROWS);
        Ok((Launch::new(function, (blocks, 1, 1), (THREADS, 1, 1)), rows))
    }

    /// A thread for every four values of `tensor`, whose number is to be the last argument.
    fn on_values(&self, name: &str, of: &Tensor) -> Result<(Launch, u32), RoutineError> {
        on_fours(&self.network.gpu, &TRANSFORMER, name, of.len)
    }

    fn parameters(&self, range: &std::ops::Range<usize>) -> CUdeviceptr {
        self.network.parameters(Element::F32, range.start)
    }

    /// Layer norm of a residual; with the embedding of each token to it before that.
    fn norm(&mut self, embeds: bool, x: &Tensor, norm: &Norm) -> Result<(), RoutineError> {
        let table = self.parameters(&self.problem.model.embedding);
        let tokens = self.tokens.address;
        let in_one = embeds && self.network.fused;
        if embeds && !in_one {
            let (embed, count) = self.on_values("embed", x)?;
            let embed = embed.arg(tokens).arg(table).arg(x.address());
            self.kernel(embed.arg(count))?;
        }
        let name = if in_one { "embed_norm" } else { "layer_norm" };
        let name = format!("{name}_{}", self.normed.element.suffix());
        let (launch, rows) = self.on_rows(&name, self.network.rows)?;
        let launch = match in_one {
            true => launch.arg(tokens).arg(table).arg(x.address()),
            false => launch.arg(x.address()),
        };
        let (gain, bias) = (self.parameters(&norm.gain), self.parameters(&norm.bias));
        let launch = launch.arg(gain).arg(bias).arg(self.normed.address());
        self.kernel(launch.arg(rows))
    }

    /// A linear layer whose result is added to the residual `from`, and leaves it in `to`.
    fn add(
        &mut self,
        name: &'static str,
        linear: &Linear,
        rows: &Tensor,
        [from, to]: [&Tensor; 2],
    ) -> Result<(), RoutineError> {
        if self.network.fused {
            return (self.network).linear(name, linear, [rows, to], Then::Bias, Some(from));
        }
        let change = self.residual[1];
        (self.network).linear(name, linear, [rows, &change], Then::Bias, None)?;
        let (launch, count) = self.on_values("add", to)?;
        let launch = launch.arg(to.address()).arg(change.address());
        self.kernel(launch.arg(count))
    }

    /// Attention in one kernel, with a note on how many queries a block of it takes. With more queries
    /// a load of a key or value from shared memory serves more multiply-adds; with fewer a small batch
    /// has blocks for more multiprocessors. A calibration chooses, so queries, keys and values must
    /// hold numbers.
    fn attention(&mut self) -> Result<(), RoutineError> {
        let gpu = self.network.gpu.clone();
        let (source, suffix, candidates): (&Source, _, _) = match self.network.format {
            Format::F32 => (&TRANSFORMER, "f32", F32_ATTENTION),
            Format::Tf32 => (&ATTENTION, "tf32", ATTENTION_ON_TENSOR_CORES),
            Format::Bf16 => (&ATTENTION, "bf16", ATTENTION_ON_TENSOR_CORES),
        };
        let launch = |[queries, threads]: [u32; 2]| -> Result<Launch, RoutineError> {
            let function = gpu.function(source, &format!("attention_{queries}_{suffix}"))?;
            let blocks = u32::try_from(self.network.rows * HEADS)? / queries;
            let launch = Launch::new(function, (blocks, 1, 1), (threads, 1, 1));
            Ok(launch.arg(self.qkv.address()).arg(self.heads.address()))
        };
        let launches = [launch(candidates[0])?, launch(candidates[1])?];
        let format = role::Format::from(self.network.format).name();
        let (batch, device) = (self.problem.batch, &gpu.properties().name);
        let choice = format!("attention, {batch} sequences in {format}, on {device}");
        let names = candidates.map(|[queries, _]| format!("{queries} queries per block"));
        let chosen = timed::fastest(&gpu, &choice, &names, |at| {
            // SAFETY: the arguments are those that the kernel declares, and memory of the routine;
            // `timed` waits for what it enqueues.
            unsafe { launches[at].launch(gpu.stream()) }
        })?;
        let kernel = launch(candidates[chosen])?;
        self.network.note(format!("attention: {}", names[chosen]));
        self.kernel(kernel)
    }

    /// Attention in a kernel for each step, where each head of each sequence is a matrix.
    fn attention_in_steps(&mut self, of: &Matrices) -> Result<(), RoutineError> {
        let (qkv, heads) = (self.qkv, self.heads);
        let (split, count) = self.on_values("split_heads", &qkv)?;
        let split = split.arg(qkv.address()).arg(of.qkv.address());
        self.kernel(split.arg(count))?;

        let matrix = |address, columns| operand(address, Element::F32, SEQUENCE, columns);
        let all = self.network.rows * WIDTH;
        let [queries, keys, values] = [0, 1, 2].map(|which| matrix(of.qkv.at(which * all), HEAD));
        let scores = matrix(of.scores.address(), SEQUENCE);
        let results = matrix(of.results.address(), HEAD);
        let count = self.problem.batch * HEADS;
        // SAFETY: there are so many of these matrices, one behind the other.
        unsafe { (self.network).product("scores", [queries, keys.t(), scores], count) }?;
        let (softmax, rows) = self.on_rows("softmax", of.scores.len / SEQUENCE)?;
        self.kernel(softmax.arg(of.scores.address()).arg(rows))?;
        // SAFETY: as above.
        unsafe { (self.network).product("shares of values", [scores, values, results], count) }?;

        let (merge, count) = self.on_values("merge_heads", &heads)?;
        let merge = merge.arg(of.results.address()).arg(heads.address());
        self.kernel(merge.arg(count))
    }

    /// The routine, as a graph or not; with host memory, what `new` uploads comes first, and the logits
    /// are downloaded.
    fn finish(self, replayed: bool, to: Option<HostMemory>) -> Result<Prepared, RoutineError> {
        let (logits, problem, format) = (self.logits, self.problem, self.network.format);
        let mut work = self.network.finish(Order::InTurn, replayed)?;
        let Some(memory) = to else {
            work.check_by(move |memory| Ok(verified(&problem, format, &logits.values(memory)?)));
            return Ok(work);
        };
        let host = work.host_output(memory, f32::NAN, logits.len)?;
        // SAFETY: both sides hold as many values, and the routine waits for them.
        unsafe {
            work.steps
                .download(On::Compute, logits.address(), host.values)
        };
        work.waits = true;
        work.check_by(move |memory| Ok(verified(&problem, format, memory.values(host)?)));
        Ok(work)
    }
}

/// Of attention in a kernel for each step.
struct Matrices {
    /// All queries, all keys, all values.
    qkv: Tensor,
    scores: Tensor,
    results: Tensor,
}

impl Matrices {
    fn new(network: &mut Network) -> Result<Self, RoutineError> {
        Ok(Self {
            qkv: network.rows_of(Element::F32, QKV)?,
            scores: network.rows_of(Element::F32, HEADS * SEQUENCE)?,
            results: network.rows_of(Element::F32, WIDTH)?,
        })
    }
}
