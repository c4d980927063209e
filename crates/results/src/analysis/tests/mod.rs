//! Answers, limits, bottlenecks and findings of planted machines, as plain values.

mod answers;
mod findings;
mod lessons;
mod limits;
mod precision;
mod telemetry;

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde::Deserialize;

use crate::analysis::answer::crossover_answer;
use crate::analysis::findings::finding::{Context, Finding};
use crate::analysis::{bottleneck, reuse};
use crate::model::environment::{Cpu, Environment, GpuInfo};
use crate::model::group_info::GroupInfo;
use crate::model::id::Id;
use crate::model::record::{BandwidthCurve, BandwidthPoint, Ceiling, Confirmation, RunRecord};
use crate::model::role::Role;
use crate::model::{Cost, SCHEMA, Telemetry};
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

/// One planted result.
pub(crate) struct Planted<'a> {
    pub(crate) id: &'a str,
    pub(crate) clock: Clock,
    pub(crate) median_ns: f64,
    pub(crate) cost: Cost,
    pub(crate) telemetry: Option<Telemetry>,
    pub(crate) extra: BTreeMap<String, f64>,
    /// `None` for that of the row of this name in the suite.
    pub(crate) role: Option<Role>,
    pub(crate) unsteady: Option<String>,
}

impl<'a> Planted<'a> {
    pub(crate) fn new(id: &'a str, clock: Clock, median_ns: f64) -> Self {
        Self {
            id,
            clock,
            median_ns,
            cost: Cost::default(),
            telemetry: None,
            extra: BTreeMap::new(),
            role: None,
            unsteady: None,
        }
    }

    pub(crate) fn cost(mut self, cost: Cost) -> Self {
        self.cost = cost;
        self
    }
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

    pub(crate) fn ceiling(&mut self, name: &str, value: f64, unit: &str) {
        let ceiling = Ceiling {
            value,
            unit: unit.into(),
            method: String::new(),
        };
        self.run().ceilings.insert(name.into(), ceiling);
    }

    /// Bandwidth over the working set, B/s by bytes.
    pub(crate) fn bandwidth(&mut self, name: &str, points: &[(u64, f64)]) {
        let point = |&(bytes, rate): &(u64, f64)| BandwidthPoint { bytes, rate };
        let curve = BandwidthCurve {
            points: points.iter().map(point).collect(),
            method: String::new(),
        };
        self.run().curves.insert(name.into(), curve);
    }

    /// A group declares this.
    pub(crate) fn topic(&mut self, topic: GroupInfo) {
        self.run().groups.push(topic);
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

    /// Replaces a result of the same id.
    pub(crate) fn plant(&self, planted: &Planted) {
        let id: Id = planted.id.parse().unwrap();
        let (device, implementation) = crate::model::id::function(&id.function).unwrap();
        let known = self
            .suite
            .roles
            .get(&id.group)
            .and_then(|rows| rows.get(&id.function));
        let plain = if planted.id.contains("/gpu/") {
            Role::gpu()
        } else {
            Role::cpu()
        };
        let mut benchmarks = self.benchmarks.borrow_mut();
        benchmarks.retain(|b| b.id != planted.id);
        benchmarks.push(Benchmark {
            id: planted.id.to_owned(),
            implementation: implementation.to_owned(),
            device,
            size: id.size,
            group: id.group,
            clock: Some(planted.clock),
            median_ns: planted.median_ns,
            mean_ns: None,
            interval_ns: Some((0.996 * planted.median_ns, 1.004 * planted.median_ns)),
            between_processes: 0.0,
            spread: None,
            unsteady: planted.unsteady.clone(),
            samples: Some(30),
            cost: planted.cost,
            role: planted
                .role
                .clone()
                .or_else(|| known.cloned())
                .unwrap_or(plain),
            verified: None,
            throttle_reasons: None,
            telemetry: planted.telemetry.clone(),
            extra: planted.extra.clone(),
            choices: BTreeMap::new(),
            notes: Vec::new(),
            run: self.runs.last().map(|run| run.run.clone()),
            dir: Default::default(),
        });
    }

    /// A result of which only its time matters.
    pub(crate) fn row(&self, id: &str, clock: Clock, median_ns: f64) {
        self.plant(&Planted::new(id, clock, median_ns));
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
    let reuse = reuse::find(&machine, &found);
    let findings = super::findings::find(&Context {
        machine: &machine.steady(),
        found: &found,
        reuse: &reuse,
    });
    (machine, findings)
}

/// An iteration's launches may be its limit, and take all of its time at most.
#[test]
fn a_kernel_is_limited_by_its_launch_then_by_what_it_does() {
    let (machine, _) = machine(|f| {
        f.ceiling("launch_latency", 2450.0, "ns");
        f.ceiling("empty_kernel", 1380.0, "ns");
        let product = |n: f64, launches| Cost {
            flop: Some(2.0 * n.powi(3)),
            launches: Some(launches),
            ..Cost::default()
        };
        for (id, clock, ns, cost) in [
            (
                "matmul/gpu/cublas/4",
                Clock::EventsGated,
                1900.0,
                product(4.0, 1),
            ),
            (
                "matmul/gpu/cublas/8192",
                Clock::EventsGated,
                2.2e7,
                product(8192.0, 1),
            ),
            (
                "matmul/gpu/cublas-eager/4",
                Clock::Events,
                4400.0,
                product(4.0, 1),
            ),
            (
                "matmul/gpu/submit/4",
                Clock::Submit,
                4400.0,
                product(4.0, 1),
            ),
            ("mine/gpu/many/8", Clock::Events, 1e3, product(8.0, 1000)),
            ("matmul/cpu/best/4", Clock::Wall, 10.0, product(4.0, 1)),
        ] {
            f.plant(&Planted::new(id, clock, ns).cost(cost));
        }
    });
    let limit = |id: &str| {
        let (group, rest) = id.split_once('/').unwrap();
        let (name, size) = rest.rsplit_once('/').unwrap();
        let series = machine.group(group).unwrap().find(name).unwrap();
        let found = bottleneck::of(series, series.at(size.parse().unwrap()).unwrap(), &machine)?;
        Some((
            found.kind.name(),
            found.share.map(|share| (100.0 * share).round()),
        ))
    };
    assert_eq!(limit("matmul/gpu/cublas/4"), Some(("launch", Some(73.0))));
    assert_eq!(
        limit("matmul/gpu/cublas-eager/4"),
        Some(("launch", Some(56.0)))
    );
    assert_eq!(
        limit("matmul/gpu/cublas/8192").map(|found| found.0),
        Some("compute")
    );
    assert_eq!(limit("mine/gpu/many/8"), Some(("launch", Some(100.0))));
    // A clock that measures no work has no limit, and the CPU launches nothing.
    assert_eq!(limit("matmul/gpu/submit/4"), None);
    assert_eq!(limit("matmul/cpu/best/4"), None);
}
