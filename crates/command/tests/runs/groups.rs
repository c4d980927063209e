//! The groups of the suite under test: one that works, and several that fail on purpose.

use std::collections::HashMap;
use std::io::Write;
use std::rc::Rc;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use crate::faults::habits::in_a_library;
use crossover_suite::model::{Cost, Verified};
use crossover_suite::suite::{AnyGroup, Group, Implementation, Sizes};
use crossover_suite::timing::{Clock, Rate};
use crossover_suite::workload::matmul::cpu;
use crossover_suite::workload::simple::{compare, on_cpu};
use crossover_suite::workload::{Routine, RoutineError, Workload, uniform, visit_f32};

pub(crate) fn groups() -> Vec<AnyGroup> {
    let of_sound = Sizes::new([4, 8, 32], [4, 8, 16], [4]);
    let of_faulty = Sizes::new([4, 8, 16, 32], [4, 8, 16], [4]);
    let flop = |n| Cost {
        flop: Some(n as f64),
        ..Cost::default()
    };
    let sound = Group::new("sound", of_sound, Rate::flop(|n| n), flop)
        .no_inputs()
        .with(Implementation::cpu("fill", with(Fault::None)))
        .with(never("none"))
        .with(never("neither"));
    let no_check = |ones: &Rc<Ones>| {
        let check = |_: &[f32]| panic!("no check");
        Ok(on_cpu(ones.0, |y| y.fill(1.0), check))
    };
    let faulty = few("faulty", of_faulty)
        .with(Implementation::cpu("set-up", |_| panic!("no set-up")))
        .with(Implementation::cpu("check", no_check))
        .with(Implementation::cpu("wrong", with(Fault::Wrong)))
        .with(Implementation::cpu("unwritten", with(Fault::Unwritten)))
        .with(Implementation::cpu("panics", with(Fault::Panics)))
        .with(Implementation::cpu("decays", with(Fault::Decays)))
        .with(Implementation::cpu("errs", |_| Err("no such thing".into())))
        .with(Implementation::cpu("last", with(Fault::None)));
    let best = |problem: &Rc<_>| cpu::best::<f32>(problem, 1);
    let of_choice = Sizes::new([4], [4], [4, 8]);
    let choice = Group::new("choice", of_choice, None, |_| Cost::default())
        .with(Implementation::cpu("best", best))
        .with(never("none"));
    // By its cost, the second size takes 64 times as long as the first.
    let cubic = |n| Cost {
        flop: Some((n as f64).powi(3)),
        ..Cost::default()
    };
    let long = Group::new("long", Sizes::new([4], [4], [4, 16, 64]), None, cubic)
        .no_inputs()
        .with(Implementation::cpu("sleeps", with(Fault::Sleeps)).one_thread());
    let moody = few("moody", Sizes::new([4, 8], [], []))
        .with(Moody::row("settles", Some(Moody::OF_THE_FIRST)))
        .with(Moody::row("never", None));
    let steps = Counted::row("steps", |_| Duration::from_micros(100));
    let stateful = few("stateful", Sizes::new([4], [], [])).with(steps);
    let ones = [sound, faulty, long, moody, stateful].map(AnyGroup::from);
    let groups = ones.into_iter().chain([choice.into()]);
    let groups = groups.map(AnyGroup::verified_by_tests);
    groups.chain([own().into(), fixed().into()]).collect()
}

/// A routine, or why there is none.
type Made = Result<Box<dyn Routine>, RoutineError>;

fn few(name: &'static str, sizes: Sizes) -> Group<Ones> {
    Group::new(name, sizes, None, |_| Cost::default()).no_inputs()
}

/// A user's group with a row that is wrong in a way that no timed size shows.
fn own() -> Group<Values> {
    let sizes = Sizes::new([4], [4], [4]).odd([1, 9]);
    Group::new("own", sizes, None, |_| Cost::default())
        .with(copies("right", |x, y| y.copy_from_slice(x)))
        .with(copies("cached", |x, y| {
            static KNOWN: LazyLock<Mutex<HashMap<usize, Vec<f32>>>> = LazyLock::new(Mutex::default);
            let mut known = KNOWN.lock().unwrap();
            y.copy_from_slice(known.entry(x.len()).or_insert_with(|| x.to_vec()));
        }))
}

/// Whose inputs are the same with another seed.
fn fixed() -> Group<Ones> {
    let sizes = Sizes::new([4], [4], [4]);
    Group::new("fixed", sizes, None, |_| Cost::default())
        .with(Implementation::cpu("fill", with(Fault::None)))
}

struct Values(Vec<f32>);

impl Workload for Values {
    fn new(size: u64) -> Self {
        Self(uniform(1, size, 1.0..2.0))
    }
    fn host_bytes(size: u64) -> u64 {
        4 * size
    }
    fn device_bytes(size: u64) -> u64 {
        4 * size
    }
    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit_f32(&self.0, visit);
    }
}

/// A row that copies its input by `compute`.
fn copies(name: &'static str, compute: fn(&[f32], &mut [f32])) -> Implementation<Values> {
    Implementation::cpu(name, move |x: &Rc<Values>| {
        let (input, judge) = (x.clone(), x.clone());
        let check = move |y: &[f32]| compare(y, judge.0.iter().map(|&x| x.into()), 1.0, 1e-6);
        Ok(on_cpu(x.0.len(), move |y| compute(&input.0, y), check))
    })
}

/// So many ones.
struct Ones(usize);

impl Workload for Ones {
    fn new(size: u64) -> Self {
        // Standard error may be lost.
        let _ = writeln!(std::io::stderr(), "made inputs of {size}");
        Self(size as usize)
    }
    fn host_bytes(size: u64) -> u64 {
        4 * size
    }
    fn device_bytes(size: u64) -> u64 {
        4 * size
    }
    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        visit_f32(&[self.0 as f32], visit);
    }
}

fn never<W: 'static>(name: &'static str) -> Implementation<W> {
    Implementation::gpu(name, Clock::Events, |_, _| Err("never made".into()))
}

#[derive(Clone, Copy)]
enum Fault {
    None,
    Wrong,
    Unwritten,
    Panics,
    Decays,
    /// Takes 16 ms.
    Sleeps,
}

/// Writes the ones.
fn with(fault: Fault) -> impl Fn(&Rc<Ones>) -> Made {
    move |problem| {
        let n = problem.0;
        let mut runs = 0;
        let compute = move |y: &mut [f32]| {
            runs += 1;
            y.fill(1.0);
            in_a_library(n, runs);
            match fault {
                Fault::Wrong => y[1] += 0.5,
                Fault::Unwritten => y[2] = f32::NAN,
                Fault::Panics if runs > 2 => panic!("ran out of luck"),
                Fault::Decays if runs > 2 => y[0] = 2.0,
                Fault::Sleeps => std::thread::sleep(Duration::from_millis(16)),
                _ => {}
            }
        };
        let check = move |y: &[f32]| compare(y, vec![1.0; n], 1.0, 0.0);
        Ok(on_cpu(n, compute, check))
    }
}

/// Changes its own state, so only one run from restored state gives the right result. It notes how
/// often it ran after each restoring.
struct Counted<F> {
    size: usize,
    output: f32,
    runs: Vec<u32>,
    /// The time that a run takes, by its number.
    time: F,
}

impl<F: Fn(u32) -> Duration + Copy + 'static> Counted<F> {
    fn row(name: &'static str, time: F) -> Implementation<Ones> {
        Implementation::cpu(name, move |ones: &Rc<Ones>| {
            Ok(Box::new(Self {
                size: ones.0,
                output: f32::NAN,
                runs: Vec::new(),
                time,
            }))
        })
    }
}

impl<F: Fn(u32) -> Duration> Routine for Counted<F> {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.output = f32::NAN;
        Ok(())
    }
    fn restore(&mut self) -> Result<(), RoutineError> {
        self.runs.push(0);
        Ok(())
    }
    fn run(&mut self) -> Result<(), RoutineError> {
        let runs = self.runs.last_mut().ok_or("it was never restored")?;
        *runs += 1;
        self.output = *runs as f32;
        let number = self.runs.iter().sum();
        std::thread::sleep((self.time)(number));
        in_a_library(self.size, number);
        Ok(())
    }
    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(compare(&[self.output], [1.0], 1.0, 0.0))
    }
    fn notes(&self) -> Vec<String> {
        self.runs.iter().map(u32::to_string).collect()
    }
}

/// Takes a short and a long time by turns in its first runs, and a long one in all later runs.
pub(crate) struct Moody;

impl Moody {
    /// With these a benchmark is run once to verify it, once to plan, once to warm up, and once
    /// per sample.
    pub(crate) const OPTIONS: &'static str =
        "--sample-size 10 --warm-up-time 0.001 --measurement-time 0.01";
    /// Runs of the first measurement with these options.
    pub(crate) const OF_THE_FIRST: u32 = 13;
    /// Runs of both measurements: the second is neither verified, planned nor warmed up.
    pub(crate) const OF_BOTH: u32 = Self::OF_THE_FIRST + 10;
    pub(crate) const LONG: Duration = Duration::from_millis(20);

    fn row(name: &'static str, settles_after: Option<u32>) -> Implementation<Ones> {
        Counted::row(name, move |run| {
            let settled = settles_after.is_some_and(|runs| run > runs);
            match settled || run.is_multiple_of(2) {
                true => Self::LONG,
                false => Self::LONG / 4,
            }
        })
    }
}
