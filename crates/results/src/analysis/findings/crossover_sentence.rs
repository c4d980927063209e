//! From which size on the GPU wins, with and without transfers.

use crate::analysis::answer::answer_in_words;
use crate::analysis::answer::crossover_answer::{CrossoverAnswer, headlines};
use crate::analysis::findings::finding::{Context, Finding};
use crate::analysis::findings::technique::Technique;

pub(super) fn find(context: &Context) -> Vec<Finding> {
    headlines(context.found)
        .map(|f| {
            let mut finding = one(f);
            finding.in_a_table = true;
            // As the data are where a function of the host finds them, if that was measured.
            let asked = headlines(context.found).filter(|g| g.group == f.group);
            let is_last = asked.map(|g| g.question).max() == Some(f.question);
            match is_last && f.gpu_machine.is_none() {
                true => {
                    let at = f.topic.at(f.crossing.largest as u64);
                    finding.gained(Technique::MoveToGpu, f.crossing.speedup, at)
                }
                false => finding,
            }
        })
        .collect()
}

fn one(f: &CrossoverAnswer) -> Finding {
    let machine = match &f.gpu_machine {
        Some(machine) => format!(
            "With the {machine} (another machine's figures) beside this machine's CPU, {}",
            f.topic.title.to_lowercase()
        ),
        None => f.topic.title.clone(),
    };
    let data = f.question.words();
    let call = match f.includes_launch || !f.question.on_device() {
        true => "",
        false => ", by its device time alone,",
    };
    let (wins, largest) = (answer_in_words::wins(f), answer_in_words::largest(f));
    let text = format!(
        "{machine}, data {data}, where gpu/{}{call} is ahead of the best CPU code: {wins}; {largest}.",
        f.gpu
    );
    let who = f.gpu_machine.as_ref().map_or(String::new(), |machine| {
        format!(".{}", machine.to_lowercase().replace(' ', "-"))
    });
    let question = f.question.name();
    let mut finding = Finding::new(
        &f.group,
        format!("winner.{}.{question}{who}", f.group),
        text,
    );
    finding.benchmarks = f.benchmarks.clone();
    finding
}
