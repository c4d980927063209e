//! The network on the CPU.

use std::rc::Rc;

use crate::model::Format;
use crate::workload::network::{CpuRoutine, OnCpu, products::Products};
use crate::workload::prepare::Threads;
use crate::workload::routine::{Result, Routine};
use crate::workload::transformer::problem::{Inference, verified};

/// On up to `threads` threads: each product in the way that is fastest in a short calibration, the rest in
/// the widest vectors, shared out among the threads.
pub fn best(problem: &Rc<Inference>, threads: usize) -> Result<Box<dyn Routine>> {
    let products = Products::new(Threads::up_to(threads), "a transformer");
    let (model, parameters) = (&problem.model, &problem.parameters);
    let mut network = OnCpu::new(model, products, parameters, problem.rows()).transposed();
    // Chooses the ways.
    network.forward(&problem.tokens);
    Ok(Box::new(CpuRoutine {
        network,
        state: problem.clone(),
        run: |network, problem| network.forward(&problem.tokens),
        restore: |_, _| {},
        check: |network, problem| {
            let logits = network.values.last().expect("activations");
            verified(problem, Format::F32, logits)
        },
    }))
}
