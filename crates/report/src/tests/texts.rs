//! What texts claim, evaluated on the committed records.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;

use crate::claims::{Machine, RULES, TEXTS, Verdict, counted, evaluate, sources};
use crate::tests::committed;
use crossover_results::analysis::answer::crossover_answer;
use crossover_results::store::machine_results::MachineResults;

/// The document. Figures are of the first machine, unless their cell says otherwise.
fn markdown(machines: &[Machine]) -> String {
    let size_set = |machine: &MachineResults| {
        // The profile of most results.
        let most = machine.runs.iter().max_by_key(|(_, results)| results);
        let size_set = most.map_or("unknown", |(run, _)| &*run.size_set);
        format!("size set `{size_set}`")
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
         Claims of texts about GPU timing and offloading, in our words, beside the committed results that test \
         them. The results are those of {}, {}, unless a line names others. A report's page judges the \
         claims by the results of its own machine.\n\n{}\n\n{RULES}\n",
        first.hardware(),
        size_set(first),
        counted(&all),
    );
    let mut open = String::new();
    for (question, claims) in &all {
        text += &format!("\n## {}\n\n", question.question);
        for (claim, outcome) in claims {
            let words = match claim.words.is_empty() {
                true => String::new(),
                false => format!(" ({})", code(&claim.words)),
            };
            let m = match outcome {
                Ok(m) => m,
                Err(why) => {
                    open += &format!("- {}{words} Reason: {why}.\n", claim.text);
                    continue;
                }
            };
            let commit = m.machine.runs[0].0.environment.commit.as_deref();
            let commit = commit.map_or("unknown", |commit| &commit[..8]);
            let set = size_set(m.machine);
            let other = match m.machine.hardware() {
                _ if std::ptr::eq(first, m.machine) => String::new(),
                other if other != first.hardware() => format!("; {other}, {set}, commit {commit}"),
                _ if set != size_set(first) => format!("; {set}, commit {commit}"),
                _ => format!("; commit {commit}"),
            };
            // The figure has the sizes already.
            let mut rows: Vec<String> = Vec::new();
            for (row, _) in m.ids.iter().filter_map(|id| id.rsplit_once('/')) {
                if !rows.iter().any(|known| known == row) {
                    rows.push(row.to_owned());
                }
            }
            let than = match m.verdict {
                Verdict::Larger | Verdict::Smaller => format!(" than {}", claim.stated()),
                _ => String::new(),
            };
            text += &format!(
                "- {}{words} *{}*{than}: {}{other}; {}\n",
                claim.text,
                m.verdict.words(),
                m.figure,
                code(&rows),
            );
        }
    }
    format!(
        "{text}\n## Not answered\n\n{open}\nThe texts: {}.\n",
        sources()
    )
}

/// `docs/texts.md` says what the committed records say: those of the default profile first, the newest
/// before older ones.
#[test]
fn the_document_is_that_of_the_committed_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = committed::machines().read_dir().unwrap();
    let records = folders.flat_map(|folder| folder.unwrap().path().read_dir().unwrap());
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let machine = MachineResults::read_other(&entry.unwrap().path()).unwrap();
        let found = crossover_answer::find(&machine, &[]);
        (machine, found)
    };
    let mut machines: Vec<_> = records.map(read).collect();
    let order = |machine: &MachineResults| {
        // A record of several GPUs has their groups alone.
        let is_default = (machine.runs.iter())
            .all(|r| r.0.size_set == "default" && r.0.environment.further_gpus.is_empty());
        let started = machine.runs.iter().map(|r| r.0.started.clone()).max();
        (is_default, started)
    };
    machines.sort_by_key(|(machine, _)| Reverse(order(machine)));
    let machines: Vec<_> = machines
        .iter()
        .map(|(m, found)| (m, found.into()))
        .collect();
    let text = markdown(&machines);
    let path = root.join("docs/texts.md");
    if std::env::var_os("CROSSOVER_GOLDEN").is_some_and(|v| v == "write") {
        fs::write(&path, text).unwrap();
        return;
    }
    let hint = "CROSSOVER_GOLDEN=write cargo test -p crossover-report --lib texts writes it";
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "{hint}");
}

/// Rows are found by their roles, so a role that a row of the suite no longer has would only leave a claim without a
/// result. Whether its sizes are measured shows in the document with the next record.
#[test]
fn each_row_of_the_claims_is_one_of_the_suite() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden");
    for (name, row) in &TEXTS.rows {
        let file = golden.join(format!("{}.txt", row.group));
        let benchmarks = fs::read_to_string(file).expect(name);
        let is_row = |line: &str| {
            let cells: Vec<&str> = line.split('\t').collect();
            // Lines of benchmarks have columns.
            let [id, clock, .., role] = cells[..] else {
                return false;
            };
            let place = format!("{}/{}/", row.group, row.device);
            let is_timed_so = id.starts_with(&place) && clock == row.clock;
            is_timed_so && row.has(&serde_json::from_str(role).expect(line))
        };
        assert!(benchmarks.lines().any(is_row), "{name}");
    }
}

#[test]
fn a_claim_may_rest_on_a_profile() {
    let mut machine = MachineResults::of_results(committed::measured(&["mlp_training"]), "", false);
    let judged = |machine: &MachineResults| {
        let (all, words) = (evaluate(&[(machine, Vec::new().into())]), "Named ranges");
        let mut claims = all.iter().flat_map(|(_, claims)| claims);
        let claim = claims.find(|(claim, _)| claim.text.starts_with(words));
        let outcome = claim.unwrap().1.as_ref();
        outcome.map(|m| m.figure.clone()).map_err(Clone::clone)
    };
    // Of the ranges forward, backward and update the second is the largest.
    assert_eq!(judged(&machine), Ok("37 % at batch = 256".to_owned()));
    machine.profiles.clear();
    assert_eq!(judged(&machine), Err("not measured yet".to_owned()));
}
