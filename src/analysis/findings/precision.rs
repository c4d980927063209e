//! What each halving of precision buys, costs in error and saves in energy.

use crate::analysis::findings::finding::{Context, Finding, common, gpu, list, speed};
use crate::analysis::telemetry;
use crate::analysis::topics::topic;
use crate::presentation::units;
use crate::results::curves::{Benchmark, Group, Series};
use crate::timing::Clock;

const GROUP: &str = "precision";
const SGEMM: &str = "f32";

type Row = (&'static str, &'static str);

/// In fewer bits.
const FORMATS: [Row; 5] = [
    ("tf32", "TF32"),
    ("fp16", "FP16"),
    ("bf16", "BF16"),
    ("fp8", "FP8"),
    ("int8", "INT8"),
];
/// f32 emulated in lower precision; kN: partial sums of N terms, added in f32.
const SPLITS: [Row; 3] = [
    ("split-tf32x3", "three of TF32"),
    ("split-tf32x3-k1024", "three of TF32 in runs of 1,024 terms"),
    ("split-bf16x6-k2048", "six of BF16 in runs of 2,048 terms"),
];
/// Each of half the bits of the one before.
const HALVES: [(&str, &str, &str); 2] = [
    (SGEMM, "fp16", "from 32 bits to 16 (FP16)"),
    ("fp16", "fp8", "from 16 to 8 (FP8)"),
];

/// SGEMM at the largest size at which others were measured, and those.
struct Compared<'a> {
    group: &'a Group,
    sgemm: &'a Benchmark,
    others: Vec<(Row, &'a Benchmark)>,
}

impl<'a> Compared<'a> {
    fn new(context: &Context<'a>, rows: &[Row]) -> Option<Self> {
        let group = context.machine.group(GROUP)?;
        let at_size = |sgemm: &'a Benchmark| {
            let measured = |row: &Row| Some((*row, at(group, row.0, sgemm.size)?));
            let others: Vec<_> = rows.iter().filter_map(measured).collect();
            (!others.is_empty()).then_some(Self {
                group,
                sgemm,
                others,
            })
        };
        curve(group, SGEMM)?.points.iter().rev().find_map(at_size)
    }

    fn ratio(&self, other: &Benchmark) -> f64 {
        self.sgemm.median_ns / other.median_ns
    }

    fn finding(&self, id: &str, text: String) -> Finding {
        let others = self.others.iter().map(|o| o.1);
        let finding = Finding::new(id, text)
            .figure("size", self.sgemm.size as f64)
            .rests_on(others.chain([self.sgemm]));
        self.others.iter().fold(finding, |finding, ((name, _), b)| {
            let name = name.replace('-', "_");
            finding
                .figure(&format!("{name}_ratio"), self.ratio(b))
                .figure(&format!("{name}_error"), error(b).unwrap_or(f64::NAN))
        })
    }
}

pub(super) fn formats(context: &Context) -> Vec<Finding> {
    let found = Compared::new(context, &FORMATS);
    found.iter().map(formats_one).collect()
}

fn formats_one(found: &Compared) -> Finding {
    let size = found.sgemm.size;
    let of_error =
        |b: &Benchmark| error(b).map_or(String::new(), |error| format!(", error {error:.1e}"));
    let parts: Vec<String> = found
        .others
        .iter()
        .map(|((_, words), b)| format!("{words} {}{}", speed(found.ratio(b)), of_error(b)))
        .collect();
    let halves: Vec<String> = HALVES
        .iter()
        .filter_map(|(from, to, words)| {
            let (from, to) = (at(found.group, from, size)?, at(found.group, to, size)?);
            Some(match from.median_ns / to.median_ns {
                r if r >= 1.0 => format!("{words} buys {}", units::factor(r)),
                r => format!("{words} costs {}", units::factor(1.0 / r)),
            })
        })
        .collect();
    let steps = match halves.is_empty() {
        true => String::new(),
        false => format!(" The step {}.", list(&halves)),
    };
    let text = format!(
        "The product at {} against f32 SGEMM ({}{}): {}.{steps}",
        topic(GROUP).at(size),
        units::time(found.sgemm.median_ns),
        of_error(found.sgemm),
        parts.join("; "),
    );
    found.finding("precision.formats", text)
}

pub(super) fn splits(context: &Context) -> Vec<Finding> {
    let found = Compared::new(context, &SPLITS);
    found.iter().map(splits_one).collect()
}

fn splits_one(found: &Compared) -> Finding {
    let parts: Vec<String> = found
        .others
        .iter()
        .map(|((_, words), b)| {
            let errors = error(b).zip(error(found.sgemm)).map(|(b, f32)| b / f32);
            let at_error = errors.map_or(String::new(), |r| {
                format!(" at {} its error", units::factor_fine(r))
            });
            format!("{words} {}{at_error}", speed(found.ratio(b)))
        })
        .collect();
    let text = format!(
        "f32 put together from products in fewer bits, at {} against SGEMM: {}.",
        topic(GROUP).at(found.sgemm.size),
        parts.join("; "),
    );
    found.finding("precision.splits", text)
}

pub(super) fn energy(context: &Context) -> Vec<Finding> {
    energy_one(context).into_iter().collect()
}

/// At the largest size at which the energy of both is known.
fn energy_one(context: &Context) -> Option<Finding> {
    let group = context.machine.group(GROUP)?;
    let pairs = common(curve(group, SGEMM)?, curve(group, "fp16")?);
    let known = |(sgemm, half)| {
        Some((
            sgemm,
            half,
            telemetry::energy_j(sgemm)?,
            telemetry::energy_j(half)?,
        ))
    };
    let (sgemm, half, f32_j, fp16_j) = pairs.into_iter().rev().find_map(known)?;
    let ratio = f32_j / fp16_j;
    let compared = match ratio {
        r if r >= 1.0 => format!("{} less", units::factor(r)),
        r => format!("{} more", units::factor(1.0 / r)),
    };
    let text = format!(
        "One product at {} takes {} by f32 SGEMM and {} in FP16, {compared}.",
        topic(GROUP).at(half.size),
        units::energy(f32_j),
        units::energy(fp16_j),
    );
    let finding = Finding::new("precision.energy", text)
        .figure("size", half.size as f64)
        .figure("f32_j", f32_j)
        .figure("fp16_j", fp16_j)
        .figure("ratio", ratio);
    Some(finding.rests_on([sgemm, half]))
}

fn curve<'a>(group: &'a Group, name: &str) -> Option<&'a Series> {
    gpu(group, name, &[Clock::EventsGated, Clock::Events])
}

fn at<'a>(group: &'a Group, name: &str, size: u64) -> Option<&'a Benchmark> {
    curve(group, name)?.at(size)
}

fn error(benchmark: &Benchmark) -> Option<f64> {
    let error = benchmark.verified.as_ref()?.error;
    (error.is_finite() && error > 0.0).then_some(error)
}
