//! What fusing kernels saves: launches at small sizes, memory traffic at large ones.

use crate::analysis::findings::finding::{Context, Finding, common, gpu};
use crate::presentation::units;
use crate::timing::Clock;

const GROUP: &str = "nested_sine";

pub(super) fn find(context: &Context) -> Vec<Finding> {
    launches(context)
        .into_iter()
        .chain(traffic(context))
        .collect()
}

fn launches(context: &Context) -> Option<Finding> {
    let group = context.machine.group(GROUP)?;
    let apart = gpu(group, "per-kernel", &[Clock::Events])?;
    let fused = gpu(group, "fused", &[Clock::Events])?;
    let (apart, fused) = *common(apart, fused).first()?;
    let saved = apart.median_ns - fused.median_ns;
    let spared = apart
        .cost
        .launches
        .zip(fused.cost.launches)
        .map(|(a, f)| a.saturating_sub(f))
        .filter(|n| *n > 0);
    let each = spared.map(|n| saved / f64::from(n));
    let verb = if saved >= 0.0 { "saves" } else { "costs" };
    let mut text = format!(
        "Fusing the sines into one kernel {verb} {} a call at n = {}, where launches rule ({} \
         against {})",
        units::time(saved.abs()),
        units::size(fused.size),
        units::time(fused.median_ns),
        units::time(apart.median_ns),
    );
    if let (Some(n), Some(each)) = (spared, each) {
        let kernels = if n == 1 { "launch" } else { "launches" };
        text += &format!(
            ", {} for each of the {n} {kernels} less",
            units::time(each.abs())
        );
    }
    let launch = context.machine.ceiling("launch_latency");
    if let Some(launch) = launch {
        text += &format!("; launching an empty kernel takes {}", units::time(launch));
    }
    Some(
        Finding::new("fusing.launches", text + ".")
            .figure("size", fused.size as f64)
            .figure("saved_ns", saved)
            .figure("saved_each_ns", each.unwrap_or(f64::NAN))
            .figure("launch_latency_ns", launch.unwrap_or(f64::NAN))
            .rests_on([apart, fused]),
    )
}

fn traffic(context: &Context) -> Option<Finding> {
    let group = context.machine.group(GROUP)?;
    let gated = [Clock::EventsGated];
    let (apart, fused) = match (
        gpu(group, "per-kernel-gated", &gated),
        gpu(group, "fused-gated", &gated),
    ) {
        (Some(apart), Some(fused)) => (apart, fused),
        _ => (
            gpu(group, "per-kernel", &[Clock::Events])?,
            gpu(group, "fused", &[Clock::Events])?,
        ),
    };
    let pairs = common(apart, fused);
    // One size alone says nothing about small against large.
    let (apart, fused) = pairs.last().filter(|_| pairs.len() > 1)?;
    let ratio = apart.median_ns / fused.median_ns;
    let compared = match ratio {
        r if r >= 1.0 => format!("{} faster", units::factor(r)),
        r => format!("{} slower", units::factor(1.0 / r)),
    };
    let text = format!(
        "At n = {}, where memory rules, the fused sine is {compared} ({} against {}): it passes \
         over the data once.",
        units::size(fused.size),
        units::time(fused.median_ns),
        units::time(apart.median_ns),
    );
    Some(
        Finding::new("fusing.traffic", text)
            .figure("size", fused.size as f64)
            .figure("ratio", ratio)
            .rests_on([*apart, *fused]),
    )
}
