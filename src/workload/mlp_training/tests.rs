//! The float64 reference against finite differences; the check against steps that are right, that
//! are rounded, and that are wrong.

use std::ops::Range;
use std::rc::Rc;

use crate::model::Format;
use crate::workload::mlp_training::cpu::{self, cross_entropy};
use crate::workload::mlp_training::problem::{
    CLASSES, GRADIENTS, MLP_TRAINING, PARAMETERS, Reference, Training, model, ranges,
};
use crate::workload::mlp_training::verify::{Outputs, verified};
use crate::workload::network::OnCpu;
use crate::workload::network::model::assert_ranges;
use crate::workload::network::products::Products;
use crate::workload::network::tensor::rounded::{Round, to_bf16, to_tf32};
use crate::workload::prepare::Threads;
use crate::workload::routine::Workload;
use crossover_arithmetic::adamw::{BETA_1, BETA_2, DECAY, EPSILON, RATE, step_in_f32};

/// What a step left, in memory that can be spoilt.
#[derive(Clone)]
struct Left {
    hidden: Vec<f32>,
    logits: Vec<f32>,
    loss: f32,
    gradients: Vec<f32>,
    parameters: Vec<f32>,
    first: Vec<f32>,
    second: Vec<f32>,
    copies: Option<Vec<f32>>,
    counter: [f64; 5],
}

impl Left {
    /// The largest error by the bounds of a format, as a share of its bound.
    fn error(&self, problem: &Training, format: Format) -> f64 {
        let outputs = Outputs {
            hidden: &self.hidden,
            logits: &self.logits,
            loss: self.loss,
            gradients: &self.gradients,
            parameters: &self.parameters,
            first: &self.first,
            second: &self.second,
            copies: self.copies.as_deref(),
            counter: self.counter,
        };
        let verified = verified(problem, format, &outputs);
        verified.error / verified.bound
    }

    /// The update of these parameters that the gradients give, from the start of `problem`.
    fn update(&mut self, problem: &Training, range: Range<usize>) {
        let (before, counter) = (problem.start.state(), problem.start.counter.next());
        let before = before.part(range.clone());
        let [w, m, v] = [
            (&mut self.parameters, before.parameters),
            (&mut self.first, before.first),
            (&mut self.second, before.second),
        ]
        .map(|(after, before)| {
            let after = &mut after[range.clone()];
            after.copy_from_slice(before);
            after
        });
        let (rate, root) = (counter.rate as f32, counter.root as f32);
        step_in_f32(w, &self.gradients[range], m, v, rate, root);
    }
}

/// A step on the CPU with rounded inputs, parameters and activations, whose update is that of the parameters
/// themselves.
fn step(problem: &Training, round: Round) -> Left {
    let rounded = |values: &[f32]| -> Vec<f32> { values.iter().map(|&v| round(v)).collect() };
    let products = Products::new(Threads::One, "a training step");
    let parameters = rounded(&problem.start.parameters);
    let network = OnCpu::new(&problem.model, products, &parameters, problem.batch);
    let mut network = network.trained(&rounded(&problem.inputs));
    network.forward(&[]);
    network.values[1] = rounded(&network.values[1]);
    let threads = &network.products.threads;
    let of_logits = &mut network.of_values[2];
    let loss = cross_entropy(threads, &network.values[2], &problem.labels, of_logits);
    network.of_values[2] = rounded(&network.of_values[2]);
    network.backward(&GRADIENTS);
    let nothing = vec![f32::NAN; PARAMETERS];
    let mut left = Left {
        hidden: std::mem::take(&mut network.values[1]),
        logits: std::mem::take(&mut network.values[2]),
        loss,
        gradients: network.of_parameters,
        parameters: nothing.clone(),
        first: nothing.clone(),
        second: nothing,
        copies: None,
        counter: problem.start.counter.next().values(),
    };
    left.update(problem, 0..PARAMETERS);
    left
}

#[test]
fn finite_differences_give_the_gradients_of_the_reference() {
    let problem = Training::new(2);
    let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
    let (x, parameters) = (wide(&problem.inputs), wide(&problem.start.parameters));
    let loss = |place: usize, change: f64| {
        let mut parameters = parameters.clone();
        parameters[place] += change;
        Reference::of(x.clone(), &problem.labels, &parameters).loss
    };
    let gradients = &problem.reference().gradients;
    const CHANGE: f64 = 1e-5;
    for range in ranges() {
        let (first, len) = (range.start, range.len());
        // Among the second layer's also those of a label, where the gradient is large.
        let label = problem.labels[0] as usize;
        let of_label = label * len / CLASSES;
        for place in [len / 3, len - 1, of_label].map(|i| first + i) {
            let difference = (loss(place, CHANGE) - loss(place, -CHANGE)) / (2.0 * CHANGE);
            let error = (difference - gradients[place]).abs();
            assert!(
                error <= 1e-9 + 1e-6 * difference.abs(),
                "parameter {place}: {difference:e} by differences, {:e}",
                gradients[place]
            );
        }
    }
    // They differ from zero and from each other, or the test would show nothing.
    let [_, b1, ..] = ranges();
    assert!(gradients[b1].iter().any(|g| g.abs() > 1e-4));
}

#[test]
fn each_bound_accepts_its_own_rounding_and_rejects_the_next_coarser() {
    for batch in [1, 17] {
        let problem = Training::new(batch);
        let f32 = step(&problem, |v| v);
        let tf32 = step(&problem, to_tf32);
        let mut bf16 = step(&problem, to_bf16);
        assert!(f32.error(&problem, Format::F32) < 0.2, "batch {batch}");
        assert!(tf32.error(&problem, Format::F32) > 1.0, "batch {batch}");
        bf16.copies = Some(bf16.parameters.iter().map(|&w| to_bf16(w)).collect());
        let of_bf16 = bf16.error(&problem, Format::Bf16);
        assert!((0.25..0.5).contains(&of_bf16), "batch {batch}: {of_bf16}");
    }
}

/// By the bounds of BF16, which are the coarsest.
#[test]
fn one_wrong_value_is_found_wherever_it_is() {
    let problem = Training::new(17);
    let mut right = step(&problem, to_bf16);
    right.copies = Some(right.parameters.iter().map(|&w| to_bf16(w)).collect());
    let wrong = |what: &str, spoil: &dyn Fn(&mut Left)| {
        let mut left = right.clone();
        spoil(&mut left);
        let error = left.error(&problem, Format::Bf16);
        assert!(error > 1.0 || error.is_nan(), "{what}: {error}");
    };
    // A gradient is left out. The update is then the one that it gives, and nothing but the comparison of
    // gradients can tell.
    for (what, range) in ["W1", "b1", "W2", "b2"].into_iter().zip(ranges()) {
        let magnitude = |i: &usize| right.gradients[*i].abs();
        let largest = |x: &usize, y: &usize| magnitude(x).total_cmp(&magnitude(y));
        let place = range.max_by(largest).unwrap();
        wrong(what, &|left| {
            left.gradients[place] = 0.0;
            left.update(&problem, place..place + 1);
            left.copies.as_mut().unwrap()[place] = to_bf16(left.parameters[place]);
        });
    }
    let [_, b1, w2, b2] = ranges();
    wrong("an activation", &|left| left.hidden[5] += 1.0);
    wrong("a logit", &|left| left.logits[7] = f32::NAN);
    wrong("the loss", &|left| left.loss = f32::NAN);
    wrong("a sum in place of a mean", &|left| left.loss *= 17.0);
    wrong("a parameter", &|left| left.parameters[3] += 1e-4);
    wrong("a first moment", &|left| left.first[w2.start] *= 1.01);
    wrong("a second moment", &|left| left.second[b2.start] *= 1.001);
    wrong("a copy", &|left| {
        left.copies.as_mut().unwrap()[b1.start] *= 1.1;
    });
    for (at, before) in problem.start.counter.values().into_iter().enumerate() {
        wrong("a value of the counter that was not stored", &|left| {
            left.counter[at] = before;
        });
    }
}

/// A step that another state leads to must not pass: what is restored matters.
#[test]
fn a_second_step_without_restoring_is_found() {
    let mut routine = cpu::best(&Rc::new(Training::new(3)), 1).unwrap();
    for passes in [true, false] {
        routine.run().unwrap();
        assert_eq!(routine.check().unwrap().passed(), passes);
    }
}

#[test]
fn every_range_is_aligned() {
    assert_eq!(model().parameters, PARAMETERS);
    assert_ranges(&model());
}

#[test]
fn the_constants_are_those_of_the_source() {
    for text in [
        format!("RATE = {RATE:e}"),
        format!("BETA_1 = {BETA_1}"),
        format!("BETA_2 = {BETA_2}"),
        format!("EPSILON = {EPSILON:e}"),
        format!("DECAY = {DECAY}"),
        format!("CLASSES = {CLASSES}"),
    ] {
        assert!(MLP_TRAINING.text.contains(&text), "{text}");
    }
}
