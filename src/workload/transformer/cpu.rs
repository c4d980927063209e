//! The network on the CPU.

use std::rc::Rc;

use crate::model::{Format, Verified};
use crate::workload::network::{OnCpu, products::Products};
use crate::workload::prepare::Threads;
use crate::workload::routine::{Made, Routine, RoutineError};
use crate::workload::transformer::problem::{Inference, verified};

/// On up to `threads` threads: each product in the way that is fastest in a short calibration, the rest in
/// the widest vectors, shared out among the threads.
pub fn best(problem: &Rc<Inference>, threads: usize) -> Made {
    Ok(Box::new(Pass::new(problem, Threads::up_to(threads))))
}

struct Pass {
    problem: Rc<Inference>,
    network: OnCpu,
}

impl Pass {
    fn new(problem: &Rc<Inference>, threads: Threads) -> Self {
        let (model, parameters) = (&problem.model, &problem.parameters);
        let products = Products::new(threads, "a transformer");
        let mut network = OnCpu::new(model, products, parameters, problem.rows()).transposed();
        // Chooses the ways.
        network.forward(&problem.tokens);
        Self {
            problem: problem.clone(),
            network,
        }
    }
}

impl Routine for Pass {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.network.poison();
        Ok(())
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        self.network.forward(&self.problem.tokens);
        Ok(())
    }

    fn park(&mut self) {
        self.network.products.threads.park();
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        let logits = self.network.values.last().expect("activations");
        Ok(verified(&self.problem, Format::F32, logits))
    }

    fn launches(&self) -> u32 {
        0
    }

    fn notes(&self) -> Vec<String> {
        self.network.products.notes()
    }
}
