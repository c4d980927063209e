//! The verdict for an operation, a size and a place of the data: the decision of [`crossover_advice`],
//! as breakpoints for the script, and as a sentence for the default choice.

use maud::{Markup, html};
use serde::Serialize;
use serde_json::{Value, json};

use crate::group::Group as View;
use crate::report::Report;
use crate::thresholds;
use crate::thresholds::decision_in_words::{choice_words, decision};
use crossover_advice::thresholds::{Operation, Place, Thresholds};
use crossover_advice::{Advice, Answer, Breakpoint, Choice, Question, Residency};
use crossover_results::analysis::answer::answer_in_words::by_how_much;
use crossover_results::analysis::answer::crossover_answer::best_cpu;
use crossover_results::analysis::answer::curve::Point;
use crossover_results::model::group_info::GroupInfo;
use crossover_results::model::role::Threads;
use crossover_results::store::curves::Group;

/// Ordinary memory first, because most data are there.
pub(super) const PLACES: [Residency; 4] = [
    Residency::Ordinary,
    Residency::Pinned,
    Residency::Awaited,
    Residency::Queued,
];

/// How often the same data are used, as a reader may choose.
const USES: [u32; 4] = [1, 10, 100, 1000];

/// The names of a place: in a sentence, as a column, and as an alternative.
pub(super) fn place_words(data: Residency) -> [&'static str; 3] {
    let (column, instead) = match data {
        Residency::Ordinary => ("ordinary", "From ordinary memory"),
        Residency::Pinned => ("pinned", "Pinned"),
        Residency::Awaited => ("awaited", "Kept on the device"),
        Residency::Queued => ("queued", "Kept there and queued"),
    };
    [data.words(), column, instead]
}

/// The decisions on the results of a report.
pub(crate) struct Verdicts {
    advice: Advice,
}

/// The data of a group that the script looks up.
#[derive(Debug, Serialize)]
pub(crate) struct GroupVerdict {
    /// Factor by which the best code on one thread is slower than the best of all, by size.
    core: Vec<(f64, f64)>,
    data: &'static str,
    places: Vec<PlaceVerdict>,
    size: u64,
}

/// The data for one place.
#[derive(Debug, Serialize)]
struct PlaceVerdict {
    data: &'static str,
    first: f64,
    last: f64,
    limits: Vec<(f64, Option<String>)>,
    /// For each of [`USES`] the breakpoints.
    uses: [Vec<ShortBreakpoint>; USES.len()],
}

/// A question of the page, with the values for the words of its answer.
struct Asked<'a> {
    operation: &'a Operation,
    topic: GroupInfo,
    size: u64,
    data: Residency,
}

impl Verdicts {
    /// `None` if the results have no answers.
    pub(crate) fn of(report: &Report) -> Option<Self> {
        let advice = Advice::new(thresholds::thresholds(report)?).ok()?;
        Some(Self { advice })
    }

    pub(crate) fn thresholds(&self) -> &Thresholds {
        self.advice.thresholds()
    }

    /// The answer for one place of a group at a size.
    pub(super) fn decide(&self, group: &str, size: u64, data: Residency) -> Answer {
        let question = Question::new(group, size).data(data);
        self.advice.decide(&question)
    }

    /// The first view: the first operation with an answer for ordinary memory at several sizes.
    fn first(&self, groups: &[&View]) -> Option<Asked<'_>> {
        let named =
            |group: &&View| Some((self.advice.operation(&group.name)?, group.topic.clone()));
        let mut all: Vec<(&Operation, GroupInfo)> = groups.iter().filter_map(named).collect();
        // A single size makes no curve, so such operations come last.
        all.sort_by_key(|(operation, _)| {
            let place = plain(operation);
            (place.data != Residency::Ordinary, place.points.len() < 2)
        });
        let (operation, topic) = all.into_iter().next()?;
        Some(Asked {
            operation,
            topic,
            size: self.default_size(operation),
            data: plain(operation).data,
        })
    }

    /// The middle of the measured sizes at which the GPU wins, or if there are none, the CPU.
    fn default_size(&self, operation: &Operation) -> u64 {
        let place = plain(operation);
        let sizes = place.points.iter().map(|point| point.size as u64);
        let chosen = |choice: Choice| {
            let at = |size: &u64| self.decide(&operation.name, *size, place.data).choice == choice;
            let sizes: Vec<u64> = sizes.clone().filter(at).collect();
            sizes.get(sizes.len() / 2).copied()
        };
        let size = chosen(Choice::Gpu).or_else(|| chosen(Choice::Cpu));
        size.or_else(|| sizes.clone().next()).unwrap_or(1)
    }

    /// The script's data of a group; `None` if it has no answers.
    pub(crate) fn of_group(&self, group: &Group) -> Option<GroupVerdict> {
        let operation = self.advice.operation(&group.name)?;
        let place = |data: &Residency| {
            let place = operation.places.iter().find(|p| p.data == *data)?;
            let uses = |uses: u32| -> Vec<_> {
                let question = Question::new(&operation.name, 1).data(*data).reuse(uses);
                let all = self.advice.breakpoints(&question);
                all.iter().map(breakpoint).collect()
            };
            let (first, last) = measured(place);
            Some(PlaceVerdict {
                data: data.name(),
                first,
                last,
                limits: (place.limits.iter())
                    .map(|b| (b.from, b.gpu.clone()))
                    .collect(),
                uses: match data.on_device() {
                    // Nothing is moved, so the number of uses does not matter.
                    true => {
                        let once = uses(1);
                        USES.map(|_| once.clone())
                    }
                    false => USES.map(uses),
                },
            })
        };
        Some(GroupVerdict {
            core: one_core(group),
            data: plain(operation).data.name(),
            places: PLACES.iter().filter_map(place).collect(),
            size: self.default_size(operation),
        })
    }

    fn sentence(&self, asked: &Asked) -> (String, String) {
        let Asked {
            operation,
            topic,
            size,
            data,
        } = asked;
        let answer = self.decide(&operation.name, *size, *data);
        let says = format!(
            "{}, {}, {}: {}.",
            topic.title,
            topic.at(*size),
            data.words(),
            decision(&self.advice, &answer),
        );
        let mut more = Vec::new();
        for other in PLACES.into_iter().filter(|other| other != data) {
            if let Some(e) = self.decide(&operation.name, *size, other).estimate {
                let by = by_how_much(e.speedup, None);
                more.push(format!("{}: {by}.", place_words(other)[2]));
            }
        }
        let place = operation.places.iter().find(|place| place.data == *data);
        let limits = place.map(|place| place.limits.iter());
        let here = limits.and_then(|mut all| all.rfind(|b| b.from <= *size as f64)?.gpu.clone());
        more.extend(here.map(|limit| format!("What limits the GPU there: {limit}.")));
        (says, more.join(" "))
    }
}

/// Words for the script.
pub(super) fn said(verdicts: Option<&Verdicts>, base: &str) -> Value {
    let choices = verdicts.map(|verdicts| {
        let all = [Choice::Cpu, Choice::Gpu, Choice::Unsure];
        all.map(|choice| choice_words(&verdicts.advice, choice))
    });
    json!({
        "base": base,
        "uses": USES,
        "choices": choices,
        // A list, because its order counts.
        "places": PLACES.map(|data| (data.name(), place_words(data))),
    })
}

/// The verdict with its form; without results of both sides only the form, which also controls the
/// chart.
pub(super) fn section(groups: &[&View], verdicts: Option<&Verdicts>) -> Markup {
    let asked = verdicts.and_then(|verdicts| Some((verdicts, verdicts.first(groups)?)));
    let asked = asked.map(|(verdicts, asked)| (verdicts, verdicts.sentence(&asked), asked));
    let chosen = asked.as_ref().map(|(.., asked)| asked);
    html! {
        section #verdict {
            h2 { "Is it worth moving to the GPU?" }
            form.ask.scripted {
                label { "Operation" (operations(groups, chosen)) }
                label {
                    span #v-axis { (chosen.map_or("Size", |asked| &asked.topic.axis)) }
                    input #v-size inputmode="numeric" autocomplete="off" value=[chosen.map(|asked| asked.size)];
                }
                label {
                    "The data are"
                    select #v-data {
                        @for data in PLACES {
                            option value=(data.name()) selected[chosen.is_some_and(|asked| asked.data == data)] { (place_words(data)[0]) }
                        }
                    }
                }
                label {
                    "and are used"
                    select #v-uses {
                        @for (i, uses) in USES.iter().enumerate() {
                            option value=(i) { @if *uses == 1 { "once" } @else { (uses) " times" } }
                        }
                    }
                }
            }
            @match &asked {
                Some((verdicts, (says, more), _)) => {
                    p #v-says aria-live="polite" { (says) }
                    p #v-more { (more) }
                    p.note {
                        "Against the fastest CPU code at each size, on "
                        b { (verdicts.thresholds().machine.threads) " threads of " (verdicts.thresholds().machine.cpu) }
                        ". In parentheses: the interval of another run. "
                        span #v-core {}
                    }
                }
                None => {
                    p #v-says aria-live="polite" {
                        "There is no answer: it needs CPU and GPU results of one group at common sizes. \
                         Run " code { "cargo bench" } " on a machine with a GPU, or name another \
                         machine's results with " code { "crossover report --with FILE" } "."
                    }
                    p #v-more {}
                }
            }
        }
    }
}

/// Size, choice, speedup and its interval, to four digits.
type ShortBreakpoint = (u64, u8, f64, f64, f64);

fn breakpoint(at: &Breakpoint) -> ShortBreakpoint {
    let choice = match at.choice {
        Choice::Cpu => 0,
        Choice::Gpu => 1,
        Choice::Unsure => 2,
    };
    let [speedup, low, high] = at.speedup.map(thresholds::rounded);
    (at.size, choice, speedup, low, high)
}

/// The place that a reader most likely means.
fn plain(operation: &Operation) -> &Place {
    let at = |data: &Residency| operation.places.iter().find(|place| place.data == *data);
    PLACES.iter().find_map(at).unwrap_or(&operation.places[0])
}

fn measured(place: &Place) -> (f64, f64) {
    let (first, last) = (place.points.first(), place.points.last());
    (first.map_or(1.0, |p| p.size), last.map_or(1.0, |p| p.size))
}

fn one_core(group: &Group) -> Vec<(f64, f64)> {
    let (best, _) = best_cpu(group);
    let on_one = |size: f64| {
        let mut all = group
            .series
            .iter()
            .filter(|s| s.role.threads == Some(Threads::One));
        let times = all.by_ref().filter(|s| s.computes());
        let times = times.filter_map(|s| Some(s.at(size as u64)?.median_ns));
        times.reduce(f64::min)
    };
    let factor = |at: &Point| {
        let one = on_one(at.size)?;
        Some((at.size, thresholds::rounded(one / at.median)))
    };
    best.points().iter().filter_map(factor).collect()
}

/// All groups that a chart can show.
fn operations(groups: &[&View], chosen: Option<&Asked>) -> Markup {
    html! {
        select #v-operation {
            @for group in groups {
                option value=(group.name) selected[chosen.is_some_and(|asked| asked.operation.name == group.name)] { (group.topic.title) }
            }
        }
    }
}
