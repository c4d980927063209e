//! The sizes at which the decision changes, for readers that only look decisions up: the page, and
//! programs in other languages.

use crossover_advice::thresholds::{AnswerFrom, Operation, Place, Point, Thresholds};
use crossover_advice::{Advice, Choice, Error, Question};

/// Neighbouring tested sizes differ by at most one part in this number.
const STEP: u64 = 32;

/// A straight line between two breakpoints is this near to the decision, as a factor.
const NEAR: f64 = 0.005;

/// The decision of [`Advice::decide`] for a whole size. Speedup and interval are straight to the next
/// breakpoint, over logarithms.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Breakpoint {
    /// The size.
    pub(crate) size: u64,
    /// Who is faster, from this size on to the next breakpoint.
    pub(crate) choice: Choice,
    pub(crate) speedup: f64,
    /// Lower end of the interval.
    pub(crate) low: f64,
    /// Upper end of the interval.
    pub(crate) high: f64,
}

impl Breakpoint {
    /// The speedup and the ends of its interval.
    pub(crate) fn speedups(&self) -> [f64; 3] {
        [self.speedup, self.low, self.high]
    }
}

/// Prepares one place of an operation without a name.
pub(super) fn of_place(place: Place) -> Result<Advice, Error> {
    of_operation(Operation {
        places: vec![place],
        ..Operation::default()
    })
}

/// Prepares one operation, which is then found at once.
pub(crate) fn of_operation(operation: Operation) -> Result<Advice, Error> {
    Advice::new(Thresholds {
        operations: vec![operation],
        ..Thresholds::default()
    })
}

/// The answers to a question at every whole size from 1 on. Behind the last breakpoint they stay.
/// Empty if there is no estimate. The question's own size is ignored.
pub(crate) fn breakpoints(advice: &Advice, question: &Question) -> Vec<Breakpoint> {
    let Some(operation) = advice.operation(question.operation) else {
        return Vec::new();
    };
    // Nothing changes if none of the places was measured. The interval of a measured size may hold for
    // no other, so its neighbours are breakpoints too.
    let points = operation.places.iter().flat_map(|place| &place.points);
    let beside = |point: &Point| {
        let size = point.size as u64;
        [size.saturating_sub(1), size, size.saturating_add(1)]
    };
    let mut sizes: Vec<u64> = points.flat_map(beside).filter(|size| *size > 0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let at = |size: u64| {
        let answer = advice.decide(&question.size(size));
        answer.estimate.map(|estimate| Breakpoint {
            size,
            choice: answer.choice,
            speedup: estimate.speedup,
            low: estimate.low,
            high: estimate.high,
        })
    };
    let known: Option<Vec<Breakpoint>> = sizes.into_iter().map(at).collect();
    let Some(known) = known else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for pair in known.windows(2) {
        found.push(pair[0]);
        between(&pair[0], &pair[1], &at, &mut found);
    }
    found.extend(known.last());
    if let Some(first) = found.first_mut() {
        first.size = 1;
    }
    found
}

/// The answers of one call by a warm process, each from a size on, as in [`Place::answers`]. Sizes are
/// whole; `None` for impossible points.
pub(super) fn answers(place: &Place) -> Option<Vec<AnswerFrom>> {
    let advice = of_place(place.clone()).ok()?;
    let breakpoints = breakpoints(&advice, &Question::new("", 1u64).data(place.data));
    let answer = |found: Breakpoint| AnswerFrom {
        from: found.size as f64,
        choice: found.choice,
    };
    let mut answers: Vec<AnswerFrom> = breakpoints.into_iter().map(answer).collect();
    answers.dedup_by_key(|answer| answer.choice);
    Some(answers)
}

/// Adds the breakpoints between two sizes that a straight line needs.
fn between(
    from: &Breakpoint,
    to: &Breakpoint,
    at: &impl Fn(u64) -> Option<Breakpoint>,
    found: &mut Vec<Breakpoint>,
) {
    let middle = |from: u64, to: u64| {
        let middle = from as f64 * (ratio(to, from) / 2.0).exp();
        at((middle as u64).clamp(from + 1, to - 1))
    };
    let mut parts = Vec::new();
    if from.choice == to.choice {
        if !is_straight(from, to, at) {
            parts.extend(middle(from.size, to.size));
        }
    } else {
        // The last size of the first choice, and the next one.
        let (mut last, mut next) = (*from, *to);
        while next.size - last.size > 1 {
            match middle(last.size, next.size) {
                Some(middle) if middle.choice == from.choice => last = middle,
                Some(middle) => next = middle,
                None => return,
            }
        }
        parts.extend([last, next]);
        parts.retain(|part| from.size < part.size && part.size < to.size);
    }
    let mut first = from;
    for part in &parts {
        between(first, part, at, found);
        found.push(*part);
        first = part;
    }
    if !parts.is_empty() {
        between(first, to, at, found);
    }
}

/// Whether a straight line is near to every decision between two sizes of one choice.
fn is_straight(
    from: &Breakpoint,
    to: &Breakpoint,
    at: &impl Fn(u64) -> Option<Breakpoint>,
) -> bool {
    if to.size - from.size <= 1 {
        return true;
    }
    let next = |size: &u64| Some(size.saturating_add((size / STEP).max(1)));
    let inside = std::iter::successors(Some(from.size + 1), next);
    let mut inside = inside.take_while(|size| *size < to.size);
    let ends = from.speedups().into_iter().zip(to.speedups());
    inside.all(|size| {
        let Some(here) = at(size) else { return false };
        let t = ratio(size, from.size) / ratio(to.size, from.size);
        let mut curves = here.speedups().into_iter().zip(ends.clone());
        let is_near = |(here, (from, to)): (f64, (f64, f64))| {
            (here / (from * (to / from).powf(t)) - 1.0).abs() < NEAR
        };
        here.choice == from.choice && curves.all(is_near)
    })
}

fn ratio(to: u64, from: u64) -> f64 {
    (to as f64 / from as f64).ln()
}
