//! `crossover thresholds`: a table becomes answers and a file.

use std::fs;

use crossover_advice::{Advice, Choice, Question};
use tempfile::TempDir;

use crate::command::crossover;
use crate::printed::{expect, holds};

const HEAD: &str = "process,operation,size,place,side,ns\n";

/// The GPU takes 10 µs, and the CPU as many nanoseconds as the square of the size.
fn table(processes: usize, samples: usize) -> String {
    let mut lines = HEAD.to_owned();
    for process in 0..processes {
        for size in [25u64, 50, 90, 112, 200, 400] {
            for sample in 0..samples {
                let noise = 1.0 + 0.001 * (process + sample) as f64;
                for (side, ns) in [("cpu", (size * size) as f64), ("gpu", 1e4)] {
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
    let input = table(3, 2)
        .replace(",gpu,", ",rayon,")
        .replace(",cpu,", ",serial,");
    answers(&folder, &input);
    let mut command = crossover(&["thresholds", "input", "--sides", "rayon", "serial"]);
    let swapped = "serial wins: until size = 1";
    expect(command.current_dir(folder.path()), 0, swapped);
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
}

/// An answer reaches no further than the largest size that counts.
pub(crate) fn sizes_that_do_not_count_are_named_and_end_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let line =
        |process: u32, side: &str, ns: f64| format!("{process},product,800,ordinary,{side},{ns}\n");
    let once = line(1, "cpu", 64e4) + &line(1, "gpu", 1e4);
    let beyond = "; nothing is decided above 400";
    for (more, reason) in [
        (once.clone(), "one side was measured once; measure it again"),
        // In one process the GPU was slower.
        (
            [line(1, "cpu", 64e4), line(1, "gpu", 64e5)]
                .concat()
                .repeat(2),
            "fewer than three processes measured both sides",
        ),
        (line(1, "cpu", 64e4).repeat(3), "gpu was not measured there"),
        (line(1, "gpu", 1e4).repeat(3), "cpu was not measured there"),
    ] {
        let said = answers(&folder, &(table(3, 2) + &more));
        let note = "note: product, in ordinary memory: left out size 800: ";
        holds(&said, &format!("{note}{reason}{beyond}"));
        holds(
            &said,
            "; the median of 3 processes; 16× faster at size = 400",
        );
        let advice = Advice::open(folder.path().join("out.json")).unwrap();
        let choice = |size: u64| advice.decide(&Question::new("product", size)).choice;
        assert_eq!(
            [25, 400, 401, 1_000].map(choice),
            [Choice::Cpu, Choice::Gpu, Choice::Unsure, Choice::Unsure]
        );
        let place = &advice.thresholds().operations[0].places[0];
        assert_eq!(place.answers.last().unwrap().choice, Choice::Unsure);
    }
}

/// As hyperfine writes the results of two command lines, each with sizes in place of a parameter.
pub(crate) fn the_results_of_hyperfine_become_answers() {
    let folder = tempfile::tempdir().unwrap();
    let result = |size: u64, program: &str, seconds: f64| {
        let times = [1.0, 1.01, 0.99, 1.0].map(|noise| seconds * noise);
        serde_json::json!({
            "command": format!("./{program} {size} --fast"),
            "mean": seconds,
            "times": times,
            "parameters": {"size": size.to_string()},
        })
    };
    let sizes = [100, 1_000, 10_000, 100_000];
    let results = |program, seconds: fn(f64) -> f64| {
        sizes.map(|size| result(size, program, seconds(size as f64)))
    };
    let all = [
        results("serial", |n| 1e-6 * n),
        results("parallel", |n| 2e-3 + 1e-7 * n),
    ]
    .concat();
    let file = folder.path().join("sum.json");
    fs::write(&file, serde_json::json!({"results": all}).to_string()).unwrap();
    let mut command = crossover(&["thresholds", "sum.json", "-o", "out.json"]);
    let said = expect(command.current_dir(folder.path()), 0, "");
    holds(
        &said,
        "sum, in ordinary memory: ./parallel --fast wins: from size = 2,",
    );
    holds(&said, "the median of 4 processes");
    let out = folder.path().join("out.json").display().to_string();
    let asked = crossover(&["advise", "sum", "50000", "--thresholds", &out]);
    expect(
        &mut { asked },
        0,
        "sum, size = 50,000: use ./parallel --fast; it is",
    );
    for (from, to, sentence) in [
        (
            "\"size\"",
            "\"n\"",
            "run hyperfine with `--parameter-list size",
        ),
        (
            "\"100\"",
            "\"1.5\"",
            "the size \"1.5\" is not a whole number",
        ),
        (
            "\"times\"",
            "\"runs\"",
            "nor what `hyperfine --export-json` writes",
        ),
    ] {
        let text = serde_json::json!({"results": all})
            .to_string()
            .replace(from, to);
        thresholds(&folder, &text, 2, sentence);
    }
}

pub(crate) fn the_table_is_not_overwritten_and_sides_are_two_names() {
    let folder = tempfile::tempdir().unwrap();
    let table = table(3, 2).replace(",cpu,", ",a,").replace(",gpu,", ",b,");
    let file = folder.path().join("times.csv");
    fs::write(&file, &table).unwrap();
    let end = |arguments: &str, code: i32, words: &str| {
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let mut command = crossover(&[&["thresholds", "times.csv"], &arguments[..]].concat());
        expect(command.current_dir(folder.path()), code, words)
    };
    end("-o ./times.csv", 2, "-o names the table of times");
    assert_eq!(fs::read_to_string(&file).unwrap(), table);
    end(
        "--sides b a",
        0,
        "product, in ordinary memory: a wins: until size = 1",
    );
    end(
        "--sides x x",
        2,
        "--sides: the two sides need different names, not x twice",
    );
    end("--sides  y", 2, "--sides: a side needs a name");
}

/// The replaced text of a table, its replacement, and the sentence for this fault.
const FAULTS: [[&str; 3]; 5] = [
    [",place,", ",where,", "missing field `place`"],
    ["ordinary", "on a shelf", "unknown variant `on a shelf`"],
    [
        "0,product,25,ordinary,gpu",
        "0,product,25,ordinary,tpu",
        "it has the sides [\"tpu\", \"cpu\", \"gpu\"]",
    ],
    [",10000", ",-1", "a size is above zero, and a time between"],
    [
        ",10000",
        ",1e-300",
        "a size is above zero, and a time between",
    ],
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
        (
            without(",gpu,"),
            "there are times of \"cpu\" alone; measure both sides",
        ),
        (
            without(",cpu,"),
            "there are times of \"gpu\" alone; measure both sides",
        ),
        (HEAD.to_owned() + &apart.concat(), "have no size in common"),
        (HEAD.to_owned(), "input has no samples"),
        (
            table(1, 1),
            "no size was measured more than once on both sides",
        ),
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
