//! Chooses the fastest on this machine of several ways to compute the same: of CPU code ([`on_cpu`]),
//! of GPU steps by device time ([`on_gpu`]), and of whole routines from start to end ([`build_fastest`]).
//! The choice is noted in the [`Choices`] of the run.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt::Display;
use std::time::{Duration, Instant};

use crate::device::Gpu;
use crate::timing::{CudaError, EventPair, Graph};
use crate::workload::prepare::choices::Choices;
use crate::workload::prepare::threads::Threads;
use crate::workload::routine::{RoutineError, loses_context};
use crossover_machine::load::Load;

/// A measurement takes at least this long, so that the clock's own cost is negligible.
const SHORTEST: Duration = Duration::from_micros(200);
/// If a measurement of each candidate takes this long, their first runs count and slower ones are
/// dropped as in [`DROPPED_EARLY`], since each further round costs much.
const LONG: Duration = Duration::from_millis(4);
/// A candidate whose first measurement and the next both take this many times as long as the first of the
/// fastest is dropped. One alone may have been interrupted, or have done one-time work.
const HOPELESS: f64 = 2.5;
/// Measurements of each candidate. Their median counts, as in the benchmark that follows. The minimum
/// would favour a candidate that is fast only by luck, such as one whose threads must all be scheduled
/// at once.
const ROUNDS: usize = 11;
/// After this many rounds, a candidate is dropped if it is this much slower than the fastest.
const DROPPED: [(usize, f64); 3] = [(3, 2.0), (5, 1.3), (7, 1.15)];
/// [`DROPPED`] for candidates that take [`LONG`].
const DROPPED_EARLY: [(usize, f64); 3] = [(2, 1.6), (3, 1.3), (7, 1.15)];
/// Rounds that are always made.
const FEWEST_ROUNDS: usize = DROPPED[0].0;
/// The same for candidates that take [`LONG`]: any difference smaller than a round can show does not
/// matter.
const FEWEST_LONG_ROUNDS: usize = 2;
/// No further round begins after this time. Half of it was too little for long candidates on a busy host.
const LONGEST: Duration = Duration::from_millis(300);

/// The candidate that is already chosen, or else the one with the shortest typical time of an
/// iteration. `run` runs a candidate a number of times. Takes [`LONGEST`], or if rounds take longer
/// [`FEWEST_ROUNDS`] of them (of long candidates [`FEWEST_LONG_ROUNDS`]).
///
/// Waking the threads is kept out of the measurements, and no thread spins beside the next
/// candidate.
///
/// `choice` names the choice for every process of this machine: what is computed, its size, and
/// how many threads may compute it. A candidate's name is what it displays as.
///
/// # Panics
/// Without a candidate.
pub(crate) fn on_cpu<T: Copy + Display>(
    threads: &Threads,
    choice: &str,
    candidates: &[T],
    mut run: impl FnMut(T, u32),
) -> T {
    let names: Vec<String> = candidates.iter().map(T::to_string).collect();
    let chosen = choose_index(choice, &names, |at, times| {
        if times > 1 {
            run(candidates[at], 1);
        }
        let start = Instant::now();
        run(candidates[at], times);
        let took = start.elapsed();
        threads.park();
        Ok(took)
    });
    candidates[chosen.expect("there is a candidate, and none fails")]
}

/// Makes the fastest of the named ways, and returns its name too. If it is already chosen, only that
/// way is made. `make` gets the index of a way among the names. `run` runs a way a number of times, to
/// the end. If a way fails to run, one of the others is chosen.
///
/// # Errors
/// Where something cannot be made; the error of a way that poisons the context, or of one where none
/// works.
///
/// # Panics
/// Without a way.
pub(crate) fn build_fastest<M>(
    choice: &str,
    names: &[impl AsRef<str>],
    mut make: impl FnMut(usize) -> Result<M, RoutineError>,
    mut run: impl FnMut(&mut M, u32) -> Result<(), RoutineError>,
) -> Result<(String, M), RoutineError> {
    let with_name = |at: usize, made| (names[at].as_ref().to_owned(), made);
    if let Some(at) = Choices::current().taken(choice, names) {
        return Ok(with_name(at, make(at)?));
    }
    let mut made = (0..names.len()).map(make).collect::<Result<Vec<M>, _>>()?;
    let at = choose_index(choice, names, |at, times| {
        let start = Instant::now();
        run(&mut made[at], times)?;
        Ok(start.elapsed())
    })?;
    Ok(with_name(at, made.swap_remove(at)))
}

/// The index of the named candidate that takes the least device time. `enqueue` puts one iteration on
/// the GPU's stream. A measurement replays its iterations as a graph: launched one by one, iterations
/// of a few microseconds would all take as long as their launches.
///
/// # Errors
/// Errors of CUDA where no candidate works.
pub(crate) fn on_gpu(
    gpu: &Gpu,
    choice: &str,
    names: &[impl AsRef<str>],
    mut enqueue: impl FnMut(usize) -> Result<(), CudaError>,
) -> Result<usize, RoutineError> {
    let stream = gpu.stream();
    let events = EventPair::new(gpu.context())?;
    let mut graphs = HashMap::new();
    choose_index(choice, names, |at, times| {
        let graph = match graphs.entry((at, times)) {
            Entry::Occupied(graph) => graph.into_mut(),
            Entry::Vacant(none) => {
                // Once before the capture, in which no kernel may be loaded.
                enqueue(at)?;
                gpu.synchronize()?;
                let iterations = || (0..times).try_for_each(|_| enqueue(at));
                none.insert(Graph::capture(stream, iterations)?)
            }
        };
        events.start(stream)?;
        // SAFETY: what the candidates use outlives the calibration, and this waits for them.
        unsafe { graph.launch() }?;
        events.end(stream)?;
        gpu.synchronize()?;
        let took = events.elapsed_ns()?;
        Ok(Duration::from_secs_f64(took.max(100.0) * 1e-9))
    })
}

/// The index of the named candidate with the shortest typical time of an iteration, by the time that
/// `run` returns. A candidate that fails is not measured again.
fn choose_index(
    choice: &str,
    names: &[impl AsRef<str>],
    mut run: impl FnMut(usize, u32) -> Result<Duration, RoutineError>,
) -> Result<usize, RoutineError> {
    let choices = Choices::current();
    if let Some(taken) = choices.taken(choice, names) {
        return Ok(taken);
    }
    let (start, load) = (Instant::now(), Load::now());
    let mut failure: Option<RoutineError> = None;
    let fastest = fastest_of(names.len(), |at, times| {
        let took = run(at, times);
        took.map_err(|error| {
            // Keeps the first error that tells why the context is lost.
            if !failure.as_ref().is_some_and(loses_context) {
                failure = Some(error);
            }
        })
        .ok()
    });
    let chosen = match failure {
        Some(error) if fastest.is_none() || loses_context(&error) => return Err(error),
        _ => fastest.expect("there is a candidate"),
    };
    choices.note(choice, names[chosen].as_ref());
    if names.len() > 1 {
        let took = start.elapsed();
        let since = load.and_then(|before| Some((Load::now()?, before)));
        let is_disturbed = since.is_some_and(|(now, before)| now.is_disturbed_since(before));
        choices.note_calibration(choice, took, is_disturbed);
    }
    Ok(chosen)
}

/// The fastest by the time that `run` returns; `None` if all fail.
fn fastest_of(
    candidates: usize,
    mut run: impl FnMut(usize, u32) -> Option<Duration>,
) -> Option<usize> {
    if candidates == 1 {
        return Some(0);
    }
    let measured = |at| {
        let (times, took) = calibrate_iterations(|times| run(at, times))?;
        let mut seconds = Vec::with_capacity(ROUNDS);
        seconds.push(took.as_secs_f64() / f64::from(times));
        Some((took >= LONG, Candidate { at, times, seconds }))
    };
    let entries = (0..candidates).filter_map(measured);
    let (long, mut entries): (Vec<bool>, Vec<Candidate>) = entries.unzip();
    let mut spent = Duration::ZERO;
    let limit = HOPELESS * fastest(&entries);
    entries.retain_mut(|entry| {
        if entry.typical() <= limit {
            return true;
        }
        let Some(took) = run(entry.at, entry.times) else {
            return false;
        };
        entry.seconds[0] = took.as_secs_f64() / f64::from(entry.times);
        entry.typical() <= limit
    });
    let first_counts = long.iter().all(|long| *long);
    let (drops, fewest): (&[(usize, f64)], usize) = if first_counts {
        (&DROPPED_EARLY, FEWEST_LONG_ROUNDS)
    } else {
        entries.iter_mut().for_each(|entry| entry.seconds.clear());
        (&DROPPED, FEWEST_ROUNDS)
    };
    for round in 0..ROUNDS {
        if round >= fewest && (entries.len() < 2 || spent >= LONGEST) {
            break;
        }
        // In turns, so that a slow moment of the machine affects each candidate alike.
        entries.retain_mut(|entry| {
            if entry.seconds.len() > round {
                return true;
            }
            let Some(took) = run(entry.at, entry.times) else {
                return false;
            };
            spent += took;
            let seconds = took.as_secs_f64() / f64::from(entry.times);
            entry.seconds.push(seconds);
            true
        });
        if let Some((_, slower)) = drops.iter().find(|(after, _)| round + 1 == *after) {
            let limit = slower * fastest(&entries);
            entries.retain(|entry| entry.typical() <= limit);
        }
    }
    let fastest = (entries.iter()).min_by(|x, y| x.typical().total_cmp(&y.typical()))?;
    Some(fastest.at)
}

/// The time of the fastest candidate.
fn fastest(entries: &[Candidate]) -> f64 {
    let times = entries.iter().map(Candidate::typical);
    times.fold(f64::MAX, f64::min)
}

/// A candidate with its measurements.
struct Candidate {
    at: usize,
    /// Iterations of a measurement.
    times: u32,
    /// Time of one iteration, by measurement.
    seconds: Vec<f64>,
}

impl Candidate {
    /// The lower median.
    fn typical(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[(sorted.len() - 1) / 2]
    }
}

/// A number of iterations that takes [`SHORTEST`] or longer, and their time.
fn calibrate_iterations(mut run: impl FnMut(u32) -> Option<Duration>) -> Option<(u32, Duration)> {
    let mut times = 1;
    // The first run touches memory, wakes threads and detects the CPU.
    let mut took = run(times)?;
    if took < 10 * SHORTEST {
        took = run(times)?;
    }
    while took < SHORTEST && times < 1 << 20 {
        times *= 2;
        took = run(times)?;
    }
    Some((times, took))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MICRO: Duration = Duration::from_micros(1);

    /// The fastest of candidates that take so many microseconds. `at` gives the time for an index and the
    /// number of earlier runs.
    fn of_micros(micros: &[u32], at: impl Fn(usize, u32) -> u32) -> (Option<usize>, Vec<u32>) {
        let mut asked = vec![0; micros.len()];
        let chosen = fastest_of(micros.len(), |place, times| {
            asked[place] += 1;
            let micros = at(place, asked[place]);
            (micros > 0).then_some(micros * times * MICRO)
        });
        (chosen, asked)
    }

    /// The name of the chosen way or the error, and the ways that were made.
    type Chosen = (Result<String, String>, Vec<&'static str>);

    /// Asks for one of two ways that are made as they are called.
    fn of_two(choice: &str, names: [&'static str; 2]) -> Chosen {
        let mut made = Vec::new();
        let make = |at: usize| {
            made.push(names[at]);
            Ok(names[at])
        };
        let chosen = build_fastest(choice, &names, make, |way, _| match *way {
            "works" => Ok(()),
            fails => Err(fails.into()),
        });
        let name = chosen.map(|(name, _)| name);
        (name.map_err(|error| error.to_string()), made)
    }

    #[test]
    fn a_way_that_fails_is_not_chosen_and_a_chosen_way_alone_is_made_again() {
        let names = ["fails", "works"];
        let works = Ok("works".to_owned());
        assert_eq!(of_two("of two", names), (works.clone(), names.to_vec()));
        assert_eq!(of_two("of two", names), (works, vec!["works"]));
        let (error, _) = of_two("of none", ["fails", "fails too"]);
        assert!(error.unwrap_err().starts_with("fails"));
    }

    #[test]
    fn the_shortest_time_wins() {
        let micros = [900, 120, 100, 0, 5000];
        let (chosen, _) = of_micros(&micros, |place, _| micros[place]);
        assert_eq!(chosen, Some(2));
        assert_eq!(of_micros(&[0, 0], |_, _| 0).0, None);
        let one = fastest_of(1, |_, _| panic!("measured"));
        assert_eq!(one, Some(0));
    }

    #[test]
    fn slow_and_lucky_moments_do_not_decide() {
        // How long the candidates take, which of them sometimes takes another time, and when.
        type Case = (&'static str, [u32; 2], (usize, u32), fn(u32) -> bool);
        let cases: [Case; 4] = [
            (
                "the first of short ones, after which a long one would be dropped",
                [300, 400],
                (0, 2_100),
                |asked| asked == 1,
            ),
            // By its mean or its last measurement the faster one loses.
            ("two of five are slow", [100, 120], (0, 200), |asked| {
                asked % 5 < 2
            }),
            ("one of four is lucky", [180, 400], (1, 150), |asked| {
                asked % 4 == 0
            }),
            (
                "the first of long ones",
                [10_000, 12_000],
                (0, 30_000),
                |asked| asked == 1,
            ),
        ];
        for (what, micros, (odd, odd_micros), is_odd) in cases {
            let time = |place, asked| match place == odd && is_odd(asked) {
                true => odd_micros,
                false => micros[place],
            };
            assert_eq!(of_micros(&micros, time).0, Some(0), "{what}");
        }
    }

    #[test]
    fn the_slower_a_candidate_the_sooner_it_is_dropped() {
        for (fastest, slower, rounds) in [
            // Two more measurements find the number of iterations.
            (250, 800, 2 + 1),
            (250, 350, 2 + 5),
            (250, 270, 2 + ROUNDS),
            // Of long ones the first run counts, and two rounds that take as long as a calibration may
            // are all.
            (10_000, 26_000, 2),
            (10_000, 12_500, 7),
            (300_000, 310_000, 2),
        ] {
            let micros = [fastest, slower];
            let (_, asked) = of_micros(&micros, |place, _| micros[place]);
            assert_eq!(asked[1] as usize, rounds, "{fastest} and {slower}");
        }
    }
}
