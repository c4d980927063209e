//! In which pieces a product is uploaded, computed and downloaded at the same time.

use std::ops::Range;

/// Below this order the three follow one another: the pieces would be too small to keep the
/// device busy, and queueing them would take longer than what they hide.
pub(super) const OVERLAP_FROM: usize = 2048;

/// The first panel is this part of the terms; nothing can be computed before it is there.
const FIRST_PART: usize = 16;
/// Panels by terms, each twice as wide as the one before it.
const PANELS: usize = 3;
/// Rows of C in a block at the least: fewer leave multiprocessors without work.
const FEWEST_ROWS: usize = 1024;
/// Blocks of rows at the most.
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
    /// The pieces at order `n`; `None` where the three are better done one after the other.
    pub(super) fn new(n: usize) -> Option<Self> {
        (n >= OVERLAP_FROM).then(|| Self::with(n, FIRST_PART, PANELS, MOST_BLOCKS))
    }

    fn with(n: usize, first_part: usize, panels: usize, most_blocks: usize) -> Self {
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
        let blocks = (n / FEWEST_ROWS).clamp(1, most_blocks);
        let edge = |i: usize| n * i / blocks;
        Self {
            panels,
            rest: begin..n,
            blocks: (0..blocks).map(|i| edge(i)..edge(i + 1)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rates of an H200: pinned copies one way in bytes/s, cuBLAS SGEMM in FLOP/s.
    const COPY: f64 = 55.5e9;
    const SGEMM: f64 = 51.2e12;

    /// Seconds that the schedule takes where each piece runs at the full rate, and where
    /// upload, product and download only wait for what they need.
    fn predicted(schedule: &Schedule, n: usize) -> f64 {
        let copy = |rows: usize, columns: usize| 4.0 * (rows * columns) as f64 / COPY;
        let product = |m: usize, k: usize| 2.0 * (m * n * k) as f64 / SGEMM;
        let (mut uploaded, mut computed, mut downloaded) = (0.0f64, 0.0f64, 0.0f64);
        for panel in &schedule.panels {
            uploaded += 2.0 * copy(n, panel.len());
            computed = computed.max(uploaded) + product(n, panel.len());
        }
        uploaded += copy(schedule.rest.len(), n);
        for rows in &schedule.blocks {
            uploaded += copy(rows.len(), schedule.rest.len());
            computed = computed.max(uploaded) + product(rows.len(), schedule.rest.len());
            downloaded = downloaded.max(computed) + copy(rows.len(), n);
        }
        downloaded
    }

    fn in_sequence(n: usize) -> f64 {
        12.0 * (n * n) as f64 / COPY + 2.0 * (n as f64).powi(3) / SGEMM
    }

    /// The longer of upload and product: the download has the other direction of the link.
    fn limit(n: usize) -> f64 {
        (8.0 * (n * n) as f64 / COPY).max(2.0 * (n as f64).powi(3) / SGEMM)
    }

    #[test]
    fn the_pieces_are_the_whole() {
        for n in [2048, 2049, 3001, 4096, 8192, 16_384, 32_768] {
            let Schedule {
                panels,
                rest,
                blocks,
            } = Schedule::new(n).unwrap();
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
    fn small_products_are_done_in_sequence() {
        assert_eq!(Schedule::new(OVERLAP_FROM - 1), None);
    }

    #[test]
    fn the_prediction_is_near_the_limit_and_never_behind_the_sequence() {
        for n in [2048, 4096, 8192, 16_384, 32_768] {
            let took = predicted(&Schedule::new(n).unwrap(), n);
            assert!(took >= limit(n), "{n}: {took}");
            assert!(took < 0.9 * in_sequence(n), "{n}: {took}");
            if n >= 8192 {
                assert!(took <= 1.07 * limit(n), "{n}: {took} of {}", limit(n));
            }
        }
    }

    /// The alternatives in `docs/kernels.md`; `cargo test predictions -- --nocapture` prints
    /// their times.
    #[test]
    fn predictions() {
        for n in [2048, 4096, 8192, 16_384] {
            println!(
                "order {n}: in sequence {:.2} ms, limit {:.2} ms, chosen {:.2} ms",
                1e3 * in_sequence(n),
                1e3 * limit(n),
                1e3 * predicted(&Schedule::new(n).unwrap(), n)
            );
            for (part, panels) in [(4, 1), (8, 1), (8, 2), (16, 1), (16, 2), (16, 3), (32, 4)] {
                for blocks in [4, 8, 16] {
                    let schedule = Schedule::with(n, part, panels, blocks);
                    let took = predicted(&schedule, n);
                    assert!(took >= limit(n));
                    println!(
                        "  {panels} panels from 1/{part}, {} blocks: {:.2} ms",
                        schedule.blocks.len(),
                        1e3 * took
                    );
                }
            }
        }
    }
}
