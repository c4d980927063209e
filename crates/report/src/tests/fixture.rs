//! Folders as Criterion and the suite leave them, with planted times.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crossover_results::model::{
    BandwidthCurve, BandwidthPoint, Ceiling, Cost, Cpu, DeviceState, Environment, Failure, GpuInfo,
    GroupInfo, Role, RunRecord, SCHEMA, Sidecar, Skip, Telemetry, Verified,
};
use crossover_results::store::{planted, runs};
use crossover_words::Clock;

/// What the groups and the rows that tests plant by their names say of themselves.
#[derive(Deserialize)]
struct Suite {
    /// In the order in which they are shown.
    groups: Vec<GroupInfo>,
    /// By group, then by function.
    roles: BTreeMap<String, BTreeMap<String, Role>>,
}

impl Suite {
    fn read() -> Self {
        serde_json::from_str(include_str!("planted.json")).expect("the table of planted rows")
    }

    /// The role of the row of this id, where the table knows it.
    fn role(&self, id: &str) -> Option<Role> {
        let (group, rest) = id.split_once('/')?;
        let (function, _) = rest.rsplit_once('/')?;
        self.roles.get(group)?.get(function).cloned()
    }
}

/// A results root in the making.
pub(crate) struct Fixture {
    root: PathBuf,
    run: RunRecord,
    suite: Suite,
}

/// One planted result.
pub(crate) struct Planted<'a> {
    pub id: &'a str,
    pub clock: Option<Clock>,
    pub median_ns: f64,
    /// Half the confidence interval over the median.
    pub noise: f64,
    pub cost: Cost,
    pub error: f64,
    pub telemetry: Option<Telemetry>,
    pub extra: BTreeMap<String, f64>,
    /// `None` for that of the row of this name in the suite.
    pub role: Option<Role>,
    pub unsteady: Option<String>,
}

impl<'a> Planted<'a> {
    pub(crate) fn new(id: &'a str, clock: Clock, median_ns: f64) -> Self {
        Self {
            id,
            clock: Some(clock),
            median_ns,
            noise: 0.004,
            cost: Cost::default(),
            error: 1.5e-7,
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
    pub(crate) fn new(root: &Path, gpu: Option<&str>) -> Self {
        let run = RunRecord {
            schema: SCHEMA,
            run: "20260102T030405Z-1".into(),
            started: "2026-01-02T03:04:05Z".into(),
            finished: Some("2026-01-02T03:09:05Z".into()),
            profile: "default".into(),
            arguments: vec!["--bench".into()],
            environment: Environment {
                crossover: "0.1.0".into(),
                commit: Some("0123456789abcdef".into()),
                dirty: Some(false),
                os: Some("Linux 6.18".into()),
                cpu: Cpu {
                    model: "Example CPU 9000".into(),
                    physical_cores: Some(8),
                    logical_cores: 16,
                    usable_cores: 16,
                    vector_extensions: vec!["avx2".into(), "fma".into()],
                    memory_bytes: Some(64_000_000_000),
                    ..Cpu::default()
                },
                gpu: gpu.map(|name| GpuInfo {
                    name: name.into(),
                    compute_capability: (9, 0),
                    multiprocessors: 132,
                    memory_bytes: 143_000_000_000,
                    l2_bytes: Some(50_000_000),
                    max_sm_clock_mhz: Some(1980),
                    driver: Some("580.1".into()),
                    power_limit_w: Some(700.0),
                    cuda: Some((13, 0)),
                    ..GpuInfo::default()
                }),
                gpu_absent: gpu.is_none().then(|| "no NVIDIA driver found".into()),
                ..Environment::default()
            },
            ..RunRecord::default()
        };
        fs::create_dir_all(root).expect("a temporary folder can be written");
        let fixture = Self {
            root: root.into(),
            run,
            suite: Suite::read(),
        };
        fixture.write_run();
        fixture
    }

    fn write_run(&self) {
        let mut run = self.run.clone();
        run.groups.extend(self.suite.groups.iter().cloned());
        runs::write(&run, &self.root).expect("run record");
    }

    pub(crate) fn ceiling(&mut self, name: &str, value: f64, unit: &str) {
        let ceiling = Ceiling {
            value,
            unit: unit.into(),
            method: format!("{name}, planted"),
        };
        self.run.ceilings.insert(name.into(), ceiling);
        self.write_run();
    }

    /// The run planned this, and did not get to its end.
    pub(crate) fn unfinished(&mut self, planned: &[&str]) {
        self.run.finished = None;
        self.run.planned = planned.iter().map(|id| id.to_string()).collect();
        self.write_run();
    }

    /// Bandwidth over the working set, B/s by bytes.
    pub(crate) fn bandwidth(&mut self, name: &str, points: &[(u64, f64)]) {
        let points = points.iter();
        let curve = BandwidthCurve {
            points: points
                .map(|&(bytes, rate)| BandwidthPoint { bytes, rate })
                .collect(),
            method: format!("{name}, planted"),
        };
        self.run.curves.insert(name.into(), curve);
        self.write_run();
    }

    /// Has what follows be of another run, which has measured nothing yet, some seconds later.
    pub(crate) fn next_run(&mut self, seconds: u32) {
        self.run.run = format!("20260102T0304{seconds:02}Z-1");
        self.run.started = format!("2026-01-02T03:04:{seconds:02}Z");
        self.run.ceilings.clear();
        self.run.curves.clear();
        self.write_run();
    }

    /// The run was one of this profile.
    pub(crate) fn profile(&mut self, profile: &str) {
        self.run.profile = profile.to_owned();
        self.write_run();
    }

    /// Changes the GPU.
    pub(crate) fn gpu(&mut self, change: impl FnOnce(&mut GpuInfo)) {
        change(self.run.environment.gpu.as_mut().expect("there is one"));
        self.write_run();
    }

    pub(crate) fn skip(&mut self, id: &str, reason: &str) {
        self.run.skipped.push(Skip {
            id: id.into(),
            reason: reason.into(),
        });
        self.write_run();
    }

    pub(crate) fn fail(&mut self, id: &str, error: &str) {
        self.run.failed.push(Failure {
            id: id.into(),
            error: error.into(),
        });
        self.write_run();
    }

    /// The `new` folder of an id.
    pub(crate) fn dir(&self, id: &str) -> PathBuf {
        let (group, rest) = id.split_once('/').expect("an id has a group");
        let (function, value) = rest.rsplit_once('/').expect("an id has a size");
        let safe = |s: &str| s.replace(['?', '"', '/', '\\', '*', '<', '>', ':', '|', '^'], "_");
        self.root
            .join(safe(group))
            .join(safe(function))
            .join(safe(value))
            .join("new")
    }

    pub(crate) fn plant(&self, p: &Planted) {
        // The two in the middle are the median, and its interval reaches from the 10th to the 21st.
        let times: Vec<f64> = (0..30)
            .map(|i| p.median_ns * 10.0 * (1.0 + p.noise * f64::from(i - 14 - i / 15) / 5.0))
            .collect();
        let sidecar = p.clock.map(|clock| {
            let known = planted::sidecar(p.id, clock);
            let gpu = known.role.launches.is_some();
            Sidecar {
                cost: p.cost,
                role: (p.role.clone())
                    .or_else(|| self.suite.role(p.id))
                    .unwrap_or(known.role),
                verified: Some(Verified {
                    error: p.error,
                    bound: 10.0 * p.error,
                    method: "max relative error".into(),
                }),
                device_state: gpu.then(|| DeviceState {
                    sm_clock_mhz: Some(1980),
                    throttle_reasons: p.telemetry.is_none().then(Vec::new),
                }),
                monitor: p.telemetry.clone(),
                unsteady: p.unsteady.clone(),
                extra: p.extra.clone(),
                run: self.run.run.clone(),
                ..known
            }
        });
        planted::plant(&self.dir(p.id), p.id, &[10.0; 30], &times, sidecar);
    }

    /// A result of which only its time matters.
    pub(crate) fn row(&self, id: &str, clock: Clock, median_ns: f64) {
        self.plant(&Planted::new(id, clock, median_ns));
    }

    /// A curve over sizes.
    pub(crate) fn curve(
        &self,
        series: &str,
        clock: Clock,
        sizes: &[u64],
        time_ns: impl Fn(f64) -> f64,
        cost: impl Fn(f64) -> Cost,
    ) {
        for &size in sizes {
            let id = format!("{series}/{size}");
            let x = size as f64;
            self.plant(&Planted::new(&id, clock, time_ns(x)).cost(cost(x)));
        }
    }
}
