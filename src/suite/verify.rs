//! Compares every implementation of a group with float64, at small and odd sizes, so that a group
//! needs no test of its own for that.

use std::collections::BTreeMap;
use std::io::Write;
use std::rc::Rc;

use crate::device::gpu::Gpu;
use crate::device::kernel::{ARCHITECTURES, CompileError};
use crate::model::Verified;
use crate::model::group_info::Truth;
use crate::suite::group::{AnyGroup, AnyRow, Inputs};
use crate::suite::host::Timed;
use crate::suite::journal::Missing;
use crate::suite::sampling_plan::FEWEST_SAMPLES;
use crate::timing::Launch;
use crate::workload::choices::Choices;
use crate::workload::routine::{Alteration, Routine, RoutineError};
use crate::workload::timing_methods::SPIN;
use crossover_machine::libraries::Absence;
use crossover_machine::peers::first_gpu;
use crossover_protocol::settings::Settings;
use crossover_words::text::with_causes;

/// How often tests verify an implementation at each size, each time in another way.
pub(super) const ROUNDS: usize = 4;

impl AnyGroup {
    /// Tests the whole group: its declaration, that its inputs have other values with another seed, that
    /// its kernels compile for every architecture, and each implementation by [`verify`](Self::verify).
    /// Prints what it cannot test here, because there is no GPU or no NVRTC.
    ///
    /// # Errors
    /// The first fault, in a sentence.
    pub fn test(&self) -> Result<(), RoutineError> {
        let contradiction = self.contradictions().into_iter().next();
        if let Some(fault) = contradiction.or_else(|| self.doubtful_inputs()) {
            return Err(fault.into());
        }
        // The macros would print where a test's output is captured.
        let mut stderr = std::io::stderr();
        let mut unchecked = |what: &str, why: &dyn std::fmt::Display| {
            let _ = writeln!(stderr, "unchecked: {what}: {why}");
        };
        for source in self.kernels() {
            let claimed = ARCHITECTURES.iter().filter(|arch| **arch >= source.oldest);
            let compiled: Result<Vec<_>, _> = claimed.map(|arch| source.compile(*arch)).collect();
            match compiled {
                Err(CompileError::Absent(why)) => unchecked(source.name, &why),
                compiled => drop(compiled?),
            }
        }
        let device = first_gpu(&Settings::from_env()?);
        let gpu = match device {
            Ok(_) if self.on_several => Gpu::named().map(Rc::new),
            Ok(device) => Gpu::open(device.ordinal).map(Rc::new).map_err(Into::into),
            Err(absence) => Err(absence.into()),
        };
        for row in &self.rows {
            let function = row.function();
            match &gpu {
                Err(absence) if row.is_gpu() => unchecked(&function, absence),
                gpu => {
                    for reason in self.verify(&function, gpu.as_ref().ok())? {
                        unchecked(&function, &reason);
                    }
                }
            }
        }
        Ok(())
    }

    /// Verifies one implementation, such as `gpu/cublas`, at small and odd sizes
    /// ([`Sizes::odd`](crate::suite::Sizes::odd)) and on edge cases, and at the largest of these sizes
    /// with other values: an output that was never written must fail the check against float64, one run
    /// must pass it, and so must several in a row. At one of the sizes the bound must reject the output in a
    /// coarser format, or, on the GPU, both zeros and the output shifted by one value. Returns the sizes that
    /// the device or the library does not take, each with the reason.
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
        let name = format!("{}/{function}", self.name);
        let (mut absent, mut rejects) = (Vec::new(), None);
        for (place, size, inputs) in self.untimed(row, true) {
            let outcome = row.set_up(&inputs, open(gpu)).and_then(|mut routine| {
                let gpu = gpu.filter(|_| row.is_gpu());
                self.verify_routine(row, &mut *routine, size, gpu, ROUNDS)
            });
            match outcome {
                Ok(rejected) => rejects = rejected.max(rejects),
                Err(error) if is_left_out(&error) => {
                    absent.push(format!("{name} {place}: {error}"));
                }
                Err(error) => {
                    return Err(format!("{name} {place}: {}", with_causes(&*error)).into());
                }
            }
        }
        match too_wide(rejects) {
            Some(fault) => Err(format!("{name}: {fault}").into()),
            None => Ok(absent),
        }
    }

    /// The inputs on which an implementation is verified and not timed, each with its place in words and
    /// its size: edge cases, and with `odd` the odd sizes and the largest of them with other values.
    pub(super) fn untimed(
        &self,
        row: &AnyRow,
        odd: bool,
    ) -> impl Iterator<Item = (String, u64, Inputs)> {
        let operation = &self.operation;
        let own = row.sizes.as_ref().filter(|sizes| !sizes.odd.is_empty());
        let sizes = own.unwrap_or(&self.sizes).for_tests();
        let largest = sizes.iter().max().copied().filter(|_| odd).into_iter();
        let odd = sizes.into_iter().filter(move |_| odd);
        let odd = odd.map(|size| (format!("at size {size}"), size, false));
        let other = largest.map(|size| (format!("at size {size} with other values"), size, true));
        let edge = [("on edge cases".to_owned(), 0, false)].into_iter();
        edge.chain(odd)
            .chain(other)
            .filter_map(|(place, size, other)| Some((place, size, operation.untimed(size, other)?)))
    }

    /// Verifies a routine in this number of the [`ROUNDS`]. Returns whether its bound rejects a wrong output;
    /// `None` where there is none to reject.
    pub(super) fn verify_routine(
        &self,
        row: &AnyRow,
        routine: &mut dyn Routine,
        size: u64,
        gpu: Option<&Rc<Gpu>>,
        rounds: usize,
    ) -> Result<Option<bool>, RoutineError> {
        if let Some(first) = routine.time(1).transpose()? {
            self.timed_itself(row, routine, size, first)?;
            return Ok(None);
        }
        written(routine, gpu.map(|gpu| &**gpu), rounds)?;
        let mut rejects = |by| -> Result<Option<bool>, RoutineError> {
            let altered = routine.check_altered(by)?;
            Ok(altered.map(|verified| !verified.passed()))
        };
        let fine = rejects(Alteration::Coarser)?;
        let gross = [rejects(Alteration::Shifted)?, rejects(Alteration::Zeroed)?];
        let gross = gross.into_iter().flatten().reduce(|a, b| a && b);
        // A GPU may compute in fewer bits than the output has.
        Ok(if row.is_gpu() {
            gross.map(|rejected| rejected || fine == Some(true))
        } else {
            fine.or(gross)
        })
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
        let choices = Choices::handed_over(choices);
        choices.during(|| {
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
            Ok::<_, RoutineError>(gpu.check_earlier()?)
        })?;
        Ok(choices.made())
    }

    /// Sets one GPU implementation up at one size for `body`, which times it in its own way.
    ///
    /// # Errors
    /// As [`in_phases`](Self::in_phases), and those of `body`.
    pub fn with_routine(
        &self,
        function: &str,
        size: u64,
        gpu: &Rc<Gpu>,
        body: &mut dyn FnMut(&mut dyn Routine) -> Result<(), RoutineError>,
    ) -> Result<(), RoutineError> {
        let inputs = (self.operation.inputs)(size);
        let mut routine = self.row(function)?.set_up(&inputs, open(Some(gpu)))?;
        routine.restore()?;
        body(&mut *routine)
    }

    /// Checks a routine that measures child processes, which poison and verify for themselves: each
    /// sample must be a time, and none shorter than a known duration.
    fn timed_itself(
        &self,
        row: &AnyRow,
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
        passes(routine, row.is_executed())
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
            Some(
                Absence::DeviceLacks { .. }
                    | Absence::NoPeer { .. }
                    | Absence::OneDevice
                    | Absence::Size { .. }
            )
        )
}

/// What is wrong with a bound that rejects no wrong output.
pub(super) fn too_wide(rejects: Option<bool>) -> Option<&'static str> {
    (rejects == Some(false)).then_some(
        "the bound is too wide: the output passes in a coarser format, on the GPU also shifted by one value \
         or as zeros; lower the bound until it fails",
    )
}

/// Checks that poison fails the comparison with float64, that a run from restored state passes it,
/// and, in further rounds, that several runs in a row pass it, without a wait between them, as a clock
/// makes them. A routine may read nothing that it has written but the state that it restores, here
/// before each run. On the GPU, a long kernel holds up the clock's stream meanwhile: work on another
/// stream that does not wait for this one then comes too early, and works on poison. In a further round,
/// kernels hold up other devices: a result that the clock's stream does not wait for comes too late.
fn written(
    routine: &mut dyn Routine,
    gpu: Option<&Gpu>,
    rounds: usize,
) -> Result<(), RoutineError> {
    let wait = || gpu.map_or(Ok(()), Gpu::synchronize);
    let beside = gpu.map_or(&[][..], Gpu::opened_beside);
    let beside = beside.iter().map(|gpu| &**gpu).collect::<Vec<_>>();
    let held_up = [Vec::from_iter(gpu), beside].into_iter();
    let held_up = held_up.filter(|held| !held.is_empty());
    let not_held = [(0, Vec::new()), (2, Vec::new())].into_iter();
    for (more, held) in not_held.chain(held_up.map(|held| (0, held))).take(rounds) {
        routine.poison()?;
        wait()?;
        if routine.check()?.passed() {
            return Err("an output that was never written passes the check".into());
        }
        for held in held {
            occupy(held)?;
        }
        if let Some(gpu) = gpu {
            gpu.bind()?;
        }
        for _ in 0..=more {
            routine.restore()?;
            routine.run()?;
        }
        wait()?;
        passes(routine, gpu.is_none() || Gpu::executes_kernels())?;
    }
    Ok(gpu.map_or(Ok(()), Gpu::check_earlier)?)
}

/// Keeps the stream of a device busy for two milliseconds.
fn occupy(gpu: &Gpu) -> Result<(), RoutineError> {
    let spin = gpu.function(&SPIN, "spin")?;
    let spin = Launch::new(spin, (1, 1, 1), (1, 1, 1)).arg(2_000_000u64);
    gpu.bind()?;
    // SAFETY: the argument is the one that the kernel declares.
    Ok(unsafe { spin.launch(gpu.stream()) }?)
}

/// Compares the output with float64, if the routine `is_executed`.
///
/// # Errors
/// An output that cannot be read, and a wrong one.
pub(super) fn passes(routine: &mut dyn Routine, is_executed: bool) -> Result<(), RoutineError> {
    match (routine.check()?.failure()).filter(|_| is_executed) {
        None => Ok(()),
        Some(wrong) => Err(wrong.into()),
    }
}

/// Compares the output with the reference. `None` for code that is not executed.
pub(super) fn compare(code: &mut Timed) -> Result<Option<Verified>, Missing> {
    let verified = code.routine.check()?;
    match verified.failure() {
        _ if !code.is_executed => Ok(None),
        None => Ok(Some(verified)),
        Some(wrong) => Err(format!("{wrong}; it is not timed").into()),
    }
}

#[cfg(test)]
pub(crate) mod tests;
