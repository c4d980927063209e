//! A decision in words.

use crossover_advice::thresholds::{Change, Kind, Operation, Place, Point, Thresholds};
use crossover_advice::{
    Advice, Answer, Choice, Least, Moved, Question, Range, Residency, Size, Work,
};

use super::with_article;
use crossover_words::units;

/// More uses than anyone has.
const MANY: u32 = 1 << 20;

/// The operations that can be asked about, with their answers for data in ordinary memory, else the
/// first.
pub fn operations(thresholds: &Thresholds) -> String {
    let line = |operation: &Operation| {
        let plain = operation
            .places
            .iter()
            .find(|place| place.data == Residency::Ordinary);
        let place = plain.or(operation.places.first());
        let answer = place.map(|place| {
            format!(
                "{}: the GPU wins {}",
                place.data.words(),
                from(operation, place)
            )
        });
        format!(
            "{}, {}: {}",
            operation.name,
            operation.size,
            answer.unwrap_or_default()
        )
    };
    let lines: Vec<String> = thresholds.operations.iter().map(line).collect();
    lines.join("\n")
}

/// Whose thresholds they are, in a line.
pub fn holds_for(thresholds: &Thresholds) -> String {
    let machine = &thresholds.machine;
    let whose = match machine.gpu_of_another_machine {
        true => " of another machine",
        false => "",
    };
    let cap = machine
        .power_limit_w
        .map(|watts| format!(" at {watts:.0} W"));
    format!(
        "measured on {} of {} and an {}{whose}{}, {}",
        units::counted(machine.threads, "thread"),
        machine.cpu,
        machine.gpu,
        cap.unwrap_or_default(),
        thresholds.date.get(..10).unwrap_or("at an unknown time"),
    )
}

/// The answer to a question about a measured operation.
pub fn measured(advice: &Advice, operation: &Operation, question: &Question) -> String {
    let answer = advice.decide(question);
    let mut lines = vec![verdict(advice, operation, question, &answer)];
    let place = operation
        .places
        .iter()
        .find(|place| place.data == question.data);
    if let (Some(estimate), Some(place)) = (answer.estimate, place) {
        // What limits a size is what limits the nearest measured one, and a product is that of the
        // square one with as much arithmetic.
        let order = match question.size {
            Size::Of(size) => size,
            Size::Product { m, n, k } => (m as f64 * n as f64 * k as f64).cbrt(),
        };
        let away = |point: &&Point| (point.size / order).ln().abs();
        let nearest = (place.points.iter()).min_by(|a, b| away(a).total_cmp(&away(b)));
        let at = nearest.map_or(order, |point| point.size);
        let binding = place.limits.iter().rfind(|binding| binding.from <= at);
        let limited = |limit: Option<&String>| {
            limit.map_or(String::new(), |limit| {
                format!(", nearest to its {limit} limit")
            })
        };
        let side = |name, code: &str, ns, limit| {
            format!("{name} {} ({code}{})", units::time(ns), limited(limit))
        };
        lines.push(format!(
            "{}; {}",
            side(
                "CPU",
                &place.cpu,
                estimate.cpu_ns,
                binding.and_then(|b| b.cpu.as_ref())
            ),
            side(
                "GPU",
                &place.gpu,
                estimate.gpu_ns,
                binding.and_then(|b| b.gpu.as_ref())
            ),
        ));
    }
    lines.push(format!("basis: {}", answer.reason));
    if let Some(place) = place {
        lines.push(format!("one call: the GPU wins {}", from(operation, place)));
    }
    if !question.data.on_device() && answer.choice != Choice::Gpu {
        lines.extend(uses(advice, question));
    }
    for other in &operation.places {
        let asked = question.data(other.data);
        if other.data != question.data && question.reuse == 1 {
            let words = in_brief(advice, &advice.decide(&asked));
            lines.push(format!("{}: {words}", other.data.words()));
        }
    }
    lines.join("\n")
}

/// `matmul, N = 500, in ordinary memory: stay on the CPU; the GPU is 0.71× as fast (0.6 to 0.83×)`.
fn verdict(advice: &Advice, operation: &Operation, question: &Question, answer: &Answer) -> String {
    let asked = match question.size {
        Size::Of(of) => format!("{} = {}", symbol(operation), size(of)),
        Size::Product { m, n, k } => format!("{m} x {k} times {k} x {n}"),
    };
    let uses = match question.reuse {
        1 => String::new(),
        uses => format!(", used {uses} times"),
    };
    let first = if question.warm {
        ""
    } else {
        ", first call of its process"
    };
    format!(
        "{}, {asked}, {}{uses}{first}: {}",
        operation.name,
        question.data.words(),
        in_brief(advice, answer)
    )
}

/// About the GPU of another machine it advises nothing.
fn in_brief(advice: &Advice, answer: &Answer) -> String {
    let choice = match answer.choice {
        Choice::Gpu => "use the GPU",
        Choice::Cpu => "stay on the CPU",
        Choice::Unsure => "unsure",
    };
    let Some(e) = answer.estimate else {
        return format!("{choice}; {}", answer.reason);
    };
    let machine = &advice.thresholds().machine;
    let who = match machine.gpu_of_another_machine {
        true => format!("{} would be", with_article(&machine.gpu)),
        false => format!("{choice}; the GPU is"),
    };
    format!(
        "{who} {} as fast ({} to {})",
        units::factor_fine(e.speedup),
        units::factor_fine(e.low),
        units::factor_fine(e.high)
    )
}

/// What the size is called: `N` of `N, rows and columns of each matrix`.
fn symbol(operation: &Operation) -> &str {
    operation.size.split(',').next().unwrap_or(&operation.size)
}

/// A size with all its digits.
fn size(size: f64) -> String {
    units::size(size as u64)
}

fn from(operation: &Operation, place: &Place) -> String {
    let (first, last) = place.crossing.range;
    let range = format!("{} = {} to {}", symbol(operation), size(first), size(last));
    let at = |change: &Change| {
        let (low, high) = (size(change.low.floor()), size(change.high.ceil()));
        format!(
            "{} = {} ({low} to {high})",
            symbol(operation),
            size(change.size.ceil())
        )
    };
    let answer = match (place.crossing.kind, &place.crossing.changes[..]) {
        (Kind::Always, _) => format!("everywhere, tested {range}"),
        (Kind::Never, _) => format!("nowhere, tested {range}"),
        (Kind::Undecided, _) | (_, []) => format!("undecided, tested {range}"),
        (Kind::From, [only, ..]) => format!("from {} on", at(only)),
        (Kind::BothWays, changes) => {
            let all: Vec<String> = changes
                .iter()
                .map(|change| {
                    let side = if change.to_gpu { "from" } else { "until" };
                    format!("{side} {}", at(change))
                })
                .collect();
            all.join(", ")
        }
    };
    match place.crossing.processes {
        0 | 1 => format!("{answer}; one process"),
        n => format!("{answer}; {n} processes"),
    }
}

/// From how many uses of the same data on the GPU wins.
fn uses(advice: &Advice, question: &Question) -> Option<String> {
    let wins = |reuse: &u32| advice.decide(&question.reuse(*reuse)).choice == Choice::Gpu;
    let mut doubled = std::iter::successors(Some(question.reuse.max(1)), |n| n.checked_mul(2));
    let Some(enough) = doubled
        .find(|n| *n > MANY || wins(n))
        .filter(|n| *n <= MANY)
    else {
        return Some("moved once and used often: the GPU wins with no number of uses".into());
    };
    let (mut few, mut enough) = (enough / 2, enough);
    while enough - few > 1 {
        let middle = few.midpoint(enough);
        match wins(&middle) {
            true => enough = middle,
            false => few = middle,
        }
    }
    Some(format!(
        "moved once and used often: the GPU wins from {} on",
        units::counted(enough as usize, "use")
    ))
}

/// What work that was never measured would take.
pub fn unmeasured(work: &Work, data: Residency, moved: &Moved, reuse: u32) -> String {
    let least = |all: &[Least]| {
        let all = all.iter().filter(|least| least.ns > 0.0);
        let all: Vec<String> = all
            .map(|least| format!("{} {}", least.limit.name(), units::time(least.ns)))
            .collect();
        all.join(", ")
    };
    let range = |range: &Range| {
        format!(
            "{} to {}",
            units::time(range.best),
            units::time(range.typical)
        )
    };
    let cpu = match work.cpu_ns {
        Some(ns) => format!("{}, as given", units::time(ns)),
        None => range(&moved.cpu),
    };
    let (low, high) = (
        moved.cpu.best / moved.gpu.typical,
        moved.cpu.typical / moved.gpu.best,
    );
    let times = format!(
        "the GPU is {} to {} as fast",
        units::factor_fine(low),
        units::factor_fine(high)
    );
    let mut lines = vec![match moved.choice {
        Choice::Gpu => format!("data {}: use the GPU; {times}", data.words()),
        Choice::Cpu if moved.cannot_win() => format!(
            "data {}: stay on the CPU; the GPU cannot win: the link alone takes longer than the CPU",
            data.words()
        ),
        Choice::Cpu => format!("data {}: stay on the CPU; {times}", data.words()),
        Choice::Unsure => format!("data {}: unsure; {times}", data.words()),
    }];
    lines.push(format!(
        "CPU {cpu}; least time by limit: {}",
        least(&moved.cpu_least)
    ));
    lines.push(format!(
        "GPU {}; least time by limit: {}",
        range(&moved.gpu),
        least(&moved.gpu_least)
    ));
    if data.on_device() || moved.choice == Choice::Gpu {
        return lines.join("\n");
    }
    lines.push(format!(
        "GPU on data that are there: {}",
        range(&moved.resident)
    ));
    let link = work.upload + work.download;
    if work.flop > 0.0 {
        // As much more arithmetic as makes the CPU take as long as the GPU needs for the rest.
        let intensity = work.flop / link;
        let even = |gpu: f64, cpu: f64| units::count(intensity * gpu / cpu);
        lines.push(format!(
            "it has {} FLOP per byte on the link; from {} to {} on the GPU would break even, if it stays bound by the link",
            units::count(intensity),
            even(moved.gpu.best, moved.cpu.typical),
            even(moved.gpu.typical, moved.cpu.best),
        ));
    }
    let Range { best, typical } = moved.uses;
    lines.push(match (best.is_finite(), typical.is_finite()) {
        (false, _) => "moved once and used often: the GPU wins with no number of uses".into(),
        (true, true) => format!(
            "moved once and used often: the GPU wins from {} to {} uses on",
            units::count(best),
            units::count(typical)
        ),
        (true, false) => format!(
            "moved once and used often: the GPU wins from {} uses on at best",
            units::count(best)
        ),
    });
    if reuse > 1 {
        let wins = |from: f64| f64::from(reuse) >= from;
        lines.push(match (wins(best), wins(typical)) {
            (_, true) => format!("used {reuse} times: use the GPU"),
            (false, _) => format!("used {reuse} times: stay on the CPU"),
            _ => format!("used {reuse} times: unsure"),
        });
    }
    lines.join("\n")
}
