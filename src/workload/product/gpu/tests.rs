//! Our own ways to compute a linear layer, or a product of a few rows, on a device, against float64.

use super::*;
use crate::device::Gpu;
use crate::model::Format;
use crate::workload::matmul::UNIT_ROUNDOFF;
use crate::workload::network::Tensor;
use crate::workload::prepare::{Prepared, uniform};

/// The end of a layer, behind its product: nothing, a bias before ReLU, or a bias and another matrix.
#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Nothing,
    Relu,
    Added,
}

/// The values of a linear layer, and where they lie.
struct Layer {
    m: usize,
    n: usize,
    k: usize,
    /// Whether the weights are n x k, else k x n.
    transposed: bool,
    ending: Ending,
    gpu: Rc<Gpu>,
    workspace: Rc<Workspace>,
    values: [Vec<f32>; 4],
    work: Prepared,
    tensors: [Tensor; 4],
    /// With a margin behind it that no kernel may write to.
    c: Tensor,
}

const MARGIN: usize = 1024;

impl Layer {
    fn new(gpu: &Rc<Gpu>, [m, n, k]: [usize; 3], transposed: bool, ending: Ending) -> Self {
        let lengths = [m * k, n * k, n, m * n];
        let values = std::array::from_fn(|i| uniform(i as u64, lengths[i] as u64, -1.0..1.0));
        let mut work = Prepared::new(gpu).unwrap();
        let tensors =
            std::array::from_fn(|i| Tensor::of(&mut work, Format::F32, &values[i]).unwrap());
        Self {
            m,
            n,
            k,
            transposed,
            ending,
            gpu: gpu.clone(),
            workspace: Workspace::new(gpu).unwrap(),
            values,
            tensors,
            c: Tensor::output(&mut work, Format::F32, m * n + MARGIN).unwrap(),
            work,
        }
    }

    fn ways(&self) -> Vec<GpuPlan> {
        let Self { m, n, k, .. } = *self;
        let [a, w, bias, added] = &self.tensors;
        let w = match self.transposed {
            true => w.matrix(n, k).t(),
            false => w.matrix(k, n),
        };
        let matrices = [a.matrix(m, k), w, self.c.matrix(m, n)];
        let product = Product {
            bias: (self.ending != Ending::Nothing).then(|| bias.address()),
            relu: self.ending == Ending::Relu,
            added: (self.ending == Ending::Added).then(|| added.address()),
            own: true,
            ..Product::new("odd", matrices)
        };
        // SAFETY: the tensors live as long as `self`, whose ways are used before it is dropped, and
        // have these sizes.
        unsafe { candidates(&self.gpu, &self.workspace, product) }.unwrap()
    }

    fn run(&self, way: &GpuPlan) -> Vec<f32> {
        self.work.memory.fill(self.c.device, 0xFF).unwrap();
        // SAFETY: `self` keeps the tensors, and nothing else is on the stream.
        unsafe { way.enqueue(self.gpu.stream()) }.unwrap();
        self.c.values(&self.work.memory).unwrap()
    }

    /// Each value in float64, and by how much f32 may miss it: a sum in any order by the unit
    /// roundoff for each addition, relative to the sum of magnitudes.
    fn expected(&self) -> Vec<(f64, f64)> {
        let Self { m, n, k, .. } = *self;
        let [a, w, bias, added] = &self.values;
        let roundings = (k + 3) as f64 * UNIT_ROUNDOFF;
        let value = |i: usize, j: usize| {
            let w = |term| {
                w[if self.transposed {
                    j * k + term
                } else {
                    term * n + j
                }]
            };
            let terms = (0..k).map(|term| f64::from(a[i * k + term]) * f64::from(w(term)));
            let ending = match self.ending {
                Ending::Nothing => vec![],
                Ending::Relu => vec![bias[j]],
                Ending::Added => vec![bias[j], added[i * n + j]],
            };
            let terms = terms.chain(ending.into_iter().map(f64::from));
            let (sum, size) = terms.fold((0.0, 0.0), |(s, z), t| (s + t, z + t.abs()));
            let is_cut = self.ending == Ending::Relu && sum < 0.0;
            (if is_cut { 0.0 } else { sum }, roundings * size)
        };
        (0..m)
            .flat_map(|i| (0..n).map(move |j| (i, j)))
            .map(|(i, j)| value(i, j))
            .collect()
    }
}

// Less than a tile, and edges on both sides: also for sanitizers, under which others take minutes.
#[test]
#[ignore = "needs a CUDA device"]
fn our_own_kernels_are_right_at_small_shapes_and_write_nothing_else() {
    check_own_kernels(&[(1, 4, 32), (67, 100, 96)], true);
    check_own_kernels(&[(1, 4, 4), (5, 36, 20)], false);
}

// Edges, and a sum that the pieces cannot share out evenly.
#[test]
#[ignore = "needs a CUDA device"]
fn our_own_kernels_are_right_at_large_shapes_and_write_nothing_else() {
    check_own_kernels(
        &[
            (17, 36, 64),
            (67, 1000, 96),
            (128, 256, 1024),
            (131, 100, 352),
            (200, 196, 2080),
        ],
        true,
    );
    // With and without further stages, and edges on all sides.
    check_own_kernels(
        &[
            (4, 128, 512),
            (7, 1000, 132),
            (16, 64, 2052),
            (31, 100, 1100),
            (32, 4096, 256),
        ],
        false,
    );
}

/// Each tile with each ending, twice, against float64; what lies behind the result stays NaN.
fn check_own_kernels(shapes: &[(usize, usize, usize)], transposed: bool) {
    let gpu = Rc::new(Gpu::open(0).unwrap());
    gpu.bind().unwrap();
    for &(m, n, k) in shapes {
        let endings = [Ending::Nothing, Ending::Added, Ending::Relu];
        // Products whose weights are not transposed are those of a few rows, without an ending.
        for &ending in &endings[..if transposed { 3 } else { 1 }] {
            let layer = Layer::new(&gpu, [m, n, k], transposed, ending);
            let expected = layer.expected();
            let mut own = layer.ways();
            own.retain(|way| matches!(way, GpuPlan::Own(..)));
            assert!(!own.is_empty(), "{m} x {n} x {k}: no kernel of our own");
            for way in &own {
                let found = layer.run(way);
                for (at, (found, (value, bound))) in found.iter().zip(&expected).enumerate() {
                    let error = (f64::from(*found) - value).abs();
                    // Written so that a NaN does not pass.
                    let right = error <= *bound;
                    let (row, column) = (at / n, at % n);
                    assert!(
                        right,
                        "{m} x {n} x {k}, {way}: {found} for {value} at {row}, {column}"
                    );
                }
                let mut margin = found[m * n..].iter();
                assert!(margin.all(|v| v.is_nan()), "{m} x {n} x {k}, {way}: margin");
                assert_eq!(layer.run(way)[..m * n], found[..m * n], "{way}: twice");
            }
        }
    }
}
