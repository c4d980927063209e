//! A step in float64: the loss and every gradient.

use ndarray::{Array2, Axis};

use crate::workload::mlp_training::model::{CLASSES, INPUTS, model, ranges};
use crate::workload::network::{reference::InFloat64, rms};

/// What a step computes, in float64, from the same inputs and parameters.
pub(super) struct Reference {
    pub(super) inputs: Array2<f64>,
    /// Before ReLU.
    pub(super) hidden: Array2<f64>,
    pub(super) logits: Array2<f64>,
    pub(super) loss: f64,
    /// Of the loss, with respect to what ReLU gave.
    pub(super) of_hidden: Array2<f64>,
    /// Of the loss, with respect to the parameters.
    pub(super) gradients: Vec<f64>,
    pub(super) scales: Scales,
}

/// What errors count relative to, as [`verify`](super::verify) says.
pub(super) struct Scales {
    /// Root mean squares: of the inputs, before and behind ReLU, and of the logits.
    pub(super) inputs: f64,
    pub(super) hidden: f64,
    pub(super) activated: f64,
    pub(super) logits: f64,
    /// Of each column of the gradient with respect to the logits: independent terms, and the
    /// probabilities, which have a common sign.
    pub(super) columns_of_logits: Vec<f64>,
    /// Of a row of the gradient with respect to what ReLU gave, squared.
    pub(super) rows_of_hidden: Vec<f64>,
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
        let [.., w2, b2] = ranges();
        let of = |values: &Array2<f64>| rms(values.as_slice().expect("row by row"));
        let squares = of_logits.mapv(|g| g * g);
        let mut labelled = vec![0.0; CLASSES];
        for &label in labels {
            labelled[label as usize] += 1.0 / labels.len() as f64;
        }
        let sums = gradients.parameters[b2].iter().zip(labelled);
        let columns = squares.sum_axis(Axis(0)).into_iter().zip(sums);
        let square_of_w2 = rms(&parameters[w2]).powi(2);
        let scales = Scales {
            inputs: of(&inputs),
            hidden: of(&hidden),
            activated: of(&hidden.mapv(|z| z.max(0.0))),
            logits: of(&logits),
            columns_of_logits: columns
                .map(|(squares, (sum, labelled))| (squares + (sum + labelled).powi(2)).sqrt())
                .collect(),
            rows_of_hidden: (squares.sum_axis(Axis(1)) * square_of_w2).to_vec(),
        };
        Self {
            inputs,
            hidden,
            logits,
            loss,
            of_hidden,
            gradients: gradients.parameters,
            scales,
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
