//! The claims as Markdown: `docs/texts.md`, written from the committed records.

use crate::claims::{Machine, RULES, counted, evaluate, further, sources};
use crossover_results::store::machine::MachineResults;

/// The document. Figures are of the first machine, unless their cell says otherwise.
pub(crate) fn markdown(machines: &[Machine]) -> String {
    let named = |machine: &MachineResults| {
        // The profile of most results.
        let most = machine.runs.iter().max_by_key(|(_, results)| results);
        let profile = most.map_or("unknown", |(run, _)| &*run.profile);
        format!("{}, profile {profile}", machine.hardware())
    };
    let code = |names: &[String]| {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        names.join(", ")
    };
    let all = evaluate(machines);
    let first = machines[0].0;
    let mut text = format!(
        "# What texts claim, and what was measured\n\n\
         <!-- Written by `CROSSOVER_GOLDEN=write cargo test -p crossover-report --lib texts`. -->\n\n\
         Texts about timing and offloading state many figures. Here is each claim in our words, with the \
         committed result that measures the same: of {}, unless a line names another. A page has the same \
         of the machine that it is about.\n\n{}\n\n{RULES}\n",
        named(first),
        counted(&all),
    );
    if let Some(further) = further(machines) {
        text += &format!("\n{further}\n");
    }
    for (question, claims) in &all {
        text += &format!(
            "\n## {}\n\n| claim | stated | measured | verdict |\n| --- | --- | --- | --- |\n",
            question.question
        );
        for (claim, outcome) in claims {
            let words = match claim.words.is_empty() {
                true => String::new(),
                false => format!(" ({})", code(&claim.words)),
            };
            let (measured, verdict) = match outcome {
                Ok(m) => {
                    let other = match std::ptr::eq(first, m.machine) {
                        true => String::new(),
                        false => format!("; {}", named(m.machine)),
                    };
                    let measured = format!("{}{other}: {}", m.figure, code(&m.ids));
                    (measured, format!("*{}*", m.verdict.words()))
                }
                Err(why) => (why.clone(), "not answered".to_owned()),
            };
            let (claim, stated) = (&claim.text, claim.stated());
            text += &format!("| {claim}{words} | {stated} | {measured} | {verdict} |\n");
        }
    }
    format!("{text}\nThe texts: {}.\n", sources())
}
