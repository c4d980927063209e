//! From which size on the GPU wins, with and without transfers.

use crate::analysis::answer::answer_in_words;
use crate::analysis::answer::crossover_answer::{CrossoverAnswer, headlines};
use crate::analysis::findings::finding::{Context, Finding};
use crate::analysis::findings::technique::Technique;

pub(super) fn find(context: &Context) -> Vec<Finding> {
    headlines(context.found)
        .map(|f| {
            // As the data are where a function of the host finds them, if that was measured.
            let asked = headlines(context.found).filter(|g| g.group == f.group);
            let is_last = asked.map(|g| g.question).max() == Some(f.question);
            let is_decided = f.crossing.wins_at_the_largest().is_some();
            let gains = is_last && is_decided && f.gpu_machine.is_none();
            let technique = gains.then_some(Technique::MoveToGpu);
            let at = f.topic.at(f.crossing.largest as u64);
            one(f).gained(technique, f.crossing.speedup, at)
        })
        .collect()
}

fn one(f: &CrossoverAnswer) -> Finding {
    let (title, data, gpu) = (&f.topic.title, f.question.words(), f.gpu_label());
    let (wins, largest) = (answer_in_words::wins(f), answer_in_words::largest(f));
    let text = format!("{title}, data {data}, {gpu} against the best CPU code: {wins}; {largest}.");
    let id = format!("winner.{{}}.{}", f.question.name());
    let mut finding = Finding::new(&f.group, &id, text);
    finding.benchmarks = f.benchmarks.clone();
    finding.in_a_table = true;
    finding
}
