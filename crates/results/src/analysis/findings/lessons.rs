//! Lessons: comparisons of two rows of a group whose roles differ in one thing. [`LESSONS`] has a row
//! for each. A lesson selects by roles, never by names, so it holds for any group with such rows.

use crate::analysis::answer::answer_in_words::by_how_much;
use crate::analysis::findings::finding::{
    Context, Finding, Ratio, Technique, fastest, gpu, sentence,
};
use crate::model::role::{Allocator, CopyDirection, Launches, Measures, Residency, Role, Threads};
use crate::store::curves::{Benchmark, Group, Series};
use crossover_words::Clock::{self, Events, EventsGated, Wall};
use crossover_words::units;

use End::{Largest, Smallest};

/// The size whose ratio is the lesson.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// At the smallest size launches dominate, because no work hides them.
    Smallest,
    Largest,
}

/// Number of parts of the work, each of which saves a part of the time.
type Parts = fn(&Benchmark, &Benchmark) -> Option<f64>;

/// One lesson.
struct Lesson {
    /// Id of the finding; `{}` is the group.
    id: &'static str,
    /// The first of these clocks that has both rows counts.
    clocks: &'static [Clock],
    slow: fn(&Role) -> bool,
    /// If several rows match, the fastest at each size counts.
    fast: fn(&Role) -> bool,
    /// Makes equal the parts in which the rows may differ.
    blank: fn(&mut Role),
    at: End,
    /// Words for the work of the fast row. `{work}` and `{part}` are the group's words.
    does: &'static str,
    /// The word for the parts, and their number.
    parts: (&'static str, Parts),
    technique: Option<Technique>,
}

fn launches(benchmark: &Benchmark) -> Option<f64> {
    benchmark.cost.launches.map(f64::from)
}

/// All launches. `None` if the graph's kernels are fused, because the gains of both cannot be
/// separated.
fn replayed(slow: &Benchmark, fast: &Benchmark) -> Option<f64> {
    let is_fused = |slow: &f64| launches(fast).is_some_and(|fast| 1.0 < fast && fast < *slow);
    launches(slow).filter(|slow| !is_fused(slow))
}

/// The host waits once at the end in either case.
fn waits(slow: &Benchmark, _: &Benchmark) -> Option<f64> {
    Some(launches(slow)? - 1.0)
}

fn one_by_one(role: &Role) -> bool {
    role.launches == Some(Launches::OneByOne)
}

/// A plain copy: in one piece, by no particular method.
pub(super) fn plain(role: &Role, way: CopyDirection) -> bool {
    role.measures == Measures::Copies(way) && role.pieces == 1 && role.method.is_none()
}

fn from_ordinary(role: &Role, way: CopyDirection) -> bool {
    plain(role, way) && role.data == Residency::Ordinary
}

fn any_memory(role: &mut Role) {
    role.data = Residency::Ordinary;
}

fn staged(role: &Role) -> bool {
    role.data == Residency::Ordinary && role.threads == Some(Threads::All)
}

fn not_staged(role: &mut Role) {
    (role.threads, role.method, role.answers) = (None, None, true);
}

/// From host memory and back, everything in one piece.
fn in_sequence(role: &Role) -> bool {
    let computes = role.measures == Measures::Computes;
    computes && !role.data.on_device() && one_by_one(role) && role.pieces == 1
}

/// The defaults of most lessons: on the host's clock, at the smallest size, rows that differ in their
/// launches.
const PAIR: Lesson = Lesson {
    id: "",
    clocks: &[Wall],
    slow: one_by_one,
    fast: one_by_one,
    blank: |role| role.launches = None,
    at: Smallest,
    does: "",
    parts: ("", |_, _| None),
    technique: None,
};

const LESSONS: &[Lesson] = &[
    Lesson {
        id: "fusing.launches",
        clocks: &[Events, Wall],
        fast: |role| role.launches == Some(Launches::Fused),
        does: "fusing the {part}s of {work}",
        parts: ("launches", |slow, fast| {
            Some(launches(slow)? - launches(fast)?)
        }),
        technique: Some(Technique::Fuse),
        ..PAIR
    },
    Lesson {
        id: "fusing.traffic",
        clocks: &[EventsGated, Events],
        fast: |role| role.launches == Some(Launches::Fused),
        at: Largest,
        does: "fusing the {part}s of {work}",
        technique: Some(Technique::Fuse),
        ..PAIR
    },
    Lesson {
        id: "graph.{}",
        // On a clock that includes launches: behind a gate they cost nothing.
        clocks: &[Wall, Events],
        fast: |role| role.launches == Some(Launches::Graph),
        does: "replaying {work} as one graph",
        parts: ("launches", replayed),
        technique: Some(Technique::ReplayGraph),
        ..PAIR
    },
    Lesson {
        id: "synchronising.{}",
        // With data from the host, copies wait as well.
        slow: |role| role.launches == Some(Launches::Synchronised) && role.data.on_device(),
        does: "not synchronising after each {part} of {work}",
        parts: ("waits", waits),
        technique: Some(Technique::DoNotWait),
        ..PAIR
    },
    Lesson {
        id: "reading.{}",
        slow: |role| role.launches == Some(Launches::ReadBack) && role.data.on_device(),
        does: "not reading a value back after each {part} of {work}",
        parts: ("waits", waits),
        technique: Some(Technique::DoNotWait),
        ..PAIR
    },
    Lesson {
        id: "{}.hybrid",
        slow: |role| role.launches == Some(Launches::PartlyOnCpu),
        does: "computing each {part} of {work} on the GPU, none of them on the CPU,",
        parts: ("steps", |slow, fast| {
            Some(launches(fast)? - launches(slow)?)
        }),
        ..PAIR
    },
    Lesson {
        id: "copies.pinned.h2d",
        slow: |role| from_ordinary(role, CopyDirection::ToDevice),
        fast: |role| role.data == Residency::Pinned,
        blank: any_memory,
        at: Largest,
        does: "pinning the host memory of copies to the device",
        technique: Some(Technique::Pin),
        ..PAIR
    },
    Lesson {
        id: "copies.pinned.d2h",
        slow: |role| from_ordinary(role, CopyDirection::ToHost),
        fast: |role| role.data == Residency::Pinned,
        blank: any_memory,
        at: Largest,
        does: "pinning the host memory of copies to the host",
        technique: Some(Technique::Pin),
        ..PAIR
    },
    Lesson {
        id: "copies.staged.h2d",
        slow: |role| from_ordinary(role, CopyDirection::ToDevice) && role.threads.is_none(),
        fast: staged,
        blank: not_staged,
        at: Largest,
        does: "staging copies to the device through pinned buffers, by several threads,",
        technique: Some(Technique::Stage),
        ..PAIR
    },
    Lesson {
        id: "copies.staged.d2h",
        slow: |role| from_ordinary(role, CopyDirection::ToHost) && role.threads.is_none(),
        fast: staged,
        blank: not_staged,
        at: Largest,
        does: "staging copies to the host through pinned buffers, by several threads,",
        technique: Some(Technique::Stage),
        ..PAIR
    },
    Lesson {
        id: "copies.many",
        slow: |role| role.pieces > 1 && role.method.is_none(),
        fast: |role| plain(role, CopyDirection::ToDevice) && role.data == Residency::Pinned,
        blank: |role| role.pieces = 1,
        does: "copying to the device in one piece, not in several,",
        parts: ("further pieces", |slow, _| {
            Some(f64::from(slow.role.pieces) - 1.0)
        }),
        ..PAIR
    },
    Lesson {
        id: "overlap.pieces",
        slow: in_sequence,
        fast: |role| role.pieces > 1,
        blank: |role| role.pieces = 1,
        at: Largest,
        does: "overlapping the copies and {part}s of {work}, in pieces,",
        technique: Some(Technique::Overlap),
        ..PAIR
    },
    Lesson {
        id: "overlap.synced",
        slow: in_sequence,
        fast: |role| role.pieces > 1 && role.launches == Some(Launches::Synchronised),
        blank: |role| (role.pieces, role.launches) = (1, None),
        at: Largest,
        does: "cutting {work} into pieces, with a wait after each stage of each piece,",
        ..PAIR
    },
    Lesson {
        id: "allocation.{}",
        slow: |role| role.measures == Measures::Allocates(Allocator::Malloc),
        fast: |role| role.measures == Measures::Allocates(Allocator::MallocAsyncKept),
        blank: |role| role.measures = Measures::Allocates(Allocator::Reuse),
        at: Largest,
        does: "allocating from a pool that keeps its memory, not with cuMemAlloc and cuMemFree,",
        technique: Some(Technique::KeepPool),
        ..PAIR
    },
    Lesson {
        id: "allocation.{}.reuse",
        slow: |role| role.measures == Measures::Allocates(Allocator::MallocAsyncKept),
        fast: |role| role.measures == Measures::Allocates(Allocator::Reuse),
        blank: |role| role.measures = Measures::Allocates(Allocator::Reuse),
        at: Largest,
        does: "reusing one buffer, not allocating from a pool that keeps its memory,",
        ..PAIR
    },
    Lesson {
        id: "allocation.{}.release",
        slow: |role| role.measures == Measures::Allocates(Allocator::MallocAsync),
        fast: |role| role.measures == Measures::Allocates(Allocator::MallocAsyncKept),
        blank: |role| role.measures = Measures::Allocates(Allocator::Reuse),
        at: Largest,
        does: "telling a pool to keep its memory, which else releases it at each synchronisation,",
        ..PAIR
    },
];

/// The lessons of each group.
pub(super) fn find(context: &Context) -> Vec<Finding> {
    let groups = context.machine.groups.iter();
    let of_group = |group| LESSONS.iter().filter_map(move |lesson| lesson.of(group));
    groups.flat_map(|group| of_group(group)).collect()
}

impl Lesson {
    fn of(&self, group: &Group) -> Option<Finding> {
        let mut pairs = self
            .clocks
            .iter()
            .find_map(|clock| self.pairs(group, *clock))?;
        if self.id == "fusing.traffic" && pairs.len() < 2 {
            // One size cannot show small against large.
            return None;
        }
        if self.at == Largest {
            pairs.reverse();
        }
        let (slow, fast) = *pairs.first()?;
        let topic = &group.topic;
        let gain = |(slow, fast): (&Benchmark, &Benchmark)| {
            let ratio = Ratio::of(slow, fast);
            let by = by_how_much(ratio.value, Some(ratio.interval));
            format!("{by} at {}", topic.at(fast.size))
        };
        let (called, parts) = self.parts;
        let each = parts(slow, fast).filter(|parts| *parts >= 1.0);
        let each = each.map(|parts| (parts, (slow.median_ns - fast.median_ns) / parts));
        let of_each = each.map_or(String::new(), |(parts, ns)| {
            let less = if ns >= 0.0 { "less" } else { "more" };
            let parts = units::count(parts);
            format!(
                ", {} {less} for each of {parts} {called}",
                units::time(ns.abs())
            )
        });
        let other_end = match &pairs[1..] {
            [.., last] => format!("; {}", gain(*last)),
            [] => String::new(),
        };
        let does = self
            .does
            .replace("{work}", &topic.work)
            .replace("{part}", &topic.part);
        let text = format!(
            "{} is {} (gpu/{} {}, gpu/{} {}{of_each}){other_end}.",
            sentence(&does),
            gain((slow, fast)),
            fast.implementation,
            units::time(fast.median_ns),
            slow.implementation,
            units::time(slow.median_ns),
        );
        let finding = Finding::new(&group.name, self.id, text)
            .rests_on(pairs.iter().flat_map(|(slow, fast)| [*slow, *fast]));
        let factor = slow.median_ns / fast.median_ns;
        Some(finding.gained(self.technique, factor, topic.at(fast.size)))
    }

    /// The slow and the fast row at each size that both have, ascending. Of several slow rows one that
    /// answers, and of these the one with most sizes.
    fn pairs<'a>(
        &self,
        group: &'a Group,
        clock: Clock,
    ) -> Option<Vec<(&'a Benchmark, &'a Benchmark)>> {
        let rest = |series: &Series| {
            let mut role = series.role.clone();
            (self.blank)(&mut role);
            role
        };
        gpu(group, clock)
            .filter(|s| (self.slow)(&s.role))
            .filter_map(|slow| {
                let fast =
                    || gpu(group, clock).filter(|s| (self.fast)(&s.role) && rest(s) == rest(slow));
                let pair = |b: &'a Benchmark| Some((b, fastest(fast(), b.size)?));
                let pairs: Vec<_> = slow.points.iter().filter_map(pair).collect();
                (!pairs.is_empty()).then_some((slow, pairs))
            })
            .max_by_key(|(slow, pairs)| (slow.role.answers, pairs.len()))
            .map(|(_, pairs)| pairs)
    }
}
