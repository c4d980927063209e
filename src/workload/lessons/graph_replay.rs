//! A chain of 32 small elementwise kernels, where the launches cost more than the work:
//! launched one by one, with the host waiting after each, as one graph, and fused into one kernel.
//!
//! Link k computes y = f_k y + t_k. The factors and terms differ, so that a link left out or
//! out of order gives another result.
//!
//! There are two kernels: one for a link, which takes its factor and term as arguments, and one for all
//! links, whose source is generated at run time with the factors and terms as literals, as a compiler
//! of tensor expressions does.

use std::cell::OnceCell;
use std::fmt::Write;
use std::rc::Rc;
use std::sync::LazyLock;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::device::{Gpu, kernel::Source};
use crate::model::{Cost, Launches, Verified};
use crate::timing::Launch;
use crate::workload::prepare::{
    ELEMENTWISE_THREADS, Prepared, Stream, elementwise_blocks, kernels, seed,
};
use crate::workload::routine::{Result, Routine, Workload, visit_f32};
use crossover_arithmetic::error::largest;

/// Kernels of a chain.
pub const LINKS: usize = 32;

const SEED: u64 = 0x0063_6861_696e;

/// y = factor * y + term.
#[derive(Clone, Copy, Default)]
struct Link {
    factor: f32,
    term: f32,
}

/// Values in [-1, 1), the same in every run.
struct Units(Xoshiro256PlusPlus);

impl Iterator for Units {
    type Item = f32;

    fn next(&mut self) -> Option<f32> {
        Some((self.0.next_u32() >> 8) as f32 / (1 << 23) as f32 - 1.0)
    }
}

/// The links of every chain, with factors of magnitude 0.75 to 1.25 and terms in [-1, 1), and
/// the values that are drawn after them.
fn draw() -> ([Link; LINKS], Units) {
    let mut units = Units(Xoshiro256PlusPlus::seed_from_u64(SEED));
    let mut unit = || units.next().unwrap_or_default();
    let links = std::array::from_fn(|_| {
        let u = unit();
        Link {
            factor: u.signum() * (0.75 + 0.5 * u.abs()),
            term: unit(),
        }
    });
    (links, units)
}

/// The kernel of a link.
pub static CHAIN: Source = kernels!("chain.cu", after "elementwise.cuh");

/// All links in one kernel. NVRTC compiles it when it is first asked for, as every source.
static FUSED: LazyLock<Source> = LazyLock::new(|| Source {
    name: "chain_fused.cu",
    // Leaked once: it is needed as long as the process lives.
    text: fused(&draw().0).leak(),
    ..CHAIN
});

/// The sources of both kernels.
fn sources() -> &'static [&'static Source] {
    static ALL: LazyLock<[&'static Source; 2]> = LazyLock::new(|| [&CHAIN, &FUSED]);
    &*ALL
}

/// One kernel of these links, in order.
fn fused(links: &[Link]) -> String {
    let mut body = String::new();
    for link in links {
        let (factor, term) = (literal(link.factor), literal(link.term));
        // Writing to a string does not fail.
        let _ = writeln!(body, "        v = __fmaf_rn({factor}, v, {term});");
    }
    format!(
        "{}\nextern \"C\" __global__ void chain_fused(const float *x, float *y, unsigned long long n) {{\n    \
         elementwise(x, y, n, [](float v) {{\n{body}        return v;\n    }});\n}}\n",
        include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/kernels/elementwise.cuh"
        )),
    )
}

/// Every bit of a value: a decimal number would be rounded once more.
fn literal(value: f32) -> String {
    format!("__uint_as_float({:#010x}u)", value.to_bits())
}

/// n inputs and the factors and terms of the links, from a fixed seed.
pub struct Chain {
    x: Vec<f32>,
    links: [Link; LINKS],
    expected: OnceCell<Vec<f64>>,
}

impl Workload for Chain {
    fn new(n: u64) -> Self {
        let (links, units) = draw();
        // The links are those of the kernels, so other values come later in the same stream.
        let skipped = seed(0) % 4_099;
        Self {
            links,
            x: units.skip(skipped as usize).take(n as usize).collect(),
            expected: OnceCell::new(),
        }
    }

    fn host_bytes(n: u64) -> u64 {
        16 * n
    }

    fn device_bytes(n: u64) -> u64 {
        8 * n
    }

    fn kernels() -> &'static [&'static Source] {
        sources()
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        let links = self.links.iter().flat_map(|link| [link.factor, link.term]);
        visit_f32(&links.collect::<Vec<_>>(), visit);
        visit_f32(&self.x, visit);
    }
}

impl Chain {
    /// The result of every link in float64.
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

    /// Largest error that rounding once per link can cause: with |y| ≤ m before a link and an
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
        Verified {
            error: if y.len() == self.x.len() {
                largest(y, self.expected(), f64::NEG_INFINITY)
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
    Cost::default()
        .flop(2.0 * elements)
        .bytes(8.0 * elements)
        .written(4.0 * elements)
        .launches(LINKS as u32)
}

/// As [`cost`], in one kernel that reads every element and writes it once.
pub fn cost_fused(n: u64) -> Cost {
    cost(n)
        .bytes(8.0 * n as f64)
        .written(4.0 * n as f64)
        .launches(1)
}

/// The chain on the GPU: its links as launched one by one, synchronised, or as one graph, or all
/// of them fused into one kernel that NVRTC compiles at run time.
///
/// # Errors
/// A way to launch that a chain does not have, errors of CUDA and of the kernel's compilation.
pub fn chain(gpu: &Rc<Gpu>, problem: &Rc<Chain>, launching: Launches) -> Result<Box<dyn Routine>> {
    let mut work = prepared(gpu, problem, launching)?;
    if launching == Launches::Graph {
        work.steps.replay()?;
    }
    Ok(Box::new(work))
}

/// Compiles and loads the kernel of all links, if this process has not done so.
pub(crate) fn compile_fused(gpu: &Gpu) -> Result<()> {
    gpu.function(&FUSED, "chain_fused")?;
    Ok(())
}

/// As [`chain`], before its graph is captured.
pub(crate) fn prepared(
    gpu: &Rc<Gpu>,
    problem: &Rc<Chain>,
    launching: Launches,
) -> Result<Prepared> {
    use Launches::{PartlyOnCpu, ReadBack};
    if [PartlyOnCpu, ReadBack].contains(&launching) {
        return Err(format!("a chain is not launched {launching:?}").into());
    }
    let mut work = Prepared::new(gpu)?;
    let n = problem.x.len() as u64;
    let x = work.upload(&problem.x)?;
    let y = work.output::<f32>(problem.x.len())?;
    let is_fused = launching == Launches::Fused;
    let function = if is_fused {
        gpu.function(&FUSED, "chain_fused")?
    } else {
        gpu.function(&CHAIN, "chain_link")?
    };
    let grid = (elementwise_blocks(n)?, 1, 1);
    let new = || Launch::new(function.clone(), grid, (ELEMENTWISE_THREADS, 1, 1));
    // SAFETY: the arguments are those of the kernel, and x and y hold n elements each.
    unsafe {
        if is_fused {
            work.steps
                .kernel(new().arg(x.address).arg(y.address).arg(n));
        } else {
            for (i, link) in problem.links.iter().enumerate() {
                // In place after the first link, so that the input stays as it is.
                let launch = new().arg(if i == 0 { x.address } else { y.address });
                let launch = launch.arg(y.address).arg(link.factor).arg(link.term);
                work.steps.kernel(launch.arg(n));
                if launching == Launches::Synchronised {
                    work.steps.wait(Stream::Compute);
                }
            }
        }
    }
    let problem = problem.clone();
    work.check_values(None, y, f32::NAN, move |y| problem.compare(y))?;
    Ok(work)
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
    fn a_missing_link_or_value_is_found() {
        let chain = Chain::new(64);
        let right = run(&chain, 0..LINKS);
        assert!(!chain.compare(&right[1..]).passed(), "short");
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
    fn every_link_is_in_the_fused_kernel_and_in_order() {
        let links = draw().0;
        let mut rest = FUSED.text;
        for link in &links {
            let step = format!("({}, v, {})", literal(link.factor), literal(link.term));
            rest = rest.split_once(&step).expect("the link is there").1;
        }
        assert_eq!(FUSED.text.matches("__fmaf_rn").count(), LINKS);
        assert_eq!(literal(-1.5), "__uint_as_float(0xbfc00000u)");
    }
}
