//! A decision in words, for `crossover advise` and the page.

use crossover_advice::thresholds::{Binding, Change, Operation, Place, Point, Thresholds};
use crossover_advice::{Advice, Answer, Choice, Question, Residency, Size};

use super::{rounded, with_article};
use crossover_results::analysis::answer::answer_in_words::{self, by_how_much};
use crossover_results::analysis::answer::estimate;
use crossover_results::analysis::answer::kind::WinnerChange;
use crossover_results::model::group_info::GroupInfo;
use crossover_words::units;

/// The sides in a sentence, unless an operation names others.
pub(crate) const THE_CPU_AND_THE_GPU: [&str; 2] = ["the CPU", "the GPU"];

/// More uses than anyone needs.
const MANY: u32 = 1 << 30;

/// The operations of the thresholds, each with its answer for data in ordinary memory, or else its
/// first answer.
pub fn operations(thresholds: &Thresholds) -> String {
    let line = |operation: &Operation| {
        let plain = operation
            .places
            .iter()
            .find(|place| place.data == Residency::Ordinary);
        let place = plain.or(operation.places.first());
        let answer = place.map(|place| {
            let at = place_words(operation, place.data);
            format!("{at}: {}", wins(operation, place))
        });
        format!(
            "{}, {}{}",
            operation.name,
            operation.size,
            answer.unwrap_or_default()
        )
    };
    let lines: Vec<String> = thresholds.operations.iter().map(line).collect();
    lines.join("\n")
}

/// Both sides of an operation in a sentence.
fn sides(operation: &Operation) -> [&str; 2] {
    match &operation.sides {
        Some([a, b]) => [a, b],
        None => THE_CPU_AND_THE_GPU,
    }
}

/// `, in pinned host memory`; nothing for two programs that get their data as programs do.
fn place_words(operation: &Operation, data: Residency) -> String {
    if operation.sides.is_some() && data == Residency::Ordinary {
        return String::new();
    }
    format!(", {}", data.words())
}

/// The machine of the thresholds, in a line.
pub fn holds_for(thresholds: &Thresholds) -> String {
    let machine = &thresholds.machine;
    let whose = if machine.gpu_of_another_machine {
        " of another machine"
    } else {
        ""
    };
    let cap = machine
        .power_limit_w
        .map(|watts| format!(" at {} W", units::number(watts)));
    let gpu = match machine.gpu.as_str() {
        "" => String::new(),
        gpu => format!(" and {}", with_article(gpu)),
    };
    format!(
        "measured on {} of {}{gpu}{whose}{}, {}",
        units::counted(machine.threads, "thread"),
        machine.cpu,
        cap.unwrap_or_default(),
        thresholds.date.get(..10).unwrap_or("at an unknown time"),
    )
}

/// The answer to a question about a measured operation.
pub fn measured(advice: &Advice, operation: &Operation, question: &Question) -> String {
    let answer = advice.decide(question);
    let asked = match question.size {
        Size::Of(of) => format!("{} = {}", symbol(operation), size(of)),
        Size::Product { m, n, k } => format!("{m} x {k} times {k} x {n}"),
        other => format!("{other:?}"),
    };
    let uses_asked = match question.reuse {
        1 => String::new(),
        uses => format!(", used {uses} times"),
    };
    let first = if question.warm {
        ""
    } else {
        ", first call of its process"
    };
    let nearest = nearest(operation, &answer);
    let mut lines = vec![format!(
        "{}, {asked}{}{uses_asked}{first}: {}{}",
        operation.name,
        place_words(operation, question.data),
        decision(advice, operation, &answer),
        nearest.as_deref().unwrap_or_default()
    )];
    let place = operation
        .places
        .iter()
        .find(|place| place.data == question.data);
    if let Some(place) = place {
        lines.extend(times(operation, place, question, &answer));
    }
    lines.push(format!("basis: {}", reasons(&answer)));
    if let Some(place) = place {
        lines.push(format!("one call: {}", wins(operation, place)));
    }
    let is_moved = operation.sides.is_none() && !question.data.on_device();
    if !answer.other_machine && is_moved && answer.choice != Choice::Gpu {
        lines.push(uses(advice, question));
    }
    for other in &operation.places {
        let asked = question.data(other.data);
        if other.data != question.data && question.reuse == 1 {
            let answer = advice.decide(&asked);
            let at = self::nearest(operation, &answer).unwrap_or_default();
            let words = decision(advice, operation, &answer);
            lines.push(format!("{}: {words}{at}", other.data.words()));
        }
    }
    lines.join("\n")
}

/// The times of both sides, each with its code and its nearest limit.
fn times(
    operation: &Operation,
    place: &Place,
    question: &Question,
    answer: &Answer,
) -> Option<String> {
    let estimate = answer.estimate?;
    // The limit of a product is that of the square product with as much arithmetic.
    let order = match question.size {
        Size::Of(size) => size,
        Size::Product { m, n, k } => (m as f64 * n as f64 * k as f64).cbrt(),
        _ => f64::INFINITY,
    };
    let limits = place.limits.iter().rfind(|limit| limit.from <= order);
    let side = |name, code: &str, ns, limit: Option<&String>| {
        let limited = limit.map_or(String::new(), |it| format!(", nearest to its {it} limit"));
        match operation.sides {
            Some(_) => format!("{code} {}", units::time(ns)),
            None => format!("{name} {} ({code}{limited})", units::time(ns)),
        }
    };
    let limit = |of: fn(&Binding) -> &Option<String>| limits.and_then(|it| of(it).as_ref());
    let cpu = side("CPU", &place.cpu, estimate.cpu_ns, limit(|it| &it.cpu));
    let gpu = side("GPU", &place.gpu, estimate.gpu_ns, limit(|it| &it.gpu));
    let calls = match (question.reuse, question.warm) {
        (1, true) => "",
        (1, false) => "with the start of the process on the GPU: ",
        (_, true) => "all calls together: ",
        (_, false) => "all calls together, with the start of the process on the GPU: ",
    };
    let at = nearest(operation, answer);
    let at = at.map_or(String::new(), |at| format!("{}: ", at.trim_start()));
    Some(format!("{at}{calls}{cpu}; {gpu}"))
}

/// ` at N = 128, the largest measured size`, where an answer has the times of another size than its
/// question's.
fn nearest(operation: &Operation, answer: &Answer) -> Option<String> {
    let nearest = answer.estimate?.nearest?;
    let mut ends = operation
        .places
        .iter()
        .filter_map(|place| place.points.last());
    let end = if ends.any(|point| point.size == nearest) {
        "largest"
    } else {
        "smallest"
    };
    Some(format!(
        " at {} = {}, the {end} measured size",
        symbol(operation),
        size(nearest)
    ))
}

fn reasons(answer: &Answer) -> String {
    let reasons: Vec<String> = answer.reasons().map(|reason| reason.to_string()).collect();
    reasons.join("; ")
}

/// The words for a choice, before the speedup. If the GPU is another machine's, they advise nothing.
pub(crate) fn choice_words(advice: &Advice, [a, b]: [&str; 2], choice: Choice) -> String {
    let machine = &advice.thresholds().machine;
    let with = format!("with {} this would be", with_article(&machine.gpu));
    let keep = if a == THE_CPU_AND_THE_GPU[0] {
        "stay on"
    } else {
        "use"
    };
    match (choice, machine.gpu_of_another_machine) {
        (Choice::Gpu, false) => format!("use {b}; it is"),
        (Choice::Cpu, false) => format!("{keep} {a}; {b} is"),
        (Choice::Unsure, false) => format!("unsure; {b} is about"),
        (Choice::Gpu | Choice::Cpu, true) => with,
        (Choice::Unsure, true) => format!("unsure; {with} about"),
    }
}

/// A limit of the file of thresholds in words: `launch latency`.
pub(crate) fn limit_words(name: &str) -> String {
    let words = match name {
        "launch" => "launch latency",
        "link" => "the link to the host",
        "cache" => "the bandwidth of the L2 cache",
        "memory" => "memory bandwidth",
        "compute" => "arithmetic",
        other => other,
    };
    words.to_owned()
}

/// `stay on the CPU; the GPU is 1.4× slower (1.2× to 1.7×)`.
pub(crate) fn decision(advice: &Advice, operation: &Operation, answer: &Answer) -> String {
    let both = sides(operation);
    // A GPU that stands in is no other machine for the page either.
    let stands_in = usize::from(advice.thresholds().machine.gpu_of_another_machine);
    let concerns = advice
        .concerns()
        .iter()
        .filter(|concern| concern.is_other_machine());
    let choice = if concerns.count() > stands_in {
        format!("unsure; on that other machine {} is", both[1])
    } else {
        choice_words(advice, both, answer.there)
    };
    match answer.estimate {
        Some(e) => {
            // The numbers of the page.
            let [speedup, low, high] = [e.speedup, e.low, e.high].map(rounded);
            format!("{choice} {}", by_how_much(speedup, Some((low, high))))
        }
        None => format!("unsure; {}", reasons(answer)),
    }
}

/// The symbol of the size: `N` of `N, rows and columns of each matrix`.
fn symbol(operation: &Operation) -> &str {
    operation.size.split(',').next().unwrap_or(&operation.size)
}

/// A size in full.
fn size(size: f64) -> String {
    units::size(size as u64)
}

/// The answer for data in one place.
pub fn answer(operation: &Operation, place: &Place) -> (GroupInfo, estimate::Crossing) {
    let stored = &place.crossing;
    let is_in_range = |point: &&Point| point.processes > 0 && point.size <= stored.range.1;
    let last = place.points.iter().rfind(is_in_range);
    let change = |change: &Change| WinnerChange {
        size: change.size,
        low: change.low,
        high: change.high,
        to_b: change.to_gpu,
        measured: true,
        bracket: (change.low, change.high),
    };
    let topic = GroupInfo {
        symbol: symbol(operation).to_owned(),
        ..GroupInfo::of(&operation.name)
    };
    let crossing = estimate::Crossing {
        answer: stored.kind,
        changes: stored.changes.iter().map(change).collect(),
        range: stored.range,
        processes: stored.processes,
        agree: stored.processes,
        speedup: last.map_or(f64::NAN, |at| at.cpu_ns / at.gpu_ns),
        speedup_interval: last.map_or((0.0, f64::INFINITY), |at| (at.low, at.high)),
        largest: last.map_or(stored.range.1, |at| at.size),
        ..estimate::Crossing::default()
    };
    (topic, crossing)
}

/// `the GPU wins: from N = 500 on; another run would find 480 to 530; the median of 6 processes`.
fn wins(operation: &Operation, place: &Place) -> String {
    let ([_, gpu], (topic, crossing)) = (sides(operation), answer(operation, place));
    format!("{gpu} wins: {}", answer_in_words::wins(&topic, &crossing))
}

/// From how many uses of the same data on the GPU wins.
fn uses(advice: &Advice, question: &Question) -> String {
    let at = |reuse: u32| advice.decide(&question.reuse(reuse));
    let wins = |reuse: u32| at(reuse).choice == Choice::Gpu;
    let (mut few, mut enough) = (0, question.reuse.max(1));
    while !wins(enough) {
        if enough > MANY {
            let often = at(MANY);
            let uses = match often.choice {
                Choice::Unsure => format!("from an unknown number of uses on; {}", often.reason),
                _ => "at no number of uses".to_owned(),
            };
            return format!("moved once and used often: the GPU wins {uses}");
        }
        (few, enough) = (enough, 2 * enough);
    }
    while enough - few > 1 {
        let middle = few.midpoint(enough);
        if wins(middle) {
            enough = middle
        } else {
            few = middle
        }
    }
    let uses = units::counted(enough as usize, "use");
    format!("moved once and used often: the GPU wins from {uses} on")
}
