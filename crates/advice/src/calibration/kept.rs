//! The file of a calibration: thresholds of one machine, with an operation for each closure but the first.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use crate::thresholds::{Operation, Place, Point, SCHEMA, Thresholds};
use crate::{Advice, HostInfo};

/// The longest part of a file's name that comes from the name of the calibration, bytes.
const LONGEST: usize = 80;

/// The calibrations of this user.
pub(super) fn folder() -> Option<PathBuf> {
    Some(Advice::data_file()?.with_file_name("calibrations"))
}

/// The name, closures, sizes and machine that a result holds for.
pub(super) struct Key {
    pub(super) name: String,
    /// Of the closures.
    pub(super) names: Vec<String>,
    sizes: Vec<usize>,
    here: HostInfo,
}

impl Key {
    pub(super) fn new(
        name: String,
        names: Vec<String>,
        sizes: &[usize],
        threads: Option<usize>,
    ) -> Self {
        let mut here = HostInfo::detect();
        let of_rayon = || std::env::var("RAYON_NUM_THREADS").ok()?.parse().ok();
        let threads = threads.or_else(|| of_rayon().filter(|threads| *threads > 0));
        here.threads = threads.or(here.threads);
        Self {
            name,
            names,
            sizes: sizes.to_vec(),
            here,
        }
    }

    pub(super) fn file_name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        let here = &self.here;
        (&self.name, &self.names, &self.sizes).hash(&mut hasher);
        (&here.cpu, here.threads, &here.gpus).hash(&mut hasher);
        let keep = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        let name: String = self.name.chars().map(keep).take(LONGEST).collect();
        format!("{name}-{:016x}.json", hasher.finish())
    }

    /// The result of an earlier process; `None` if there is no such file, or if it is damaged or another
    /// machine's.
    pub(super) fn read(&self, path: &Path) -> Option<Advice> {
        let advice = Advice::open(path).ok()?.check(&self.here);
        let is_other = advice.concerns().iter().any(|it| it.is_other_machine());
        let operations = advice.thresholds().operations.iter();
        let names = operations.map(|operation| operation.sides.as_ref().map(|[_, name]| name));
        let is_ours = names.eq(self.names[1..].iter().map(Some));
        (is_ours && !is_other).then_some(advice)
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
            place.find_ends();
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
pub(super) fn write(path: &Path, thresholds: &Thresholds) -> Result<(), String> {
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
        fs::write(&temporary, serde_json::to_vec(thresholds)?)?;
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
        let key = Key::new("planted".to_owned(), names, &[10], None);
        let point = Point {
            size: 10.0,
            cpu_ns: 10.0,
            gpu_ns: 1.0,
            low: 9.0,
            high: 11.0,
            processes: 1,
            ..Point::default()
        };
        let operations = |points| {
            let advice = Advice::new(key.thresholds(points));
            advice
                .expect("closures may have one name")
                .thresholds()
                .operations
                .len()
        };
        assert_eq!(operations(vec![vec![point], vec![point]]), 2);
        assert_eq!(
            operations(vec![vec![], vec![point]]),
            0,
            "the second is not the first"
        );
    }
}
