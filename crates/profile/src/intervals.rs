//! Sets of time intervals.

/// Start and end, in nanoseconds of one clock.
pub(crate) type Interval = (u64, u64);

/// The same time without overlaps: disjoint, in order, none of them empty.
pub(crate) fn union(intervals: impl IntoIterator<Item = Interval>) -> Vec<Interval> {
    let mut intervals: Vec<Interval> = (intervals.into_iter())
        .filter(|(start, end)| start < end)
        .collect();
    intervals.sort_unstable();
    let mut merged: Vec<Interval> = Vec::new();
    for (start, end) in intervals {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// The time that two [unions](union) share.
pub(crate) fn intersection(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let (mut i, mut j) = (0, 0);
    let mut shared = Vec::new();
    while i < a.len() && j < b.len() {
        let (start, end) = (a[i].0.max(b[j].0), a[i].1.min(b[j].1));
        if start < end {
            shared.push((start, end));
        }
        if a[i].1 < b[j].1 {
            i += 1;
        } else {
            j += 1;
        }
    }
    shared
}

/// The time of one [union] that another does not cover.
pub(crate) fn difference(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut left = Vec::new();
    let mut j = 0;
    for &(mut start, end) in a {
        while j < b.len() && b[j].1 <= start {
            j += 1;
        }
        let mut k = j;
        while k < b.len() && b[k].0 < end {
            if start < b[k].0 {
                left.push((start, b[k].0));
            }
            start = start.max(b[k].1);
            k += 1;
        }
        if start < end {
            left.push((start, end));
        }
    }
    left
}

/// Total length of a [union].
pub(crate) fn length(union: &[Interval]) -> u64 {
    union.iter().map(|(start, end)| end - start).sum()
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::tests::{Random, random_cases, several};

    /// Some of them are empty or end before they start.
    fn intervals(random: &mut Random) -> Vec<Interval> {
        several(random, 0..12, |random| {
            let start = random.random_range(2..60);
            (start, start + random.random_range(0..12) - 2)
        })
    }

    #[test]
    fn each_moment_counts_once_and_on_the_right_side() {
        for mut random in random_cases() {
            let (x, y) = (intervals(&mut random), intervals(&mut random));
            let covered = |v: &[Interval], t| v.iter().any(|&(s, e)| s <= t && t < e);
            let (a, b) = (union(x.clone()), union(y.clone()));
            let (both, rest) = (intersection(&a, &b), difference(&a, &b));
            for t in 0..80 {
                assert_eq!(covered(&x, t), covered(&a, t));
                assert_eq!(covered(&x, t) && covered(&y, t), covered(&both, t));
                assert_eq!(covered(&x, t) && !covered(&y, t), covered(&rest, t));
            }
            assert!(a.windows(2).all(|w| w[0].1 < w[1].0));
            assert_eq!(length(&both) + length(&rest), length(&a));
        }
    }
}
