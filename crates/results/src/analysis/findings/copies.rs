//! The fixed cost of a copy between host and device.

use crate::analysis::findings::finding::{Context, Finding, gpu};
use crate::analysis::findings::lessons::plain;
use crate::model::role::{CopyDirection, Residency};
use crate::store::curves::{Group, Series};
use crossover_words::Clock::Wall;
use crossover_words::units;

/// Above this size the link's rate, not the fixed cost, determines the time.
const SMALL: u64 = 1 << 16;

/// The time at the smallest size: there the bytes themselves take next to none.
pub(super) fn fixed(context: &Context, group: &Group) -> Option<Finding> {
    let find = |way, data| -> Option<&Series> {
        gpu(group, Wall).find(|s| plain(&s.role, way) && s.role.data == data)
    };
    let up = find(CopyDirection::ToDevice, Residency::Pinned)?
        .points
        .first()?;
    let size = Some(up.size).filter(|size| *size <= SMALL)?;
    let mut others = Vec::new();
    let mut rests = vec![up];
    for (way, data, words) in [
        (CopyDirection::ToHost, Residency::Pinned, "back to the host"),
        (
            CopyDirection::ToDevice,
            Residency::Ordinary,
            "from pageable memory",
        ),
        (
            CopyDirection::InPlace,
            Residency::Pinned,
            "read by a kernel in place",
        ),
    ] {
        if let Some(b) = find(way, data).and_then(|s| s.at(size)) {
            others.push(format!("{} {words}", units::time(b.median_ns)));
            rests.push(b);
        }
    }
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; {}", others.join(", ")),
    };
    let link = context.machine.ceiling_of(up, "h2d_pinned");
    let worth = link.map(|link| link * up.median_ns * 1e-9);
    let of_link = worth.map_or(String::new(), |bytes| {
        format!(
            ", the time in which the link carries {}",
            units::bytes(bytes)
        )
    });
    let text = format!(
        "However small it is, a copy costs {}{of_link} ({} from pinned memory to the device{others}).",
        units::time(up.median_ns),
        units::binary(size),
    );
    Some(Finding::new(&group.name, "copies.fixed", text).rests_on(rests))
}
