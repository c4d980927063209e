//! The pitfall that most texts warn of, as a figure: a call that nobody waits for seems to take the
//! same time at every size.

use crate::assemble::Assembled;
use crate::claims::declared::TEXTS;
use crossover_draw::ink::Family;
use crossover_draw::plot::figure::{Curve, Dot, Plot, Quantity};
use crossover_results::store::machine::MachineResults;
use crossover_words::Clock;

/// The time of a matrix product by size, on the first machine that has it: on the CPU, on the GPU with
/// copies, on the device alone, and as a clock shows it that does not wait.
pub(crate) fn pitfall(report: &Assembled) -> Option<(&MachineResults, Plot)> {
    let mut machines = report.machines();
    machines.find_map(|machine| Some((machine, plot(machine)?)))
}

fn plot(machine: &MachineResults) -> Option<Plot> {
    let rows = TEXTS
        .pitfall
        .iter()
        .map(|(label, name)| (label, &TEXTS.rows[name]));
    let topic = &machine.group(&rows.clone().next()?.1.group)?.topic;
    let curves = rows.enumerate().map(|(index, (label, row))| {
        let dots = row.points(machine).ok()?.into_values().map(|b| Dot {
            size: b.size as f64,
            value: b.median_ns,
            low: b.low_ns(),
            high: b.high_ns(),
        });
        Some(Curve {
            label: label.clone(),
            family: Family::Alone,
            index,
            clock: row.clock.parse::<Clock>().ok(),
            other: false,
            joined: true,
            dots: dots.collect(),
        })
    });
    let curves: Option<Vec<Curve>> = curves.collect();
    let title = format!("{}: the time by each clock", topic.title);
    Some(Plot::of(
        title,
        (&topic.axis, topic.unit),
        Quantity::Time,
        curves?,
    ))
}
