//! The gain and cost of lower precision: time, error and energy by number format.

use crate::analysis::findings::finding::{Context, Finding, Technique, gpu, sentence};
use crate::analysis::telemetry;
use crate::model::record::Verified;
use crate::model::role::{Format, Role};
use crate::statistics::positive;
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::{Clock, units};

/// f32 and each narrower format at the largest size at which any of those was measured.
pub(super) fn formats<'g>(_: &Context, group: &'g Group) -> Option<Finding> {
    let curves = || {
        let clocks = [Clock::EventsGated, Clock::Events].into_iter();
        clocks.flat_map(move |clock| gpu(group, clock))
    };
    let full = curves().filter(|s| s.role.format == Format::F32 && s.role.split.is_none());
    let compared = |full: &'g Series| {
        let mut narrower: Vec<&Series> = curves().filter(|s| is_narrower(s, full)).collect();
        narrower.sort_by_key(|s| (s.role.split.is_some(), s.role.format));
        narrower.dedup_by_key(|s| (s.role.split, s.role.format));
        full.points.iter().rev().find_map(|full| {
            let points: Vec<&Benchmark> = narrower.iter().filter_map(|s| s.at(full.size)).collect();
            (!points.is_empty()).then_some((full, points))
        })
    };
    let (full, narrower) = full.into_iter().find_map(compared)?;
    let ratio = |other: &Benchmark| full.median_ns / other.median_ns;
    let row = |b: &Benchmark| {
        let speed = (b.id != full.id).then(|| units::speedup(ratio(b)));
        vec![
            name(&b.role),
            units::time(b.median_ns),
            speed.unwrap_or_default(),
            (b.verified.as_ref())
                .filter(|verified| positive(verified.error).is_some())
                .map_or(String::new(), Verified::words),
            telemetry::energy_j(b).map_or(String::new(), units::energy),
        ]
    };
    let at = group.topic.at(full.size);
    let caption = format!(
        "{} at {at} in lower precision.",
        sentence(&group.topic.work)
    );
    let head = "format | time | speed | error | energy";
    let benchmarks = || std::iter::once(full).chain(narrower.iter().copied());
    let narrower = narrower.iter().copied();
    let fastest = narrower.filter(|b| b.role.split.is_none()).map(ratio);
    let rows = benchmarks().map(row).collect();
    let finding = Finding::table(&group.name, "precision.formats", caption, head, rows)
        .gained(Technique::FewerBits, fastest.fold(f64::NAN, f64::max), at)
        .rests_on(benchmarks());
    Some(finding)
}

/// `TF32`, `6 × BF16`.
fn name(role: &Role) -> String {
    let format = role.format.name();
    match role.split {
        Some(split) => format!("{} × {format}", split.products),
        None => format.to_owned(),
    }
}

/// Whether a curve differs from that of f32 in the format alone, and in that it may be no answer
/// for that.
fn is_narrower(series: &Series, full: &Series) -> bool {
    let role = Role {
        format: Format::F32,
        split: None,
        answers: full.role.answers,
        ..series.role.clone()
    };
    let narrower = !matches!(series.role.format, Format::F32 | Format::F64);
    narrower && series.clock == full.clock && role == full.role
}
