//! What texts claim, evaluated on the committed records and on planted results.

use std::cmp::Reverse;
use std::fs;
use std::path::Path;

use crate::claims::markdown::markdown;
use crate::tests::holds;
use crate::tests::machines::{commit, full, laptop};
use crate::tests::refreshed;
use crossover_results::analysis::answer::crossover_answer;
use crossover_results::store::machine::MachineResults;

/// `docs/texts.md` says what the committed records say: those of the default profile first, the newest
/// before older ones.
#[test]
fn the_document_is_that_of_the_committed_records() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = root.join("target-reports/machines/nvidia-h200--intel-xeon-processor");
    let Ok(entries) = folder.read_dir() else {
        println!("skipped: the committed records belong to a checkout, and a package has none");
        return;
    };
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let machine = MachineResults::read_other(&entry.unwrap().path())
            .unwrap()
            .remove(0);
        let found = crossover_answer::find(&machine, &[]);
        (machine, found)
    };
    let mut machines: Vec<_> = entries.map(read).collect();
    let order = |machine: &MachineResults| {
        let is_default = machine.runs.iter().all(|r| r.0.profile == "default");
        let started = machine.runs.iter().map(|r| r.0.started.clone()).max();
        (is_default, started)
    };
    machines.sort_by_key(|(machine, _)| Reverse(order(machine)));
    let machines: Vec<_> = machines
        .iter()
        .map(|(m, found)| (m, found.clone()))
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

/// On a machine without a GPU the reference answers, and says whose it is; what no result has is said.
#[test]
fn a_page_without_a_gpu_has_the_claims_and_findings_of_the_reference() {
    let (dir, root) = crate::tests::folders();
    laptop(&root);
    commit(dir.path(), |root| full(root, "Example GPU"));
    let (page, _, _) = refreshed(&root, dir.path());
    let (_, section) = page.split_once("<section id=\"texts\">").unwrap();
    let (section, _) = section.split_once("</section>").unwrap();
    let claims: Vec<&str> = section.split("<article").skip(1).collect();
    assert!(claims.len() >= 50, "{}", claims.len());
    let answered = |claim: &&&str| claim.contains("Measured: ");
    for claim in &claims {
        let reason = claim
            .split_once("<strong>Not answered</strong>: ")
            .map(|(_, why)| why.len() > 10);
        assert!(answered(&claim) != (reason == Some(true)), "{claim}");
    }
    let of_reference = claims.iter().filter(answered);
    assert!(of_reference.clone().count() >= 3);
    for claim in of_reference {
        holds(claim, &["Example GPU, another machine"]);
    }
    assert!(section.contains("<code>num_workers</code>"));
    holds(section, &["The same product on Example GPU"]);
}
