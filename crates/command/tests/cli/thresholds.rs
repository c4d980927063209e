//! `crossover thresholds`: a table becomes answers and a file.

use std::fs;
use std::path::PathBuf;

use crossover_advice::{Advice, Choice, Question};
use serde_json::json;
use tempfile::TempDir;

use crate::command::crossover;
use crate::printed::{expect, lacks, table};

const HEAD: &str = "process,operation,size,place,side,ns\n";

/// The GPU takes 10 µs, and the CPU as many nanoseconds as the square of the size.
pub(crate) fn times(processes: usize, samples: usize) -> String {
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

/// A folder with the file `input`.
struct Input(TempDir);

impl Input {
    fn new(text: &str) -> Self {
        let this = Self(tempfile::tempdir().unwrap());
        fs::write(this.path("input"), text).unwrap();
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The command with the words of this line.
    fn ends(&self, line: &str, code: i32, words: &str) -> String {
        expect(crossover(line).current_dir(self.0.path()), code, words)
    }

    /// Makes `out.json` from the input.
    fn thresholds(&self, options: &str, code: i32, words: &str) -> String {
        let line = format!("thresholds input -o out.json {options}");
        self.ends(&line, code, words)
    }

    /// The decisions of a program that reads `out.json`, at these sizes.
    fn choices<const N: usize>(&self, sizes: [u64; N]) -> [Choice; N] {
        let advice = Advice::open(self.path("out.json")).unwrap();
        sizes.map(|size| advice.decide(&Question::new("product", size)).choice)
    }
}

pub(crate) fn a_table_becomes_answers_and_a_file() {
    let input = Input::new(&times(4, 2));
    let answer = "product, in ordinary memory: gpu wins: from size = 1 … ; the median of 4 processes; \
        16× faster at size = 400; another run would find ";
    input.thresholds("", 0, answer);
    let (cpu, gpu) = (Choice::Cpu, Choice::Gpu);
    let choices = input.choices([10, 25, 50, 200, 400, 1_000]);
    assert_eq!(choices, [cpu, cpu, cpu, gpu, gpu, gpu]);
    // The command answers from the file as a program does.
    let advice = "product, size = 300, in ordinary memory: use the GPU";
    input.ends("advise product 300 --thresholds out.json", 0, advice);
    // Data that start elsewhere have no answer unless they are asked for.
    let queued = Input::new(&times(4, 2).replace(",ordinary,", ",queued,"));
    queued.thresholds("", 0, "");
    let unsure = "unsure; this operation was not measured with its data there";
    queued.ends("advise product 300 --thresholds out.json", 0, unsure);
    // Two programs keep their names.
    let programs = times(3, 2).replace(",gpu,", ",rayon,");
    let input = Input::new(&programs.replace(",cpu,", ",serial,"));
    input.thresholds("--sides rayon serial", 0, "serial wins: until size = 1");
    input.thresholds("", 0, "");
    for [size, decision] in table(
        "
        300 | product, size = 300: use rayon; it is … serial 90.1 µs; rayon 10.0 µs
        25  | product, size = 25: use serial; rayon is … one call: rayon wins: from
        ",
    ) {
        let line = format!("advise product {size} --thresholds out.json");
        let advice_text = input.ends(&line, 0, decision);
        let (decided, machine) = advice_text.rsplit_once("\nmeasured on").unwrap();
        lacks(decided, &["GPU", "memory"]);
        assert!(!machine.is_empty());
    }

    let once =
        "one process; 16× faster at size = 400 … not firm: measure in three or more processes";
    Input::new(&times(1, 8)).thresholds("", 0, once);
    // The crossing is outside of the measured sizes.
    let times = times(3, 2);
    let is_large = |line: &&str| ["size", "200", "400"].contains(&line.split(',').nth(2).unwrap());
    let large = Vec::from_iter(times.lines().filter(is_large)).join("\n");
    let below = "gpu wins: always … a crossing would lie below the measured sizes";
    Input::new(&large).thresholds("", 0, below);
}

/// An answer reaches no further than the largest size that counts.
pub(crate) fn sizes_that_do_not_count_are_named_and_end_the_answer() {
    let line =
        |process: u32, side: &str, ns: f64| format!("{process},product,800,ordinary,{side},{ns}\n");
    // In one process the GPU was slower.
    let slower = line(1, "cpu", 64e4) + &line(1, "gpu", 64e5);
    let once = line(1, "cpu", 64e4) + &line(1, "gpu", 1e4);
    for (more, reason) in [
        (once, "one side was measured once; measure it again"),
        (
            slower.repeat(2),
            "fewer than three processes measured both sides",
        ),
        (line(1, "cpu", 64e4).repeat(3), "gpu was not measured there"),
    ] {
        let input = Input::new(&(times(3, 2) + &more));
        let note = format!(
            "the median of 3 processes; 16× faster at size = 400 … note: product, in ordinary memory: \
             left out size 800: {reason}; nothing is decided above 400"
        );
        input.thresholds("", 0, &note);
        let choices = input.choices([25, 400, 401, 1_000]);
        let unsure = Choice::Unsure;
        assert_eq!(choices, [Choice::Cpu, Choice::Gpu, unsure, unsure]);
    }
}

/// As hyperfine writes the results of two command lines, each with sizes in place of a parameter, in a word or alone.
pub(crate) fn the_results_of_hyperfine_become_answers() {
    let results = |program: &str, seconds: fn(f64) -> f64| {
        [100u32, 1_000, 10_000, 100_000].map(|size| {
            let mean = seconds(size.into());
            let times = [1.0, 1.01, 0.99, 1.0].map(|noise| mean * noise);
            json!({
                "command": format!("./{program}{size} --fast"),
                "exit_codes": [0],
                "mean": mean,
                "times": times,
                "parameters": {"size": size.to_string()},
            })
        })
    };
    let serial = results("serial ", |n| 1e-6 * n);
    let parallel = results("parallel --n=", |n| 2e-3 + 1e-7 * n);
    let all = [serial, parallel].concat();
    let text = json!({ "results": all }).to_string();
    let input = Input::new(&text);
    fs::write(input.path("sum.json"), &text).unwrap();
    let answer = "sum, in ordinary memory: ./parallel --n= --fast wins: from size = 2, … \
        the median of 4 processes";
    input.ends("thresholds sum.json -o out.json", 0, answer);
    let advice = "sum, size = 50,000: use ./parallel --n= --fast; it is";
    input.ends("advise sum 50000 --thresholds out.json", 0, advice);
    for [from, to, sentence] in table(
        r#"
        size  | n    | run hyperfine with `--parameter-list size
        100   | 1.5  | the size "1.5" is not a whole number
        times | runs | nor what `hyperfine --export-json` writes
        "#,
    ) {
        let [from, to] = [from, to].map(|word| format!("\"{word}\""));
        Input::new(&text.replace(&from, &to)).thresholds("", 2, sentence);
    }
    let crashed = Input::new(&text.replace("[0]", "[null]"));
    crashed.thresholds("", 2, "--fast` ended by a signal");
}

pub(crate) fn the_table_is_not_overwritten_and_sides_are_two_names() {
    let csv = times(3, 2).replace(",cpu,", ",a,").replace(",gpu,", ",b,");
    let input = Input::new(&csv);
    let sides = "product, in ordinary memory: a wins: until size = 1";
    input.ends("thresholds input --sides b a", 0, sides);
    for [options, sentence] in table(
        "
        -o ./input  | -o names the table of times
        --sides x x | --sides: the two sides need different names, not x twice
        ",
    ) {
        input.ends(&format!("thresholds input {options}"), 2, sentence);
    }
    let mut unnamed = crossover("thresholds input --sides");
    let unnamed = unnamed.args(["", "y"]).current_dir(&input.0);
    expect(unnamed, 2, "--sides: a side needs a name");
    assert_eq!(fs::read_to_string(input.path("input")).unwrap(), csv);
}

pub(crate) fn each_fault_is_one_sentence() {
    let good = times(3, 2);
    let of_cpu = good.lines().filter(|line| !line.contains(",gpu,"));
    let of_cpu = Vec::from_iter(of_cpu).join("\n");
    let apart = "1,p,8,ordinary,a,5\n".repeat(2) + &"1,p,9,ordinary,b,5\n".repeat(2);
    let ends = |text: &str, sentence: &str| {
        let error = Input::new(text).thresholds("", 2, sentence);
        assert_eq!(error.matches("crossover: ").count(), 1, "{error}");
    };
    for [from, to, sentence] in table(
        r#"
        ,place,                   | ,where,                   | missing field `place`
        0,product,25,ordinary,gpu | 0,product,25,ordinary,tpu | it has the sides ["tpu", "cpu", "gpu"]
        ,10000                    | ,-1                       | a size is above zero, and a time between
        ,10000                    | ,1e-300                   | a size is above zero, and a time between
        "#,
    ) {
        ends(&good.replace(from, to), sentence);
    }
    let alone = "there are times of \"cpu\" alone; measure both sides";
    ends(&of_cpu, alone);
    ends(&(HEAD.to_owned() + &apart), "have no size in common");
    ends(HEAD, "input has no samples");
    ends(
        &times(1, 1),
        "no size was measured more than once on both sides",
    );
}
