//! Decides which child process answers which questions, and when.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::device::kernel::SharedKernels;
use crate::model::record::Confirmation;
use crate::suite::arguments::Arguments;
use crate::suite::confirm::questions::{AskedQuestion, OpenQuestions, Times, baseline, mark_firm};
use crate::suite::confirm::{Task, TaskReply, Tasks};
use crate::suite::journal::Journal;
use crate::suite::progress::left_in_words;
use crate::workload::choices::Choices;
use crossover_protocol::child;
use crossover_protocol::settings::Settings;
use crossover_results::store::machine_record::MACHINES;
use crossover_system::interrupt;
use crossover_words::text::with_causes;
use crossover_words::units;

/// Time between two processes during the groups. On a shared host, processes in quick succession meet
/// the same neighbours, whose memory traffic changes within minutes.
const APART: Duration = Duration::from_secs(40);
/// After this much time in processes, no more than the wanted number are started.
const LONGEST: Duration = Duration::from_secs(45);
/// Upper bound on the processes.
const MOST_PROCESSES: usize = 25;

/// When to start processes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::suite) enum When {
    /// Between two groups: one process, if the last ended [`APART`] ago.
    BetweenGroups,
    /// After all groups: the processes that are still wanted, and more where answers are not firm.
    AfterGroups,
}

/// The questions of a run and its processes so far.
pub(in crate::suite) struct Confirming {
    asking: OpenQuestions,
    /// Processes that each question is put to; none once one has failed, since others would fail too.
    wanted: usize,
    /// The folder of other machines, whose GPU is asked about where there is none here.
    references: PathBuf,
    /// Whether the run measures its whole profile: its questions are then about its own results,
    /// whatever an earlier run left in the folder.
    is_whole: bool,
    /// Where they and the run share compiled kernels; `None` where there is no such folder.
    shared: Option<TempDir>,
    /// The calibrated choices of the run.
    choices: Choices,
    /// The calibrated choices of the run and of the processes so far.
    known: BTreeMap<String, String>,
    /// When the run began, or the last process ended.
    since: Instant,
    asked: usize,
    spent: Duration,
    slowest: Duration,
    /// Whether to print only problems.
    is_quiet: bool,
}

impl Confirming {
    /// Nothing is asked yet.
    pub(in crate::suite) fn new(
        settings: &Settings,
        arguments: &Arguments,
        choices: Choices,
    ) -> Self {
        let wanted = settings.processes;
        let shared = (wanted > 0).then(tempfile::tempdir).and_then(Result::ok);
        Self {
            asking: OpenQuestions::default(),
            wanted,
            references: settings.report_folder().join(MACHINES),
            is_whole: arguments.filter_text().is_none(),
            shared,
            choices,
            known: BTreeMap::new(),
            since: Instant::now(),
            asked: 0,
            spent: Duration::ZERO,
            slowest: Duration::ZERO,
            is_quiet: arguments.is_quiet(),
        }
    }

    /// The compiled kernels that they and the run share.
    pub(in crate::suite) fn kernels(&self) -> SharedKernels {
        SharedKernels(self.shared.as_ref().map(|folder| folder.path().into()))
    }

    /// Asks the processes that are due about the answers of the results so far, and stores what they say
    /// after each. Returns how long that took.
    pub(in crate::suite) fn confirm(&mut self, when: When, journal: &mut Journal) -> Duration {
        let before = self.spent;
        let is_time = when == When::AfterGroups || self.since.elapsed() >= APART;
        if self.wanted == 0 || !is_time {
            return Duration::ZERO;
        }
        (self.asking).renew(journal, &self.references, self.is_whole);
        while self.find_open(when) && interrupt::signal().is_none() && self.ask_one() {
            journal.confirm(self.answers());
            if when == When::BetweenGroups {
                break;
            }
        }
        self.spent - before
    }

    /// Marks the questions to put to the next process: those that were put to fewer than wanted, or else,
    /// after the groups, those without a firm answer. Returns whether there is any.
    fn find_open(&mut self, when: When) -> bool {
        let may_go_on = when == When::AfterGroups
            && self.spent + self.slowest <= LONGEST
            && self.asked < MOST_PROCESSES;
        let is_short = |question: &AskedQuestion| question.attempts < question.wanted(self.wanted);
        let questions = &mut self.asking.questions;
        let any_short = questions.iter().any(is_short);
        for question in questions.iter_mut() {
            question.is_open = if any_short {
                is_short(question)
            } else {
                may_go_on && question.may_become_firm()
            };
        }
        questions.iter().any(|question| question.is_open)
    }

    /// Expected time of the remaining processes, from those so far; zero until one has ended.
    pub(in crate::suite) fn to_come(&self) -> Duration {
        let questions = self.asking.questions.iter();
        let wanted = questions.map(|question| {
            question
                .wanted(self.wanted)
                .saturating_sub(question.attempts)
        });
        self.each() * wanted.max().unwrap_or(0) as u32
    }

    /// Time of a process.
    fn each(&self) -> Duration {
        self.spent / self.asked.max(1) as u32
    }

    /// Has one process answer the open questions; false if it fails.
    fn ask_one(&mut self) -> bool {
        let start = Instant::now();
        if !self.is_quiet {
            let answers = units::counted(self.asking.open().count(), "answer");
            let left = match self.asked {
                0 => String::new(),
                _ => format!(", {}", left_in_words(self.to_come().max(self.each()))),
            };
            eprintln!(
                "confirming {answers} in child process {}{left}",
                self.asked + 1
            );
        }
        self.known.extend(self.choices.made());
        let mut times = Times::new();
        let order = self.order();
        let mut tasks = order.tasks.iter();
        let asked = child::ask(&order, &[], |reply: TaskReply| {
            self.known.extend(reply.choices);
            let Some(Task { group, size, .. }) = tasks.next() else {
                return;
            };
            match reply.medians {
                Ok(medians) => drop(times.insert((group.clone(), *size), medians)),
                Err(reason) => eprintln!("note: {group} at {size} is not confirmed: {reason}"),
            }
        });
        let took = start.elapsed();
        self.asked += 1;
        self.spent += took;
        self.slowest = self.slowest.max(took);
        self.since = Instant::now();
        if let Err(error) = asked {
            if interrupt::signal().is_none() {
                eprintln!(
                    "note: child process {} did not answer: {}",
                    self.asked,
                    with_causes(&*error)
                );
            }
            self.wanted = 0;
            return false;
        }
        let OpenQuestions { machine, questions } = &mut self.asking;
        for question in questions.iter_mut().filter(|question| question.is_open) {
            question.attempts += 1;
            let answer = question.paired_times(machine, &times);
            question.confirmation.processes.extend(answer);
        }
        mark_firm(questions);
        true
    }

    /// The measurements of the next process for the open questions.
    fn order(&self) -> Tasks {
        let mut tasks: Vec<Task> = Vec::new();
        for question in self.asking.open() {
            let group = &question.confirmation.group;
            for size in question.sizes() {
                let Some(baseline) = baseline(&self.asking.machine, group, size) else {
                    continue;
                };
                let mut functions = BTreeSet::from([baseline]);
                if question.gpu_times.is_none() {
                    functions.insert(format!("gpu/{}", question.confirmation.gpu));
                }
                // The reference of a large size takes seconds, and the run has already verified there.
                let verify =
                    question.attempts == 0 && !self.asking.has_verified(group, size, &functions);
                let same = |task: &&mut Task| task.group == *group && task.size == size;
                match tasks.iter_mut().find(same) {
                    Some(task) => {
                        task.functions.extend(functions);
                        task.verify |= verify;
                    }
                    None => tasks.push(Task {
                        group: group.clone(),
                        size,
                        functions,
                        verify,
                    }),
                }
            }
        }
        // From the largest size down, whose pinned memory then serves the others.
        tasks.sort_by(|a, b| (&a.group, b.size).cmp(&(&b.group, a.size)));
        Tasks {
            kernels: self.kernels().0,
            choices: self.known.clone(),
            tasks,
        }
    }

    /// The answers of all processes so far.
    fn answers(&self) -> Vec<Confirmation> {
        let questions = self.asking.questions.iter();
        questions
            .map(|question| &question.confirmation)
            .filter(|confirmation| !confirmation.processes.is_empty())
            .cloned()
            .collect()
    }
}
