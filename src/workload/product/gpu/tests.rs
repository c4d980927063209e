//! Our own ways to compute a linear layer, or a product of a few rows, on a device, against float64.

use super::*;
use crate::device::Gpu;
use crate::model::Format;
use crate::workload::matmul::UNIT_ROUNDOFF;
use crate::workload::network::Tensor;
use crate::workload::prepare::Prepared;

/// A linear layer, or one without what a flag leaves out.
#[derive(Clone, Copy)]
struct LayerShape {
    name: &'static str,
    m: usize,
    n: usize,
    k: usize,
    /// Whether the weights are n x k, else k x n.
    transposed: bool,
    bias: bool,
    relu: bool,
    added: bool,
}

/// The values of a layer, and where they lie.
struct Layer {
    shape: LayerShape,
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
    fn new(gpu: &Rc<Gpu>, shape: LayerShape) -> Self {
        let LayerShape { m, n, k, .. } = shape;
        let mut state = 1u64;
        let mut random = |len: usize| -> Vec<f32> {
            (0..len)
                .map(|_| {
                    // Knuth's MMIX: its high bits are random enough for operands.
                    state = state.wrapping_mul(6_364_136_223_846_793_005);
                    state = state.wrapping_add(1_442_695_040_888_963_407);
                    (state >> 40) as f32 / (1 << 23) as f32 - 1.0
                })
                .collect()
        };
        let values = [random(m * k), random(n * k), random(n), random(m * n)];
        let mut work = Prepared::new(gpu).unwrap();
        let tensors =
            std::array::from_fn(|i| Tensor::of(&mut work, Format::F32, &values[i]).unwrap());
        Self {
            shape,
            gpu: gpu.clone(),
            workspace: Workspace::new(gpu).unwrap(),
            values,
            tensors,
            c: Tensor::output(&mut work, Format::F32, m * n + MARGIN).unwrap(),
            work,
        }
    }

    fn ways(&self) -> Vec<GpuPlan> {
        let LayerShape { m, n, k, .. } = self.shape;
        let [a, w, bias, added] = &self.tensors;
        let w = if self.shape.transposed {
            w.matrix(n, k).t()
        } else {
            w.matrix(k, n)
        };
        let matrices = [a.matrix(m, k), w, self.c.matrix(m, n)];
        let product = Product {
            bias: self.shape.bias.then(|| bias.address()),
            relu: self.shape.relu,
            added: self.shape.added.then(|| added.address()),
            own: true,
            ..Product::new(self.shape.name, matrices)
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
        let LayerShape { m, n, k, .. } = self.shape;
        let [a, w, bias, added] = &self.values;
        let roundings = (k + 3) as f64 * UNIT_ROUNDOFF;
        let value = |i: usize, j: usize| {
            let w = |term| {
                if self.shape.transposed {
                    w[j * k + term]
                } else {
                    w[term * n + j]
                }
            };
            let terms = (0..k).map(|term| f64::from(a[i * k + term]) * f64::from(w(term)));
            let extra = [
                (self.shape.bias, bias[j]),
                (self.shape.added, added[i * n + j]),
            ];
            let extra = extra.iter().filter(|(there, _)| *there);
            let terms = terms.chain(extra.map(|(_, value)| f64::from(*value)));
            let (sum, size) = terms.fold((0.0, 0.0), |(s, z), t| (s + t, z + t.abs()));
            let sum = if self.shape.relu { sum.max(0.0) } else { sum };
            (sum, roundings * size)
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
        let endings = [
            (false, false, false),
            (true, false, true),
            (true, true, false),
        ];
        let endings = if transposed {
            &endings[..]
        } else {
            &endings[..1]
        };
        for &(bias, relu, added) in endings {
            let shape = LayerShape {
                name: "odd",
                m,
                n,
                k,
                transposed,
                bias,
                relu,
                added,
            };
            let layer = Layer::new(&gpu, shape);
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
