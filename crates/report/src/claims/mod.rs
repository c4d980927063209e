//! Claims of texts about GPU timing and offloading, judged by the measured results.
//!
//! `claims.json` has each claim in our words, and the group, role and sizes of the results that test it,
//! or the reason why none does. Claims are about particular operations, so that file alone names groups.

mod declared;
mod figure;

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::claims::declared::{Evidence, Quantity, Statement};
use crate::claims::figure::{Figure, Missing};
use crate::report::Report;
use crossover_advice::thresholds::CrossingKind;
use crossover_results::analysis::answer::answer_in_words;
use crossover_results::analysis::answer::crossover_answer::{self, CrossoverAnswer, headlines};
use crossover_results::store::machine_results::MachineResults;

use Verdict::{Holds, Larger, NotSo, Smaller, Undecided};
pub(crate) use declared::{Claim, Question, TEXTS};

/// Figures within this factor of each other count as equal, because texts had other hardware.
const SAME_FACTOR: f64 = 1.25;
/// A factor up to this one is no gain.
const NO_GAIN: f64 = 1.05;

/// The reason if no machine has the claim's rows.
const NO_RESULT: &str = "not measured yet";

/// The rules of [`Statement::judge`], for readers.
pub(crate) const RULES: &str = "A claim with a figure holds if the measured interval comes within a quarter \
    of the figure. Otherwise the measured figure is larger or smaller, or the claim is not so: it states a \
    gain and a loss was measured. If a text names no size, the smallest and the largest measured size count, \
    and a stated figure between their figures holds too. A claim that one side is faster holds if the \
    interval shows it at one of these sizes and the opposite at none; it is undecided if the interval shows \
    neither. In parentheses: the interval in which another run lies with a probability of 95 %.";

/// How the measured figure compares with the claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Holds,
    Larger,
    Smaller,
    NotSo,
    /// Another run may reach either verdict.
    Undecided,
}

impl Verdict {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Holds => "holds",
            Larger => "larger",
            Smaller => "smaller",
            NotSo => "not so",
            Undecided => "undecided",
        }
    }
}

/// The figure that answers a claim.
pub(crate) struct Measured<'a> {
    pub(crate) verdict: Verdict,
    /// With its interval and size.
    pub(crate) figure: String,
    pub(crate) ids: Vec<String>,
    pub(crate) machine: &'a MachineResults,
}

/// The result that tests a claim, or the reason why none does.
pub(crate) type Outcome<'a> = Result<Measured<'a>, String>;

/// A question with its claims and their outcomes.
pub(crate) type JudgedClaims<'a> = (&'static Question, Vec<(&'static Claim, Outcome<'a>)>);

/// A machine with its own answers.
pub(crate) type Machine<'a> = (&'a MachineResults, Cow<'a, [CrossoverAnswer]>);

/// The machines of a report and of `--with`.
pub(crate) fn machines(report: &Report) -> Vec<Machine<'_>> {
    let own = (&report.machine, Cow::from(&report.found));
    let reference = report.reference.iter();
    let reference = reference.map(|gpu| (gpu, Cow::from(&report.of_reference)));
    let named = report.named.iter();
    let named = named.map(|machine| (machine, crossover_answer::find(machine, &[]).into()));
    std::iter::once(own).chain(reference).chain(named).collect()
}

/// All claims, each judged by the first machine that measured it.
pub(crate) fn evaluate<'a>(machines: &[Machine<'a>]) -> Vec<JudgedClaims<'a>> {
    let outcome = |claim: &Claim| {
        let mut why = None;
        for machine in machines {
            match claim.measured(machine) {
                Ok(measured) => return Ok(measured),
                Err(reason) => why = why.or(reason),
            }
        }
        Err(why.unwrap_or_else(|| NO_RESULT.to_owned()))
    };
    let answered = |question: &'static Question| {
        let judged = question.claims.iter().map(|claim| (claim, outcome(claim)));
        (question, judged.collect())
    };
    TEXTS.questions.iter().map(answered).collect()
}

/// `33 of 50 claims are answered: holds 25, larger 4, smaller 3, not so 1. Each of the others has a reason.`
pub(crate) fn counted(judged: &[JudgedClaims]) -> String {
    let outcomes: Vec<&Outcome> = (judged.iter())
        .flat_map(|(_, claims)| claims.iter().map(|(_, outcome)| outcome))
        .collect();
    let count_of = |verdict: Verdict| {
        let is = |o: &&&Outcome| o.as_ref().is_ok_and(|m| m.verdict == verdict);
        format!("{} {}", verdict.words(), outcomes.iter().filter(is).count())
    };
    let verdicts = [Holds, Larger, Smaller, NotSo, Undecided]
        .map(count_of)
        .join(", ");
    let (answered, all) = (
        outcomes.iter().filter(|o| o.is_ok()).count(),
        outcomes.len(),
    );
    format!("{answered} of {all} claims are answered: {verdicts}. Each of the others has a reason.")
}

/// The titles of the texts.
pub(crate) fn sources() -> String {
    let claims = TEXTS.questions.iter().flat_map(|q| &q.claims);
    let titles: BTreeSet<&str> = claims.map(|claim| &*claim.source).collect();
    Vec::from_iter(titles).join("; ")
}

impl Claim {
    /// The text's statement, `1.5× to 3×`.
    pub(crate) fn stated(&self) -> String {
        let write = |value| self.by.quantity().round(value);
        match self.says {
            Statement::About(low, high) if low == high => write(low),
            Statement::About(low, high) => format!("{} to {}", write(low), write(high)),
            Statement::Faster => "faster".to_owned(),
            Statement::Slower => "slower".to_owned(),
            Statement::NotFaster => "not faster".to_owned(),
            Statement::Grows => "more with a larger one".to_owned(),
            Statement::FromASize => "from some size on".to_owned(),
            Statement::AtNoSize => "at no size".to_owned(),
            Statement::NoFigure => "no figure".to_owned(),
        }
    }

    fn measured<'a>(&self, (machine, found): &Machine<'a>) -> Result<Measured<'a>, Missing> {
        if let Evidence::Crossover(group, question) = &self.by {
            let mut own = headlines(found).filter(|f| f.gpu_machine.is_none());
            let found = own.find(|f| f.group == *group && f.question == *question);
            return self.crossover(machine, found.ok_or(None)?);
        }
        let (topic, ends) = self.by.ends(machine)?;
        let quantity = self.by.quantity();
        let words: Vec<String> = ends.iter().map(|end| end.words(quantity, &topic)).collect();
        Ok(Measured {
            verdict: self.says.judge(&ends, quantity),
            figure: words.join("; "),
            ids: ends.into_iter().flat_map(|end| end.ids).collect(),
            machine,
        })
    }

    fn crossover<'a>(
        &self,
        machine: &'a MachineResults,
        found: &CrossoverAnswer,
    ) -> Result<Measured<'a>, Missing> {
        let holds = match (found.crossing.answer, self.says) {
            (CrossingKind::Undecided, _) => {
                let open = answer_in_words::open(&found.topic, &found.crossing);
                return Err(Some(format!("undecided at {open}")));
            }
            (CrossingKind::Always, _) => false,
            (_, Statement::FromASize) => found.crossing.for_good().is_some(),
            _ => found.crossing.for_good().is_none(),
        };
        Ok(Measured {
            verdict: if holds { Holds } else { NotSo },
            figure: answer_in_words::wins(&found.topic, &found.crossing),
            ids: found.benchmarks.clone(),
            machine,
        })
    }
}

impl Statement {
    fn judge(self, ends: &[Figure], quantity: Quantity) -> Verdict {
        let least = |of: fn(&Figure) -> f64| ends.iter().map(of).fold(f64::INFINITY, f64::min);
        let most = |of: fn(&Figure) -> f64| ends.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = (least(|end| end.interval.0), most(|end| end.interval.1));
        let (first, last) = (&ends[0], &ends[ends.len() - 1]);
        let above = ends.iter().any(|end| end.interval.0 > 1.0);
        let below = ends.iter().any(|end| end.interval.1 < 1.0);
        let holds = match self {
            Statement::Faster | Statement::Slower => above && !below,
            Statement::NotFaster => high < NO_GAIN,
            Statement::Grows => last.interval.0 > first.interval.1,
            Statement::NoFigure => true,
            Statement::About(from, to) => high * SAME_FACTOR >= from && low <= to * SAME_FACTOR,
            Statement::FromASize | Statement::AtNoSize => false,
        };
        match self {
            _ if holds => Holds,
            Statement::About(_, to) if low > to => Larger,
            // A loss where a gain is claimed.
            Statement::About(from, _)
                if quantity == Quantity::Factor && from > 1.0 && high < 1.0 =>
            {
                NotSo
            }
            Statement::About(..) => Smaller,
            Statement::Faster | Statement::Slower if !below && high > NO_GAIN => Undecided,
            Statement::NotFaster if !above => Undecided,
            Statement::Grows if ends.len() > 1 && last.interval.1 > first.interval.0 => Undecided,
            _ => NotSo,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(says: Statement, values: &[f64]) -> Verdict {
        let end = |&value: &f64| Figure {
            size: 1,
            value,
            interval: (0.99 * value, 1.01 * value),
            ids: Vec::new(),
        };
        let ends: Vec<Figure> = values.iter().map(end).collect();
        says.judge(&ends, Quantity::Factor)
    }

    #[test]
    fn a_claim_is_judged_by_its_own_figure() {
        for (says, values, verdict) in [
            (Statement::About(2.0, 3.0), &[2.4][..], Holds),
            (Statement::About(2.0, 3.0), &[1.7], Holds),
            (Statement::About(2.0, 3.0), &[4.0], Larger),
            (Statement::About(2.0, 3.0), &[1.2], Smaller),
            (Statement::About(2.0, 3.0), &[0.7], NotSo),
            // The stated figure lies between those of the smallest and of the largest size.
            (Statement::About(2.0, 2.0), &[1.1, 5.0], Holds),
            (Statement::About(2.0, 2.0), &[0.7, 1.1], Smaller),
            (Statement::Faster, &[1.0, 3.0], Holds),
            (Statement::Faster, &[0.8, 1.3], NotSo),
            (Statement::Slower, &[1.01], NotSo),
            (Statement::NotFaster, &[0.5, 1.02], Holds),
            (Statement::NotFaster, &[0.5, 1.2], NotSo),
            (Statement::Grows, &[1.0, 1.2], Holds),
            (Statement::Grows, &[1.2, 1.0], NotSo),
            (Statement::Grows, &[1.2], NotSo),
            // The interval of 1 % contains both directions.
            (Statement::Faster, &[1.005, 1.06], Holds),
            (Statement::NotFaster, &[1.045], NotSo),
            (Statement::Grows, &[1.0, 1.01], Undecided),
        ] {
            assert_eq!(judged(says, values), verdict, "{says:?} {values:?}");
        }
    }
}
