//! Compares every implementation of a group with float64, at small and odd sizes, so that a group
//! needs no test of its own for that.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::device::gpu::Gpu;
use crate::device::kernel::CompileError;
use crate::model::group_info::Truth;
use crate::model::id::Device;
use crate::suite::group::{AnyGroup, Row};
use crate::suite::sampling_plan::FEWEST_SAMPLES;
use crate::timing::Launch;
use crate::workload::choose;
use crate::workload::routine::{Routine, RoutineError};
use crate::workload::timing_methods::SPIN;
use crossover_machine::absence::Absence;
use crossover_machine::recorded;
use crossover_words::text::with_causes;

impl AnyGroup {
    /// Verifies one implementation, such as `gpu/cublas`, at small and odd sizes
    /// ([`Sizes::odd`](crate::suite::Sizes::odd)): an output that was never written must fail the
    /// check against float64, one run must pass it, and so must several in a row. Returns the sizes
    /// that the device or the library does not take, each with the reason.
    ///
    /// # Errors
    /// A wrong result, an implementation that fails or does not exist, a library that is not
    /// installed, and a GPU implementation where `gpu` is `None`.
    pub fn verify(
        &self,
        function: &str,
        gpu: Option<&Rc<Gpu>>,
    ) -> Result<Vec<String>, RoutineError> {
        let row = self.row(function)?;
        let operation = &self.operation;
        let mut absent = Vec::new();
        let own = row.sizes.as_ref().filter(|sizes| !sizes.odd.is_empty());
        let sizes = own.unwrap_or(&self.sizes).for_tests();
        let timed = sizes.iter().map(|&size| {
            let id = self.id_of(row, size).to_string();
            (id, size, (operation.inputs)(size))
        });
        let edge_cases = (operation.edge_cases)().map(|inputs| {
            let id = format!("{}/{} on edge cases", self.name, row.function());
            (id, 0, inputs)
        });
        let other = sizes.first().map(|&size| {
            let id = format!("{} with other values", self.id_of(row, size));
            (id, size, (operation.other_values)(size))
        });
        for (id, size, inputs) in edge_cases.into_iter().chain(timed).chain(other) {
            let outcome = row.set_up(&inputs, open(gpu)).and_then(|mut routine| {
                let gpu = gpu.filter(|_| row.is_gpu());
                match routine.time(1).transpose()? {
                    Some(first) => self.timed_itself(row, &mut *routine, size, first),
                    None => written(&mut *routine, gpu.map(|gpu| &**gpu)),
                }
            });
            let Err(error) = outcome else { continue };
            if !is_left_out(&error) {
                return Err(format!("{id}: {}", with_causes(&*error)).into());
            }
            absent.push(format!("{id}: {error}"));
        }
        Ok(absent)
    }

    /// Runs one GPU implementation at one size as a benchmark does, without a clock, and calls
    /// `begin` with the name of each phase: `set-up`, `first run` (which poisons), `iteration`,
    /// `verification` and `drop`. For tests that look at what each of them asks of the driver.
    ///
    /// Takes calibrated choices from `choices`, by name, if their candidates exist. Returns the needed
    /// choices: with them, nothing is calibrated.
    ///
    /// # Errors
    /// An implementation that fails or does not exist. A wrong result is none.
    pub fn in_phases(
        &self,
        function: &str,
        size: u64,
        gpu: &Rc<Gpu>,
        choices: BTreeMap<String, String>,
        begin: &mut dyn FnMut(&'static str),
    ) -> Result<BTreeMap<String, String>, RoutineError> {
        let row = self.row(function)?;
        let inputs = (self.operation.inputs)(size);
        choose::begin_anew(choices);
        begin("set-up");
        let mut routine = row.set_up(&inputs, open(Some(gpu)))?;
        begin("first run");
        routine.restore()?;
        routine.poison()?;
        routine.run()?;
        gpu.synchronize()?;
        begin("iteration");
        routine.run()?;
        begin("verification");
        gpu.synchronize()?;
        routine.check()?;
        begin("drop");
        drop(routine);
        gpu.context().check_err()?;
        Ok(choose::made())
    }

    /// Checks a routine that measures child processes, which poison and verify for themselves: each
    /// sample must be a time, and none shorter than a known duration.
    fn timed_itself(
        &self,
        row: &Row,
        routine: &mut dyn Routine,
        size: u64,
        first: f64,
    ) -> Result<(), RoutineError> {
        let least = match self.topic.truth {
            Some(Truth::Size) => size as f64,
            None => 0.0,
        };
        let samples = (1..FEWEST_SAMPLES).map(|_| routine.time(1).transpose());
        let samples = samples.collect::<Result<Vec<_>, _>>()?;
        for ns in samples.into_iter().flatten().chain([first]) {
            if !(ns > 0.0 && ns >= least) {
                return Err(format!("it took {ns} ns").into());
            }
        }
        passes(routine, row.is_gpu())
    }

    /// Contradictions in what the group declares, in sentences; a run refuses such a group.
    pub fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        let sizes = self.sizes.all();
        for (at, row) in self.rows.iter().enumerate() {
            let function = row.function();
            let name = format!("{}/{function}", self.name);
            if self.rows[..at].iter().any(|r| r.function() == function) {
                found.push(format!("two rows are named {name}; rename one of them"));
            }
            let moves = |size: &u64| {
                self.cost_of(row, *size)
                    .link_bytes
                    .is_some_and(|b| b.sum() > 0.0)
            };
            if row.device() == Device::Gpu
                && row.role.data.on_device()
                && !row.role.leaves_the_device()
                && sizes.iter().any(moves)
            {
                found.push(format!(
                    "the cost of {name} has bytes over the link, but its data are declared to stay on the \
                     device; declare them with .data(Residency::Pinned) or \
                     .data(Residency::Ordinary)"
                ));
            }
        }
        found
    }
}

/// Gives the device, if there is one.
fn open(gpu: Option<&Rc<Gpu>>) -> impl FnOnce() -> Result<Rc<Gpu>, RoutineError> {
    move || Ok(gpu.cloned().ok_or("a GPU is needed")?)
}

/// Whether the device is too old for an implementation, or it does not take this size.
fn is_left_out(error: &RoutineError) -> bool {
    let too_old = matches!(error.downcast_ref(), Some(CompileError::TooOld { .. }));
    let absent = error.downcast_ref();
    too_old
        || matches!(
            absent,
            Some(Absence::DeviceLacks { .. } | Absence::Size { .. })
        )
}

/// Checks that poison fails the comparison with float64, that a run from restored state passes it,
/// and that several runs in a row pass it, without a wait between them, as a clock makes them. A
/// routine may read nothing that it has written but the state that it restores, here before each
/// run. On the GPU, a long kernel holds up the clock's stream meanwhile: work on another stream
/// that does not wait for this one then comes too early, and works on poison.
fn written(routine: &mut dyn Routine, gpu: Option<&Gpu>) -> Result<(), RoutineError> {
    let wait = || gpu.map_or(Ok(()), Gpu::synchronize);
    let held_up = gpu.map(|gpu| (0, Some(gpu)));
    for (more, hold) in [(0, None), (2, None)].into_iter().chain(held_up) {
        routine.poison()?;
        wait()?;
        if routine.check()?.passed() {
            return Err("an output that was never written passes the check".into());
        }
        if let Some(gpu) = hold {
            occupy(gpu)?;
        }
        for _ in 0..=more {
            routine.restore()?;
            routine.run()?;
        }
        wait()?;
        passes(routine, gpu.is_some())?;
    }
    match gpu.map(|gpu| gpu.context().check_err()) {
        Some(Err(error)) => Err(format!("an earlier call failed: {error}").into()),
        _ => Ok(()),
    }
}

/// Keeps the stream busy for two milliseconds.
fn occupy(gpu: &Gpu) -> Result<(), RoutineError> {
    let spin = gpu.function(&SPIN, "spin")?;
    let spin = Launch::new(spin, (1, 1, 1), (1, 1, 1)).arg(2_000_000u64);
    // SAFETY: the argument is the one that the kernel declares.
    Ok(unsafe { spin.launch(gpu.stream()) }?)
}

/// Compares the output of the CPU or the GPU with float64.
///
/// # Errors
/// An output that cannot be read, and a wrong one.
pub(super) fn passes(routine: &mut dyn Routine, on_gpu: bool) -> Result<(), RoutineError> {
    match recorded::failure(&routine.check()?, on_gpu) {
        None => Ok(()),
        Some(wrong) => Err(wrong.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::model::cost::{Cost, LinkBytes};
    use crate::model::verified::Verified;
    use crate::suite::group::{Group, Implementation, Sizes};
    use crate::timing::Clock;
    use crate::workload::Workload;
    use crate::workload::simple::{compare, on_cpu};

    struct Ones(usize);

    impl Workload for Ones {
        fn new(size: u64) -> Self {
            Self(size as usize)
        }
        fn host_bytes(size: u64) -> u64 {
            4 * size
        }
        fn device_bytes(size: u64) -> u64 {
            4 * size
        }
    }

    /// A group of one implementation, which fills `n` values in this run, counted from 1.
    fn group(fill: fn(run: u32, y: &mut [f32])) -> Group<Ones> {
        let sizes = Sizes::new([4], [8], [16]);
        Group::new("ones", sizes, None, |_| Cost::default()).with(Implementation::cpu(
            "fill",
            move |problem: &Rc<Ones>| {
                let n = problem.0;
                let runs = Cell::new(0);
                let compute = move |y: &mut [f32]| {
                    runs.set(runs.get() + 1);
                    fill(runs.get(), y);
                };
                let check = move |y: &[f32]| compare(y, vec![1.0; n], 1.0, 0.0);
                Ok(on_cpu(n, compute, check))
            },
        ))
    }

    fn verified(fill: fn(u32, &mut [f32])) -> Result<Vec<String>, String> {
        AnyGroup::from(group(fill))
            .verify("cpu/fill", None)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_wrong_result_is_named_with_its_size() {
        assert_eq!(verified(|_, y| y.fill(1.0)), Ok(Vec::new()));
        let wrong = verified(|_, y| y.fill(2.0)).unwrap_err();
        assert!(
            wrong.starts_with("ones/cpu/fill/3: wrong result"),
            "{wrong}"
        );
        // Whole vectors alone, and no remainder.
        let odd = verified(|_, y| y.chunks_exact_mut(4).for_each(|y| y.fill(1.0))).unwrap_err();
        assert!(odd.starts_with("ones/cpu/fill/3:"), "{odd}");
        // Right but for the second of several in a row.
        let again = verified(|run, y| y.fill(if run > 2 { 3.0 } else { 1.0 }));
        assert!(again.is_err());
    }

    /// Adds one to its state, and gives that back as its output.
    struct Adds {
        state: f32,
        output: f32,
        poison: f32,
        restores: bool,
    }

    impl Routine for Adds {
        fn poison(&mut self) -> Result<(), RoutineError> {
            self.output = self.poison;
            Ok(())
        }
        fn restore(&mut self) -> Result<(), RoutineError> {
            if self.restores {
                self.state = 0.0;
            }
            Ok(())
        }
        fn run(&mut self) -> Result<(), RoutineError> {
            self.state += 1.0;
            self.output = self.state;
            Ok(())
        }
        fn check(&mut self) -> Result<Verified, RoutineError> {
            Ok(compare(&[self.output], [1.0], 1.0, 0.0))
        }
    }

    #[test]
    fn state_is_restored_before_each_run() {
        let adds = |restores, poison| {
            let (state, output) = (0.0, f32::NAN);
            let mut routine = Adds {
                state,
                output,
                poison,
                restores,
            };
            written(&mut routine, None).map_err(|error| error.to_string())
        };
        assert_eq!(adds(true, f32::NAN), Ok(()));
        let error = adds(false, f32::NAN).unwrap_err();
        assert!(error.contains("wrong result"), "{error}");
        let error = adds(true, 1.0).unwrap_err();
        assert!(error.contains("never written passes"), "{error}");
    }

    #[test]
    fn odd_sizes_take_the_place_of_the_smallest() {
        let sizes = Sizes::new([4], [8], [16]);
        assert_eq!(sizes.for_tests(), [3, 4, 5]);
        assert_eq!(sizes.odd([1, 7]).for_tests(), [1, 7]);
        assert_eq!(Sizes::new([], [1], []).for_tests(), [1, 2]);
    }

    #[test]
    fn a_group_that_contradicts_itself_is_told_so() {
        assert!(AnyGroup::from(group(|_, _| ())).contradictions().is_empty());
        let row = || Implementation::gpu("copies", Clock::Wall, |_, _| Err("never made".into()));
        let cost = |_| Cost {
            link_bytes: Some(LinkBytes::new(8.0, 0.0)),
            ..Cost::default()
        };
        let group = group(|_, _| ())
            .with(row().cost(cost))
            .with(row().cost(cost).data(crate::model::Residency::Pinned));
        let found = AnyGroup::from(group).contradictions();
        assert!(
            found[0].contains("the cost of ones/gpu/copies has bytes"),
            "{found:?}"
        );
        assert!(found[1].contains("two rows are named"), "{found:?}");
    }
}
