//! A plot of the most common pitfall: a call that is not awaited seems to take the same time at every
//! size.

use crate::claims::declared::TEXTS;
use crate::report::Report;
use crossover_draw::ink::Paint;
use crossover_draw::plot::{Curve, Dot, Plot, Quantity};
use crossover_results::store::machine::MachineResults;

/// The time of a matrix product by size, on the first machine that has it: on the CPU, on the GPU with
/// copies, on the device alone, and without waiting for the device.
pub(crate) fn pitfall(report: &Report) -> Option<(&MachineResults, Plot)> {
    let mut machines = report.machines().chain(&report.named);
    machines.find_map(|machine| Some((machine, plot(machine)?)))
}

fn plot(machine: &MachineResults) -> Option<Plot> {
    let rows = TEXTS
        .pitfall
        .iter()
        .map(|(label, name)| (label, &TEXTS.rows[name]));
    let topic = &machine.group(&rows.clone().next()?.1.group)?.topic;
    let curves = rows.enumerate().map(|(index, (label, row))| {
        let points = row.points(machine).ok()?.into_values();
        let dots = points.map(|b| Dot::new(b.size as f64, b.median_ns, b.low_ns(), b.high_ns()));
        Some(Curve {
            label: label.clone(),
            // The first curve is the CPU's.
            paint: [Paint::Cpu, Paint::Gpu, Paint::Hue(4), Paint::Hue(5)][index % 4],
            dots: dots.collect(),
        })
    });
    Some(Plot {
        title: format!("{}: the time by each clock", topic.title),
        size_label: topic.axis.clone(),
        size_unit: topic.unit,
        quantity: Quantity::Time,
        curves: curves.collect::<Option<_>>()?,
        limits: Vec::new(),
    })
}
