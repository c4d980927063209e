//! What the findings say that each technique gained.

use crate::analysis::findings::finding::{Finding, Gain};
use crate::analysis::findings::technique::Technique;

/// What each technique gained, by group, the largest factor first. A technique of which nothing
/// is known is absent.
pub fn gains(findings: &[Finding]) -> Vec<(Technique, Vec<(&Finding, &Gain)>)> {
    let of = |technique: Technique| {
        let mut all: Vec<(&Finding, &Gain)> =
            (findings.iter().filter_map(|f| Some((f, f.gain.as_ref()?))))
                .filter(|(_, gain)| gain.technique == technique)
                .collect();
        all.sort_by(|a, b| b.1.factor.total_cmp(&a.1.factor));
        // One per group: where a technique was tried in several ways, the best of them.
        let mut seen: Vec<&str> = Vec::new();
        all.retain(|(finding, _)| {
            let is_new = !seen.contains(&finding.group.as_str());
            seen.push(&finding.group);
            is_new
        });
        (technique, all)
    };
    let all = Technique::ALL.into_iter().map(of);
    all.filter(|(_, gains)| !gains.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_each_group_comes_first() {
        let finding = |(group, id, factor)| {
            Finding::new(group, id, String::new()).gained(Technique::Fuse, factor, "n = 1".into())
        };
        let factors = [
            ("a", "small", 2.0),
            ("b", "small", 5.0),
            ("a", "large", 3.0),
        ];
        let mut all: Vec<Finding> = factors.map(finding).into();
        all.push(finding(("c", "none", f64::NAN)));
        let [(Technique::Fuse, found)] = &gains(&all)[..] else {
            panic!("one technique");
        };
        let ids: Vec<_> = found.iter().map(|(f, _)| (&*f.group, &*f.id)).collect();
        assert_eq!(ids, [("b", "small"), ("a", "large")]);
    }
}
