//! A network on the CPU: each product in the way that is fastest in a short calibration, the rest in
//! the widest vectors, shared out among the threads.

use std::ops::Range;
use std::rc::Rc;

use rayon::prelude::*;

use crate::model::Verified;
use crate::workload::network::model::{Layer, LayerKind, Linear, Model};
use crate::workload::network::operations::{
    add_bias, add_with_bias, attention, embed, layer_norm, relu_backward, sum_rows,
};
use crate::workload::network::products::{Products, matrix, matrix_mut, transpose};
use crate::workload::routine::{Result, Routine};

/// A network with its activations.
pub(crate) struct OnCpu {
    model: Rc<Model>,
    pub(crate) products: Products,
    pub(crate) parameters: Vec<f32>,
    /// Whether the parameters hold a row of weights for each input, so that a product reads rows of
    /// both operands, instead of one for each output, as in the model.
    transposed: bool,
    /// The activations. The first are the inputs, which are never written.
    pub(crate) values: Vec<Vec<f32>>,
    /// Gradients with respect to the activations and to the parameters, where it is trained.
    pub(crate) of_values: Vec<Vec<f32>>,
    pub(crate) of_parameters: Vec<f32>,
}

impl OnCpu {
    /// The network on this number of tokens.
    pub(crate) fn new(
        model: &Rc<Model>,
        products: Products,
        parameters: &[f32],
        rows: usize,
    ) -> Self {
        let between = model.activations[1..].iter();
        let between = between.map(|activation| vec![f32::NAN; rows * activation.width]);
        Self {
            model: model.clone(),
            products,
            parameters: parameters.to_vec(),
            transposed: false,
            values: [Vec::new()].into_iter().chain(between).collect(),
            of_values: Vec::new(),
            of_parameters: Vec::new(),
        }
    }

    /// Transposes the weights once; the parameters stay as they are.
    pub(crate) fn transposed(mut self) -> Self {
        for (Linear { weights, .. }, x, _) in self.model.linears() {
            let rows = self.parameters[weights.clone()].to_vec();
            let to = &mut self.parameters[weights.clone()];
            transpose(&self.products.threads, &rows, x.width, to);
        }
        self.transposed = true;
        self
    }

    /// Trains on these inputs.
    pub(crate) fn trained(mut self, inputs: &[f32]) -> Self {
        self.of_values = self.values.clone();
        self.of_parameters = vec![f32::NAN; self.parameters.len()];
        self.values[0] = inputs.to_vec();
        self
    }

    /// Overwrites everything that a pass writes.
    pub(crate) fn poison(&mut self) {
        let gradients = self.of_values.iter_mut().chain([&mut self.of_parameters]);
        for values in self.values[1..].iter_mut().chain(gradients) {
            values.par_iter_mut().for_each(|v| *v = f32::NAN);
        }
    }

    /// Computes the activations; `tokens` is empty unless the network takes tokens. The first call
    /// chooses the ways of the products, each on the results of the products before it.
    pub(crate) fn forward(&mut self, tokens: &[u32]) {
        let (products, values) = (&mut self.products, &mut self.values);
        let parameters = |range: &Range<usize>| &self.parameters[range.clone()];
        for Layer { kind, x, y } in &self.model.layers {
            let [from, to] = two(values, [x.place, y.place]);
            match kind {
                LayerKind::Embed(table) => embed(&products.threads, tokens, parameters(table), to),
                LayerKind::Norm([gain, bias]) => {
                    layer_norm(
                        &products.threads,
                        from,
                        parameters(gain),
                        parameters(bias),
                        to,
                    );
                }
                LayerKind::Linear(linear) => {
                    let (weights, bias) = (parameters(&linear.weights), parameters(&linear.bias));
                    let spare = linear.spare;
                    let weights = if self.transposed {
                        matrix(weights, y.width)
                    } else {
                        matrix(weights, x.width).reversed_axes()
                    };
                    let [from, to] = two(values, [x.place, spare.unwrap_or(y.place)]);
                    let to = matrix_mut(to, y.width);
                    products.multiply(linear.name, matrix(from, x.width), weights, to);
                    let threads = &products.threads;
                    match spare {
                        Some(change) => {
                            let [change, y] = two(values, [change, y.place]);
                            add_with_bias(threads, y, change, bias);
                        }
                        None => add_bias(threads, &mut values[y.place], bias, y.relu()),
                    }
                }
                LayerKind::Attention => attention(&products.threads, from, to),
                LayerKind::Narrow => std::mem::swap(from, to),
            }
        }
    }

    /// The gradients of all parameters, from that of the last activation, which lies in its place. All
    /// layers are linear. `names` has for each layer, the last one first, the names of the products
    /// that give the gradients of its weights and of its inputs.
    pub(crate) fn backward(&mut self, names: &[[&'static str; 2]]) {
        let products = &mut self.products;
        for ((linear, x, y), [of_weights, of_inputs]) in self.model.linears().rev().zip(names) {
            let [of_y, of_x] = two(&mut self.of_values, [y.place, x.place]);
            let of_bias = &mut self.of_parameters[linear.bias.clone()];
            sum_rows(&products.threads, of_y, of_bias);
            let (inputs, of_y) = (&self.values[x.place], matrix(of_y, y.width));
            let to = matrix_mut(&mut self.of_parameters[linear.weights.clone()], x.width);
            products.multiply(of_weights, of_y.t(), matrix(inputs, x.width), to);
            if x.place > 0 {
                let weights = matrix(&self.parameters[linear.weights.clone()], x.width);
                products.multiply(of_inputs, of_y, weights, matrix_mut(of_x, x.width));
                relu_backward(&products.threads, of_x, inputs);
            }
        }
    }
}

/// A network as a routine, with the state that its operation has beside it.
pub(crate) struct CpuRoutine<S> {
    pub(crate) network: OnCpu,
    pub(crate) state: S,
    pub(crate) run: fn(&mut OnCpu, &mut S),
    /// Restores what a run changes.
    pub(crate) restore: fn(&mut OnCpu, &mut S),
    pub(crate) check: fn(&OnCpu, &S) -> Verified,
}

impl<S> Routine for CpuRoutine<S> {
    fn poison(&mut self) -> Result<()> {
        self.network.poison();
        Ok(())
    }

    fn restore(&mut self) -> Result<()> {
        (self.restore)(&mut self.network, &mut self.state);
        Ok(())
    }

    fn run(&mut self) -> Result<()> {
        (self.run)(&mut self.network, &mut self.state);
        Ok(())
    }

    fn park(&mut self) {
        self.network.products.threads.park();
    }

    fn check(&mut self) -> Result<Verified> {
        Ok((self.check)(&self.network, &self.state))
    }

    fn launches(&self) -> u32 {
        0
    }

    fn notes(&self) -> Vec<String> {
        self.network.products.notes()
    }
}

/// Two activations at once.
fn two(values: &mut [Vec<f32>], places: [usize; 2]) -> [&mut Vec<f32>; 2] {
    (values.get_disjoint_mut(places)).expect("a layer reads one and writes another")
}
