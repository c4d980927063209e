//! The check against networks that are right, that are rounded, and that are wrong.

use std::ops::Range;

use ndarray::{Array2, ArrayView2, linalg::general_mat_mul, s};

use crate::model::Format;
use crate::workload::network::model::{HEAD, HEADS, Layer, LayerKind, Linear, SEQUENCE, WIDTH};
use crate::workload::network::tensor::rounded::{Round, to_bf16, to_tf32};
use crate::workload::network::{
    operations::{embed, layer_norm},
    products::matrix,
};
use crate::workload::prepare::Threads;
use crate::workload::routine::Workload;
use crate::workload::transformer::problem::{Inference, verified};

/// The mistake of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    None,
    NoAttention,
    NoScale,
    NoHidden,
    NoNorm,
    NoBias,
    AHead,
}

struct Rounded<'a> {
    problem: &'a Inference,
    /// The parameters as operands.
    weights: Vec<f32>,
    /// The rounding of operands.
    operand: Round,
    /// The rounding of values stored between the steps, except the residual.
    stored: Round,
    mistake: Mistake,
}

fn multiply(a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>) -> Array2<f32> {
    let mut c = Array2::zeros((a.nrows(), b.ncols()));
    general_mat_mul(1.0, &a, &b, 0.0, &mut c);
    c
}

impl Rounded<'_> {
    fn product(&self, a: ArrayView2<'_, f32>, b: ArrayView2<'_, f32>) -> Array2<f32> {
        multiply(a.mapv(self.operand).view(), b.mapv(self.operand).view())
    }

    fn linear(&self, x: &Array2<f32>, linear: &Linear) -> Array2<f32> {
        let parameters = &self.problem.parameters;
        let weights = matrix(&self.weights[linear.weights.clone()], x.ncols());
        let mut y = multiply(x.mapv(self.operand).view(), weights.t());
        if self.mistake != Mistake::NoBias {
            for mut row in y.rows_mut() {
                let bias = &parameters[linear.bias.clone()];
                row.iter_mut()
                    .zip(bias)
                    .for_each(|(y, b)| *y += (self.stored)(*b));
            }
        }
        y
    }

    fn norm(&self, x: &Array2<f32>, [gain, bias]: &[Range<usize>; 2]) -> Array2<f32> {
        if self.mistake == Mistake::NoNorm {
            return x.clone();
        }
        let mut y = Array2::zeros(x.dim());
        let parameters = &self.problem.parameters;
        layer_norm(
            &Threads::One,
            x.as_slice().unwrap(),
            &parameters[gain.clone()],
            &parameters[bias.clone()],
            y.as_slice_mut().unwrap(),
        );
        y.mapv(self.stored)
    }

    fn attention(&self, qkv: &Array2<f32>) -> Array2<f32> {
        let mut heads = Array2::zeros((qkv.nrows(), WIDTH));
        let scale = match self.mistake {
            Mistake::NoScale => 1.0,
            _ => (HEAD as f32).sqrt().recip(),
        };
        for first in (0..qkv.nrows()).step_by(SEQUENCE) {
            let rows = first..first + SEQUENCE;
            for head in 0..HEADS {
                if self.mistake == Mistake::AHead && head == 2 {
                    continue;
                }
                let columns = |which: usize| {
                    let from = which * WIDTH + head * HEAD;
                    qkv.slice(s![rows.clone(), from..from + HEAD])
                };
                let mut scores = self.product(columns(0), columns(1).t());
                for mut row in scores.rows_mut() {
                    row.mapv_inplace(|s| (s * scale).exp());
                    let sum = row.sum();
                    row /= sum;
                }
                let of_head = self.product(scores.view(), columns(2));
                let to = s![rows.clone(), head * HEAD..(head + 1) * HEAD];
                heads.slice_mut(to).assign(&of_head);
            }
        }
        heads
    }

    fn logits(&mut self, mistake: Mistake) -> Vec<f32> {
        self.mistake = mistake;
        let (problem, model) = (self.problem, &self.problem.model);
        let mut values = vec![Array2::zeros((0, 0)); model.activations.len()];
        for Layer { kind, x, y } in &model.layers {
            let from = &values[x.place];
            values[y.place] = match kind {
                LayerKind::Embed(table) => {
                    let mut rows = Array2::zeros((problem.rows(), WIDTH));
                    let (tokens, table) = (&problem.tokens, &problem.parameters[table.clone()]);
                    embed(&Threads::One, tokens, table, rows.as_slice_mut().unwrap());
                    rows
                }
                LayerKind::Norm(of) => self.norm(from, of),
                LayerKind::Linear(of) => {
                    let left_out = match self.mistake {
                        Mistake::NoAttention => of.name == "projection",
                        Mistake::NoHidden => of.name == "way back",
                        _ => false,
                    };
                    let relu = |z: f32| if y.relu() { z.max(0.0) } else { z };
                    match of.spare {
                        Some(_) if left_out => values[y.place].clone(),
                        Some(_) => self.linear(from, of) + &values[y.place],
                        None => self.linear(from, of).mapv(|z| (self.stored)(relu(z))),
                    }
                }
                LayerKind::Attention => self.attention(from).mapv(self.stored),
                LayerKind::Narrow => from.clone(),
            };
        }
        values.pop().unwrap().into_raw_vec_and_offset().0
    }
}

const FORMATS: [(Format, Round, Round); 2] = [
    (Format::F32, |v| v, |v| v),
    (Format::Bf16, to_bf16, to_bf16),
];

fn network(problem: &Inference, (_, operand, stored): (Format, Round, Round)) -> Rounded<'_> {
    Rounded {
        problem,
        weights: problem.parameters.iter().map(|&w| operand(w)).collect(),
        operand,
        stored,
        mistake: Mistake::None,
    }
}

fn passes(problem: &Inference, format: Format, logits: &[f32]) -> bool {
    verified(problem, format, logits).passed()
}

#[test]
fn each_bound_accepts_its_own_rounding_and_rejects_the_next_coarser() {
    for batch in [1, 9] {
        let problem = Inference::new(batch);
        for of in FORMATS {
            let logits = network(&problem, of).logits(Mistake::None);
            assert!(passes(&problem, of.0, &logits), "batch {batch} {:?}", of.0);
        }
        let mut coarser = network(&problem, (Format::F32, to_tf32, |v| v));
        let coarser = coarser.logits(Mistake::None);
        assert!(!passes(&problem, Format::F32, &coarser), "batch {batch}");
    }
}

#[test]
fn a_network_with_a_mistake_is_found_by_the_coarsest_bound() {
    let problem = Inference::new(2);
    let [_, coarsest] = FORMATS;
    let mut network = network(&problem, coarsest);
    for mistake in [
        Mistake::NoAttention,
        Mistake::NoScale,
        Mistake::NoHidden,
        Mistake::NoNorm,
        Mistake::NoBias,
        Mistake::AHead,
    ] {
        let logits = network.logits(mistake);
        assert!(!passes(&problem, coarsest.0, &logits), "{mistake:?}");
    }
}

#[test]
fn one_wrong_logit_is_found_and_so_is_one_that_nobody_wrote() {
    // One sequence more than the sample, which is the eighth.
    let problem = Inference::new(9);
    let right = network(&problem, FORMATS[0]).logits(Mistake::None);
    let outside = (0..9).find(|i| !problem.sample().contains(i)).unwrap();
    let per_sequence = right.len() / 9;
    for (place, value) in [
        (5, right[5] + 1e-2),
        (right.len() - 1, f32::NAN),
        (outside * per_sequence + 7, f32::NAN),
    ] {
        let mut wrong = right.clone();
        wrong[place] = value;
        assert!(!passes(&problem, Format::F32, &wrong), "place {place}");
    }
}
