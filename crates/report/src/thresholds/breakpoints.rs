//! The sizes at which the decision changes, for readers that only look decisions up: the page, and
//! programs in other languages.

use crossover_advice::thresholds::{AnswerFrom, Operation, Place, Thresholds};
use crossover_advice::{Advice, Choice, Error, Question};

/// Neighbouring tested sizes differ by at most one part in this number.
const STEP: u64 = 32;

/// A straight line between two breakpoints is this near to the decision, as a factor.
const NEAR: f64 = 0.005;

/// The decision of [`Advice::decide`] for a whole size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Breakpoint {
    /// The size.
    pub(crate) size: u64,
    /// Who is faster, from this size on to the next breakpoint.
    pub(crate) choice: Choice,
    /// The speedup and the ends of its interval: straight to the next breakpoint, over logarithms.
    pub(crate) speedup: [f64; 3],
}

/// Prepares one place of an operation without a name.
pub(super) fn of_place(place: Place) -> Result<Advice, Error> {
    let operation = Operation {
        places: vec![place],
        ..Operation::default()
    };
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
    // Nothing changes if none of the places was measured.
    let points = operation.places.iter().flat_map(|place| &place.points);
    let mut sizes: Vec<u64> = points.map(|point| point.size as u64).collect();
    sizes.sort_unstable();
    if sizes.is_empty() {
        return Vec::new();
    }
    let at = |size: u64| {
        let answer = advice.decide(&question.size(size));
        answer.estimate.map(|estimate| Breakpoint {
            size,
            choice: answer.choice,
            speedup: [estimate.speedup, estimate.low, estimate.high],
        })
    };
    // One size beside each end too, where the answer is not that of a measured size.
    sizes.insert(0, sizes[0].saturating_sub(1));
    sizes.push(sizes[sizes.len() - 1].saturating_add(1));
    sizes.retain(|size| *size > 0);
    sizes.dedup();
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
    found[0].size = 1;
    found
}

/// The answers of one call by a warm process, each from a size on, as in [`Place::answers`]. Sizes are
/// whole; `None` for impossible points.
pub(super) fn answers(place: &Place) -> Option<Vec<AnswerFrom>> {
    let advice = of_place(place.clone()).ok()?;
    let breakpoints = breakpoints(&advice, &Question::new("", 1u64).data(place.data));
    let of = |found: Breakpoint| AnswerFrom {
        from: found.size as f64,
        choice: found.choice,
    };
    let mut all: Vec<AnswerFrom> = breakpoints.into_iter().map(of).collect();
    all.dedup_by_key(|answer| answer.choice);
    Some(all)
}

/// Adds the breakpoints between two sizes that a straight line needs.
fn between(
    from: &Breakpoint,
    to: &Breakpoint,
    at: &impl Fn(u64) -> Option<Breakpoint>,
    found: &mut Vec<Breakpoint>,
) {
    if to.size - from.size <= 1 {
        return;
    }
    // The sizes beside both ends, because the answer of a measured size may hold for no other.
    let next = |size: &u64| Some(size.saturating_add((size / STEP).max(1)));
    let first = from.size + 1;
    let inside = std::iter::successors(Some(first), next).take_while(|size| *size < to.size);
    let mut inside = inside.chain([to.size - 1]);
    let is_straight = |size| {
        let Some(here) = at(size) else { return false };
        let t = ratio(size, from.size) / ratio(to.size, from.size);
        let is_near = |i: usize| {
            let line = from.speedup[i] * (to.speedup[i] / from.speedup[i]).powf(t);
            (here.speedup[i] / line - 1.0).abs() < NEAR
        };
        here.choice == from.choice && (0..3).all(is_near)
    };
    if from.choice == to.choice && inside.all(is_straight) {
        return;
    }
    let middle = ((from.size as f64) * (ratio(to.size, from.size) / 2.0).exp()) as u64;
    let Some(middle) = at(middle.clamp(from.size + 1, to.size - 1)) else {
        return;
    };
    between(from, &middle, at, found);
    found.push(middle);
    between(&middle, to, at, found);
}

fn ratio(to: u64, from: u64) -> f64 {
    (to as f64 / from as f64).ln()
}
