//! The check against networks that are right, that are rounded, and that are wrong.

use crate::model::Format;
use crate::workload::network::model::{HEAD, LayerKind, Model, WIDTH};
use crate::workload::network::products::Products;
use crate::workload::network::tensor::rounded::{to_bf16, to_tf32};
use crate::workload::network::{OnCpu, model::Linear};
use crate::workload::prepare::Threads;
use crate::workload::routine::Workload;
use crate::workload::transformer::problem::{Inference, verified};

type Change = fn(&Model, &mut [f32]);

/// The logits of the network on the CPU with changed parameters, rounded at the end.
fn logits(problem: &Inference, round: fn(f32) -> f32, change: Change) -> Vec<f32> {
    let mut parameters = problem.parameters.clone();
    change(&problem.model, &mut parameters);
    parameters.iter_mut().for_each(|w| *w = round(*w));
    let products = Products::new(Threads::One, "a transformer");
    let mut network = OnCpu::new(&problem.model, products, &parameters, problem.rows());
    network.forward(&problem.tokens);
    let logits = network.values.pop().expect("activations");
    logits.into_iter().map(round).collect()
}

/// Changes the weights, a row for each output, and the biases of the linear layers of this name.
fn change_linears(
    model: &Model,
    name: &str,
    parameters: &mut [f32],
    change: impl Fn(&mut [f32], &mut [f32]),
) {
    for (Linear { weights, bias, .. }, ..) in model.linears().filter(|(of, ..)| of.name == name) {
        let mut biases = parameters[bias.clone()].to_vec();
        change(&mut parameters[weights.clone()], &mut biases);
        parameters[bias.clone()].copy_from_slice(&biases);
    }
}

const QUERIES: &str = "queries, keys and values";

/// Mistakes of a network, as parameters with which a right one gives the same logits.
const MISTAKES: [(&str, Change); 4] = [
    ("scores without their scale", |model, all| {
        change_linears(model, QUERIES, all, |weights, bias| {
            let queries = weights[..WIDTH * WIDTH]
                .iter_mut()
                .chain(&mut bias[..WIDTH]);
            queries.for_each(|w| *w *= (HEAD as f32).sqrt());
        });
    }),
    ("one head left out", |model, all| {
        change_linears(model, "projection", all, |weights, _| {
            for of_output in weights.chunks_mut(WIDTH) {
                of_output[2 * HEAD..3 * HEAD].fill(0.0);
            }
        });
    }),
    ("norms without gain and bias", |model, all| {
        for layer in &model.layers {
            if let LayerKind::Norm([gain, bias]) = &layer.kind {
                all[gain.clone()].fill(1.0);
                all[bias.clone()].fill(0.0);
            }
        }
    }),
    ("linear layers without bias", |model, all| {
        model
            .linears()
            .for_each(|(linear, ..)| all[linear.bias.clone()].fill(0.0));
    }),
];

/// Operands that are activations are rounded on a GPU too, so the bound of BF16 leaves room for as much again.
#[test]
fn each_bound_accepts_its_own_rounding_and_rejects_the_next_coarser() {
    for batch in [1, 3] {
        let problem = Inference::new(batch);
        let error = |round, format| {
            let verified = verified(&problem, format, &logits(&problem, round, |_, _| ()));
            verified.error / verified.bound
        };
        assert!(error(|v| v, Format::F32) <= 0.2, "batch {batch}");
        assert!(error(to_tf32, Format::F32) > 1.0, "batch {batch}");
        let of_bf16 = error(to_bf16, Format::Bf16);
        assert!((0.35..0.6).contains(&of_bf16), "batch {batch}: {of_bf16}");
    }
}

#[test]
fn a_network_with_a_mistake_is_found_by_the_coarsest_bound() {
    let problem = Inference::new(2);
    for (mistake, change) in MISTAKES {
        let verified = verified(&problem, Format::Bf16, &logits(&problem, |v| v, change));
        assert!(!verified.passed(), "{mistake}: {verified:?}");
    }
}

#[test]
fn one_wrong_logit_is_found_and_so_is_one_that_nobody_wrote() {
    // One sequence more than the sample, which is the eighth.
    let problem = Inference::new(9);
    let right = logits(&problem, |v| v, |_, _| ());
    let outside = (0..9).find(|i| !problem.sample().contains(i)).unwrap();
    let per_sequence = right.len() / 9;
    for (place, value) in [
        (5, right[5] + 1e-2),
        (right.len() - 1, f32::NAN),
        (outside * per_sequence + 7, f32::NAN),
    ] {
        let mut wrong = right.clone();
        wrong[place] = value;
        let verified = verified(&problem, Format::F32, &wrong);
        assert!(!verified.passed(), "place {place}");
    }
}
