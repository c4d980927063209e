//! The ways from pinned memory through a product and back, and those that are tried at a shape.

use std::fmt;

use crate::workload::matmul::schedule::Schedule;
use crate::workload::matmul::shape::Shape;

/// A way from pinned memory through the product and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// Two uploads, the product and a download, one after the other.
    Copies(Multiply, Given),
    /// A kernel reads both operands from the host's memory, mapped into the device's address
    /// space, and the product writes its result there.
    Mapped(Multiply, Given),
    /// The tiled kernel reads and writes the host's memory itself. Each block reads its own
    /// operands over the link: for products of a few blocks.
    InPlace,
    /// Pieces of a product that is uploaded, computed and downloaded at the same time.
    Overlapped(Cut, Given),
    /// Pieces of a batch, likewise.
    Batches(u8, Given),
}

/// What multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Multiply {
    Cublas,
    Tiled,
}

/// How the work is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    OneByOne,
    Graph,
}

/// How an overlapped product is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Three panels of terms, each twice as wide as the one before it, and blocks of many rows.
    Panels,
    /// One half of the terms, then the other in this many blocks of rows: for products that take
    /// less time than their upload.
    Half(u8),
}

impl Cut {
    pub(super) fn schedule(self, n: usize) -> Schedule {
        match self {
            Cut::Panels => Schedule::panels(n),
            Cut::Half(blocks) => Schedule::half(n, blocks.into()),
        }
    }
}

/// Above this order a kernel that reads operands from the host's memory has no advantage left.
const MAPPED_TO: usize = 512;
/// Up to this order a product has few blocks of the tiled kernel: 16 of its smallest.
const IN_PLACE_TO: usize = 128;
/// Pieces of products below this order take longer to queue than the time that they hide.
const OVERLAP_FROM: usize = 256;
/// From this order on the product takes long enough for panels of terms to pay.
const PANELS_FROM: usize = 2048;
/// Up to this order queueing may take longer than the time that it hides, so graphs are tried.
const GRAPHS_TO: usize = 4096;
/// Bytes of a batch up to which a kernel may read them from the host's memory.
const MAPPED_BATCH: usize = 8 << 20;
/// Bytes of a batch from which on it is worth cutting.
const CUT_BATCH: usize = 1 << 20;

/// The ways to try for a shape of elements of so many bytes; one where there is no choice.
pub(super) fn ways(shape: Shape, element: usize) -> Vec<Way> {
    use Given::{Graph, OneByOne};
    use Multiply::{Cublas, Tiled};
    let n = shape.n;
    if shape.batch > 1 {
        let bytes = element * shape.elements();
        let mut ways = vec![Way::Copies(Cublas, OneByOne), Way::Copies(Cublas, Graph)];
        if bytes <= MAPPED_BATCH {
            ways.push(Way::Mapped(Cublas, Graph));
        }
        if bytes >= CUT_BATCH {
            let cuts = [4, 8, 16, 32].into_iter();
            ways.extend(cuts.map(|pieces| Way::Batches(pieces, Graph)));
        }
        return ways;
    }
    if shape != Shape::square(n) {
        return vec![Way::Copies(Cublas, OneByOne), Way::Copies(Cublas, Graph)];
    }
    let mut ways = Vec::new();
    if n < PANELS_FROM {
        ways.extend([Way::Copies(Cublas, OneByOne), Way::Copies(Cublas, Graph)]);
    }
    if n <= MAPPED_TO {
        let mapped = [OneByOne, Graph].map(|given| Way::Mapped(Tiled, given));
        ways.push(Way::Copies(Tiled, Graph));
        ways.extend(mapped);
        ways.push(Way::Mapped(Cublas, Graph));
    }
    if n <= IN_PLACE_TO {
        ways.push(Way::InPlace);
    }
    if (OVERLAP_FROM..=GRAPHS_TO).contains(&n) {
        let halves = [2, 4, 8].into_iter().map(Cut::Half);
        let fit = halves.filter(|cut| cut.schedule(n).is_worth_it());
        ways.extend(fit.map(|cut| Way::Overlapped(cut, Graph)));
    }
    if (PANELS_FROM..=GRAPHS_TO).contains(&n) {
        ways.push(Way::Overlapped(Cut::Panels, Graph));
    }
    if n >= PANELS_FROM {
        ways.push(Way::Overlapped(Cut::Panels, OneByOne));
    }
    ways
}

impl Way {
    /// Whether the tiled kernel multiplies.
    pub(super) fn is_tiled(self) -> bool {
        matches!(
            self,
            Way::InPlace | Way::Copies(Multiply::Tiled, _) | Way::Mapped(Multiply::Tiled, _)
        )
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Copies(by, given) => write!(f, "copies and {by}, {given}"),
            Way::Mapped(by, given) => write!(f, "mapped memory and {by}, {given}"),
            Way::InPlace => write!(f, "tiles in registers on mapped memory"),
            Way::Overlapped(Cut::Panels, given) => {
                write!(f, "overlapped, three panels and blocks, {given}")
            }
            Way::Overlapped(Cut::Half(blocks), given) => {
                write!(f, "overlapped, a half and {blocks} blocks, {given}")
            }
            Way::Batches(pieces, given) => write!(f, "overlapped, {pieces} pieces, {given}"),
        }
    }
}

impl fmt::Display for Multiply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Multiply::Cublas => "cuBLAS",
            Multiply::Tiled => "tiles in registers",
        })
    }
}

impl fmt::Display for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Given::OneByOne => "one by one",
            Given::Graph => "as a graph",
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn ways(shape: Shape) -> Vec<Way> {
        super::ways(shape, size_of::<f32>())
    }

    #[test]
    fn every_shape_has_a_way_and_no_two_of_the_same_name() {
        let squares = (0..=15).map(|e| Shape::square(1 << e));
        let odd = [3, 17, 129, 257, 300, 2049].map(Shape::square);
        let batches = [1, 8, 64, 1024].map(|n| Shape {
            batch: 64,
            ..Shape::square(n)
        });
        let skinny = Shape {
            m: 16,
            ..Shape::square(4096)
        };
        for shape in squares.chain(odd).chain(batches).chain([skinny]) {
            let ways = ways(shape);
            assert!(!ways.is_empty(), "{shape:?}");
            let names: BTreeSet<String> = ways.iter().map(Way::to_string).collect();
            assert_eq!(names.len(), ways.len(), "{shape:?}");
        }
    }

    #[test]
    fn small_products_read_mapped_memory_and_large_ones_are_cut_without_a_trial() {
        assert!(ways(Shape::square(8)).contains(&Way::InPlace));
        assert!(!ways(Shape::square(256)).contains(&Way::InPlace));
        let overlaps = |n| {
            let ways = ways(Shape::square(n));
            ways.iter().any(|way| matches!(way, Way::Overlapped(..)))
        };
        assert!(!overlaps(128) && overlaps(512) && overlaps(1024));
        let only = [Way::Overlapped(Cut::Panels, Given::OneByOne)];
        assert_eq!(ways(Shape::square(8192)), only);
    }
}
