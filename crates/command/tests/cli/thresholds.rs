//! `crossover thresholds`: a table, or two commands, become answers and a file.

use std::fs;
use std::path::Path;

use crossover_advice::{Advice, Choice, Question};

use crate::command::{crossover, output};
use crate::printed::holds;

const HEAD: &str = "process,operation,size,place,side,ns\n";

/// b takes 10 µs, and a the square of the size.
fn table(processes: usize, samples: usize) -> String {
    let mut lines = HEAD.to_owned();
    for process in 0..processes {
        for size in [25u64, 50, 90, 112, 200, 400] {
            for sample in 0..samples {
                let noise = 1.0 + 0.001 * (process + sample) as f64;
                let times = [("a", (size * size) as f64), ("gpu", 1e4)];
                for (side, ns) in times {
                    lines += &format!("{process},product,{size},ordinary,{side},{}\n", ns * noise);
                }
            }
        }
    }
    lines
}

/// Exit code, and what was printed.
fn thresholds(folder: &Path, table: &str, more: &[&str]) -> (i32, String) {
    let path = folder.join("times.csv");
    fs::write(&path, table).unwrap();
    let mut command = crossover(&[&["thresholds", "times.csv"], more].concat());
    let (result, out, err) = output(command.current_dir(folder));
    (result.status.code().unwrap(), out + &err)
}

#[test]
fn a_table_becomes_answers_and_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = thresholds(folder.path(), &table(4, 2), &["-o", "out.json"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.starts_with("product, in ordinary memory: gpu wins from size = 1"),
        "{said}"
    );
    holds(&said, "on; 4 processes; at size = 400 it is 16× faster (");
    let file = folder.path().join("out.json");
    let advice = Advice::open(&file).unwrap();
    let choice = |size: u64| advice.decide(&Question::new("product", size)).choice;
    let choices = [10, 25, 50, 200, 400, 1_000].map(choice);
    let (a, b) = (Choice::Cpu, Choice::Gpu);
    assert_eq!(choices, [a, a, a, b, b, b]);
    // The command answers from the file as a program does.
    let file = file.to_str().unwrap();
    let (_, out, err) = output(&mut crossover(&[
        "advise",
        "product",
        "300",
        "--thresholds",
        file,
    ]));
    assert!(
        out.starts_with("product, size = 300, in ordinary memory: use the GPU"),
        "{out}{err}"
    );
}

#[test]
fn fewer_than_three_processes_are_not_firm() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = thresholds(folder.path(), &table(1, 8), &[]);
    assert_eq!(code, 0, "{said}");
    holds(&said, "one process; at size = 400");
    holds(&said, "not firm: measure in three or more processes");
}

#[test]
fn each_fault_of_a_table_is_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let good = table(3, 2);
    let only = |side: &str| {
        let lines = good.lines().filter(|line| !line.contains(side));
        lines.map(|line| format!("{line}\n")).collect::<String>()
    };
    let apart = format!(
        "{HEAD}1,p,8,ordinary,a,5\n1,p,8,ordinary,a,5\n1,p,9,ordinary,b,5\n1,p,9,ordinary,b,5\n"
    );
    for (table, sentence) in [
        (good.replace(",place,", ",where,"), "missing field `place`"),
        (
            good.replace("ordinary", "on a shelf"),
            "unknown variant `on a shelf`",
        ),
        (
            good.replace(",gpu,", ",tpu,"),
            "the side \"tpu\" is neither a, b, cpu nor gpu",
        ),
        (
            good.replace(",10000\n", ",-1\n"),
            "size and ns are numbers above zero",
        ),
        (
            only(",gpu,"),
            "there are no times of gpu; measure both sides",
        ),
        (only(",a,"), "there are no times of cpu; measure both sides"),
        (apart, "cpu and gpu have no size in common"),
        (HEAD.to_owned(), "times.csv has no samples"),
        (table(1, 1), "no size that was measured more than once"),
    ] {
        let (code, said) = thresholds(folder.path(), &table, &[]);
        assert_eq!(
            (code, said.contains(sentence)),
            (2, true),
            "{sentence}: {said}"
        );
        let sentences = said.lines().filter(|line| line.starts_with("crossover: "));
        assert_eq!(sentences.count(), 1, "{said}");
    }
    let single = format!("{good}1,product,800,ordinary,a,640000\n1,product,800,ordinary,b,10000\n");
    let (code, said) = thresholds(folder.path(), &single, &[]);
    assert_eq!(code, 0, "{said}");
    holds(
        &said,
        "note: product, in ordinary memory: size 800 was measured once and is left out",
    );
    holds(&said, "at size = 400 it is");
}

/// Runs two shell commands in turns.
fn run(folder: &Path, sizes: &str, a: &str, b: &str) -> (i32, String) {
    let command = |script: &str| format!("['sh', '-c', '{script}', '{{size}}']");
    let config = format!(
        "sides = ['slow', 'fast']\nbudget_s = 30\n[[operations]]\nname = 'p'\nsizes = {sizes}\na = {}\nb = {}\n",
        command(a),
        command(b)
    );
    fs::write(folder.join("config.toml"), config).unwrap();
    let arguments = ["thresholds", "--run", "config.toml", "-o", "out.json"];
    let (result, out, err) = output(crossover(&arguments).current_dir(folder));
    (result.status.code().unwrap(), out + &err)
}

#[test]
fn two_commands_are_timed_in_turns_until_the_crossing_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let log = |side: &str| format!("echo {side} $0 >> log; ");
    let (code, said) = run(
        folder.path(),
        "[10, 1000]",
        &(log("a") + "echo $(($0 * $0)) ns"),
        &(log("b") + "echo 0.00001 s"),
    );
    assert_eq!(code, 0, "{said}");
    holds(&said, "fast wins from size = 1");
    let thresholds = Advice::open(folder.path().join("out.json"))
        .unwrap()
        .thresholds()
        .clone();
    let change = thresholds.operations[0].places[0].crossing.changes[0];
    assert!((change.size / 100.0 - 1.0).abs() < 0.05, "{change:?}");
    assert!(change.high / change.low < 1.44, "{change:?}");
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    let sides: Vec<&str> = log.lines().map(|line| &line[..1]).collect();
    assert_eq!(sides[..8].concat(), "abbaabba");
}

#[test]
fn a_crossing_outside_the_range_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let square = "echo $(($0 * $0)) ns";
    let (_, said) = run(folder.path(), "[8, 64]", square, "echo 10000 ns");
    holds(
        &said,
        "fast wins nowhere, tested size = 8 to 64; 3 processes",
    );
    holds(&said, "a crossing would lie above the measured sizes");
    let (_, said) = run(folder.path(), "[200, 900]", square, "echo 10000 ns");
    holds(&said, "fast wins everywhere");
    holds(&said, "a crossing would lie below the measured sizes");
}

#[test]
fn each_fault_of_a_command_is_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let good = "echo 5 ns";
    for (sizes, a, sentence) in [
        (
            "[1, 8]",
            "echo out of memory >&2; exit 3",
            "failed (exit status: 3): out of memory",
        ),
        (
            "[1, 8]",
            "echo 5 parsecs",
            "printed \"5 parsecs\"; print times such as `1250 ns`",
        ),
        ("[8, 8]", good, "sizes are the smallest and the largest"),
        ("[1, 8]\nbudget = 3", good, "unknown field `budget`"),
    ] {
        let (code, said) = run(folder.path(), sizes, a, good);
        assert_eq!(
            (code, said.contains(sentence)),
            (2, true),
            "{sentence}: {said}"
        );
    }
    let config = fs::read_to_string(folder.path().join("config.toml")).unwrap();
    for (from, to, sentence) in [
        ("\nbudget = 3", "", ""),
        ("'sh'", "'no-such-program'", "could not be started"),
        ("'{size}'", "'7'", "p: a command has no {size}"),
    ] {
        let path = folder.path().join("config.toml");
        fs::write(path, config.replace("\nbudget = 3", "").replace(from, to)).unwrap();
        let mut command = crossover(&["thresholds", "--run", "config.toml"]);
        let (_, out, err) = output(command.current_dir(folder.path()));
        holds(&(out + &err), sentence);
    }
}

#[test]
fn a_command_that_prints_nothing_is_timed_as_a_process() {
    let folder = tempfile::tempdir().unwrap();
    let (code, said) = run(folder.path(), "[1, 2]", "sleep 0.05", "true");
    assert_eq!(code, 0, "{said}");
    holds(&said, "fast wins everywhere");
}
