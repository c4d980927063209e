//! A chain of 32 small elementwise kernels, where the launches cost more than the work:
//! launched one by one, with the host waiting after each, and as one graph.
//!
//! Link k computes y = f_k y + t_k. The factors and terms differ, so that a link left out or
//! out of order gives another result.

use std::cell::OnceCell;
use std::rc::Rc;

use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut, result};
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::gpu::Gpu;
use crate::device::graph::Graph;
use crate::device::kernel::Source;
use crate::model::cost::Cost;
use crate::model::role::Launches;
use crate::model::verified::Verified;
use crate::timing::{CudaError, Launch};
use crate::workload::routine::{Made, Routine, RoutineError, Workload, visit_f32};

/// Kernels of a chain.
pub const LINKS: usize = 32;

/// The kernel of a link.
pub static CHAIN: Source = Source {
    name: "chain.cu",
    text: include_str!("../../kernels/chain.cu"),
    options: &[],
    oldest: (7, 5),
};

const SEED: u64 = 0x0063_6861_696e;

/// n inputs and the factors and terms of the links, from a fixed seed.
pub struct Chain {
    x: Vec<f32>,
    links: [Link; LINKS],
    expected: OnceCell<Vec<f64>>,
}

#[derive(Clone, Copy, Default)]
struct Link {
    factor: f32,
    term: f32,
}

impl Workload for Chain {
    fn new(n: u64) -> Self {
        Chain::new(n)
    }

    fn host_bytes(n: u64) -> u64 {
        16 * n
    }

    fn device_bytes(n: u64) -> u64 {
        8 * n
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&CHAIN] }
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        let links = self.links.iter().flat_map(|link| [link.factor, link.term]);
        visit_f32(&links.collect::<Vec<_>>(), visit);
        visit_f32(&self.x, visit);
    }
}

impl Chain {
    /// n inputs in [-1, 1), factors of magnitude 0.75 to 1.25, terms in [-1, 1).
    pub fn new(n: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut unit = || (random.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0;
        let links = std::array::from_fn(|_| {
            let u = unit();
            Link {
                factor: u.signum() * (0.75 + 0.5 * u.abs()),
                term: unit(),
            }
        });
        Self {
            links,
            x: (0..n).map(|_| unit()).collect(),
            expected: OnceCell::new(),
        }
    }

    /// Every link in float64.
    fn expected(&self) -> &[f64] {
        self.expected.get_or_init(|| {
            let chain = |&x: &f32| {
                self.links.iter().fold(f64::from(x), |y, link| {
                    f64::from(link.factor) * y + f64::from(link.term)
                })
            };
            self.x.iter().map(chain).collect()
        })
    }

    /// Largest error that rounding once a link can cause: with |y| ≤ m before a link and an
    /// error up to e there, the fused multiply-add leaves |f| e, and rounds a value of up to
    /// |f| (m + e) + |t| by at most 2^-24 of it.
    fn bound(&self) -> f64 {
        let (_, error) = self.links.iter().fold((1.0, 0.0), |(m, e), link| {
            let (f, t) = (f64::from(link.factor).abs(), f64::from(link.term).abs());
            let rounding = (f * (m + e) + t) * 2f64.powi(-24);
            (f * m + t, f * e + rounding)
        });
        error
    }

    fn compare(&self, y: &[f32]) -> Verified {
        let error = y
            .iter()
            .zip(self.expected())
            .map(|(&y, expected)| (f64::from(y) - expected).abs())
            .fold(0.0, |max: f64, e| if e <= max { max } else { e });
        Verified {
            // An output of another length compares with nothing beyond its end.
            error: if y.len() == self.x.len() {
                error
            } else {
                f64::INFINITY
            },
            bound: self.bound(),
            method: "max absolute error, every element".to_owned(),
        }
    }
}

/// Cost of a chain: each kernel reads and writes every element and does a fused
/// multiply-add on it.
pub fn cost(n: u64) -> Cost {
    let elements = n as f64 * LINKS as f64;
    Cost {
        flop: Some(2.0 * elements),
        bytes: Some(8.0 * elements),
        link_bytes: None,
        launches: Some(LINKS as u32),
    }
}

/// The chain on the GPU.
///
/// # Errors
/// A way to launch that a chain does not have, errors of CUDA and of the kernel's compilation.
pub fn chain(gpu: &Rc<Gpu>, problem: &Rc<Chain>, launching: Launches) -> Made {
    use Launches::{Graph as Replayed, OneByOne, Synchronised};
    if !matches!(launching, OneByOne | Synchronised | Replayed) {
        return Err(format!("a chain is not launched {launching:?}").into());
    }
    let mut links = Links::new(gpu, problem, launching)?;
    if launching == Replayed {
        // SAFETY: the graph lies beside the device memory that it uses, in one routine.
        let graph = Graph::capture(gpu.stream(), || unsafe { links.enqueue() })?;
        links.graph = Some(graph);
    }
    Ok(Box::new(links))
}

struct Links {
    /// Dropped before the memory that it uses.
    graph: Option<Graph>,
    gpu: Rc<Gpu>,
    problem: Rc<Chain>,
    launching: Launches,
    launches: Vec<Launch>,
    y: CudaSlice<f32>,
    // Only read by the first kernel, through its address.
    _x: CudaSlice<f32>,
}

impl Links {
    fn new(gpu: &Rc<Gpu>, problem: &Rc<Chain>, launching: Launches) -> Result<Self, RoutineError> {
        const THREADS: u32 = 128;
        gpu.bind()?;
        let n = problem.x.len() as u64;
        let blocks = u32::try_from(n.div_ceil(u64::from(THREADS)).max(1))?;
        let x = gpu.upload(&problem.x)?;
        let mut y = gpu.alloc::<f32>(problem.x.len())?;
        let source = x.device_ptr(gpu.stream()).0;
        let target = y.device_ptr_mut(gpu.stream()).0;
        let function = gpu.function(&CHAIN, "chain_link")?;
        let launches = problem.links.iter().enumerate().map(|(i, link)| {
            // In place after the first link, so that the input stays as it is.
            Launch::new(function.clone(), (blocks, 1, 1), (THREADS, 1, 1))
                .arg(if i == 0 { source } else { target })
                .arg(target)
                .arg(link.factor)
                .arg(link.term)
                .arg(n)
        });
        Ok(Self {
            graph: None,
            gpu: gpu.clone(),
            problem: problem.clone(),
            launching,
            launches: launches.collect(),
            y,
            _x: x,
        })
    }

    /// # Safety
    /// `self` must live until the kernels have run.
    unsafe fn enqueue(&self) -> Result<(), CudaError> {
        let stream = self.gpu.stream();
        for launch in &self.launches {
            // SAFETY: the arguments are those of the kernel, x and y hold n elements each, and
            // the context was made current when `self` was made on this thread, which it
            // cannot leave.
            unsafe { launch.launch(stream)? };
            if self.launching == Launches::Synchronised {
                // SAFETY: the stream is alive.
                unsafe { result::stream::synchronize(stream.cu_stream()) }
                    .map_err(|e| CudaError::new("cuStreamSynchronize", e))?;
            }
        }
        Ok(())
    }
}

impl Routine for Links {
    fn poison(&mut self) -> Result<(), RoutineError> {
        Ok(self.gpu.poison(&mut self.y)?)
    }

    fn run(&mut self) -> Result<(), RoutineError> {
        // SAFETY: the memory lies in `self`, and freeing it waits for its turn on the stream;
        // the context is current on this thread since `new`.
        Ok(unsafe {
            match &self.graph {
                Some(graph) => graph.launch(),
                None => self.enqueue(),
            }
        }?)
    }

    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(self.problem.compare(&self.gpu.download(&self.y)?))
    }

    // A graph may take as many places in the stream's queue as it has kernels.
    fn launches(&self) -> u32 {
        LINKS as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(chain: &Chain, order: impl Iterator<Item = usize> + Clone) -> Vec<f32> {
        let link = |y: f32, i: usize| y.mul_add(chain.links[i].factor, chain.links[i].term);
        let y = |&x: &f32| order.clone().fold(x, link);
        chain.x.iter().map(y).collect()
    }

    #[test]
    fn float32_arithmetic_stays_within_the_bound_and_well_above_nothing() {
        let chain = Chain::new(1 << 12);
        let verified = chain.compare(&run(&chain, 0..LINKS));
        assert!(verified.passed(), "{verified:?}");
        assert!(verified.error > verified.bound / 100.0, "{verified:?}");
    }

    #[test]
    fn a_link_left_out_or_out_of_order_is_found() {
        let chain = Chain::new(64);
        for left_out in 0..LINKS {
            let y = run(&chain, (0..LINKS).filter(|&i| i != left_out));
            assert!(!chain.compare(&y).passed(), "without link {left_out}");
        }
        for early in 1..LINKS {
            let swapped = move |i| match i {
                i if i == early => early - 1,
                i if i + 1 == early => early,
                i => i,
            };
            let y = run(&chain, (0..LINKS).map(swapped));
            assert!(!chain.compare(&y).passed(), "link {early} too early");
        }
    }

    #[test]
    fn an_unwritten_or_short_output_is_found() {
        let chain = Chain::new(64);
        let mut y = run(&chain, 0..LINKS);
        assert!(!chain.compare(&y[1..]).passed());
        y[63] = f32::NAN;
        assert!(!chain.compare(&y).passed());
    }
}
