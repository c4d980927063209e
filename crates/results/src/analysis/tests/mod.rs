//! Answers, limits and findings of planted machines. `planted.txt` has a machine per section:
//!
//! ```text
//! # The machine: comments begin a section
//! run                                      the following is of another run
//! gpu COMPUTE_CAPABILITY                   another GPU
//! ceiling NAME VALUE UNIT
//! curve NAME BYTES:RATE BYTES:RATE
//! role GROUP/FUNCTION JSON                 of a row that the suite does not have
//! GROUP/FUNCTION CLOCK SIZE:NS SIZE:NS     benchmarks
//! ID CLOCK NS KEY=VALUE                    a benchmark with its cost and other figures
//! ID CLOCK NS KEY=VALUE => WORDS           and its share of a limit; `none` without one
//! unsteady START                           the benchmarks whose ids begin so are unsteady
//! confirm PERCENT ..                       processes, see `answers::queued`
//! limit NAME VALUE                         a ceiling, or the number of points of a curve, or `none`
//! answer WORDS                             the first answer is this, see `answers::words`
//! beyond GROUP/FUNCTION WORDS              its rate is above a limit, or `none`
//! pays after CALLS                         the first use of the GPU, for the first answer
//! says FINDING: WORDS | WORDS              the finding has these words
//! omits FINDING: WORDS                     the finding does not have these words
//! silent START                             no finding begins so
//! ```

mod answers;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use crate::analysis::answer::crossover_answer;
use crate::analysis::findings::finding::{Context, Finding};
use crate::analysis::rate::{self, RateKind};
use crate::analysis::{limits, reuse, telemetry};
use crate::model::id::Id;
use crate::model::record::{BandwidthCurve, BandwidthPoint, MeasuredLimit, RunRecord};
use crate::model::role::Role;
use crate::model::{Energy, LinkBytes, Sidecar};
use crate::model::{TelemetryEvent, TelemetryEventKind};
use crate::store::curves::Benchmark;
use crate::store::curves::tests::benchmark;
use crate::store::machine_record;
use crate::store::machine_results::MachineResults;
use crate::store::stored_results::StoredResults;
use crossover_words::Clock;

/// The newest committed record.
pub(crate) const NEWEST: &str =
    "nvidia-h200--intel-xeon-processor/20261129T104025Z--55c5f5b6aadc.json.gz";

/// The record whose machine planted results are of.
pub(crate) const H100: &str =
    "nvidia-h100-80gb-hbm3--intel-xeon-processor/20261126T041543Z--bad4b16e8941.json.gz";

/// The folder of the committed records.
pub(crate) fn machines() -> PathBuf {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target-reports/machines");
    let root = PathBuf::from(root);
    assert!(root.is_dir(), "only a checkout has the records");
    root
}

/// Its machine, its groups and the roles of its rows are those of planted results.
static RECORD: LazyLock<StoredResults> =
    LazyLock::new(|| machine_record::read(&machines().join(H100)).unwrap());

/// A run that began at this second and has measured nothing yet.
fn fresh(second: usize) -> RunRecord {
    RunRecord {
        run: format!("run {second}"),
        started: format!("2026-01-02T03:04:{second:02}Z"),
        limits: BTreeMap::new(),
        curves: BTreeMap::new(),
        confirmations: Vec::new(),
        ..RECORD.runs[0].clone()
    }
}

/// A machine in the making: its runs, the last of which measures, and its results.
struct Fixture {
    runs: Vec<RunRecord>,
    benchmarks: Vec<Benchmark>,
    roles: BTreeMap<String, Role>,
}

impl Fixture {
    fn of(text: &str) -> Self {
        let of_row = |b: &Benchmark| Some((b.id.rsplit_once('/')?.0.to_owned(), b.role.clone()));
        let mut fixture = Self {
            runs: vec![fresh(0)],
            benchmarks: Vec::new(),
            roles: RECORD.benchmarks.iter().filter_map(of_row).collect(),
        };
        fixture.lines(text);
        fixture
    }

    fn lines(&mut self, text: &str) {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            self.line(line).unwrap_or_else(|| panic!("{line}"));
        }
    }

    fn run(&mut self) -> &mut RunRecord {
        self.runs.last_mut().unwrap()
    }

    /// A result of the last run, in place of one of the same id.
    fn plant(&mut self, id: &str, clock: Clock, ns: f64) -> &mut Benchmark {
        let mut sidecar = Sidecar::of(id, clock);
        sidecar.run = self.run().run.clone();
        let row = self.roles.get(id.rsplit_once('/').unwrap().0);
        sidecar.role = row.unwrap_or(&sidecar.role).clone();
        let mut benchmark = benchmark(id, &[ns], Some(sidecar));
        benchmark.interval_ns = Some((0.996 * ns, 1.004 * ns));
        self.benchmarks.retain(|b| b.id != id);
        self.benchmarks.push(benchmark);
        self.benchmarks.last_mut().unwrap()
    }

    /// What one line of a text plants.
    fn line(&mut self, line: &str) -> Option<()> {
        let planted = line.split(" => ").next()?;
        let words: Vec<&str> = planted.split_whitespace().collect();
        let number = |text: &str| text.parse::<f64>().ok();
        let pair = |text: &str| {
            let (a, b) = text.split_once(':')?;
            Some((a.to_owned(), number(b)?))
        };
        match words[..] {
            [
                "says" | "omits" | "silent" | "limit" | "answer" | "beyond" | "pays",
                ..,
            ] => {}
            ["run"] => self.runs.push(fresh(self.runs.len())),
            ["gpu", capability] => {
                let (major, minor) = capability.split_once('.')?;
                let gpu = self.run().environment.gpu.as_mut()?;
                gpu.compute_capability = (major.parse().ok()?, minor.parse().ok()?);
            }
            ["ceiling", name, value, unit] => {
                let limit = MeasuredLimit {
                    value: number(value)?,
                    unit: unit.into(),
                    method: String::new(),
                };
                self.run().limits.insert(name.into(), limit);
            }
            ["curve", name, ref points @ ..] => {
                let point = |point| {
                    let (bytes, rate) = pair(point)?;
                    let bytes = bytes.parse().ok()?;
                    Some(BandwidthPoint { bytes, rate })
                };
                let curve = BandwidthCurve {
                    points: points.iter().map(|p| point(p)).collect::<Option<_>>()?,
                    method: String::new(),
                };
                self.run().curves.insert(name.into(), curve);
            }
            ["role", row, ..] => {
                let role = line.split_once('{')?.1;
                let role = serde_json::from_str(&format!("{{{role}")).ok()?;
                self.roles.insert(row.into(), role);
            }
            ["unsteady", start] => {
                let all = self.benchmarks.iter_mut();
                all.filter(|b| b.id.starts_with(start))
                    .for_each(|b| b.unsteady = Some("two modes".into()));
            }
            ["confirm", ref percent @ ..] => {
                let percent = percent.iter().map(|text| number(text));
                let asked = answers::queued(percent.collect::<Option<_>>()?);
                self.run().confirmations.push(asked);
            }
            [row, clock, ref points @ ..] if points[0].contains(':') => {
                for point in points {
                    let (size, ns) = pair(point)?;
                    self.plant(&format!("{row}/{size}"), Clock::named(clock)?, ns);
                }
            }
            [id, clock, ns, ref figures @ ..] => {
                let benchmark = self.plant(id, Clock::named(clock)?, number(ns)?);
                for figure in figures {
                    let (key, value) = figure.split_once('=')?;
                    add(benchmark, key, number(value)?);
                }
            }
            _ => return None,
        }
        Some(())
    }

    /// The machine as it is so far.
    fn machine(&self) -> MachineResults {
        MachineResults::of(self.runs.clone(), self.benchmarks.clone(), "here", false)
    }
}

/// Adds a figure to a planted benchmark.
fn add(benchmark: &mut Benchmark, key: &str, value: f64) {
    let cost = &mut benchmark.cost;
    let link = cost.link_bytes.unwrap_or_default();
    let seen = benchmark.telemetry.get_or_insert_default();
    match key {
        "flop" => cost.flop = Some(value),
        "bytes" => cost.bytes = Some(value),
        "written" => cost.written = Some(value),
        "launches" => cost.launches = Some(value as u32),
        "up" => cost.link_bytes = Some(LinkBytes::new(value, link.to_host)),
        "down" => cost.link_bytes = Some(LinkBytes::new(link.to_device, value)),
        "idle" | "busy" => {
            seen.sm_clock_mhz.push(Some(value as u32));
            let percent = if key == "idle" { 0 } else { 90 };
            seen.utilisation_percent.push(Some(percent));
        }
        "capped" => {
            seen.sm_clock_mhz = vec![Some(value as u32)];
            seen.events = vec![TelemetryEvent {
                time_ms: 200,
                kind: TelemetryEventKind::ThrottlingSetIn,
                detail: "power cap".into(),
            }];
        }
        // In half a second.
        "iterations" => {
            seen.energy = Some(Energy {
                joules: 0.0,
                seconds: 0.5,
                iterations: value as u64,
            });
        }
        // Of each iteration.
        "joules" => {
            let energy = seen.energy.as_mut().unwrap();
            energy.joules = value * energy.iterations as f64;
        }
        key => drop(benchmark.extra.insert(key.to_owned(), value)),
    }
}

/// The findings of a machine.
pub(crate) fn findings(machine: &MachineResults) -> Vec<Finding> {
    let found = crossover_answer::find(machine, &[]);
    super::findings::find(&Context {
        machine: &machine.steady(),
        found: &found,
    })
}

/// The words of the limit that a benchmark reaches.
fn share(machine: &MachineResults, id: &str) -> Option<String> {
    let of: Id = id.parse().unwrap();
    let series = machine.group(&of.group).unwrap().find(&of.function)?;
    let share = limits::share(series, series.at(of.size)?, machine)?;
    Some(share.words())
}

/// What says that a row is above a limit.
fn beyond(machine: &MachineResults, row: &str) -> Option<String> {
    let (group, function) = row.split_once('/').unwrap();
    let series = machine.group(group).unwrap().find(function).unwrap();
    let exceeded = || limits::exceeded(series, &machine.limits);
    limits::impossible(series, &machine.limits).or_else(|| Some(exceeded()?.words()))
}

/// Plants a section, and checks what it expects.
fn check(text: &str) {
    let machine = Fixture::of(text).machine();
    let findings = findings(&machine);
    if machine.confirmations().next().is_none() {
        let of_findings = findings.iter().flat_map(|f| &f.benchmarks);
        let steady = machine.steady();
        let is_steady = |id: &String| steady.benchmarks().any(|b| b.id == *id);
        assert!(of_findings.into_iter().all(is_steady));
    }
    let ids: Vec<&str> = findings.iter().map(|f| f.id.as_str()).collect();
    for line in text.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "says" | "omits" => {
                let (id, words) = rest.split_once(": ").unwrap();
                let finding = findings.iter().find(|f| f.id == id);
                let finding = finding.unwrap_or_else(|| panic!("no {id} among {ids:?}"));
                assert!(!finding.benchmarks.is_empty());
                for words in words.split(" | ") {
                    let has = finding.text.contains(words);
                    assert_eq!(has, word == "says", "{words:?} in: {}", finding.text);
                }
            }
            "silent" => assert!(!ids.iter().any(|id| id.starts_with(rest)), "{ids:?}"),
            "limit" => {
                let (name, value) = rest.split_once(' ').unwrap();
                let curve = || Some(machine.limits.curves.get(name)?.points.len() as f64);
                let limit = machine.limits.limit(name).or_else(curve);
                assert_eq!(limit, value.parse().ok(), "{name}");
            }
            "answer" => assert_eq!(answers::words(&machine), rest),
            "beyond" => {
                let (row, words) = rest.split_once(' ').unwrap();
                let said = beyond(&machine, row).unwrap_or("none".into());
                assert!(said.starts_with(words), "{row}: {said}");
            }
            "pays" => {
                let reuse = reuse::find(&machine, &crossover_answer::find(&machine, &[]));
                let calls = reuse[0].rows[0].calls.unwrap();
                assert_eq!(format!("after {calls:.3}"), rest);
            }
            id => {
                if let Some((_, words)) = rest.split_once("=> ") {
                    assert_eq!(share(&machine, id).as_deref().unwrap_or("none"), words);
                }
            }
        }
    }
}

#[test]
fn planted_machines_have_what_is_written_beside_them() {
    let sections = include_str!("planted.txt").split("\n\n");
    for section in sections {
        let (titles, text): (Vec<&str>, Vec<&str>) =
            section.lines().partition(|line| line.starts_with("# "));
        let checked = std::panic::catch_unwind(|| check(&text.join("\n")));
        checked.unwrap_or_else(|_| panic!("in the section {titles:#?}"));
    }
}

#[test]
fn throttling_and_energy_may_be_unknown() {
    let mut fixture = Fixture::of("");
    for (clock, throttling_unknown, throttled, energy) in [
        (Clock::EventsGated, false, Some(false), Some(1.5)),
        (Clock::Submit, true, None, None),
    ] {
        let benchmark = fixture.plant("matmul/gpu/cublas/8192", clock, 5e6);
        add(benchmark, "iterations", 100.0);
        add(benchmark, "joules", 1.5);
        benchmark.telemetry.as_mut().unwrap().throttling_unknown = throttling_unknown;
        assert_eq!(telemetry::throttled(benchmark), throttled);
        assert_eq!(telemetry::energy_j(benchmark), energy);
    }
}

#[test]
fn a_group_has_the_rate_that_all_its_curves_have() {
    for (gpu_flop, wanted) in [("", RateKind::Bytes), ("flop=80e3", RateKind::Flop)] {
        let text = format!(
            "nested_sine/cpu/simd/1000 wall 1e3 bytes=8e3 flop=80e3
            nested_sine/gpu/fused/1000 wall 1e3 bytes=8e3 {gpu_flop}"
        );
        let machine = Fixture::of(&text).machine();
        let work = rate::work(&[machine.group("nested_sine").unwrap()]);
        assert_eq!(work, Some(wanted));
    }
}
