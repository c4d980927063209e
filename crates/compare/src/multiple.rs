//! Error rates for many benchmarks that are tested at once, and for repeated analyses.

/// Pairs of processes before the first interim analysis; another follows each time that their
/// number has grown by half.
pub(super) const FIRST_ANALYSIS: usize = 6;

/// Which of the tested benchmarks changed, when the expected share of false ones among those
/// chosen is at most `error` (Benjamini and Hochberg, "Controlling the false discovery rate: a
/// practical and powerful approach to multiple testing", Journal of the Royal Statistical Society
/// B 57, 1995). When nothing changed, that is the probability that anything is chosen.
///
/// Returns how many changed and the largest probability among them; `None` where none did.
pub(super) fn discoveries(probabilities: &[f64], error: f64) -> Option<(usize, f64)> {
    let mut sorted = probabilities.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let number = (1..=sorted.len())
        .rev()
        .find(|&k| sorted[k - 1] <= error * k as f64 / n)?;
    Some((number, sorted[number - 1]))
}

/// The error that an interval may have around one of the chosen, so that the expected share of
/// intervals that miss is at most `error` (Benjamini and Yekutieli, "False discovery
/// rate-adjusted multiple confidence intervals for selected parameters", JASA 100, 2005).
pub(super) fn error_of_chosen(chosen: usize, tested: usize, error: f64) -> f64 {
    error * chosen.max(1) as f64 / tested.max(1) as f64
}

/// The planned interim analyses: after 6 pairs, 9, 13, 19 and so on.
fn planned() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(FIRST_ANALYSIS), |pairs| Some(pairs + pairs / 2))
}

/// The numbers of pairs at which `pairs` of them have been analysed, and the share of the error
/// that each analysis may spend: 1/2, 1/6, 1/12 and so on, which is 1 in all. Without any on the
/// way the only one has all of it.
pub(super) fn analyses(pairs: usize, on_the_way: bool) -> Vec<(usize, f64)> {
    if !on_the_way {
        return vec![(pairs, 1.0)];
    }
    let before = planned().take_while(|planned| *planned < pairs);
    let all = before.chain([pairs]).zip(1..);
    all.map(|(size, i)| (size, 1.0 / f64::from(i * (i + 1))))
        .collect()
}

/// Whether these many pairs are analysed.
pub(super) fn is_analysed_at(pairs: usize) -> bool {
    next_analysis(pairs) == pairs
}

/// The first analysis of these many pairs or more.
pub(super) fn next_analysis(pairs: usize) -> usize {
    planned().find(|planned| *planned >= pairs).unwrap_or(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discoveries_are_those_of_the_step_up_procedure() {
        // The example of the paper: 15 probabilities, at 5 %, four are chosen.
        let p = [
            0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
            0.5719, 0.6528, 0.7590, 1.0,
        ];
        assert_eq!(discoveries(&p, 0.05), Some((4, 0.0095)));
        assert_eq!(discoveries(&[0.02, 0.9], 0.01), None);
        assert_eq!(discoveries(&[], 0.01), None);
    }

    #[test]
    fn looks_share_the_error() {
        assert_eq!(analyses(5, false), [(5, 1.0)]);
        assert_eq!(analyses(5, true), [(5, 1.0 / 2.0)]);
        assert_eq!(analyses(9, true), [(6, 1.0 / 2.0), (9, 1.0 / 6.0)]);
        let all = analyses(14, true);
        assert_eq!(all[2..], [(13, 1.0 / 12.0), (14, 1.0 / 20.0)]);
        for (size, _) in &analyses(100, true)[..7] {
            assert!(is_analysed_at(*size) && next_analysis(size - 1) == *size);
        }
        assert!(!is_analysed_at(0) && !is_analysed_at(7) && !is_analysed_at(18));
    }
}
