//! The share of transfers in end-to-end time, and how often data must be used to pay for it.

use crate::analysis::findings::finding::{Context, Finding, fastest_resident, sentence};
use crate::analysis::findings::technique::Technique;
use crate::model::id::Device;
use crate::store::curves::Series;
use crossover_words::units;

/// The work alone is the fastest measured on data already on the device, in the same format.
pub(super) fn share(context: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    for group in &context.machine.groups {
        let moving: Vec<&Series> = group
            .on(Device::Gpu)
            .filter(|s| s.answers() && s.computes() && !s.role.data.on_device())
            .collect();
        for series in &moving {
            let pairs: Vec<_> = series
                .points
                .iter()
                .filter_map(|total| {
                    let alone = fastest_resident(group, series.role.format, total.size)?;
                    Some((total, alone))
                })
                .filter(|(total, alone)| alone.median_ns < total.median_ns)
                .collect();
            let Some(&(total, alone)) = pairs.last() else {
                continue;
            };
            let shares = pairs.iter().map(|(t, a)| 1.0 - a.median_ns / t.median_ns);
            let least = shares.fold(f64::INFINITY, f64::min);
            let fraction = 1.0 - alone.median_ns / total.median_ns;
            let id = format!("transfers.{}.{}", group.name, series.implementation);
            let caption = format!(
                "{} from host memory and back: the share of the time that moving the data takes.",
                sentence(&group.topic.work)
            );
            let head = [
                "moved by",
                "at",
                "time",
                "share of moving",
                "least at any size",
            ];
            let row = vec![
                format!("gpu/{}", series.implementation),
                group.topic.at(total.size),
                units::time(total.median_ns),
                units::percent(fraction),
                units::percent(least),
            ];
            let finding = Finding::table(&group.name, id, caption, &head, vec![row])
                .rests_on(pairs.iter().flat_map(|(t, a)| [*t, *a]));
            // Against the best way of moving them, not against any.
            let mut here = moving.iter().filter_map(|s| s.at(total.size));
            let is_best = here.all(|b| b.median_ns >= total.median_ns);
            findings.push(match is_best {
                true => {
                    let factor = total.median_ns / alone.median_ns;
                    let at = group.topic.at(total.size);
                    finding.gained(Technique::KeepOnDevice, factor, at)
                }
                false => finding,
            });
        }
    }
    findings
}
