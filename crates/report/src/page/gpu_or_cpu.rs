//! Who is faster for an operation, a size and a place of the data: the decision of
//! [`crossover_advice`], as breakpoints that a script looks up, and as a sentence for the default.

use maud::{Markup, html};
use serde::Serialize;
use serde_json::{Value, json};

use crate::assemble::Assembled;
use crate::page::group;
use crate::thresholds;
use crossover_advice::thresholds::{Operation, Place, Thresholds};
use crossover_advice::{Advice, Answer, Breakpoint, Choice, Question, Residency};
use crossover_results::analysis::answer::answer_in_words::by_how_much;
use crossover_results::analysis::answer::crossover_answer::best_cpu;
use crossover_results::analysis::answer::curve::Point;
use crossover_results::model::group_info::GroupInfo;
use crossover_results::model::role::Threads;
use crossover_results::store::curves::Group;

/// Ordinary memory first: it is where data are that nobody moved.
pub(super) const PLACES: [Residency; 4] = [
    Residency::Ordinary,
    Residency::Pinned,
    Residency::Awaited,
    Residency::Queued,
];

/// How often the same data are used, as a reader may choose.
const USES: [u32; 4] = [1, 10, 100, 1000];

/// How the places are called: in a sentence, as a column, and as what might be done instead.
pub(super) fn place_words(data: Residency) -> [&'static str; 3] {
    match data {
        Residency::Ordinary => ["in ordinary memory", "ordinary", "From ordinary memory"],
        Residency::Pinned => ["in pinned memory", "pinned", "Pinned"],
        Residency::Awaited => [
            "on the device, each call awaited",
            "awaited",
            "Kept on the device",
        ],
        Residency::Queued => [
            "on the device, calls queued",
            "queued",
            "Kept there and queued",
        ],
    }
}

/// What is said of each choice, before the speedup.
fn choice_words(choice: Choice) -> &'static str {
    match choice {
        Choice::Gpu => "use the GPU; it is",
        Choice::Cpu => "stay on the CPU; the GPU is",
        Choice::Unsure => "unsure; the GPU is about",
    }
}

/// What may be asked of the results of a report.
pub(crate) struct Verdicts {
    advice: Advice,
}

/// What the script looks up for a group.
#[derive(Serialize)]
pub(super) struct GroupVerdict<'a> {
    /// By what factor the best code on one thread is slower than the best of all, by size.
    core: Vec<(f64, f64)>,
    data: &'static str,
    places: Vec<PlaceVerdict<'a>>,
    size: u64,
}

/// The same for one place of the data.
#[derive(Serialize)]
struct PlaceVerdict<'a> {
    data: &'static str,
    first: f64,
    gpu: &'a str,
    last: f64,
    limits: Vec<(f64, Option<&'a str>)>,
    /// For each of [`USES`] the breakpoints.
    uses: [Vec<ShortBreakpoint>; USES.len()],
}

/// A question of the page, with what its answer is worded from.
struct Asked<'a> {
    operation: &'a Operation,
    topic: GroupInfo,
    size: u64,
    data: Residency,
}

impl Verdicts {
    /// `None` where the results answer nothing.
    pub(crate) fn of(report: &Assembled) -> Option<Self> {
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

    /// What a reader sees first: the first operation with an answer for ordinary memory, at the size
    /// in the middle of those that were measured.
    fn first(&self, report: &Assembled) -> Option<Asked<'_>> {
        let names = report.groups.iter();
        let mut all: Vec<&Operation> = names
            .filter_map(|name| self.advice.operation(name))
            .collect();
        all.sort_by_key(|operation| plain(operation).data != Residency::Ordinary);
        let operation = *all.first()?;
        Some(Asked {
            operation,
            topic: report.topic(&operation.name),
            size: default_size(operation),
            data: plain(operation).data,
        })
    }

    /// Whose figures they are, where they are not this machine's: the first words of a verdict.
    fn whose(&self) -> String {
        let machine = &self.thresholds().machine;
        match machine.gpu_of_another_machine {
            true => format!("With the {} of another machine: ", machine.gpu),
            false => String::new(),
        }
    }

    /// What the script needs of a group; `None` where it answers nothing.
    pub(super) fn of_group(&self, group: &Group) -> Option<GroupVerdict<'_>> {
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
                gpu: &place.gpu,
                last,
                limits: (place.limits.iter())
                    .map(|b| (b.from, b.gpu.as_deref()))
                    .collect(),
                uses: match data.on_device() {
                    // However often they are used: nothing is moved.
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
            size: default_size(operation),
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
            "{}{}, {}, {}: {}.",
            self.whose(),
            topic.title,
            topic.at(*size),
            place_words(*data)[0],
            answer.estimate.map_or(String::new(), |e| format!(
                "{} {}",
                choice_words(answer.choice),
                by_how_much(e.speedup, Some((e.low, e.high)))
            )),
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

/// Words that the script takes from here.
pub(super) fn said(verdicts: Option<&Verdicts>) -> Value {
    let choices = [Choice::Cpu, Choice::Gpu, Choice::Unsure].map(choice_words);
    json!({
        "whose": verdicts.map(Verdicts::whose),
        "uses": USES,
        "choices": choices,
        // A list, which keeps its order.
        "places": PLACES.map(|data| (data.name(), place_words(data))),
    })
}

/// The verdict with its form; without results of both sides only the form, which the chart obeys.
pub(super) fn section(report: &Assembled, verdicts: Option<&Verdicts>) -> Markup {
    let asked = verdicts.and_then(|verdicts| Some((verdicts, verdicts.first(report)?)));
    let asked = asked.map(|(verdicts, asked)| (verdicts, verdicts.sentence(&asked), asked));
    let chosen = asked.as_ref().map(|(.., asked)| asked);
    html! {
        section #verdict {
            h2 { "Is it worth moving to the GPU?" }
            form.ask.scripted {
                label { "Operation" (operations(report, chosen)) }
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
                        ". In parentheses: what another run would find. "
                        span #v-core {}
                    }
                }
                None => {
                    p #v-says aria-live="polite" {
                        "There is no answer: it takes CPU and GPU results of one group at common sizes. \
                         Run " code { "cargo bench" } " on a machine with a GPU, or name another \
                         machine's results with " code { "crossover report --with FILE" } "."
                    }
                    p #v-more {}
                }
            }
        }
    }
}

/// Size, choice, speedup and its interval, as short as four digits are.
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

/// The measured size in the middle.
fn default_size(operation: &Operation) -> u64 {
    let points = &plain(operation).points;
    points.get(points.len() / 2).map_or(1, |p| p.size as u64)
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

/// All groups that a chart can show, those that compare CPU and GPU first.
fn operations(report: &Assembled, chosen: Option<&Asked>) -> Markup {
    let is_chart = |name: &&String| !group::one_size(report, name);
    html! {
        select #v-operation {
            @for name in report.groups.iter().filter(is_chart) {
                option value=(name) selected[chosen.is_some_and(|asked| asked.operation.name == *name)] { (report.topic(name).title) }
            }
        }
    }
}
