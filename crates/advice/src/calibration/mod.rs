//! Calibration inside a program: two or more closures that do the same work are timed in turns at some
//! sizes, once on each machine, and from then on the faster one is looked up.

mod kept;
mod measure;

use std::cmp::Ordering;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::calibration::kept::Key;
use crate::calibration::measure::{Load, measure};
use crate::thresholds::Operation;
use crate::{Advice, Choice, Question};

pub use crate::calibration::measure::{Pair, Way, pair};

/// The time that a calibration takes at most if the caller names none.
const BUDGET: Duration = Duration::from_secs(1);

/// First calls of two processes differ by up to this factor, as loading a driver or starting threads does.
const FIRST_CALLS_DIFFER: f64 = 1.5;

/// Finds out on the first use on a machine which of several closures is the fastest, by the size of their
/// input, and keeps the result for later processes.
///
/// ```
/// use std::time::Duration;
///
/// use crossover_advice::calibration::{Calibration, Faster};
///
/// fn serial(numbers: &[f64]) -> f64 {
///     numbers.iter().sum()
/// }
///
/// fn parallel(numbers: &[f64]) -> f64 {
///     let (left, right) = numbers.split_at(numbers.len() / 2);
///     std::thread::scope(|scope| {
///         let right = scope.spawn(|| serial(right));
///         serial(left) + right.join().unwrap()
///     })
/// }
///
/// # let folder = std::env::temp_dir().join(format!("calibration-{}", std::process::id()));
/// let choice = Calibration::new("my_crate/sum")
///     .names(["serial", "parallel"])
///     .sizes([1_000, 100_000, 10_000_000])
///     .budget(Duration::from_millis(300))
/// #   .folder(&folder)
///     .prepare(|n| vec![1.0; n])
///     .between(|numbers| serial(numbers), |numbers| parallel(numbers));
/// # std::fs::remove_dir_all(&folder).ok();
///
/// let numbers = vec![0.5; 1_000];
/// let sum = match choice.at(numbers.len()) {
///     Faster::Second => parallel(&numbers),
///     Faster::First | Faster::Unsure => serial(&numbers),
/// };
/// assert_eq!(sum, 500.0);
/// ```
///
/// Each closure must return only when its result is there. Their inputs are prepared outside of the timed
/// part and handed to all of them by reference.
///
/// The file of a result belongs to the name, the names of the closures, the sizes, the CPU, the threads,
/// the GPUs, whether debug assertions are on, and the [`version`](Calibration::version).
#[derive(Clone, Debug)]
pub struct Calibration<P = fn(usize) -> usize> {
    settings: Settings,
    prepare: P,
}

#[derive(Clone, Debug, Default)]
struct Settings {
    name: String,
    names: Vec<String>,
    sizes: Vec<usize>,
    budget: Option<Duration>,
    version: String,
    threads: Option<usize>,
    folder: Option<PathBuf>,
}

impl Calibration {
    /// A calibration of this name, such as `my_crate/blur`, whose closures get the size itself.
    pub fn new(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            settings: Settings {
                name,
                ..Settings::default()
            },
            prepare: |size| size,
        }
    }
}

impl<P> Calibration<P> {
    /// The sizes that are measured. Between them, and outside of them as far as the speedup changes
    /// steadily, the rule of [`Advice::decide`] holds.
    #[must_use]
    pub fn sizes(mut self, sizes: impl IntoIterator<Item = usize>) -> Self {
        self.settings.sizes = sizes.into_iter().collect();
        self.settings.sizes.sort_unstable();
        self.settings.sizes.dedup();
        self
    }

    /// The names of the closures in sentences; otherwise they are numbered.
    #[must_use]
    pub fn names<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.settings.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// The time that the calibration takes at most, with the preparation of the inputs, unless a single
    /// call takes longer: one second if it is not set.
    #[must_use]
    pub fn budget(mut self, budget: Duration) -> Self {
        self.settings.budget = Some(budget);
        self
    }

    /// Anything else that decides, such as the version of the code, its features or a setting: another version is
    /// calibrated anew.
    #[must_use]
    pub fn version(mut self, version: impl Into<String>) -> Self {
        self.settings.version = version.into();
        self
    }

    /// The threads that the closures use, which are a part of the key: `RAYON_NUM_THREADS` if it is not
    /// set, or else the processors that this process may use.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.settings.threads = Some(threads);
        self
    }

    /// The folder of the results: `calibrations` beside [`Advice::data_file`] if it is not set.
    #[must_use]
    pub fn folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.settings.folder = Some(folder.into());
        self
    }

    /// Makes the input of a size. It is not timed, but its time counts to the budget.
    pub fn prepare<I, F: FnMut(usize) -> I>(self, prepare: F) -> Calibration<F> {
        Calibration {
            settings: self.settings,
            prepare,
        }
    }

    /// Calibrates between two closures, or reads what an earlier process found.
    pub fn between<I, A, B>(
        self,
        mut first: impl FnMut(&I) -> A,
        mut second: impl FnMut(&I) -> B,
    ) -> Calibrated
    where
        P: FnMut(usize) -> I,
    {
        self.among([
            &mut |input: &I| {
                black_box(first(input));
                Ok(())
            },
            &mut |input: &I| {
                black_box(second(input));
                Ok(())
            },
        ])
    }

    /// Calibrates among closures that may fail; an error ends the calibration.
    pub fn among<I, const N: usize>(self, mut ways: [Way<'_, I>; N]) -> Calibrated
    where
        P: FnMut(usize) -> I,
    {
        let Settings {
            name,
            names,
            sizes,
            version,
            threads,
            folder,
            ..
        } = self.settings;
        let budget = self.settings.budget.unwrap_or(BUDGET);
        let numbered = (names.len()..N).map(|at| format!("number {}", at + 1));
        let names: Vec<String> = names.into_iter().chain(numbered).take(N).collect();
        let key = Key::new(name, names, &sizes, version, threads);
        let folder = folder.or_else(kept::folder);
        let path = folder.map(|folder| folder.join(key.file_name()));
        let earlier = path.as_deref().and_then(|path| key.read(path));
        let open = earlier
            .as_ref()
            .map_or(sizes.clone(), |kept| kept.open(&sizes));
        let (kept, problem) = match earlier {
            Some(kept) if open.is_empty() => (kept, None),
            earlier => {
                let load = Load::begin();
                let measured = measure(&open, budget, self.prepare, &mut ways, &key.names);
                let disturbed_by = load.too_high(key.threads());
                let renewed = measured.and_then(|measured| {
                    key.renewed(earlier.as_ref(), measured, disturbed_by, budget)
                });
                match renewed {
                    Ok(kept) => {
                        let problem = kept::write(path.as_deref(), &kept).err();
                        (kept, problem)
                    }
                    Err(problem) => (earlier.unwrap_or_default(), Some(problem)),
                }
            }
        };
        if let Some(problem) = &problem {
            eprintln!("crossover: calibration of {}: {problem}", key.name);
        }
        let advice = Advice::new(kept.thresholds).expect("measured times are sound");
        Calibrated {
            advice,
            first_call_ns: kept.first_call_ns,
            file: path,
            problem,
        }
    }
}

/// The fastest of several closures, by size. Asking allocates nothing.
#[derive(Clone, Debug)]
pub struct Calibrated {
    advice: Advice,
    first_call_ns: Vec<f64>,
    file: Option<PathBuf>,
    problem: Option<String>,
}

/// The faster of two closures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faster {
    /// The first one.
    First,
    /// The second one.
    Second,
    /// The measurements do not decide, or there are none: use your default.
    Unsure,
}

impl Faster {
    fn of(fastest: Option<usize>) -> Self {
        match fastest {
            Some(0) => Faster::First,
            Some(1) => Faster::Second,
            _ => Faster::Unsure,
        }
    }
}

impl Calibrated {
    /// The faster of two closures at a size, in a process that has called both before.
    pub fn at(&self, size: usize) -> Faster {
        Faster::of(self.fastest(size))
    }

    /// The faster of two closures for this many calls in a process that has called neither before. Its first
    /// call takes as much longer as in the process that was calibrated.
    pub fn decide_for(&self, size: usize, calls: u32) -> Faster {
        Faster::of(self.fastest_for(size, calls))
    }

    /// The index of the fastest closure at a size; `None` if the measurements do not decide.
    pub fn fastest(&self, size: usize) -> Option<usize> {
        self.of_calls(size, None)
    }

    /// The index of the fastest closure for this many calls: see [`decide_for`](Self::decide_for).
    pub fn fastest_for(&self, size: usize, calls: u32) -> Option<usize> {
        self.of_calls(size, Some(calls))
    }

    fn of_calls(&self, size: usize, calls: Option<u32>) -> Option<usize> {
        // Each operation compares a closure with the first one, which has the place of the CPU.
        let against_first = |(at, operation): (usize, &Operation)| {
            let answer = self.advice.decide(&Question::new(&operation.name, size));
            let estimate = answer.estimate?;
            let speedups = [estimate.speedup, estimate.low, estimate.high];
            let Some(calls) = calls else {
                return Some((answer.choice, speedups));
            };
            let [first, own] = [0, at + 1].map(|at| self.first_call_ns.get(at).copied());
            let (first, own, calls) = (first?, own?, f64::from(calls));
            // The first call of another process takes up to this much longer or shorter.
            let ends = [1.0, FIRST_CALLS_DIFFER, 1.0 / FIRST_CALLS_DIFFER];
            let mut speedups = speedups;
            for (speedup, factor) in speedups.iter_mut().zip(ends) {
                let cpu_ns = calls * estimate.cpu_ns;
                *speedup = (cpu_ns + first / factor) / (cpu_ns / *speedup + own * factor);
            }
            let [speedup, low, high] = speedups;
            let is_known = estimate.nearest.is_none() || answer.choice != Choice::Unsure;
            let choice = if is_known {
                Choice::of(speedup, low, high)
            } else {
                Choice::Unsure
            };
            Some((choice, speedups))
        };
        let operations = &self.advice.thresholds().operations;
        let estimates = || operations.iter().enumerate().map(against_first);
        let speedup = |at: &Option<(Choice, [f64; 3])>| at.map(|(_, [speedup, ..])| speedup);
        let (at, best) = estimates().enumerate().max_by(|(_, a), (_, b)| {
            speedup(a)
                .partial_cmp(&speedup(b))
                .unwrap_or(Ordering::Equal)
        })?;
        let (choice, [_, low, _]) = best?;
        if choice != Choice::Gpu {
            let is_first =
                estimates().all(|other| other.is_some_and(|(choice, _)| choice == Choice::Cpu));
            return is_first.then_some(0);
        }
        let is_fastest = estimates().enumerate().all(|(other, estimate)| {
            other == at || speedup(&estimate).is_some_and(|speedup| speedup <= low)
        });
        is_fastest.then_some(at + 1)
    }

    /// The file of the result; delete it to calibrate again. `None` without a data folder.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// The reason why there is no decision, or why it was not kept: a sentence.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The measured times and their intervals, the first closure in the place of the CPU.
    pub fn advice(&self) -> &Advice {
        &self.advice
    }
}
