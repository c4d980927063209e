//! `crossover thresholds`: a table, or two commands, become answers and a file.

use std::fs;

use crossover_advice::{Advice, Choice, Question};
use tempfile::TempDir;

use crate::command::crossover;
use crate::printed::{expect, holds};

const HEAD: &str = "process,operation,size,place,side,ns\n";

/// b takes 10 µs, and a as many nanoseconds as the square of the size.
fn table(processes: usize, samples: usize) -> String {
    let mut lines = HEAD.to_owned();
    for process in 0..processes {
        for size in [25u64, 50, 90, 112, 200, 400] {
            for sample in 0..samples {
                let noise = 1.0 + 0.001 * (process + sample) as f64;
                for (side, ns) in [("a", (size * size) as f64), ("gpu", 1e4)] {
                    lines += &format!("{process},product,{size},ordinary,{side},{}\n", ns * noise);
                }
            }
        }
    }
    lines
}

/// A configuration of two shell commands, whose `$0` is the size.
fn configuration(sizes: &str, a: &str, b: &str) -> String {
    let command = |script| format!("['sh', '-c', '{script}', '{{size}}']");
    let (a, b) = (command(a), command(b));
    format!(
        "sides = ['slow', 'fast']\nbudget_s = 30\n[[operations]]\nname = 'p'\nsizes = {sizes}\na = {a}\nb = {b}\n"
    )
}

/// The output of the command for a table or a configuration; it must end with this code.
fn thresholds(folder: &TempDir, input: &str, code: i32, words: &str) -> String {
    fs::write(folder.path().join("input"), input).unwrap();
    let named: &[&str] = match input.starts_with("sides") {
        true => &["--run", "input"],
        false => &["input"],
    };
    let mut command = crossover(&[&["thresholds", "-o", "out.json"], named].concat());
    expect(command.current_dir(folder.path()), code, words)
}

/// The printed answers.
fn answers(folder: &TempDir, input: &str) -> String {
    thresholds(folder, input, 0, "")
}

#[test]
fn a_table_becomes_answers_and_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let said = answers(&folder, &table(4, 2));
    holds(&said, "product, in ordinary memory: gpu wins from size = 1");
    holds(&said, "on; 4 processes; at size = 400 it is 16× faster (");
    let file = folder.path().join("out.json");
    let advice = Advice::open(&file).unwrap();
    let choice = |size: u64| advice.decide(&Question::new("product", size)).choice;
    let choices = [10, 25, 50, 200, 400, 1_000].map(choice);
    let (a, b) = (Choice::Cpu, Choice::Gpu);
    assert_eq!(choices, [a, a, a, b, b, b]);
    // The command answers from the file as a program does.
    let file = file.to_str().unwrap();
    let arguments = ["advise", "product", "300", "--thresholds", file];
    let answer = "product, size = 300, in ordinary memory: use the GPU";
    expect(&mut crossover(&arguments), 0, answer);

    let said = answers(&folder, &table(1, 8));
    holds(&said, "one process; at size = 400");
    holds(&said, "not firm: measure in three or more processes");
    let once = "1,product,800,ordinary,a,640000\n1,product,800,ordinary,b,10000\n";
    let said = answers(&folder, &(table(3, 2) + once));
    let left_out = "note: product, in ordinary memory: size 800 was measured once and is left out";
    holds(&said, left_out);
    holds(&said, "at size = 400 it is");
}

/// The replaced text of a table or a configuration, its replacement, and the sentence for this fault.
const FAULTS: [&str; 10] = [
    ",place, | ,where, | missing field `place`",
    "ordinary | on a shelf | unknown variant `on a shelf`",
    ",gpu, | ,tpu, | the side \"tpu\" is neither a, b, cpu nor gpu",
    ",10000 | ,-1 | size and ns are numbers above zero",
    "echo 5 ns | echo no room >&2; exit 3 | failed (exit status: 3): no room",
    "echo 5 ns | echo 5 parsecs | printed \"5 parsecs\"; print times such as `1250 ns`",
    "[1, 8] | [8, 8] | sizes are the smallest and the largest",
    "budget_s | budget | unknown field `budget`",
    "'sh' | 'no-such-program' | could not be started",
    "'{size}' | '7' | p: a command has no {size}",
];

#[test]
fn each_fault_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let good = table(3, 2);
    let run = configuration("[1, 8]", "echo 5 ns", "echo 5 ns");
    let replaced = FAULTS.map(|fault| {
        let mut columns = fault.split(" | ");
        let mut next = || columns.next().unwrap();
        let (from, to, sentence) = (next(), next(), next());
        let input = if good.contains(from) { &good } else { &run };
        (input.replace(from, to), sentence)
    });
    let without = |side: &str| {
        let lines = good.lines().filter(|line| !line.contains(side));
        lines.collect::<Vec<_>>().join("\n")
    };
    let apart =
        ["8,ordinary,a,5\n", "9,ordinary,b,5\n"].map(|line| format!("1,p,{line}").repeat(2));
    let others = [
        (without(",gpu,"), "there are no times of gpu; measure both"),
        (without(",a,"), "there are no times of cpu; measure both"),
        (HEAD.to_owned() + &apart.concat(), "have no size in common"),
        (HEAD.to_owned(), "input has no samples"),
        (table(1, 1), "no size that was measured more than once"),
    ];
    for (input, sentence) in replaced.into_iter().chain(others) {
        let said = thresholds(&folder, &input, 2, sentence);
        let sentences = said.lines().filter(|line| line.starts_with("crossover: "));
        assert_eq!(sentences.count(), 1, "{said}");
    }
}

#[test]
fn two_commands_are_timed_in_turns_until_the_crossing_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let a = "echo a >> log; echo $(($0 * $0)) ns";
    let b = "echo b >> log; echo 0.00001 s";
    let said = answers(&folder, &configuration("[10, 1000]", a, b));
    holds(&said, "fast wins from size = 1");
    let advice = Advice::open(folder.path().join("out.json")).unwrap();
    let place = &advice.thresholds().operations[0].places[0];
    let change = place.crossing.changes[0];
    assert!((change.size / 100.0 - 1.0).abs() < 0.05, "{change:?}");
    assert!(change.high / change.low < 1.44, "{change:?}");
    let log = fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.replace('\n', "").starts_with("abbaabba"), "{log}");
    // A crossing outside the range is told.
    let (square, b) = ("echo $(($0 * $0)) ns", "echo 10000 ns");
    let said = answers(&folder, &configuration("[8, 64]", square, b));
    let nowhere = "fast wins nowhere, tested size = 8 to 64; 3 processes";
    holds(&said, nowhere);
    holds(&said, "a crossing would lie above the measured sizes");
    let said = answers(&folder, &configuration("[200, 900]", square, b));
    holds(&said, "fast wins everywhere");
    holds(&said, "a crossing would lie below the measured sizes");
    // Commands that print nothing are timed as processes.
    let said = answers(&folder, &configuration("[1, 2]", "sleep 0.05", "true"));
    holds(&said, "fast wins everywhere");
}
