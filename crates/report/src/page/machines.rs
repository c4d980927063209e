//! Several machines side by side: what each can do at most, how fast its CPU code is, from which size
//! on the GPU wins there and by how much, and what techniques gain.

use maud::{Markup, html};

use crate::assemble::{Assembled, shown};
use crate::page::findings::faster;
use crate::page::table;
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::answer::crossover_answer::{CrossoverAnswer, best_cpu, headlines};
use crossover_results::analysis::answer::speedup_curve::{Speedup, along};
use crossover_results::analysis::findings::finding::{Finding, Gain};
use crossover_results::analysis::findings::gains::gains;
use crossover_results::analysis::limits::words;
use crossover_results::store::machine::MachineResults;
use crossover_words::units;

/// The limits that are compared, as far as two machines have them.
const LIMITS: [&str; 8] = [
    "cpu_fma_1",
    "cpu_fma_all",
    "gpu_fma",
    "gpu_copy",
    "h2d_pinned",
    "d2h_pinned",
    "launch_latency",
    "empty_kernel",
];

/// One of several machines.
struct Column<'a> {
    machine: &'a MachineResults,
    /// The GPU that its answers are with: its own, or that of another machine.
    gpu: Option<String>,
    /// Each with its speedup along the sizes.
    answers: Vec<(&'a CrossoverAnswer, Vec<Speedup>)>,
    findings: Vec<Finding>,
}

/// What is compared, and a cell for each machine.
type Row = (String, Vec<String>);

pub(super) fn section(report: &Assembled) -> Markup {
    if report.others.is_empty() {
        return html! {};
    }
    let others = report
        .others
        .iter()
        .map(|(machine, found)| (machine, found));
    let all: Vec<Column> = std::iter::once((&report.machine, &report.found))
        .chain(others)
        .map(|(machine, found)| column(report, machine, found))
        .collect();
    html! {
        section #machines {
            h2 { "Machines side by side" }
            p.note { "In parentheses: compared with the first machine." }
            (rows("The machines and their CPU code", &all, [limits(&all), cpu_code(report, &all)].concat()))
            details {
                summary { "From which size on the GPU wins, and its speedup at a size that all have" }
                (rows("Answers of the machines", &all, answers(&all)))
            }
            details {
                summary { "What techniques gain at best" }
                (rows("Gains of the machines", &all, techniques(&all)))
            }
        }
    }
}

fn column<'a>(
    report: &Assembled,
    machine: &'a MachineResults,
    found: &'a [CrossoverAnswer],
) -> Column<'a> {
    let whose = report.answers_with(found);
    let answers = headlines(found).filter(|f| f.gpu_machine == whose);
    let along = |f: &'a CrossoverAnswer| {
        let ours = machine.group(&f.group)?;
        let theirs = match &f.gpu_machine {
            Some(_) => report.gpu_of(f)?.1,
            None => f.gpu_series(ours)?,
        };
        Some((f, along(f, ours, theirs)))
    };
    let own = machine.gpu().map(|_| machine.hardware());
    Column {
        machine,
        gpu: whose.clone().or(own),
        answers: answers.filter_map(along).collect(),
        findings: shown(machine, found).1,
    }
}

fn rows(what: &str, all: &[Column], rows: Vec<Row>) -> Markup {
    html! {
        (table::table(what, &what.to_lowercase().replace(' ', "-"), html! {
            table.plain.wrap-text {
                thead { tr { th { "compared" } @for column in all { th.n { (column.whose()) } } } }
                tbody {
                    @for (what, cells) in &rows {
                        tr { th scope="row" { (what) } @for cell in cells { td.n.words { (cell) } } }
                    }
                }
            }
        }))
    }
}

impl Column<'_> {
    /// The GPU, and the CPU that its speedups are against.
    fn whose(&self) -> String {
        let environment = self.machine.environment.as_ref();
        let cpu = environment.map_or(String::new(), |e| {
            format!("{} threads of {}", e.cpu.usable_cores, e.cpu.model)
        });
        match &self.gpu {
            Some(gpu) if self.machine.gpu().is_some() => format!("{gpu}, against {cpu}"),
            Some(gpu) => format!("{cpu}, beside the {gpu} of another machine"),
            None => cpu,
        }
    }
}

/// A cell per machine, with the ratio to the first one where it has a value; `None` where fewer than two
/// machines have one.
fn cells(
    values: &[Option<f64>],
    write: impl Fn(f64) -> String,
    ratio: impl Fn(f64, f64) -> String,
) -> Option<Vec<String>> {
    let cell = |(at, value): (usize, &Option<f64>)| {
        let Some(value) = *value else {
            return String::new();
        };
        let first = values[0].filter(|_| at > 0);
        let ratio = first.map(|first| format!(" ({})", ratio(value, first)));
        write(value) + &ratio.unwrap_or_default()
    };
    let several = values.iter().flatten().count() > 1;
    several.then(|| values.iter().enumerate().map(cell).collect())
}

fn limits(all: &[Column]) -> Vec<Row> {
    let row = |name: &&str| {
        let of = |column: &Column| column.machine.limits.ceiling(name);
        let values: Vec<Option<f64>> = all.iter().map(of).collect();
        let mut ceilings = all
            .iter()
            .filter_map(|c| c.machine.limits.ceilings.get(*name));
        let unit = &ceilings.next()?.unit;
        let ratio = |value: f64, first: f64| units::factor_fine(value / first);
        let cells = cells(&values, |value| units::ceiling(value, unit), ratio)?;
        Some((words(name).to_owned(), cells))
    };
    LIMITS.iter().filter_map(row).collect()
}

/// The fastest CPU code of each operation, at the largest size that all machines have.
fn cpu_code(report: &Assembled, all: &[Column]) -> Vec<Row> {
    let compared = report.groups.iter().filter(|name| {
        all.iter()
            .any(|c| c.answers.iter().any(|(f, _)| f.group == **name))
    });
    let row = |name: &String| {
        let groups = all.iter().filter_map(|c| c.machine.group(name));
        let curves: Vec<_> = groups.map(|group| best_cpu(group).0).collect();
        let first = curves.first()?;
        let common = |size: &f64| {
            curves
                .iter()
                .all(|curve| curve.points().iter().any(|p| p.size == *size))
        };
        let size = first.points().iter().rev().map(|p| p.size).find(common)?;
        let values: Vec<Option<f64>> = all
            .iter()
            .map(|c| Some(best_cpu(c.machine.group(name)?).0.at(size)?.median))
            .collect();
        let cells = cells(&values, units::time, |value, first| faster(first / value))?;
        let topic = report.topic(name);
        Some((
            format!("{}, {}, on the CPU", topic.title, topic.at(size as u64)),
            cells,
        ))
    };
    compared.filter_map(row).collect()
}

/// Answers to a question that two machines have, with their speedups at the largest size of both.
fn answers(all: &[Column]) -> Vec<Row> {
    let mut asked: Vec<&CrossoverAnswer> = Vec::new();
    for (f, _) in all.iter().flat_map(|c| &c.answers) {
        if !asked.iter().any(|known| same(known, f)) {
            asked.push(f);
        }
    }
    let row = |question: &&CrossoverAnswer| {
        let found: Vec<Option<&(&CrossoverAnswer, Vec<Speedup>)>> = all
            .iter()
            .map(|c| c.answers.iter().find(|(f, _)| same(f, question)))
            .collect();
        let at =
            |along: &[Speedup], size| along.iter().find(|at| at.size == size).map(|at| at.ratio);
        let known: Vec<&[Speedup]> = found
            .iter()
            .flatten()
            .map(|(_, along)| &along[..])
            .collect();
        let sizes = known.first()?.iter().rev().map(|at| at.size);
        let common = |size: &f64| known.iter().all(|along| at(along, *size).is_some());
        let size = sizes.clone().find(common).or(sizes.clone().next())?;
        let of = |it: &Option<&(_, Vec<Speedup>)>| at(&it.as_ref()?.1, size);
        let speedups: Vec<Option<f64>> = found.iter().map(of).collect();
        let ratio = |value: f64, first: f64| units::factor_fine(value / first);
        let cells = cells(&speedups, units::speedup, ratio)?;
        let from = |(it, speedup): (&Option<&(&CrossoverAnswer, _)>, String)| match it {
            Some((f, _)) => format!("{}; {speedup}", answer_in_words::size(f)),
            None => String::new(),
        };
        let topic = &question.topic;
        let what = format!(
            "{}, {}, and at {}",
            topic.title,
            question.question.words(),
            topic.at(size as u64)
        );
        Some((what, found.iter().zip(cells).map(from).collect()))
    };
    asked.iter().filter_map(row).collect()
}

fn same(a: &CrossoverAnswer, b: &CrossoverAnswer) -> bool {
    (&a.group, a.question) == (&b.group, b.question)
}

fn techniques(all: &[Column]) -> Vec<Row> {
    let of_each: Vec<_> = all.iter().map(|c| gains(&c.findings)).collect();
    let mut known = Vec::new();
    for (technique, _) in of_each.iter().flatten() {
        if !known.contains(technique) {
            known.push(*technique);
        }
    }
    let row = |technique| {
        let best = |of: &Vec<(_, Vec<(&Finding, &Gain)>)>| {
            let (_, found) = of.iter().find(|(t, _)| *t == technique)?;
            found
                .iter()
                .map(|(_, gain): &(&Finding, &Gain)| gain.factor)
                .reduce(f64::max)
        };
        let values: Vec<Option<f64>> = of_each.iter().map(best).collect();
        let ratio = |value: f64, first: f64| units::factor_fine(value / first);
        Some((technique.words().to_owned(), cells(&values, faster, ratio)?))
    };
    known.into_iter().filter_map(row).collect()
}
