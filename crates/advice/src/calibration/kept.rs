//! The file of a calibration: thresholds of one machine, with an operation for each closure but the first.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::calibration::measure::Measured;
use crate::thresholds::{Choice, Operation, Place, Point, SCHEMA, Thresholds};
use crate::{Advice, HostInfo};

/// The longest part of a file's name that comes from the name of the calibration, bytes.
const LONGEST: usize = 80;

/// The calibrations of this user.
pub(super) fn folder() -> Option<PathBuf> {
    Some(Advice::data_file()?.with_file_name("calibrations"))
}

/// Processes that measure at most, until all sizes are decided on a quiet machine.
const MOST_ATTEMPTS: u32 = 4;

/// A calibration as the file has it: thresholds, and how they came about.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Kept {
    #[serde(flatten)]
    pub(super) thresholds: Thresholds,
    /// Processes that measured.
    pub(super) attempts: u32,
    /// Cores that other programs used during the last measurement, if they left too few.
    pub(super) disturbed_by: Option<f64>,
    /// Extra time of the first call of each closure in the process that measured last, ns.
    pub(super) first_call_ns: Vec<f64>,
}

impl Kept {
    /// The points of each closure but the first.
    pub(super) fn points(&self) -> Vec<Vec<Point>> {
        let operations = self.thresholds.operations.iter();
        operations
            .map(|operation| operation.places[0].points.clone())
            .collect()
    }

    /// The sizes that a further process measures again: undecided ones, or all after a disturbance.
    pub(super) fn open(&self, sizes: &[usize]) -> Vec<usize> {
        let points = self.points();
        let is_open = |size: &usize| {
            let at = points
                .iter()
                .flatten()
                .filter(|point| point.size == *size as f64);
            self.disturbed_by.is_some() || at.clone().any(|point| point.choice() == Choice::Unsure)
        };
        let tries_again = self.attempts < MOST_ATTEMPTS;
        sizes
            .iter()
            .copied()
            .filter(|size| tries_again && is_open(size))
            .collect()
    }
}

/// The points of earlier processes with those of one more, at some of the sizes.
fn combined(mut points: Vec<Vec<Point>>, new: &[Vec<Point>]) -> Vec<Vec<Point>> {
    for (points, new) in points.iter_mut().zip(new) {
        for point in points {
            if let Some(new) = new.iter().find(|new| new.size == point.size) {
                *point = mean(point, new);
            }
        }
    }
    points
}

/// The mean of a point of some processes and a point of one more.
fn mean(earlier: &Point, new: &Point) -> Point {
    let (a, b) = (earlier.processes as f64, new.processes as f64);
    let ns = |earlier: f64, new: f64| ((a * earlier.ln() + b * new.ln()) / (a + b)).exp();
    let (cpu_ns, gpu_ns) = (
        ns(earlier.cpu_ns, new.cpu_ns),
        ns(earlier.gpu_ns, new.gpu_ns),
    );
    // The processes are independent, so halves of their intervals add as squares.
    let half = |end: fn(&Point) -> f64| {
        let distance = |point: &Point| (end(point) * point.gpu_ns / point.cpu_ns).ln();
        (a * distance(earlier)).hypot(b * distance(new)) / (a + b)
    };
    let speedup = cpu_ns / gpu_ns;
    Point {
        size: new.size,
        cpu_ns,
        gpu_ns,
        low: speedup * (-half(|point| point.low)).exp(),
        high: speedup * half(|point| point.high).exp(),
        processes: earlier.processes + new.processes,
    }
}

/// The name, closures, sizes, version, profile and machine that a result holds for.
pub(super) struct Key {
    pub(super) name: String,
    /// Version of the code, from the caller.
    version: String,
    /// Names of the closures.
    pub(super) names: Vec<String>,
    sizes: Vec<usize>,
    here: HostInfo,
}

impl Key {
    pub(super) fn new(
        name: String,
        names: Vec<String>,
        sizes: &[usize],
        version: String,
        threads: Option<usize>,
    ) -> Self {
        let mut here = HostInfo::detect();
        let of_rayon = || std::env::var("RAYON_NUM_THREADS").ok()?.parse().ok();
        let threads = threads.or_else(|| of_rayon().filter(|threads| *threads > 0));
        here.threads = threads.or(here.threads);
        Self {
            name,
            version,
            names,
            sizes: sizes.to_vec(),
            here,
        }
    }

    /// The threads that the closures use.
    pub(super) fn threads(&self) -> usize {
        self.here.threads.unwrap_or(1)
    }

    pub(super) fn file_name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        let here = &self.here;
        (&self.name, &self.names, &self.sizes).hash(&mut hasher);
        (&here.cpu, here.threads, &here.gpus).hash(&mut hasher);
        // Code without optimisation is up to a hundred times slower. Cargo's profiles differ in this.
        (&self.version, cfg!(debug_assertions)).hash(&mut hasher);
        let keep = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = self.name.chars().map(keep).take(LONGEST).collect();
        format!("{name}-{:016x}.json", hasher.finish())
    }

    /// The result of an earlier process; `None` if there is no such file, or if it is damaged or another
    /// machine's.
    pub(super) fn read(&self, path: &Path) -> Option<Kept> {
        let kept: Kept = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        let advice = Advice::new(kept.thresholds.clone()).ok()?.check(&self.here);
        let has_places = advice
            .thresholds()
            .operations
            .iter()
            .all(|operation| operation.places.len() == 1);
        let is_whole = has_places && kept.first_call_ns.len() == self.names.len();
        let is_other = advice.concerns().iter().any(|it| it.is_other_machine());
        let operations = advice.thresholds().operations.iter();
        let names = operations.map(|operation| operation.sides.as_ref().map(|[_, name]| name));
        let is_ours = names.eq(self.names[1..].iter().map(Some));
        (is_ours && is_whole && !is_other).then_some(kept)
    }

    /// The result with what one more process measured; an error if no process measured every size.
    pub(super) fn renewed(
        &self,
        earlier: Option<&Kept>,
        measured: Measured,
        disturbed_by: Option<f64>,
        budget: Duration,
    ) -> Result<Kept, String> {
        let Some(earlier) = earlier else {
            if measured.is_complete {
                return Ok(Kept {
                    thresholds: self.thresholds(measured.points),
                    attempts: 1,
                    disturbed_by,
                    first_call_ns: measured.first_call_ns,
                });
            }
            return Err(format!(
                "{} ms were over before every size was measured; the next process tries again: give it more \
                 time, fewer sizes or smaller ones",
                budget.as_millis()
            ));
        };
        let mut kept = Kept {
            attempts: earlier.attempts + 1,
            ..earlier.clone()
        };
        // Times from beside other programs do not count if there are others.
        if measured.is_complete && (disturbed_by.is_none() || earlier.disturbed_by.is_some()) {
            let points = match earlier.disturbed_by {
                Some(_) => measured.points,
                None => combined(earlier.points(), &measured.points),
            };
            kept.thresholds = self.thresholds(points);
            (kept.disturbed_by, kept.first_call_ns) = (disturbed_by, measured.first_call_ns);
        }
        Ok(kept)
    }

    /// The points of each closure but the first, as a file of thresholds.
    pub(super) fn thresholds(&self, points: Vec<Vec<Point>>) -> Thresholds {
        let operation = |(at, points): (usize, Vec<Point>)| {
            let mut place = Place {
                cpu: self.names[0].clone(),
                gpu: self.names[at + 1].clone(),
                clock: "wall".to_owned(),
                points,
                ..Place::default()
            };
            place.find_ends([]);
            Operation {
                // Closures may have one name.
                name: at.to_string(),
                title: self.name.clone(),
                size: "size".to_owned(),
                sides: Some([place.cpu.clone(), place.gpu.clone()]),
                places: vec![place],
                ..Operation::default()
            }
        };
        // If one closure lacks points, none can be called the fastest.
        let is_measured = !points.iter().any(Vec::is_empty);
        let measured = points.into_iter().enumerate().filter(|_| is_measured);
        Thresholds {
            schema: SCHEMA,
            crossover: env!("CARGO_PKG_VERSION").to_owned(),
            machine: self.here.clone().into(),
            operations: measured.map(operation).collect(),
            ..Thresholds::default()
        }
    }
}

/// Writes a whole file or none: another process reads the old one or the new one.
pub(super) fn write(path: Option<&Path>, kept: &Kept) -> Result<(), String> {
    let path = path.ok_or(
        "the result holds for this process alone: without HOME and XDG_DATA_HOME there is no data folder; set \
         one of them, or name a folder",
    )?;
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    let count = WRITTEN.fetch_add(1, Ordering::Relaxed);
    // Processes in two containers may have the same number.
    let now = SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap_or_default()
        .as_nanos();
    let temporary = path.with_extension(format!("{}-{now}-{count}.tmp", std::process::id()));
    let write = || -> io::Result<()> {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        fs::write(&temporary, serde_json::to_vec(kept)?)?;
        fs::rename(&temporary, path)
    };
    write().map_err(|error| {
        // A file that was never written is nothing to remove.
        let _ = fs::remove_file(&temporary);
        let path = path.display();
        format!("the result holds for this process alone: {path}: {error}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closure_without_points_leaves_no_decision() {
        let names = ["one", "two", "two"].map(str::to_owned).into();
        let key = Key::new("planted".to_owned(), names, &[10], String::new(), None);
        let point = Point {
            size: 10.0,
            cpu_ns: 10.0,
            gpu_ns: 1.0,
            low: 9.0,
            high: 11.0,
            processes: 1,
        };
        let operations = |points| {
            let advice = Advice::new(key.thresholds(points)).expect("closures may have one name");
            advice.thresholds().operations.len()
        };
        assert_eq!(operations(vec![vec![point], vec![point]]), 2);
        // The second is not the first.
        assert_eq!(operations(vec![vec![], vec![point]]), 0);
    }
}
