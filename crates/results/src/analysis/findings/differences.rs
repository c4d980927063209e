//! What is said of two rows whose roles differ in one thing.

use crate::analysis::findings::copies::plain;
use crate::analysis::findings::finding::{Context, Finding, common, pair, sentence};
use crate::analysis::findings::overlap::in_sequence;
use crate::analysis::findings::technique::Technique;
use crate::analysis::limits::NOISE;
use crate::model::group_info::GroupInfo;
use crate::model::role::{CopyDirection, Launches, Residency};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::Clock::{self, Events, EventsGated, Wall};
use crossover_words::units;

/// Both rows, and the results at one of their common sizes.
struct Pair<'a> {
    group: &'a Group,
    topic: &'a GroupInfo,
    /// Pieces that the second row cuts the work into.
    pieces: u32,
    /// Every common size, ascending.
    all: Vec<(&'a Benchmark, &'a Benchmark)>,
    first: &'a Benchmark,
    second: &'a Benchmark,
}

impl<'a> Pair<'a> {
    /// At the smallest common size: there the work hides nothing, and launches dominate.
    fn smallest(group: &'a Group, rows: (&'a Series, &'a Series)) -> Option<Self> {
        let all = common(rows.0, rows.1);
        let &(first, second) = all.first()?;
        Some(Self {
            group,
            topic: &group.topic,
            pieces: rows.1.role.pieces,
            all,
            first,
            second,
        })
    }

    fn largest(group: &'a Group, rows: (&'a Series, &'a Series)) -> Option<Self> {
        let pair = Self::smallest(group, rows)?;
        let &(first, second) = pair.all.last()?;
        Some(Self {
            first,
            second,
            ..pair
        })
    }

    /// What is said of it, with its size, resting on its two results.
    fn says(&self, id: impl Into<String>, text: String) -> Finding {
        Finding::new(&self.group.name, id, text)
            .figure("size", self.second.size as f64)
            .rests_on([self.first, self.second])
    }

    /// The results at every common size.
    fn everywhere(&self) -> impl Iterator<Item = &Benchmark> {
        self.all.iter().flat_map(|(a, b)| [*a, *b])
    }

    /// Time of the first over that of the second.
    fn ratio(&self) -> f64 {
        self.first.median_ns / self.second.median_ns
    }

    /// What the first takes longer than the second, ns.
    fn saved_ns(&self) -> f64 {
        self.first.median_ns - self.second.median_ns
    }

    /// `N = 1,024`.
    fn at(&self) -> String {
        self.topic.at(self.second.size)
    }

    /// `2.6 µs against 10 µs`: the second against the first.
    fn times(&self) -> String {
        let time = |b: &Benchmark| units::time(b.median_ns);
        format!("{} against {}", time(self.second), time(self.first))
    }
}

/// Kernels launched one by one, and as `other`.
fn launched<'a>(
    group: &'a Group,
    clocks: &[Clock],
    other: Launches,
) -> Option<(&'a Series, &'a Series)> {
    pair(
        group,
        clocks,
        |role| role.launches == Some(Launches::OneByOne),
        |role| role.launches == Some(other),
        |role| role.launches = None,
    )
}

/// `2× slower`, or `2× faster` where the ratio is below one.
fn slowdown(ratio: f64) -> String {
    match ratio {
        r if r >= 1.0 => format!("{} slower", units::factor(r)),
        r => format!("{} faster", units::factor(1.0 / r)),
    }
}

fn kernels(benchmark: &Benchmark) -> Option<f64> {
    benchmark.cost.launches.filter(|n| *n > 0).map(f64::from)
}

pub(super) fn fused_launches(context: &Context, group: &Group) -> Option<Finding> {
    let rows = launched(group, &[Events, Wall], Launches::Fused)?;
    let pair = Pair::smallest(group, rows)?;
    let before_and_after = (pair.first.cost.launches).zip(pair.second.cost.launches);
    // Of a step with products in it, several remain.
    let part = &pair.topic.part;
    let what = match before_and_after {
        Some((before, after @ 2..)) => format!("{before} {part}s into {after}"),
        _ => format!("the {part}s into one kernel"),
    };
    let saved = pair.saved_ns();
    let verb = if saved >= 0.0 { "saves" } else { "costs" };
    let spared = before_and_after
        .map(|(before, after)| before.saturating_sub(after))
        .filter(|n| *n > 0);
    let each = spared.map(|n| saved / f64::from(n));
    let of_each = spared.zip(each).map_or(String::new(), |(n, each)| {
        let launches = if n == 1 { "launch" } else { "launches" };
        let each = units::time(each.abs());
        format!(", {each} for each of the {n} {launches} that it avoids")
    });
    let launch = context.machine.ceiling_of(pair.second, "launch_latency");
    let of_launch = launch.map_or(String::new(), |launch| {
        format!("; launching an empty kernel takes {}", units::time(launch))
    });
    let text = format!(
        "Fusing {what} {verb} {} per call at {}, where launches dominate ({}){of_each}{of_launch}.",
        units::time(saved.abs()),
        pair.at(),
        pair.times(),
    );
    let finding = pair
        .says("fusing.launches", text)
        .figure("saved_ns", saved)
        .figure("saved_each_ns", each)
        .figure("launch_latency_ns", launch)
        .gained(Technique::Fuse, pair.ratio(), pair.at());
    Some(finding)
}

pub(super) fn fused_traffic(_: &Context, group: &Group) -> Option<Finding> {
    let rows = launched(group, &[EventsGated, Events], Launches::Fused)?;
    // One size alone says nothing about small against large.
    let pair = Pair::largest(group, rows).filter(|pair| pair.all.len() > 1)?;
    let several = matches!(pair.second.cost.launches, Some(2..));
    let bytes = pair.first.cost.bytes.zip(pair.second.cost.bytes);
    let (rules, once) = match bytes.filter(|(apart, moved)| moved < apart) {
        Some((apart, moved)) if several => {
            let (moved, apart) = (units::bytes(moved), units::bytes(apart));
            (",", format!(": it moves {moved} in place of {apart}"))
        }
        Some(_) => (
            ", where memory bandwidth dominates,",
            ": it reads and writes the data only once".to_owned(),
        ),
        None => (",", String::new()),
    };
    // What is fused: one of the parts, or a whole of several.
    let what = match several {
        true => pair.topic.work.trim_start_matches("the "),
        false => &pair.topic.part,
    };
    let text = format!(
        "At {}{rules} the fused {what} is {} ({}){once}.",
        pair.at(),
        units::speedup(pair.ratio()),
        pair.times(),
    );
    let finding = pair
        .says("fusing.traffic", text)
        .figure("ratio", pair.ratio())
        .gained(Technique::Fuse, pair.ratio(), pair.at());
    Some(finding)
}

pub(super) fn replayed(_: &Context, group: &Group) -> Option<Finding> {
    // On a clock that has the launches in it: behind a gate they cost nothing.
    let rows = launched(group, &[Wall, Events], Launches::Graph)?;
    let pair = Pair::smallest(group, rows)?;
    let (eager, graph) = (kernels(pair.first), kernels(pair.second));
    // Where the graph's kernels are fused from more, no launch can be told from what fusing saves.
    // Some that count their graph as one launch are not.
    let fused = (eager.zip(graph)).filter(|(apart, fused)| *fused > 1.0 && fused < apart);
    let each = (eager.filter(|_| fused.is_none())).map(|n| pair.saved_ns() / n);
    let of_each = each.map_or(String::new(), |each| {
        let less = if each >= 0.0 { "less" } else { "more" };
        format!(", {} {less} per kernel", units::time(each.abs()))
    });
    let (replayed, launched) = match fused {
        None => ("the kernels".to_owned(), "them".to_owned()),
        Some((apart, fused)) => (
            format!("{fused} fused kernels"),
            format!("the {apart} that they are fused from"),
        ),
    };
    let text = format!(
        "{} at {}: replaying {replayed} as one graph is {} than launching {launched} one by one ({}{of_each}).",
        pair.topic.title,
        pair.at(),
        units::speedup(pair.ratio()),
        pair.times(),
    );
    let finding = pair
        .says(format!("graph.{}", group.name), text)
        .figure("ratio", pair.ratio())
        .figure("saved_ns", pair.saved_ns())
        .figure("saved_each_ns", each)
        .gained(Technique::ReplayGraph, pair.ratio(), pair.at());
    Some(finding)
}

pub(super) fn synchronised(_: &Context, group: &Group) -> Option<Finding> {
    let id = format!("synchronising.{}", group.name);
    waited(group, Launches::Synchronised, id, "synchronising")
}

pub(super) fn read_back(_: &Context, group: &Group) -> Option<Finding> {
    let id = format!("reading.{}", group.name);
    waited(group, Launches::ReadBack, id, "reading one value back")
}

/// `does` is what is done after each kernel.
fn waited(group: &Group, launches: Launches, id: String, does: &str) -> Option<Finding> {
    let rows = launched(group, &[Wall], launches);
    // Where data come from the host, copies wait as well: that is told of overlapping.
    let rows = rows.filter(|(free, _)| free.role.data.on_device())?;
    let pair = Pair::smallest(group, rows)?;
    let ratio = pair.second.median_ns / pair.first.median_ns;
    // The host waits once at the end in either case.
    let each = kernels(pair.second)
        .filter(|n| *n > 1.0)
        .map(|n| (pair.second.median_ns - pair.first.median_ns) / (n - 1.0));
    let of_each = match each.filter(|each| *each > 0.0) {
        Some(each) => format!("; each wait costs {}", units::time(each)),
        None => String::new(),
    };
    let text = format!(
        "{} at {}: {does} after each {} makes {} {} ({}){of_each}.",
        pair.topic.title,
        pair.at(),
        pair.topic.part,
        pair.topic.work,
        slowdown(ratio),
        pair.times(),
    );
    let finding = pair
        .says(id, text)
        .figure("ratio", ratio)
        .figure("each_ns", each)
        .gained(Technique::DoNotWait, ratio, pair.at());
    Some(finding)
}

pub(super) fn partly_on_cpu(_: &Context, group: &Group) -> Option<Finding> {
    let rows = launched(group, &[Wall], Launches::PartlyOnCpu)?;
    let pair = Pair::smallest(group, rows)?;
    let steps = kernels(pair.first)?;
    let moved = Some(steps - kernels(pair.second)?).filter(|moved| *moved > 0.0)?;
    let part = &pair.topic.part;
    let each =
        |(free, hybrid): &(&Benchmark, &Benchmark)| (hybrid.median_ns - free.median_ns) / moved;
    let ratio = |(free, hybrid): &(&Benchmark, &Benchmark)| hybrid.median_ns / free.median_ns;
    let (smallest, largest) = (pair.all.first()?, pair.all.last()?);
    let pays = |both: &(&Benchmark, &Benchmark)| {
        let each = each(both);
        let sign = if each >= 0.0 { "" } else { "−" };
        format!(
            "{} at {} ({sign}{} for each {part} moved)",
            slowdown(ratio(both)),
            pair.topic.at(both.0.size),
            units::time(each.abs())
        )
    };
    let ends = [Some(smallest), Some(largest).filter(|_| pair.all.len() > 1)];
    let parts: Vec<String> = ends.into_iter().flatten().map(pays).collect();
    let text = format!(
        "With {moved} of the {steps} {part}s on the CPU, with the values copied to the host and back each time, \
         {} is {}.",
        pair.topic.work,
        parts.join(" and ")
    );
    let finding = pair
        .says(format!("{}.hybrid", group.name), text)
        .figure("each_ns", each(smallest))
        .figure("ratio", ratio(smallest))
        .figure("ratio_largest", ratio(largest))
        .rests_on(pair.everywhere());
    Some(finding)
}

/// Pinning pays where it saves at least this share.
const PAYS: f64 = 1.1;

pub(super) fn pinned_to_device(context: &Context, group: &Group) -> Option<Finding> {
    let words = ["h2d", "to the device", "h2d_pinned"];
    pinned(context, group, CopyDirection::ToDevice, words)
}

pub(super) fn pinned_to_host(context: &Context, group: &Group) -> Option<Finding> {
    let words = ["d2h", "to the host", "d2h_pinned"];
    pinned(context, group, CopyDirection::ToHost, words)
}

/// `words` are the copy's name, its direction, and the name of the ceiling of the link.
fn pinned(
    context: &Context,
    group: &Group,
    way: CopyDirection,
    [id, direction, ceiling]: [&str; 3],
) -> Option<Finding> {
    let rows = pair(
        group,
        &[Wall],
        |role| plain(role, way) && role.data == Residency::Ordinary,
        |role| role.data == Residency::Pinned,
        |role| role.data = Residency::Ordinary,
    )?;
    let pair = Pair::largest(group, rows)?;
    let pays = |(slow, fast): &&(&Benchmark, &Benchmark)| slow.median_ns / fast.median_ns >= PAYS;
    let from = pair.all.iter().rev().take_while(pays).last();
    let from = from.map(|(_, pinned)| pinned.size);
    let rate = |b: &Benchmark| b.rate(b.size as f64);
    let link = context.machine.ceiling_of(pair.second, ceiling);
    let share = link.map(|link| rate(pair.second) / link);
    let share = share
        .filter(|share| *share <= NOISE)
        .map(|share| share.min(1.0));
    let of_link = share.map_or(String::new(), |share| {
        format!(", {} of the measured PCIe rate", units::percent(share))
    });
    let compared = match pair.ratio() {
        r if r >= 1.0 => format!("{} as fast as", units::factor(r)),
        r => format!("{} slower than", units::factor(1.0 / r)),
    };
    let pays = match from {
        Some(size) => format!("pinning pays from {} on", units::binary(size)),
        None => "pinning pays at none of the measured sizes".into(),
    };
    let text = format!(
        "Copies {direction} with pinned host memory are {compared} with pageable memory at {} ({}{of_link}, \
         against {}); {pays}.",
        units::binary(pair.second.size),
        units::rate(rate(pair.second), "B/s"),
        units::rate(rate(pair.first), "B/s"),
    );
    let finding = pair
        .says(format!("copies.pinned.{id}"), text)
        .figure("ratio", pair.ratio())
        .figure("pays_from_size", from.map(|size| size as f64))
        .figure("rate", rate(pair.second))
        .figure("link_share", share)
        .gained(Technique::Pin, pair.ratio(), pair.at())
        .rests_on(pair.everywhere());
    Some(finding)
}

pub(super) fn copied_in_pieces(_: &Context, group: &Group) -> Option<Finding> {
    let rows = pair(
        group,
        &[Wall],
        |role| plain(role, CopyDirection::ToDevice) && role.data == Residency::Pinned,
        |role| role.pieces > 1,
        |role| role.pieces = 1,
    )?;
    let pair = Pair::smallest(group, rows)?;
    let pieces = pair.pieces;
    let ratio = pair.second.median_ns / pair.first.median_ns;
    let each = (pair.second.median_ns - pair.first.median_ns) / f64::from(pieces - 1);
    let compared = match ratio {
        r if r >= 1.0 => format!("takes {} as long", units::factor(r)),
        r => format!("is {} faster", units::factor(1.0 / r)),
    };
    let of_each = match each {
        e if e > 0.0 => format!(", {} for each further copy", units::time(e)),
        _ => String::new(),
    };
    let large = match pair.all.last().filter(|_| pair.all.len() > 1) {
        Some((one, many)) => format!(
            "; at {} the factor is {}",
            units::binary(one.size),
            units::factor_fine(many.median_ns / one.median_ns)
        ),
        None => String::new(),
    };
    let text = format!(
        "Copying {} to the device in {pieces} pieces {compared} ({}{of_each}){large}.",
        units::binary(pair.second.size),
        pair.times(),
    );
    let finding = pair
        .says("copies.many", text)
        .figure("ratio", ratio)
        .figure("each_ns", each)
        .rests_on(pair.everywhere());
    Some(finding)
}

pub(super) fn waited_pieces(_: &Context, group: &Group) -> Option<Finding> {
    let rows = pair(
        group,
        &[Wall],
        in_sequence,
        |role| role.pieces > 1 && role.launches == Some(Launches::Synchronised),
        |role| (role.pieces, role.launches) = (1, None),
    );
    let pair = Pair::largest(group, rows.filter(|(sequence, _)| sequence.computes())?)?;
    let hides = match pair.ratio() {
        r if r < 1.05 => "hides nothing",
        _ => "hides something all the same",
    };
    let text = format!(
        "{} in {} pieces, with the host waiting after each stage of each piece, {hides}: it takes {} \
         at {}, against {} in sequence.",
        sentence(&pair.topic.work),
        pair.pieces,
        units::time(pair.second.median_ns),
        pair.at(),
        units::time(pair.first.median_ns),
    );
    let finding = pair
        .says("overlap.synced", text)
        .figure("ratio", pair.ratio());
    Some(finding)
}
