//! A step in float64: the loss and every gradient.

use ndarray::Array2;

use crate::workload::mlp_training::model::{INPUTS, model};
use crate::workload::network::reference::InFloat64;

/// What a step computes, in float64, from the same inputs and parameters.
pub(super) struct Reference {
    pub(super) inputs: Array2<f64>,
    /// Before ReLU.
    pub(super) hidden: Array2<f64>,
    pub(super) logits: Array2<f64>,
    pub(super) loss: f64,
    /// Of the loss, with respect to the logits.
    pub(super) of_logits: Array2<f64>,
    /// Of the loss, with respect to what ReLU gave.
    pub(super) of_hidden: Array2<f64>,
    /// Of the loss, with respect to the parameters.
    pub(super) gradients: Vec<f64>,
}

impl Reference {
    /// A step on `inputs`, row by row, with the class of each row.
    pub(super) fn of(inputs: Vec<f64>, labels: &[u32], parameters: &[f64]) -> Self {
        let model = model();
        let network = InFloat64 {
            model: &model,
            parameters,
        };
        let inputs = Array2::from_shape_vec((labels.len(), INPUTS), inputs).expect("whole rows");
        let values = network.forward(inputs, &[]);
        let (loss, of_logits) = cross_entropy(&values[2], labels);
        let gradients = network.backward(&values, of_logits);
        let [inputs, hidden, logits] = values.try_into().expect("two layers");
        let [_, of_hidden, of_logits] = gradients.activations.try_into().expect("two layers");
        Self {
            inputs,
            hidden,
            logits,
            loss,
            of_logits,
            of_hidden,
            gradients: gradients.parameters,
        }
    }
}

/// The mean loss, and its gradient.
fn cross_entropy(logits: &Array2<f64>, labels: &[u32]) -> (f64, Array2<f64>) {
    let batch = labels.len() as f64;
    let mut loss = 0.0;
    let mut gradient = logits.clone();
    for (mut row, &label) in gradient.rows_mut().into_iter().zip(labels) {
        let largest = row.fold(f64::NEG_INFINITY, |a, &b| a.max(b));
        let sum: f64 = row.iter().map(|z| (z - largest).exp()).sum();
        let normal = largest + sum.ln();
        loss += (normal - row[label as usize]) / batch;
        row.mapv_inplace(|z| (z - normal).exp() / batch);
        row[label as usize] -= 1.0 / batch;
    }
    (loss, gradient)
}
