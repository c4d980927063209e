//! What each halving of precision buys, costs in error and saves in energy.

use crate::analysis::findings::finding::{Context, Finding, common, gpu, list, sentence};
use crate::analysis::findings::technique::Technique;
use crate::analysis::telemetry;
use crate::model::role::{Format, Library, Role};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::Clock;
use crossover_words::units;

/// Each of half the bits of the one before.
const HALVES: [(Format, Format, &str); 2] = [
    (Format::F32, Format::Fp16, "from 32 bits to 16 (FP16)"),
    (Format::Fp16, Format::Fp8, "from 16 to 8 (FP8)"),
];

/// f32 at the largest size at which others were measured, and those.
struct Compared<'a> {
    group: &'a Group,
    full: &'a Benchmark,
    others: Vec<&'a Benchmark>,
}

impl<'a> Compared<'a> {
    /// `is` says which roles are compared with that of f32, from which they may differ in the
    /// format alone.
    fn new(group: &'a Group, is: impl Fn(&Role) -> bool) -> Option<Self> {
        full(group).find_map(|full| Self::with(group, full, &is))
    }

    fn with(group: &'a Group, full: &'a Series, is: impl Fn(&Role) -> bool) -> Option<Self> {
        let mut others: Vec<&Series> = curves(group)
            .filter(|s| is(&s.role) && like(s, full))
            .collect();
        others.sort_by_key(|s| (s.role.format, s.role.split));
        others.dedup_by_key(|s| (s.role.format, s.role.split));
        let at_size = |full: &'a Benchmark| {
            let others: Vec<_> = others.iter().filter_map(|s| s.at(full.size)).collect();
            (!others.is_empty()).then_some(Self {
                group,
                full,
                others,
            })
        };
        full.points.iter().rev().find_map(at_size)
    }

    fn ratio(&self, other: &Benchmark) -> f64 {
        self.full.median_ns / other.median_ns
    }

    /// f32, then the others: time, speed against f32, error.
    fn rows(&self) -> Vec<Vec<String>> {
        let error = |b: &Benchmark| error_in_words(b).unwrap_or_default();
        let full = vec![
            name(self.full, "f32 (SGEMM)").to_owned(),
            units::time(self.full.median_ns),
            String::new(),
            error(self.full),
        ];
        let row = |b: &&Benchmark| {
            let name = match b.role.split {
                Some(_) => sentence(&split_words(&b.role)),
                None => b.role.format.name().to_owned(),
            };
            vec![
                name,
                units::time(b.median_ns),
                units::speedup(self.ratio(b)),
                error(b),
            ]
        };
        [full]
            .into_iter()
            .chain(self.others.iter().map(row))
            .collect()
    }

    fn finding(&self, id: &str, text: String, caption: String) -> Finding {
        let others = self.others.iter().copied();
        let finding = Finding::new(&self.group.name, id, text)
            .figure("size", self.full.size as f64)
            .rests_on(others.chain([self.full]));
        let finding = finding.tabled(caption, &["format", "time", "speed", "error"], self.rows());
        self.others.iter().fold(finding, |finding, b| {
            let name = figure(&b.role);
            finding
                .figure(&format!("{name}_ratio"), self.ratio(b))
                .figure(&format!("{name}_error"), error(b))
        })
    }
}

/// In fewer bits.
pub(super) fn formats(_: &Context, group: &Group) -> Option<Finding> {
    let narrower =
        |role: &Role| role.split.is_none() && !matches!(role.format, Format::F32 | Format::F64);
    let found = Compared::new(group, narrower)?;
    let full = found.full;
    let of_error =
        |b: &Benchmark| error_in_words(b).map_or(String::new(), |error| format!(", error {error}"));
    let parts: Vec<String> = found
        .others
        .iter()
        .map(|b| {
            let speed = units::speedup(found.ratio(b));
            format!("{} {speed}{}", b.role.format.name(), of_error(b))
        })
        .collect();
    let at = |format| {
        let mut all = found.others.iter().copied().chain([full]);
        all.find(|b| b.role.format == format)
    };
    let halves: Vec<String> = HALVES
        .iter()
        .filter_map(|(from, to, words)| {
            let (from, to) = (at(*from)?, at(*to)?);
            Some(match from.median_ns / to.median_ns {
                r if r >= 1.0 => format!("{words} gains {}", units::factor(r)),
                r => format!("{words} costs {}", units::factor(1.0 / r)),
            })
        })
        .collect();
    let steps = match halves.is_empty() {
        true => String::new(),
        false => format!(" Going {}.", list(&halves)),
    };
    let text = format!(
        "{} at {} against {} ({}{}): {}.{steps}",
        sentence(&group.topic.work),
        group.topic.at(full.size),
        name(full, "f32 SGEMM"),
        units::time(full.median_ns),
        of_error(full),
        parts.join("; "),
    );
    let caption = format!(
        "{} at {} in lower precision.",
        sentence(&group.topic.work),
        group.topic.at(full.size)
    );
    let fastest = (found.others.iter())
        .map(|b| found.ratio(b))
        .fold(f64::NAN, f64::max);
    let at = group.topic.at(full.size);
    let finding = found.finding("precision.formats", text, caption);
    let finding = finding.note(steps.trim_start());
    Some(finding.gained(Technique::FewerBits, fastest, at))
}

/// f32 emulated by several products in lower precision.
pub(super) fn splits(_: &Context, group: &Group) -> Option<Finding> {
    let found = Compared::new(group, |role| role.split.is_some())?;
    let parts: Vec<String> = found
        .others
        .iter()
        .map(|b| {
            let errors = error(b).zip(error(found.full)).map(|(b, f32)| b / f32);
            let at_error = errors.map_or(String::new(), |r| {
                format!(" at {} its error", units::factor_fine(r))
            });
            let speed = units::speedup(found.ratio(b));
            format!("{} ({speed}{at_error})", split_words(&b.role))
        })
        .collect();
    let text = format!(
        "f32 emulated by several products in lower precision, at {} against {}: {}.",
        found.group.topic.at(found.full.size),
        name(found.full, "SGEMM"),
        parts.join("; "),
    );
    let caption = format!(
        "f32 at {}, emulated by several products in lower precision.",
        found.group.topic.at(found.full.size)
    );
    Some(found.finding("precision.splits", text, caption))
}

/// `3 × TF32, partial sums of 1,024 terms`.
fn split_words(role: &Role) -> String {
    let products = role.split.map_or(1, |split| split.products);
    let run = role.split.and_then(|split| split.run);
    let runs = run.map_or(String::new(), |terms| {
        format!(", partial sums of {} terms", units::size(terms.into()))
    });
    format!("{products} × {}{runs}", role.format.name())
}

/// At the largest size at which the energy of both is known.
pub(super) fn energy(_: &Context, group: &Group) -> Option<Finding> {
    let (full, half) = full(group).find_map(|full| {
        let half =
            |s: &&Series| s.role.format == Format::Fp16 && s.role.split.is_none() && like(s, full);
        Some((full, curves(group).find(half)?))
    })?;
    let known = |(full, half)| {
        Some((
            full,
            half,
            telemetry::energy_j(full)?,
            telemetry::energy_j(half)?,
        ))
    };
    let pairs = common(full, half);
    let (full, half, f32_j, fp16_j) = pairs.into_iter().rev().find_map(known)?;
    let ratio = f32_j / fp16_j;
    let compared = match ratio {
        r if r >= 1.0 => format!("{} less", units::factor(r)),
        r => format!("{} more", units::factor(1.0 / r)),
    };
    let work = group.topic.work.trim_start_matches("the ");
    let text = format!(
        "One {work} at {} takes {} by {} and {} in FP16, {compared}.",
        group.topic.at(half.size),
        units::energy(f32_j),
        name(full, "f32 SGEMM"),
        units::energy(fp16_j),
    );
    let finding = Finding::new(&group.name, "precision.energy", text)
        .figure("size", half.size as f64)
        .figure("f32_j", f32_j)
        .figure("fp16_j", fp16_j)
        .figure("ratio", ratio);
    Some(finding.rests_on([full, half]))
}

/// Curves of device time, those behind a gate first.
fn curves(group: &Group) -> impl Iterator<Item = &Series> {
    let clocks = [Clock::EventsGated, Clock::Events].into_iter();
    clocks.flat_map(move |clock| gpu(group, clock))
}

fn full(group: &Group) -> impl Iterator<Item = &Series> {
    curves(group).filter(|s| s.role.format == Format::F32)
}

/// Whether a curve differs from that of f32 in the format alone, and in that it may be no answer
/// for that.
fn like(series: &Series, full: &Series) -> bool {
    let role = Role {
        format: Format::F32,
        split: None,
        answers: full.role.answers,
        ..series.role.clone()
    };
    series.clock == full.clock && role == full.role
}

/// The library's routine by its name, other code and what is made of several kernels as f32.
fn name<'a>(full: &Benchmark, routine: &'a str) -> &'a str {
    match (full.role.library, full.cost.launches) {
        (Some(Library::Cublas), None | Some(..=1)) => routine,
        _ => "f32",
    }
}

/// As figures name it: `fp16`, `split_tf32x3_k1024`.
fn figure(role: &Role) -> String {
    let format = role.format.name().to_lowercase();
    let Some(split) = role.split else {
        return format;
    };
    let run = split.run.map_or(String::new(), |run| format!("_k{run}"));
    format!("split_{format}x{}{run}", split.products)
}

fn error_in_words(benchmark: &Benchmark) -> Option<String> {
    error(benchmark)?;
    Some(benchmark.verified.as_ref()?.words())
}

fn error(benchmark: &Benchmark) -> Option<f64> {
    let error = benchmark.verified.as_ref()?.error;
    (error.is_finite() && error > 0.0).then_some(error)
}
