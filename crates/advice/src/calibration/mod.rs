//! Calibration inside a program: two or more closures that do the same work are timed in turns at some
//! sizes, once on each machine, and from then on the faster one is looked up.

mod kept;
mod measure;

use std::cmp::Ordering;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::Duration;

use crate::calibration::kept::Key;
use crate::calibration::measure::measure;
use crate::thresholds::Operation;
use crate::{Advice, Choice, Estimate, Question};

pub use crate::calibration::measure::{Pair, Way, pair};

/// The time that a calibration takes at most if the caller names none.
const BUDGET: Duration = Duration::from_secs(1);

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
/// The file of a result belongs to the name, the names of the closures, the sizes, the CPU, the threads
/// and the GPUs; whatever else decides belongs into the name.
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
            threads,
            folder,
            ..
        } = self.settings;
        let budget = self.settings.budget.unwrap_or(BUDGET);
        let numbered = (names.len()..N).map(|at| format!("number {}", at + 1));
        let names: Vec<String> = names.into_iter().chain(numbered).take(N).collect();
        let key = Key::new(name, names, &sizes, threads);
        let folder = folder.or_else(kept::folder);
        let path = folder.map(|folder| folder.join(key.file_name()));
        if let Some(advice) = path.as_deref().and_then(|path| key.read(path)) {
            return Calibrated {
                advice,
                problem: None,
            };
        }
        let mut problem = None;
        let measured = measure(&sizes, budget, self.prepare, &mut ways, &key.names);
        let (points, is_complete) = measured.unwrap_or_else(|error| {
            problem = Some(error);
            (vec![Vec::new(); N.saturating_sub(1)], false)
        });
        let thresholds = key.thresholds(points);
        if is_complete {
            problem = path.and_then(|path| kept::write(&path, &thresholds).err());
        } else {
            problem.get_or_insert_with(|| {
                format!(
                    "{} ms were over before every size was measured; the next process tries again: give it \
                     more time, fewer sizes or smaller ones",
                    budget.as_millis()
                )
            });
        }
        if let Some(problem) = &problem {
            eprintln!("crossover: calibration of {}: {problem}", key.name);
        }
        let advice = Advice::new(thresholds).expect("measured times are sound");
        Calibrated { advice, problem }
    }
}

/// The fastest of several closures, by size. Asking allocates nothing.
#[derive(Clone, Debug)]
pub struct Calibrated {
    advice: Advice,
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

impl Calibrated {
    /// The faster of two closures at a size.
    pub fn at(&self, size: usize) -> Faster {
        match self.fastest(size) {
            Some(0) => Faster::First,
            Some(1) => Faster::Second,
            _ => Faster::Unsure,
        }
    }

    /// The index of the fastest closure at a size; `None` if the measurements do not decide.
    pub fn fastest(&self, size: usize) -> Option<usize> {
        // Each operation compares a closure with the first one, which has the place of the CPU.
        let against_first = |operation: &Operation| {
            let answer = self.advice.decide(&Question::new(&operation.name, size));
            Some((answer.choice, answer.estimate?))
        };
        let operations = &self.advice.thresholds().operations;
        let all = || operations.iter().map(against_first);
        let speedup = |at: &Option<(Choice, Estimate)>| at.map(|(_, estimate)| estimate.speedup);
        let (at, best) = all().enumerate().max_by(|(_, a), (_, b)| {
            speedup(a)
                .partial_cmp(&speedup(b))
                .unwrap_or(Ordering::Equal)
        })?;
        let (choice, best) = best?;
        if choice != Choice::Gpu {
            let is_first =
                all().all(|other| other.is_some_and(|(choice, _)| choice == Choice::Cpu));
            return is_first.then_some(0);
        }
        let is_slower = |other: Option<(Choice, Estimate)>| {
            other.is_some_and(|(_, other)| other.speedup <= best.low)
        };
        let is_fastest = all()
            .enumerate()
            .all(|(other, estimate)| other == at || is_slower(estimate));
        is_fastest.then_some(at + 1)
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
