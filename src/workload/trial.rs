//! Chooses among several ways to do the same from start to end the fastest, on the host's clock.

use std::time::{Duration, Instant};

use crate::timing::CudaError;
use crate::workload::calibrate;
use crate::workload::routine::{Routine, RoutineError};

/// Time that a way that fails is taken to need: so long that it is never chosen.
const FAILED: Duration = Duration::from_secs(1);

/// The index of the fastest of these ways, chosen once per process and handed over to others, as
/// [`calibrate`] says. `run` runs one of them a number of times, to the end.
///
/// # Errors
/// The error of a way that poisons the context, or of one where none works.
///
/// # Panics
/// If there is no way.
pub(super) fn fastest(
    choice: &str,
    names: &[String],
    mut run: impl FnMut(usize, u32) -> Result<(), RoutineError>,
) -> Result<usize, RoutineError> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let at = |name: &str| names.iter().position(|other| *other == name);
    let mut worked = names.len() == 1;
    let mut failure: Option<RoutineError> = None;
    let chosen = calibrate::fastest_by(choice, &names, |name, times| {
        let start = Instant::now();
        match run(at(name).unwrap_or_default(), times) {
            Ok(()) => {
                worked = true;
                start.elapsed()
            }
            Err(error) => {
                // The first one that says why the context is lost stays.
                if !failure.as_deref().is_some_and(is_sticky) {
                    failure = Some(error);
                }
                FAILED * times
            }
        }
    });
    match failure {
        Some(error) if !worked || is_sticky(&*error) => Err(error),
        _ => Ok(at(chosen).unwrap_or_default()),
    }
}

/// Makes a routine for each way and keeps the one that is the fastest from start to end.
///
/// # Errors
/// The error of a routine that cannot be made, and those of [`fastest`].
///
/// # Panics
/// If there is no way.
pub(super) fn fastest_routine<W: Copy, R: Routine>(
    choice: &str,
    ways: &[W],
    name: impl Fn(W) -> String,
    make: impl FnMut(W) -> Result<R, RoutineError>,
) -> Result<R, RoutineError> {
    let mut made = ways
        .iter()
        .copied()
        .map(make)
        .collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = ways.iter().map(|&way| name(way)).collect();
    let chosen = fastest(choice, &names, |at, times| {
        (0..times).try_for_each(|_| made[at].run())
    })?;
    Ok(made.swap_remove(chosen))
}

fn is_sticky(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    error
        .downcast_ref::<CudaError>()
        .is_some_and(|error| error.sticky)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Vec<String> {
        of.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn a_way_that_fails_is_not_chosen_and_the_others_are() {
        let ways = names(&["fails", "works"]);
        let run = |at: usize, _| match at {
            0 => Err("it fails".into()),
            _ => Ok(()),
        };
        assert_eq!(fastest("trial of two", &ways, run).unwrap(), 1);
    }

    #[test]
    fn where_none_works_its_error_comes_back() {
        let ways = names(&["fails", "fails too"]);
        let error = fastest("trial of none", &ways, |_, _| Err("it fails".into()));
        assert_eq!(error.unwrap_err().to_string(), "it fails");
    }
}
