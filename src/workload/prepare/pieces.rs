//! How an operation on one array, which can be cut anywhere, is divided into pieces whose copies
//! overlap.

/// Pieces start at multiples of this many values, so that vector loads stay aligned.
const ALIGNMENT: usize = 1 << 10;
/// Up to this many values, launches and copies of one piece take a large share of the time.
pub(super) const SMALL: usize = 1 << 20;
/// From this many values on, pieces may hide more time than they cost.
const CUT_FROM: usize = 1 << 16;
/// Up to this many values, queueing the pieces may take longer than the time that they hide, so they
/// become a graph.
const GRAPHS_TO: usize = 1 << 22;

/// Numbers of pieces to try for `n` values, and whether the pieces are a graph.
pub(super) fn numbers_of_pieces(n: usize) -> Vec<(usize, bool)> {
    let mut pieces = Vec::new();
    if (CUT_FROM..=GRAPHS_TO).contains(&n) {
        pieces.extend([(2, true), (4, true), (8, true)]);
    }
    if n > SMALL {
        pieces.extend([(8, false), (16, false), (32, false)]);
    }
    if n > GRAPHS_TO {
        pieces.push((64, false));
    }
    pieces
}

/// First value and length of each of at most `pieces` pieces of `n` values.
pub(crate) fn cut(n: usize, pieces: usize) -> impl Iterator<Item = (usize, usize)> {
    let len = n.div_ceil(pieces).next_multiple_of(ALIGNMENT);
    (0..n)
        .step_by(len)
        .map(move |first| (first, len.min(n - first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_everything_once_and_stay_aligned() {
        for n in [1, 1000, 1024, 1 << 20, (1 << 20) + 1] {
            for pieces in [1, 2, 8, 64] {
                let cut: Vec<_> = cut(n, pieces).collect();
                assert!(cut.len() <= pieces);
                assert_eq!(cut.iter().map(|p| p.1).sum::<usize>(), n);
                assert!(cut.windows(2).all(|p| p[0].0 + p[0].1 == p[1].0));
                assert!(cut.iter().all(|p| p.0 % ALIGNMENT == 0 && p.1 > 0));
            }
        }
    }

    #[test]
    fn pieces_by_size() {
        let count = |n| numbers_of_pieces(n).len();
        assert_eq!((count(1 << 10), count(1 << 18)), (0, 3));
        assert_eq!((count(1 << 21), count(1 << 28)), (6, 4));
    }
}
