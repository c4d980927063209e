//! Thresholds from a table of any two programs' times.

use std::time::SystemTime;

use crossover_advice::HostInfo;
use crossover_advice::thresholds::{Operation, Place, SCHEMA, Thresholds};

use super::{decided, measured, stored};
use crossover_results::analysis::answer::time_table::TableAnswer;
use crossover_results::store::runs;

/// The names of a CPU and a GPU in a table.
pub const CPU_AND_GPU: [&str; 2] = ["cpu", "gpu"];

/// The thresholds of this machine; `None` if both sides of a question were measured at no size in common.
/// `sides` are the names of a and b.
pub fn thresholds(answers: &[TableAnswer], sides: &[String; 2]) -> Option<Thresholds> {
    let operations = answers.chunk_by(|a, b| a.operation == b.operation);
    Some(Thresholds {
        schema: SCHEMA,
        crossover: env!("CARGO_PKG_VERSION").to_owned(),
        date: runs::moment(SystemTime::now()),
        machine: HostInfo::detect().into(),
        operations: operations
            .map(|places| operation(places, sides))
            .collect::<Option<_>>()?,
        ..Thresholds::default()
    })
}

fn operation(answers: &[TableAnswer], [a, b]: &[String; 2]) -> Option<Operation> {
    let place = |answer: &TableAnswer| {
        let point = |at| Some(measured(at, answer.curves[1].at(at.size)?.median));
        let place = Place {
            data: answer.place,
            cpu: a.clone(),
            gpu: b.clone(),
            crossing: stored(answer.crossing.as_ref()?),
            points: answer.speedups.iter().map(point).collect::<Option<_>>()?,
            ..Place::default()
        };
        decided(place, answer.left_out.iter().map(|(size, _)| (*size, None)))
    };
    Some(Operation {
        name: answers[0].operation.clone(),
        size: "size".to_owned(),
        sides: Some([a.clone(), b.clone()]).filter(|sides| *sides != CPU_AND_GPU),
        places: answers.iter().map(place).collect::<Option<_>>()?,
        ..Operation::default()
    })
}
