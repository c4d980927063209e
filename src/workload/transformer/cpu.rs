//! The network on the CPU.

use std::ops::Range;
use std::rc::Rc;

use rayon::prelude::*;

use crate::model::Verified;
use crate::workload::network::{
    Format, Products, matrix, matrix_mut,
    operations::{add_bias, add_bias_relu},
    transpose,
};
use crate::workload::prepare::Threads;
use crate::workload::routine::{Made, Routine, RoutineError};
use crate::workload::transformer::attention::attention;
use crate::workload::transformer::model::{HIDDEN, Linear, Norm, QKV, VOCABULARY, WIDTH};
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

/// The products of the network, in the names of choices and of notes. Those of the layers have the
/// same sizes.
const PRODUCTS: [(&str, &str); 5] = [
    ("queries, keys, values", "queries, keys and values"),
    ("projection", "projection"),
    ("way in", "way into the feed-forward part"),
    ("way back", "way back"),
    ("logits", "logits"),
];

/// The network, and what lies between its steps, a row for each token.
struct OnCpu {
    problem: Rc<Inference>,
    /// The parameters, of which the weights of each linear layer are transposed once and for all:
    /// a row for each input, so that a product reads rows of both operands.
    parameters: Vec<f32>,
    products: Products,
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

impl OnCpu {
    fn new(problem: &Rc<Inference>, threads: Threads) -> Self {
        let rows = |width: usize| vec![f32::NAN; problem.rows() * width];
        let mut network = Self {
            parameters: with_transposed_weights(problem, &threads),
            products: Products::new(threads, "a transformer", &PRODUCTS, 0),
            residual: rows(WIDTH),
            normed: rows(WIDTH),
            qkv: rows(QKV),
            heads: rows(WIDTH),
            hidden: rows(HIDDEN),
            change: rows(WIDTH),
            logits: rows(VOCABULARY),
            problem: problem.clone(),
        };
        // Chooses the ways.
        network.pass();
        network
    }

    fn pass(&mut self) {
        let Self {
            problem,
            parameters,
            products,
            residual,
            normed,
            qkv,
            heads,
            hidden,
            change,
            logits,
        } = self;
        let of = |range: &Range<usize>| &parameters[range.clone()];
        let norm = |threads: &Threads, x: &[f32], norm: &Norm, to: &mut [f32]| {
            layer_norm(threads, x, of(&norm.gain), of(&norm.bias), to);
        };
        // y = x W^T without the bias, where W^T is what lies in the parameters.
        let multiply =
            |products: &mut Products, place, x: &[f32], linear: &Linear, y: &mut [f32]| {
                let weights = matrix(of(&linear.weights), linear.outputs());
                let y = matrix_mut(y, linear.outputs());
                products.multiply(place, matrix(x, linear.inputs()), weights, y);
            };
        let table = of(&problem.model.embedding);
        embed(&products.threads, &problem.tokens, table, residual);
        for layer in &problem.model.layers {
            norm(&products.threads, residual, &layer.before_attention, normed);
            multiply(products, 0, normed, &layer.qkv, qkv);
            add_bias(&products.threads, qkv, of(&layer.qkv.bias));
            attention(&products.threads, qkv, heads);
            multiply(products, 1, heads, &layer.projection, change);
            let bias = of(&layer.projection.bias);
            add_with_bias(&products.threads, residual, change, bias);

            norm(&products.threads, residual, &layer.before_hidden, normed);
            multiply(products, 2, normed, &layer.hidden, hidden);
            add_bias_relu(&products.threads, hidden, of(&layer.hidden.bias));
            multiply(products, 3, hidden, &layer.back, change);
            let bias = of(&layer.back.bias);
            add_with_bias(&products.threads, residual, change, bias);
        }
        multiply(products, 4, residual, &problem.model.logits, logits);
        let bias = of(&problem.model.logits.bias);
        add_bias(&products.threads, logits, bias);
    }
}

impl Routine for OnCpu {
    fn poison(&mut self) -> Result<(), RoutineError> {
        for values in [
            &mut self.residual,
            &mut self.normed,
            &mut self.qkv,
            &mut self.heads,
            &mut self.hidden,
            &mut self.change,
            &mut self.logits,
        ] {
            values.par_iter_mut().for_each(|v| *v = f32::NAN);
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        self.pass();
        Ok(())
    }

    fn park(&mut self) {
        self.products.threads.park();
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(verified(&self.problem, Format::F32, &self.logits))
    }

    fn launches(&self) -> u32 {
        0
    }

    fn notes(&self) -> Vec<String> {
        self.products.notes()
    }
}
