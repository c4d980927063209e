//! Answers, limits and findings of planted machines, as plain values.
//!
//! A text describes a machine and what follows from it, a line each:
//!
//! ```text
//! run                                      what follows is of another run
//! ceiling NAME VALUE UNIT
//! curve NAME BYTES:RATE BYTES:RATE
//! ID CLOCK NS KEY=VALUE KEY=VALUE          a benchmark, with its cost and other figures
//! ID CLOCK NS KEY=VALUE => WORDS           the same, and its share of a limit; `none` without one
//! says FINDING: WORDS | WORDS              the finding is there, with these words
//! omits FINDING: WORDS                     it is there without these
//! silent START                             no finding begins so
//! ```

mod answers;
mod findings;
mod limits;
mod telemetry;

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::analysis::answer::crossover_answer;
use crate::analysis::findings::finding::{Context, Finding};
use crate::analysis::limits::Share;
use crate::model::environment::{Cpu, Environment, GpuInfo};
use crate::model::group_info::GroupInfo;
use crate::model::id::Id;
use crate::model::record::{BandwidthCurve, BandwidthPoint, Ceiling, Confirmation, RunRecord};
use crate::model::role::Role;
use crate::model::{LinkBytes, SCHEMA, Sidecar};
use crate::store::baseline::Sampled;
use crate::store::curves::Benchmark;
use crate::store::machine::MachineResults;
use crossover_words::Clock;

/// What the groups and rows that tests plant declare.
#[derive(Deserialize)]
struct Suite {
    groups: Vec<GroupInfo>,
    /// By group, then by function.
    roles: BTreeMap<String, BTreeMap<String, Role>>,
}

/// A machine in the making: its runs, the last of which measures, and its results.
pub(crate) struct Fixture {
    runs: Vec<RunRecord>,
    benchmarks: RefCell<Vec<Benchmark>>,
    suite: Suite,
}

impl Fixture {
    fn new() -> Self {
        let suite: Suite = serde_json::from_str(include_str!("planted.json")).unwrap();
        let run = RunRecord {
            schema: SCHEMA,
            run: "run 0".into(),
            started: "2026-01-02T03:04:00Z".into(),
            groups: suite.groups.clone(),
            environment: Environment {
                cpu: Cpu {
                    model: "Example CPU 9000".into(),
                    usable_cores: 16,
                    ..Cpu::default()
                },
                gpu: Some(GpuInfo {
                    name: "Example GPU".into(),
                    compute_capability: (9, 0),
                    multiprocessors: 132,
                    l2_bytes: Some(50_000_000),
                    max_sm_clock_mhz: Some(1980),
                    power_limit_w: Some(700.0),
                    ..GpuInfo::default()
                }),
                ..Environment::default()
            },
            ..RunRecord::default()
        };
        Self {
            runs: vec![run],
            benchmarks: RefCell::default(),
            suite,
        }
    }

    fn run(&mut self) -> &mut RunRecord {
        self.runs.last_mut().unwrap()
    }

    /// What follows is of another run, some seconds later, which has measured nothing yet.
    pub(crate) fn next_run(&mut self, seconds: u32) {
        let run = RunRecord {
            run: format!("run {seconds}"),
            started: format!("2026-01-02T03:04:{seconds:02}Z"),
            ceilings: BTreeMap::new(),
            curves: BTreeMap::new(),
            confirmations: Vec::new(),
            ..self.run().clone()
        };
        self.runs.push(run);
    }

    /// Changes the GPU.
    pub(crate) fn gpu(&mut self, change: impl FnOnce(&mut GpuInfo)) {
        change(self.run().environment.gpu.as_mut().unwrap());
    }

    /// A result of the last run, with the role of the row of this name in the suite.
    pub(crate) fn benchmark(&self, id: &str, clock: Clock, ns: f64) -> Benchmark {
        let mut sidecar = Sidecar::of(id, clock);
        sidecar.run = self.runs.last().unwrap().run.clone();
        let parsed: Id = id.parse().unwrap();
        let rows = self.suite.roles.get(&parsed.group);
        if let Some(role) = rows.and_then(|rows| rows.get(&parsed.function)) {
            sidecar.role = role.clone();
        }
        let sampled = Sampled {
            ns: vec![ns],
            clock: Some(clock),
            sidecar: Some(sidecar),
        };
        let mut benchmark = Benchmark::of(id, Default::default(), &sampled).unwrap();
        benchmark.interval_ns = Some((0.996 * ns, 1.004 * ns));
        benchmark
    }

    /// Replaces a result of the same id.
    pub(crate) fn plant(&self, benchmark: Benchmark) {
        let mut benchmarks = self.benchmarks.borrow_mut();
        benchmarks.retain(|b| b.id != benchmark.id);
        benchmarks.push(benchmark);
    }

    /// A result of which only its time matters.
    pub(crate) fn row(&self, id: &str, clock: Clock, median_ns: f64) {
        self.plant(self.benchmark(id, clock, median_ns));
    }

    /// What a text plants.
    fn lines(&mut self, text: &str) {
        lines(text).for_each(|line| self.line(line));
    }

    /// What one line of a text plants.
    fn line(&mut self, line: &str) {
        let planted = line.split(" => ").next().unwrap();
        let words: Vec<&str> = planted.split_whitespace().collect();
        let number = |text: &str| {
            text.parse::<f64>()
                .unwrap_or_else(|_| panic!("{line}: {text}"))
        };
        match words[..] {
            ["says" | "omits" | "silent", ..] => {}
            ["run"] => self.next_run(self.runs.len() as u32),
            ["ceiling", name, value, unit] => {
                let ceiling = Ceiling {
                    value: number(value),
                    unit: unit.into(),
                    method: String::new(),
                };
                self.run().ceilings.insert(name.into(), ceiling);
            }
            ["curve", name, ref points @ ..] => {
                let points = points.iter().map(|point| {
                    let (bytes, rate) = point.split_once(':').unwrap();
                    let (bytes, rate) = (number(bytes) as u64, number(rate));
                    BandwidthPoint { bytes, rate }
                });
                let curve = BandwidthCurve {
                    points: points.collect(),
                    method: String::new(),
                };
                self.run().curves.insert(name.into(), curve);
            }
            [id, clock, ns, ref figures @ ..] => {
                let mut planted = self.benchmark(id, clock.parse().unwrap(), number(ns));
                for figure in figures {
                    let (key, value) = figure.split_once('=').unwrap();
                    let value = number(value);
                    let cost = &mut planted.cost;
                    let link = || cost.link_bytes.unwrap_or_default();
                    match key {
                        "flop" => cost.flop = Some(value),
                        "bytes" => cost.bytes = Some(value),
                        "written" => cost.written = Some(value),
                        "launches" => cost.launches = Some(value as u32),
                        "up" => cost.link_bytes = Some(LinkBytes::new(value, link().to_host)),
                        "down" => cost.link_bytes = Some(LinkBytes::new(link().to_device, value)),
                        key => drop(planted.extra.insert(key.to_owned(), value)),
                    }
                }
                self.plant(planted);
            }
            _ => panic!("{line}"),
        }
    }

    /// Processes of the last run measured this.
    pub(crate) fn confirm(&mut self, confirmation: Confirmation) {
        self.run().confirmations.push(confirmation);
    }

    /// The machine as it is so far.
    pub(crate) fn machine(&self) -> MachineResults {
        let benchmarks = self.benchmarks.borrow().clone();
        MachineResults::of(self.runs.clone(), benchmarks, "here", false)
    }
}

/// A machine and its findings.
pub(crate) fn machine(plant: impl FnOnce(&mut Fixture)) -> (MachineResults, Vec<Finding>) {
    let mut f = Fixture::new();
    plant(&mut f);
    let machine = f.machine();
    let found = crossover_answer::find(&machine, &[]);
    let findings = super::findings::find(&Context {
        machine: &machine.steady(),
        found: &found,
    });
    (machine, findings)
}

/// Plants what the text describes, and checks what it expects.
#[track_caller]
pub(crate) fn check(text: &str) {
    check_with(|_| {}, text);
}

/// The same of a machine on which more is planted.
#[track_caller]
pub(crate) fn check_with(plant: impl FnOnce(&mut Fixture), text: &str) {
    let (machine, findings) = machine(|f| {
        plant(f);
        f.lines(text);
    });
    let ids: Vec<&str> = findings.iter().map(|f| f.id.as_str()).collect();
    let text_of = |id: &str| {
        let finding = findings.iter().find(|f| f.id == id);
        let finding = finding.unwrap_or_else(|| panic!("no {id} among {ids:?}"));
        assert!(!finding.benchmarks.is_empty());
        finding.text.as_str()
    };
    for line in lines(text) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "says" | "omits" => {
                let (id, words) = rest.split_once(": ").unwrap();
                let text = text_of(id);
                for words in words.split(" | ") {
                    assert_eq!(text.contains(words), word == "says", "{words:?} in: {text}");
                }
            }
            "silent" => assert!(
                !ids.iter().any(|id| id.starts_with(rest)),
                "{rest}: {ids:?}"
            ),
            id => {
                if let Some((_, words)) = rest.split_once("=> ") {
                    let share = share(&machine, id).map(|share| share.words());
                    assert_eq!(share.as_deref().unwrap_or("none"), words, "{id}");
                }
            }
        }
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// The share of its limit that a benchmark reaches.
pub(crate) fn share(machine: &MachineResults, id: &str) -> Option<Share> {
    let benchmark = machine.benchmarks().find(|b| b.id == id).unwrap();
    let group = machine.group(&benchmark.group).unwrap();
    let mut series = group.series.iter();
    let series = series
        .find(|s| s.points.iter().any(|b| b.id == id))
        .unwrap();
    crate::analysis::limits::share(series, benchmark, machine)
}

pub(crate) fn near(value: f64, planted: f64) {
    assert!(
        (value / planted - 1.0).abs() < 1e-9,
        "{value} is not {planted}"
    );
}
