//! The groups of the suite under test: one that works, and several that fail on purpose.

use std::rc::Rc;
use std::time::Duration;

use crossover::model::{Cost, Verified};
use crossover::suite::{AnyGroup, Group, Implementation, Sizes};
use crossover::timing::Rate;
use crossover::workload::simple::{compare, on_cpu};
use crossover::workload::{Routine, RoutineError, Workload};

pub(crate) fn groups() -> Vec<AnyGroup> {
    let sizes = || Sizes::new([4, 16], [4, 16, 64], [4, 16, 64, 256]);
    let cost = |n| Cost {
        flop: Some(n as f64),
        ..Cost::default()
    };
    let sound = Group::new("sound", sizes(), Rate::flop(|n| n), cost)
        .with(Implementation::cpu("double", |d| {
            Doubling::routine(d, Fault::None)
        }));
    let faulty = Group::new("faulty", sizes(), Rate::flop(|n| n), cost)
        .with(Implementation::cpu("wrong", |d| {
            Doubling::routine(d, Fault::Wrong)
        }))
        .with(Implementation::cpu("unwritten", |d| {
            Doubling::routine(d, Fault::Unwritten)
        }))
        .with(Implementation::cpu("panics", |d| {
            Doubling::routine(d, Fault::Panics)
        }))
        .with(Implementation::cpu("decays", |d| {
            Doubling::routine(d, Fault::Decays)
        }))
        .with(Implementation::cpu("errs", |_| Err("no such thing".into())))
        .with(Implementation::cpu("last", |d| {
            Doubling::routine(d, Fault::None)
        }));
    let moody = Group::new("moody", Sizes::new([4, 8], [], []), Rate::flop(|n| n), cost)
        .with(Implementation::cpu("settles", |d| {
            Moody::routine(d, Some(Moody::OF_THE_FIRST))
        }))
        .with(Implementation::cpu("never", |d| Moody::routine(d, None)));
    let stateful = Group::new("stateful", Sizes::new([4], [], []), Rate::flop(|n| n), cost).with(
        Implementation::cpu("steps", |_: &Rc<Doubling>| Ok(Box::new(Steps::default()))),
    );
    vec![sound.into(), faulty.into(), moody.into(), stateful.into()]
}

/// Changes its own state, so only one run from restored state gives the right result. It notes how
/// often it ran after each restoring.
#[derive(Default)]
struct Steps {
    output: f64,
    runs: Vec<u32>,
}

impl Routine for Steps {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.output = f64::NAN;
        Ok(())
    }
    fn restore(&mut self) -> Result<(), RoutineError> {
        self.runs.push(0);
        Ok(())
    }
    fn run(&mut self) -> Result<(), RoutineError> {
        let runs = self.runs.last_mut().ok_or("it was never restored")?;
        *runs += 1;
        self.output = f64::from(*runs);
        std::thread::sleep(Duration::from_micros(100));
        Ok(())
    }
    fn check(&mut self) -> Result<Verified, RoutineError> {
        Ok(Verified {
            error: (self.output - 1.0).abs(),
            bound: 0.0,
            method: "runs from restored state, beyond the first".to_owned(),
        })
    }
    fn notes(&self) -> Vec<String> {
        self.runs.iter().map(u32::to_string).collect()
    }
}

/// Takes a short and a long time by turns in its first runs, and a long one in all later runs.
pub(crate) struct Moody {
    double: Box<dyn Routine>,
    settles_after: Option<u32>,
    runs: u32,
}

impl Moody {
    /// With these a benchmark is run once to verify it, once to plan, once to warm up, and once
    /// per sample.
    pub(crate) const OPTIONS: [&'static str; 6] = [
        "--sample-size",
        "10",
        "--warm-up-time",
        "0.001",
        "--measurement-time",
        "0.01",
    ];
    /// Runs of the first measurement with these options.
    pub(crate) const OF_THE_FIRST: u32 = 13;
    /// Runs of both measurements: the second is neither verified nor planned.
    pub(crate) const OF_BOTH: u32 = Self::OF_THE_FIRST + 11;
    pub(crate) const LONG: Duration = Duration::from_millis(20);

    fn routine(
        problem: &Rc<Doubling>,
        settles_after: Option<u32>,
    ) -> Result<Box<dyn Routine>, RoutineError> {
        Ok(Box::new(Self {
            double: Doubling::routine(problem, Fault::None)?,
            settles_after,
            runs: 0,
        }))
    }
}

impl Routine for Moody {
    fn poison(&mut self) -> Result<(), RoutineError> {
        self.double.poison()
    }
    fn run(&mut self) -> Result<(), RoutineError> {
        self.runs += 1;
        let settled = self.settles_after.is_some_and(|runs| self.runs > runs);
        std::thread::sleep(match settled || self.runs.is_multiple_of(2) {
            true => Self::LONG,
            false => Self::LONG / 4,
        });
        self.double.run()
    }
    fn check(&mut self) -> Result<Verified, RoutineError> {
        self.double.check()
    }
    fn notes(&self) -> Vec<String> {
        vec![format!("{} runs", self.runs)]
    }
}

struct Doubling(Vec<f32>);

impl Workload for Doubling {
    fn new(size: u64) -> Self {
        assert_ne!(size, 256, "a size outside the profile must not be made");
        println!("made inputs of {size}");
        Self((0..size).map(|i| i as f32).collect())
    }
    fn host_bytes(size: u64) -> u64 {
        8 * size
    }
    fn device_bytes(size: u64) -> u64 {
        8 * size
    }
}

#[derive(Clone, Copy)]
enum Fault {
    None,
    Wrong,
    Unwritten,
    Panics,
    Decays,
}

impl Doubling {
    fn routine(this: &Rc<Self>, fault: Fault) -> Result<Box<dyn Routine>, RoutineError> {
        let (input, expected) = (this.clone(), this.clone());
        let mut runs = 0;
        let compute = move |output: &mut [f32]| {
            runs += 1;
            for (y, x) in output.iter_mut().zip(&input.0) {
                *y = 2.0 * x;
            }
            match fault {
                Fault::Wrong => output[1] += 0.5,
                Fault::Unwritten => output[2] = f32::NAN,
                Fault::Panics if runs > 2 => panic!("ran out of luck"),
                Fault::Decays if runs > 100 => output[0] = 1.0,
                _ => {}
            }
        };
        let check = move |output: &[f32]| {
            let doubled = expected.0.iter().map(|x| 2.0 * f64::from(*x));
            compare(output, doubled, 1.0, 0.0)
        };
        Ok(on_cpu(this.0.len(), compute, check))
    }
}
