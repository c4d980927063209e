//! The network on the CPU.

use std::ops::Range;
use std::rc::Rc;

use rayon::prelude::*;

use crate::model::verified::Verified;
use crate::workload::network::format::Format;
use crate::workload::network::operations::{add_bias, add_bias_relu};
use crate::workload::network::product::{Way, matrix, matrix_mut};
use crate::workload::network::transpose::transpose;
use crate::workload::prepare::threads::Threads;
use crate::workload::routine::{Made, Routine, RoutineError};
use crate::workload::transformer::attention::attention;
use crate::workload::transformer::model::{HIDDEN, Linear, Model, Norm, QKV, VOCABULARY, WIDTH};
use crate::workload::transformer::problem::Inference;
use crate::workload::transformer::rows::{add_with_bias, embed, layer_norm};
use crate::workload::transformer::verify::verified;

/// On all cores: each product in the way that is fastest in a short calibration, the rest in the
/// widest vectors, shared out among the threads.
pub fn best(problem: &Rc<Inference>) -> Made {
    Ok(Box::new(OnCpu::new(problem, Threads::all())))
}

/// As [`best`], on one thread.
pub fn one_thread(problem: &Rc<Inference>) -> Made {
    Ok(Box::new(OnCpu::new(problem, Threads::One)))
}

/// How each product is computed. Those of the layers have the same sizes.
#[derive(Clone, Copy)]
struct Ways {
    qkv: Way,
    projection: Way,
    hidden: Way,
    back: Way,
    logits: Way,
}

struct OnCpu {
    problem: Rc<Inference>,
    /// The parameters, of which the weights of each linear layer are transposed once and for all:
    /// a row for each input, so that a product reads rows of both operands.
    parameters: Vec<f32>,
    threads: Threads,
    memory: Memory,
    ways: Ways,
}

impl OnCpu {
    fn new(problem: &Rc<Inference>, threads: Threads) -> Self {
        let mut memory = Memory::new(problem);
        let parameters = with_transposed_weights(problem, &threads);
        let ways = memory.calibrate(&threads, &problem.model, &parameters);
        Self {
            problem: problem.clone(),
            parameters,
            threads,
            memory,
            ways,
        }
    }
}

fn with_transposed_weights(problem: &Inference, threads: &Threads) -> Vec<f32> {
    let model = &problem.model;
    let mut parameters = problem.parameters.clone();
    let of_layers = (model.layers.iter())
        .flat_map(|layer| [&layer.qkv, &layer.projection, &layer.hidden, &layer.back]);
    for linear in of_layers.chain([&model.logits]) {
        let range = linear.weights.clone();
        let from = &problem.parameters[range.clone()];
        transpose(threads, from, linear.inputs(), &mut parameters[range]);
    }
    parameters
}

/// What lies between the steps, a row for each token.
struct Memory {
    /// What each part of a layer adds to.
    residual: Vec<f32>,
    normed: Vec<f32>,
    qkv: Vec<f32>,
    /// What the heads give, side by side.
    heads: Vec<f32>,
    hidden: Vec<f32>,
    /// What is added to the residual.
    change: Vec<f32>,
    logits: Vec<f32>,
}

/// y = x W^T without the bias, where W^T is what lies in `parameters`.
fn multiply(
    threads: &Threads,
    way: Way,
    x: &[f32],
    linear: &Linear,
    parameters: &[f32],
    y: &mut [f32],
) {
    let weights = matrix(&parameters[linear.weights.clone()], linear.outputs());
    let x = matrix(x, linear.inputs());
    way.multiply(
        threads,
        x,
        weights,
        matrix_mut(y, linear.outputs()),
        &mut [],
    );
}

fn fastest(
    threads: &Threads,
    name: &str,
    x: &[f32],
    linear: &Linear,
    parameters: &[f32],
    y: &mut [f32],
) -> Way {
    let weights = matrix(&parameters[linear.weights.clone()], linear.outputs());
    let x = matrix(x, linear.inputs());
    let name = format!("{name} of a transformer");
    let y = matrix_mut(y, linear.outputs());
    Way::fastest(threads, &name, x, weights, y, &mut [])
}

impl Memory {
    fn new(problem: &Inference) -> Self {
        // Numbers, since the products are calibrated on them: none may be chosen by how it
        // multiplies NaN.
        let rows = |width: usize| vec![0.5; problem.rows() * width];
        Self {
            residual: rows(WIDTH),
            normed: rows(WIDTH),
            qkv: rows(QKV),
            heads: rows(WIDTH),
            hidden: rows(HIDDEN),
            change: rows(WIDTH),
            logits: rows(VOCABULARY),
        }
    }

    fn calibrate(&mut self, threads: &Threads, model: &Model, p: &[f32]) -> Ways {
        let layer = &model.layers[0];
        let (qkv, change) = (&mut self.qkv, &mut self.change);
        Ways {
            qkv: fastest(
                threads,
                "queries, keys, values",
                &self.normed,
                &layer.qkv,
                p,
                qkv,
            ),
            projection: fastest(
                threads,
                "projection",
                &self.heads,
                &layer.projection,
                p,
                change,
            ),
            back: fastest(threads, "way back", &self.hidden, &layer.back, p, change),
            hidden: fastest(
                threads,
                "way in",
                &self.normed,
                &layer.hidden,
                p,
                &mut self.hidden,
            ),
            logits: fastest(
                threads,
                "logits",
                &self.residual,
                &model.logits,
                p,
                &mut self.logits,
            ),
        }
    }

    fn run(&mut self, threads: &Threads, tokens: &[u32], model: &Model, p: &[f32], ways: Ways) {
        let of = |range: &Range<usize>| &p[range.clone()];
        let norm = |x: &[f32], norm: &Norm, to: &mut [f32]| {
            layer_norm(threads, x, of(&norm.gain), of(&norm.bias), to);
        };
        embed(threads, tokens, of(&model.embedding), &mut self.residual);
        for layer in &model.layers {
            norm(&self.residual, &layer.before_attention, &mut self.normed);
            multiply(
                threads,
                ways.qkv,
                &self.normed,
                &layer.qkv,
                p,
                &mut self.qkv,
            );
            add_bias(threads, &mut self.qkv, of(&layer.qkv.bias));
            attention(threads, &self.qkv, &mut self.heads);
            let projection = &layer.projection;
            multiply(
                threads,
                ways.projection,
                &self.heads,
                projection,
                p,
                &mut self.change,
            );
            add_with_bias(
                threads,
                &mut self.residual,
                &self.change,
                of(&projection.bias),
            );

            norm(&self.residual, &layer.before_hidden, &mut self.normed);
            multiply(
                threads,
                ways.hidden,
                &self.normed,
                &layer.hidden,
                p,
                &mut self.hidden,
            );
            add_bias_relu(threads, &mut self.hidden, of(&layer.hidden.bias));
            multiply(
                threads,
                ways.back,
                &self.hidden,
                &layer.back,
                p,
                &mut self.change,
            );
            add_with_bias(
                threads,
                &mut self.residual,
                &self.change,
                of(&layer.back.bias),
            );
        }
        multiply(
            threads,
            ways.logits,
            &self.residual,
            &model.logits,
            p,
            &mut self.logits,
        );
        add_bias(threads, &mut self.logits, of(&model.logits.bias));
    }
}

impl Routine for OnCpu {
    fn poison(&mut self) -> Result<(), RoutineError> {
        let Memory {
            residual,
            normed,
            qkv,
            heads,
            hidden,
            change,
            logits,
        } = &mut self.memory;
        for values in [residual, normed, qkv, heads, hidden, change, logits] {
            values.par_iter_mut().for_each(|v| *v = f32::NAN);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        let Self {
            problem,
            parameters,
            threads,
            memory,
            ways,
        } = self;
        let Inference { tokens, model, .. } = &**problem;
        memory.run(threads, tokens, model, parameters, *ways);
        Ok(())
    }

    fn park(&mut self) {
        self.threads.park();
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(verified(&self.problem, Format::F32, &self.memory.logits))
    }

    fn launches(&self) -> u32 {
        0
    }

    fn notes(&self) -> Vec<String> {
        let ways = &self.ways;
        [
            ("queries, keys and values", ways.qkv),
            ("projection", ways.projection),
            ("way into the feed-forward part", ways.hidden),
            ("way back", ways.back),
            ("logits", ways.logits),
        ]
        .map(|(name, way)| format!("{name}: {way}"))
        .into()
    }
}
