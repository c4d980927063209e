//! `crossover thresholds`: a table becomes answers and a file.

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

/// The output of the command for a table; it must end with this code.
fn thresholds(folder: &TempDir, input: &str, code: i32, words: &str) -> String {
    fs::write(folder.path().join("input"), input).unwrap();
    let mut command = crossover(&["thresholds", "input", "-o", "out.json"]);
    expect(command.current_dir(folder.path()), code, words)
}

/// The printed answers.
fn answers(folder: &TempDir, input: &str) -> String {
    thresholds(folder, input, 0, "")
}

pub(crate) fn a_table_becomes_answers_and_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let said = answers(&folder, &table(4, 2));
    holds(
        &said,
        "product, in ordinary memory: gpu wins: from size = 1",
    );
    holds(
        &said,
        "; the median of 4 processes; 16× faster at size = 400; another run would find ",
    );
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

    // Two programs keep their names.
    let input = table(3, 2).replace(",gpu,", ",rayon,");
    fs::write(folder.path().join("input"), input).unwrap();
    let named = [
        "thresholds",
        "input",
        "--sides",
        "serial",
        "rayon",
        "-o",
        "out.json",
    ];
    let mut command = crossover(&named);
    expect(
        command.current_dir(folder.path()),
        0,
        "rayon wins: from size = 1",
    );
    for (size, decision, times) in [
        (
            "300",
            "product, size = 300: use rayon; it is",
            "serial 90.1 µs; rayon 10.0 µs",
        ),
        (
            "25",
            "product, size = 25: use serial; rayon is",
            "one call: rayon wins: from",
        ),
    ] {
        let arguments = ["advise", "product", size, "--thresholds", file];
        let said = expect(&mut crossover(&arguments), 0, decision);
        holds(&said, times);
        let (decided, machine) = said.rsplit_once("\nmeasured on").unwrap();
        assert!(
            !decided.contains("GPU") && !decided.contains("memory"),
            "{said}"
        );
        assert!(!machine.is_empty());
    }

    let said = answers(&folder, &table(1, 8));
    holds(&said, "one process; 16× faster at size = 400");
    holds(&said, "not firm: measure in three or more processes");
    let once = "1,product,800,ordinary,a,640000\n1,product,800,ordinary,b,10000\n";
    let said = answers(&folder, &(table(3, 2) + once));
    let left_out = "note: product, in ordinary memory: size 800 was measured once and is left out";
    holds(&said, left_out);
    holds(&said, "faster at size = 400");
    let said = answers(&folder, &(table(3, 2) + &once.repeat(2)));
    let left_out = "fewer than three processes measured size 800, which is left out";
    holds(&said, left_out);
    holds(
        &said,
        "; the median of 3 processes; 16× faster at size = 400",
    );
}

/// The replaced text of a table, its replacement, and the sentence for this fault.
const FAULTS: [[&str; 3]; 4] = [
    [",place,", ",where,", "missing field `place`"],
    ["ordinary", "on a shelf", "unknown variant `on a shelf`"],
    [
        ",gpu,",
        ",tpu,",
        "the side \"tpu\" is neither a, b, cpu nor gpu",
    ],
    [",10000", ",-1", "size and ns are numbers above zero"],
];

pub(crate) fn each_fault_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let good = table(3, 2);
    let replaced = FAULTS.map(|[from, to, sentence]| (good.replace(from, to), sentence));
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

pub(crate) fn a_crossing_outside_of_the_measured_sizes_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let only = |sizes: [u64; 2]| {
        let table = table(3, 2);
        let of = |line: &&str| {
            let size = line.split(',').nth(2).unwrap();
            size.parse().is_ok_and(|size| sizes.contains(&size))
        };
        let lines: Vec<&str> = table.lines().filter(of).collect();
        HEAD.to_owned() + &lines.join("\n")
    };
    let said = answers(&folder, &only([25, 50]));
    holds(
        &said,
        "gpu wins: never (size = 25 to 50); the median of 3 processes",
    );
    holds(&said, "a crossing would lie above the measured sizes");
    let said = answers(&folder, &only([200, 400]));
    holds(&said, "gpu wins: always");
    holds(&said, "a crossing would lie below the measured sizes");
}
