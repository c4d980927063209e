//! The pieces in which a product is uploaded, computed and downloaded at the same time.

use std::ops::Range;
use std::rc::Rc;

use crate::device::Gpu;
use crate::workload::prepare::{Block, Buffers, Stage, Stages};
use crate::workload::product::{Element, GpuPlan, Matrix, Product, Shape};
use crate::workload::routine::RoutineError;

/// The first panel is this part of the terms. Nothing can be computed before it has arrived.
const FIRST_PART: usize = 16;
/// Number of panels of terms, each twice as wide as the one before it.
const PANELS: usize = 3;
/// Lower bound on the rows of C in a block: fewer leave multiprocessors without work.
const FEWEST_ROWS: usize = 1024;
/// Upper bound on the blocks of rows.
const MOST_BLOCKS: usize = 16;

/// The pieces of a square product.
///
/// First come panels by terms: columns of A and rows of B, whose product is added to all of
/// C. They let the product begin after a small part of the upload, and each is computed
/// while the next one, twice as wide, arrives. The remaining terms come last, block by block
/// of rows of A: each completes rows of C, which are downloaded while the next block is
/// computed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Schedule {
    /// Terms of the panels, in order.
    pub(super) panels: Vec<Range<usize>>,
    /// The remaining terms.
    pub(super) rest: Range<usize>,
    /// Rows of the blocks of the remaining terms, in order.
    pub(super) blocks: Vec<Range<usize>>,
}

impl Schedule {
    /// For orders whose product takes about as long as the upload, or longer.
    pub(super) fn panels(n: usize) -> Self {
        let blocks = (n / FEWEST_ROWS).clamp(1, MOST_BLOCKS);
        Self::with(n, FIRST_PART, PANELS, blocks)
    }

    /// One half of the terms, then the other in `blocks` blocks of rows. At small orders the upload
    /// takes longest; after it only the product and the download of the last block are left.
    pub(super) fn half(n: usize, blocks: usize) -> Self {
        Self::with(n, 2, 1, blocks)
    }

    /// Whether each block has enough rows to be worth a call of its own.
    pub(super) fn is_worth_it(&self) -> bool {
        const FEWEST: usize = 128;
        !self.rest.is_empty() && self.blocks.iter().all(|rows| rows.len() >= FEWEST)
    }

    fn with(n: usize, first_part: usize, panels: usize, blocks: usize) -> Self {
        // In steps of 64 terms: rows of a panel then begin at 256 bytes where those of the
        // matrix do.
        let mut width = (n / first_part).next_multiple_of(64);
        let mut begin = 0;
        let panels = (0..panels)
            .map(|_| {
                let panel = begin..begin + width;
                begin += width;
                width *= 2;
                panel
            })
            .collect();
        Self {
            panels,
            rest: begin..n,
            blocks: even(n, blocks).collect(),
        }
    }
}

/// Consecutive ranges of about the same length up to `n`: as many as `pieces`, or fewer where some
/// would be empty.
pub(super) fn even(n: usize, pieces: usize) -> impl Iterator<Item = Range<usize>> {
    let pieces = pieces.clamp(1, n.max(1));
    let edge = move |i: usize| n * i / pieces;
    (0..pieces).map(move |i| edge(i)..edge(i + 1))
}

/// A batch by cuBLAS in pieces of whole products.
pub(super) fn batch_stages<T: Element>(
    gpu: &Rc<Gpu>,
    shape: Shape,
    places: &Buffers<T>,
    pieces: usize,
) -> Stages {
    let [a, b, c] = matrices(shape, places);
    let stage = |products: Range<usize>| -> Result<Stage, RoutineError> {
        let of = |rows: usize| products.start * rows..products.end * rows;
        let part = Shape {
            batch: products.len(),
            ..shape
        };
        let at = |place: &Place<T>, rows: usize| place.device.block(&of(rows), &(0..0)).address;
        let addresses = [at(&a, shape.m), at(&b, shape.k), at(&c, shape.m)];
        let plan = GpuPlan::cublas(gpu, &Product::whole(part, T::FORMAT, addresses))?;
        Ok(Stage {
            uploads: vec![
                a.block(&of(shape.m), &(0..shape.k)),
                b.block(&of(shape.k), &(0..shape.n)),
            ],
            // SAFETY: a part of the batch lies within the places, which the caller of `of_stages` keeps.
            compute: Some(Box::new(move |stream| unsafe { plan.enqueue(stream) })),
            downloads: vec![c.block(&of(shape.m), &(0..shape.n))],
        })
    };
    even(shape.batch, pieces).map(stage).collect()
}

/// A square product by cuBLAS in panels of terms and blocks of rows: it begins when a first panel has
/// arrived, and rows of the result leave while later ones are computed.
pub(super) fn cut_stages<T: Element>(
    gpu: &Rc<Gpu>,
    shape: Shape,
    places: &Buffers<T>,
    schedule: &Schedule,
) -> Stages {
    let [a, b, c] = matrices(shape, places);
    let all = 0..shape.n;
    let panels = schedule.panels.iter().map(|terms| (&all, terms));
    let blocks = schedule.blocks.iter().map(|rows| (rows, &schedule.rest));
    let stage = |(at, (rows, terms)): (usize, (&Range<usize>, &Range<usize>))| {
        let of_a = a.device.block(rows, terms);
        let of_b = b.device.block(terms, &all);
        let of_c = c.device.block(rows, &all);
        let product = Product {
            added: (terms.start > 0).then_some(of_c.address),
            ..Product::new("a part", [of_a, of_b, of_c])
        };
        let plan = GpuPlan::cublas(gpu, &product)?;
        let mut uploads = vec![a.block(rows, terms)];
        if rows.start == 0 {
            uploads.insert(0, b.block(terms, &all));
        }
        Ok(Stage {
            uploads,
            // SAFETY: the schedule cuts within the places, which the caller of `of_stages` keeps.
            compute: Some(Box::new(move |stream| unsafe { plan.enqueue(stream) })),
            downloads: match at < schedule.panels.len() {
                true => Vec::new(),
                false => vec![c.block(rows, &all)],
            },
        })
    };
    panels.chain(blocks).enumerate().map(stage).collect()
}

/// Where a matrix lies on the host and on the device.
struct Place<T> {
    host: *mut T,
    device: Matrix,
}

fn matrices<T: Element>(shape: Shape, places: &Buffers<T>) -> [Place<T>; 3] {
    let Shape { batch, m, n, k } = shape;
    let lengths = [(batch * m, k), (batch * k, n), (batch * m, n)];
    std::array::from_fn(|at| Place {
        host: places.host[at].values.cast(),
        device: Matrix::new(places.device[at], T::FORMAT, lengths[at].0, lengths[at].1),
    })
}

impl<T: Element> Place<T> {
    fn block(&self, rows: &Range<usize>, columns: &Range<usize>) -> Block {
        let pitch = self.device.pitch;
        let host = self.host.wrapping_add(rows.start * pitch + columns.start);
        let device = self.device.block(rows, columns).address;
        let float = size_of::<T>();
        let (width, rows) = match columns.len() == pitch {
            // Memory without gaps is one row.
            true => (rows.len() * pitch, 1),
            false => (columns.len(), rows.len()),
        };
        Block {
            host: host.cast(),
            host_pitch: float * pitch,
            device,
            device_pitch: float * pitch,
            width: float * width,
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pieces_are_the_whole() {
        for n in [2048, 2049, 3001, 4096, 8192, 16_384, 32_768] {
            let Schedule {
                panels,
                rest,
                blocks,
            } = Schedule::panels(n);
            let terms = panels.iter().chain([&rest]);
            let mut next = 0;
            for range in terms {
                assert_eq!(range.start, next);
                assert!(!range.is_empty());
                next = range.end;
            }
            assert_eq!(next, n);
            let mut next = 0;
            for rows in &blocks {
                assert_eq!(rows.start, next);
                assert!(rows.len() >= FEWEST_ROWS, "{rows:?} at {n}");
                next = rows.end;
            }
            assert_eq!(next, n);
            assert!(blocks.len() <= MOST_BLOCKS);
        }
    }

    #[test]
    fn halves_of_small_products_are_the_whole_too() {
        for n in [256, 257, 300, 512, 1024] {
            for blocks in [2, 4] {
                let Schedule {
                    panels,
                    rest,
                    blocks: rows,
                } = Schedule::half(n, blocks);
                assert_eq!((panels.len(), rows.len()), (1, blocks));
                assert_eq!((panels[0].start, panels[0].end), (0, rest.start));
                assert!(rest.start >= n / 2 && rest.end == n && !rest.is_empty());
                assert_eq!((rows[0].start, rows[blocks - 1].end), (0, n));
            }
        }
        assert!(Schedule::half(1024, 4).is_worth_it());
        assert!(!Schedule::half(256, 4).is_worth_it());
        let even: Vec<_> = even(3, 16).collect();
        assert_eq!(even, [0..1, 1..2, 2..3]);
    }
}
