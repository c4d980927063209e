//! When the pairs of a comparison are analysed, and the share of the error that each analysis may spend.

/// Pairs of processes before the first interim analysis; another follows each time that their
/// number has grown by half.
pub(super) const FIRST_ANALYSIS: usize = 6;

/// The planned interim analyses: after 6 pairs, 9, 13, 19 and so on.
fn planned() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(FIRST_ANALYSIS), |pairs| Some(pairs + pairs / 2))
}

/// The numbers of pairs at which `pairs` of them have been analysed, and the share of the error
/// that each analysis may spend: 1/2, 1/6, 1/12 and so on, which is 1 in all. Without interim analyses, the
/// only analysis spends all of it.
pub(super) fn analyses(pairs: usize, has_interim: bool) -> Vec<(usize, f64)> {
    if !has_interim {
        return vec![(pairs, 1.0)];
    }
    let before = planned().take_while(|planned| *planned < pairs);
    let analyses = before.chain([pairs]).zip(1..);
    analyses
        .map(|(size, i)| (size, 1.0 / f64::from(i * (i + 1))))
        .collect()
}

/// Whether there is an analysis after this number of pairs.
pub(super) fn is_analysed_at(pairs: usize) -> bool {
    next_analysis(pairs) == pairs
}

/// The first analysis after this number of pairs or more.
pub(super) fn next_analysis(pairs: usize) -> usize {
    planned().find(|planned| *planned >= pairs).unwrap_or(pairs)
}

/// The number of pairs at the last analysis, and the share of the error that it may spend.
pub(super) fn last_analysis(pairs: usize) -> (usize, f64) {
    *analyses(pairs, true)
        .last()
        .expect("all pairs are analysed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_share_the_error() {
        assert_eq!(analyses(5, false), [(5, 1.0)]);
        assert_eq!(analyses(5, true), [(5, 1.0 / 2.0)]);
        assert_eq!(analyses(9, true), [(6, 1.0 / 2.0), (9, 1.0 / 6.0)]);
        assert_eq!(
            analyses(14, true)[2..],
            [(13, 1.0 / 12.0), (14, 1.0 / 20.0)]
        );
        for (size, _) in &analyses(100, true)[..7] {
            assert!(is_analysed_at(*size) && next_analysis(size - 1) == *size);
        }
        assert!(!is_analysed_at(0) && !is_analysed_at(7) && !is_analysed_at(18));
    }
}
