//! Chooses among several ways to do the same from start to end the fastest, on the host's clock.

use std::time::Instant;

use crate::workload::prepare::calibrate;
use crate::workload::routine::RoutineError;

/// Makes what each way needs, and returns the name of the fastest way with what was made for it. It
/// is chosen once per process and handed over to others, as [`calibrate`] says; after that, only what
/// the chosen way needs is made. `make` is given the place of a way among the names; `run` runs what
/// was made a number of times, to the end.
///
/// # Errors
/// Where something cannot be made; the error of a way that poisons the context, or of one where none
/// works.
///
/// # Panics
/// If there is no way.
pub(crate) fn fastest<M>(
    choice: &str,
    names: &[impl AsRef<str>],
    mut make: impl FnMut(usize) -> Result<M, RoutineError>,
    mut run: impl FnMut(&mut M, u32) -> Result<(), RoutineError>,
) -> Result<(String, M), RoutineError> {
    let with_name = |at: usize, made| (names[at].as_ref().to_owned(), made);
    if let Some(at) = calibrate::taken(choice, names) {
        return Ok(with_name(at, make(at)?));
    }
    let mut made = (0..names.len()).map(make).collect::<Result<Vec<M>, _>>()?;
    let at = calibrate::fastest_that_works(choice, names, |at, times| {
        let start = Instant::now();
        run(&mut made[at], times)?;
        Ok(start.elapsed())
    })?;
    Ok(with_name(at, made.swap_remove(at)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for one of two ways that are made as they are called.
    fn of_two(
        choice: &str,
        names: [&'static str; 2],
        made: &mut Vec<&'static str>,
    ) -> Result<(String, &'static str), RoutineError> {
        let make = |at: usize| {
            made.push(names[at]);
            Ok(names[at])
        };
        fastest(choice, &names, make, |way, _| match *way {
            "works" => Ok(()),
            fails => Err(fails.into()),
        })
    }

    #[test]
    fn a_way_that_fails_is_not_chosen_and_the_others_are() {
        let (name, chosen) = of_two("of two", ["fails", "works"], &mut Vec::new()).unwrap();
        assert_eq!((&*name, chosen), ("works", "works"));
    }

    #[test]
    fn where_none_works_its_error_comes_back() {
        let error = of_two("of none", ["fails", "fails too"], &mut Vec::new());
        let error = error.unwrap_err().to_string();
        assert!(["fails", "fails too"].contains(&&*error), "{error}");
    }

    #[test]
    fn where_it_is_chosen_already_only_that_way_is_made() {
        let mut made = Vec::new();
        for _ in 0..2 {
            let chosen = of_two("of two, twice", ["fails", "works"], &mut made);
            assert_eq!(chosen.unwrap().1, "works");
        }
        assert_eq!(made, ["fails", "works", "works"]);
    }
}
