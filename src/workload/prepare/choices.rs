//! The calibrated choices of a run: which of several ways each piece of work takes.
//!
//! Two processes may choose differently, and their times would then differ. So a choice is made once in
//! a run, and a run can be given the choices of an earlier process.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The choices for code that no run owns, such as that of tests. The threads of the process share them.
static WITHOUT_A_RUN: LazyLock<Choices> = LazyLock::new(Choices::default);

thread_local! {
    /// The choices for the code that this thread sets up and runs.
    static CURRENT: RefCell<Choices> = RefCell::new(WITHOUT_A_RUN.clone());
}

/// The choices of a run. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choices(Arc<Mutex<Chosen>>);

/// Names of candidates, by the name of the choice.
#[derive(Debug, Default)]
struct Chosen {
    /// The choices of an earlier process.
    handed_over: BTreeMap<String, String>,
    /// The choices needed so far: calibrated, or taken from `handed_over`.
    made: BTreeMap<String, String>,
    /// The choices that were calibrated under background load.
    disturbed: BTreeSet<String>,
    /// What was needed since [`Choices::take_needed`] was last called.
    needed: NeededChoices,
}

/// The choices that a routine needed.
#[derive(Debug, Default)]
pub(crate) struct NeededChoices {
    /// Names of candidates, by the name of the choice.
    pub(crate) names: BTreeMap<String, String>,
    /// Time of their calibrations; zero if every choice was known.
    pub(crate) calibration_time: Duration,
}

impl Choices {
    /// Choices of an earlier process, which are used without a calibration where their candidates exist.
    pub(crate) fn handed_over(earlier: BTreeMap<String, String>) -> Self {
        let this = Self::default();
        this.hand_over(earlier);
        this
    }

    fn chosen(&self) -> MutexGuard<'_, Chosen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The choices for the code that this thread sets up and runs.
    pub(super) fn current() -> Self {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Sets code up and runs it with these choices. Some code chooses in its first run.
    pub(crate) fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Restored(Choices);
        impl Drop for Restored {
            fn drop(&mut self) {
                CURRENT.set(self.0.clone());
            }
        }
        let _outer = Restored(CURRENT.replace(self.clone()));
        work()
    }

    /// Uses these choices from now on without a calibration, where their candidates exist.
    pub(crate) fn hand_over(&self, earlier: BTreeMap<String, String>) {
        self.chosen().handed_over.extend(earlier);
    }

    /// The choices needed so far, by name, for the next process.
    pub(crate) fn made(&self) -> BTreeMap<String, String> {
        self.chosen().made.clone()
    }

    /// The choices needed since the last call.
    pub(crate) fn take_needed(&self) -> NeededChoices {
        std::mem::take(&mut self.chosen().needed)
    }

    /// Forgets the choices that were calibrated under background load, and `more`, which were needed at such
    /// a time. The next routine that needs one, in this process or in another, calibrates again. Returns
    /// the forgotten names.
    pub(crate) fn forget_disturbed(
        &self,
        more: impl IntoIterator<Item = String>,
    ) -> BTreeSet<String> {
        let mut chosen = self.chosen();
        let mut disturbed = std::mem::take(&mut chosen.disturbed);
        disturbed.extend(more);
        chosen.made.retain(|choice, _| !disturbed.contains(choice));
        disturbed
    }

    /// The index of the candidate that is already chosen, if it is among these; notes that it was needed.
    pub(super) fn taken(&self, choice: &str, names: &[impl AsRef<str>]) -> Option<usize> {
        let at = {
            let chosen = self.chosen();
            let name = (chosen.made.get(choice)).or_else(|| chosen.handed_over.get(choice))?;
            names.iter().position(|other| other.as_ref() == name)?
        };
        self.note(choice, names[at].as_ref());
        Some(at)
    }

    /// Notes a choice that was needed.
    pub(super) fn note(&self, choice: &str, name: &str) {
        let mut chosen = self.chosen();
        let (choice, name) = (choice.to_owned(), name.to_owned());
        chosen.made.insert(choice.clone(), name.clone());
        chosen.needed.names.insert(choice, name);
    }

    /// Notes how long the calibration of a choice took, and whether it was disturbed by background load.
    pub(super) fn note_calibration(&self, choice: &str, took: Duration, is_disturbed: bool) {
        let mut chosen = self.chosen();
        chosen.needed.calibration_time += took;
        if is_disturbed {
            chosen.disturbed.insert(choice.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::prepare::choose::on_cpu;
    use crate::workload::prepare::threads::Threads;

    /// The choice among 1 and 2, and how often one of them was run.
    fn chosen(choices: &Choices, choice: &str) -> (u8, u32) {
        let mut runs = 0;
        let one_of = || on_cpu(&Threads::One, choice, &[1, 2], |_, _| runs += 1);
        (choices.during(one_of), runs)
    }

    #[test]
    fn a_choice_is_made_once_in_a_run() {
        let run = Choices::default();
        let (first, runs) = chosen(&run, "one of two");
        assert!(runs > 0);
        assert_eq!(run.made()["one of two"], first.to_string());
        assert_eq!(chosen(&run, "one of two"), (first, 0));
        let needed = run.take_needed();
        assert_eq!(needed.names, run.made());
        assert!(needed.calibration_time > Duration::ZERO);
        assert!(run.take_needed().names.is_empty());
        let another = Choices::default();
        assert!(chosen(&another, "one of two").1 > 0, "of another run");
    }

    #[test]
    fn a_choice_that_was_handed_over_is_taken_where_its_candidate_exists() {
        let earlier = [
            ("handed over", "2"),
            ("never asked for", "1"),
            ("gone", "3"),
        ];
        let earlier = earlier.map(|(choice, name)| (choice.into(), name.into()));
        let run = Choices::handed_over(earlier.into());
        assert_eq!(chosen(&run, "handed over"), (2, 0));
        assert_eq!(run.made()["handed over"], "2");
        assert!(!run.made().contains_key("never asked for"));
        let (name, runs) = chosen(&run, "gone");
        assert!(runs > 0);
        assert_eq!(run.made()["gone"], name.to_string());
    }

    #[test]
    fn disturbed_choices_are_made_again() {
        let run = Choices::default();
        for choice in ["quiet", "disturbed", "asked for meanwhile"] {
            run.note(choice, "1");
            run.note_calibration(choice, Duration::ZERO, choice == "disturbed");
        }
        let forgotten = run.forget_disturbed(["asked for meanwhile".to_owned()]);
        assert_eq!(forgotten.len(), 2);
        let taken = |choice| run.taken(choice, &["1"]);
        assert_eq!(taken("quiet"), Some(0));
        let gone = (taken("disturbed"), taken("asked for meanwhile"));
        assert_eq!(gone, (None, None));
        assert!(run.forget_disturbed([]).is_empty());
    }
}
