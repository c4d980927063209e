//! The sizes at which the decision changes, for readers that only look decisions up: the page, and
//! programs in other languages.

use crate::advice::Advice;
use crate::decision::Question;
use crate::thresholds::{AnswerFrom, Choice, Place};

/// Neighbouring tested sizes differ by at most one part in this number.
const STEP: u64 = 64;

/// A straight line between two breakpoints is this near to the decision, as a factor.
const NEAR: f64 = 0.005;

/// The decision of [`Advice::decide`] for a whole size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Breakpoint {
    /// The size.
    pub size: u64,
    /// Who is faster, from this size on to the next breakpoint.
    pub choice: Choice,
    /// The speedup and the ends of its interval: straight to the next breakpoint, over logarithms.
    pub speedup: [f64; 3],
}

impl Advice {
    /// The answers to a question at every whole size from 1 on. Behind the last breakpoint they stay.
    /// Empty if there is no estimate. The question's own size is ignored.
    pub fn breakpoints(&self, question: &Question) -> Vec<Breakpoint> {
        let Some(operation) = self.find(question.operation) else {
            return Vec::new();
        };
        let places = self.thresholds().operations[operation].places.iter();
        // Nothing changes if none of the places was measured.
        let points = places.flat_map(|place| &place.points);
        let mut sizes: Vec<u64> = points.map(|point| point.size as u64).collect();
        sizes.sort_unstable();
        if sizes.is_empty() {
            return Vec::new();
        }
        let at = |size: u64| {
            let asked = Question {
                size: size.into(),
                ..*question
            };
            let answer = self.decide_at(operation, &asked);
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
}

impl Place {
    /// The answers of one call by a warm process, each from a size on, as in
    /// [`answers`](Self::answers). Sizes are whole; `None` for impossible points.
    pub fn decide_all(&self) -> Option<Vec<AnswerFrom>> {
        let advice = Advice::of_place(self.clone()).ok()?;
        let breakpoints = advice.breakpoints(&Question::new("", 1u64).data(self.data));
        let of = |found: Breakpoint| AnswerFrom {
            from: found.size as f64,
            choice: found.choice,
        };
        let mut all: Vec<AnswerFrom> = breakpoints.into_iter().map(of).collect();
        all.dedup_by_key(|answer| answer.choice);
        Some(all)
    }
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
