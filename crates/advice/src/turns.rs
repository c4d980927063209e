//! Turns: pieces of code or processes that are measured alternately, sample by sample, so that all of
//! them meet the same machine.
//!
//! Times of one process differ from those of the next, and the load of a machine changes from second to
//! second. Two sides that run one after the other differ by all of this; two sides in turns differ by
//! their code.
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::{Duration, Instant};
//!
//! use crossover_advice::turns::{Side, take_turns};
//!
//! fn seconds(work: impl FnOnce()) -> Result<Option<f64>, Infallible> {
//!     let start = Instant::now();
//!     work();
//!     Ok(Some(start.elapsed().as_secs_f64()))
//! }
//!
//! let numbers: Vec<u64> = (0..10_000).collect();
//! let mut forwards = || seconds(|| drop(std::hint::black_box(numbers.iter().sum::<u64>())));
//! let mut backwards = || seconds(|| drop(std::hint::black_box(numbers.iter().rev().sum::<u64>())));
//! let mut sides: [&mut dyn Side<Error = Infallible>; 2] = [&mut forwards, &mut backwards];
//! let budget = Duration::from_millis(100);
//! let samples = take_turns(&mut sides, budget, |samples| samples[0].len() == 20)?;
//! assert_eq!(samples[0].len(), samples[1].len());
//! # Ok::<(), Infallible>(())
//! ```

use std::time::{Duration, Instant};

/// One of those that take turns. A closure is one.
pub trait Side {
    /// Why it cannot be measured.
    type Error;

    /// Takes its next sample, in seconds, and leaves the machine to the other sides; `None` if it takes
    /// no more.
    ///
    /// The other sides' turns emptied the caches and let the device's clock fall, so a side with short
    /// samples runs its code before it measures.
    ///
    /// # Errors
    /// Ends all turns.
    fn sample(&mut self) -> Result<Option<f64>, Self::Error>;
}

impl<E, F: FnMut() -> Result<Option<f64>, E>> Side for F {
    type Error = E;

    fn sample(&mut self) -> Result<Option<f64>, E> {
        self()
    }
}

/// Lets the sides take turns in rounds, forwards and backwards through them: A B B A. Returns the samples
/// of each.
///
/// Rounds are complete. There is another one until no side takes more samples, the `budget` is spent, or
/// `is_decided` returns true for the samples so far. The first round is always run. A side that takes no
/// more samples leaves the turns to the others.
///
/// # Errors
/// The first error of a side.
pub fn take_turns<S: Side + ?Sized>(
    sides: &mut [&mut S],
    budget: Duration,
    mut is_decided: impl FnMut(&[Vec<f64>]) -> bool,
) -> Result<Vec<Vec<f64>>, S::Error> {
    let start = Instant::now();
    let mut samples = vec![Vec::new(); sides.len()];
    let mut order: Vec<usize> = (0..sides.len()).collect();
    while !order.is_empty() {
        let mut going_on = Vec::with_capacity(order.len());
        for &at in &order {
            if let Some(seconds) = sides[at].sample()? {
                samples[at].push(seconds);
                going_on.push(at);
            }
        }
        if is_decided(&samples) || start.elapsed() >= budget {
            break;
        }
        going_on.reverse();
        order = going_on;
    }
    Ok(samples)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    type Named<'a> = Box<dyn FnMut() -> Result<Option<f64>, String> + 'a>;

    /// Lets sides take so many samples each, and returns their order.
    fn order(
        wanted: &[usize],
        budget: Duration,
        is_decided: impl FnMut(&[Vec<f64>]) -> bool,
    ) -> (String, Vec<usize>) {
        let order = RefCell::new(String::new());
        let side = |(letter, wanted): (char, &usize)| -> Named<'_> {
            let (order, mut left) = (&order, *wanted);
            Box::new(move || {
                order.borrow_mut().push(letter);
                let sample = (left > 0).then_some(1.0);
                left = left.saturating_sub(1);
                Ok(sample)
            })
        };
        let mut sides: Vec<Named<'_>> = ('a'..).zip(wanted).map(side).collect();
        let mut sides: Vec<&mut Named<'_>> = sides.iter_mut().collect();
        let samples = take_turns(&mut sides, budget, is_decided).unwrap();
        let counts = samples.iter().map(Vec::len).collect();
        (order.take(), counts)
    }

    #[test]
    fn the_order_is_reversed_in_each_round() {
        let decided = |samples: &[Vec<f64>]| samples[2].len() == 3;
        let (order, counts) = order(&[9, 9, 9], Duration::MAX, decided);
        assert_eq!(order, "abccbaabc");
        assert_eq!(counts, [3, 3, 3]);
    }

    #[test]
    fn a_side_without_further_samples_leaves_the_others_their_turns() {
        let (order, counts) = order(&[1, 3, 0], Duration::MAX, |_| false);
        assert_eq!(order, "abcbabb");
        assert_eq!(counts, [1, 3, 0]);
    }

    #[test]
    fn without_time_each_side_has_one_turn() {
        let (order, counts) = order(&[9, 9], Duration::ZERO, |_| false);
        assert_eq!(order, "ab");
        assert_eq!(counts, [1, 1]);
        assert!(self::order(&[], Duration::MAX, |_| false).1.is_empty());
    }

    #[test]
    fn an_error_ends_the_turns() {
        let mut turns = 0;
        let mut works = || Ok(Some(1.0));
        let mut fails = || {
            turns += 1;
            if turns == 2 {
                Err("no device")
            } else {
                Ok(Some(1.0))
            }
        };
        let mut sides: [&mut dyn Side<Error = &str>; 2] = [&mut works, &mut fails];
        let ended = take_turns(&mut sides, Duration::MAX, |_| false);
        assert_eq!(ended, Err("no device"));
        assert_eq!(turns, 2);
    }
}
