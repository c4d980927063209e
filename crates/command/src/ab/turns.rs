//! Two processes that run one at a time: sample by sample in the order A B B A, so that both meet
//! the same host. What they say is in [`crossover_protocol::turns`].

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::time::Duration;

use crate::ab::Args;
use crate::ab::driven::{Driven, Pause};
use crate::ab::executable::{Executable, keep_slow_orders, most_pairs};
use crate::ab::layout::seed;
use crate::ab::pairs::{Outcome, Pair, Sampling};
use crate::ab::worktree::Copies;
use crossover_advice::turns::{Side, take_turns};
use crossover_protocol::child::ChildError;
use crossover_protocol::turns::Instructions;
use crossover_results::store::baseline::Baseline;
use crossover_results::store::layout::NEW;
use crossover_system::usable_cores;

/// The executables of both sides, which take turns.
pub(super) struct Turns<'a> {
    bench_args: &'a [String],
    copies: &'a Copies,
    /// As they were built.
    built: [Vec<Executable>; 2],
    /// As they run, each side in its own work tree.
    executables: [Vec<Executable>; 2],
    /// The benchmarks that each side verified in the first pair.
    verified: [Option<BTreeSet<String>>; 2],
    /// The calibrated choices of each side.
    choices: [BTreeMap<String, String>; 2],
}

impl<'a> Turns<'a> {
    /// For executables built at the paths that `copies` gives to one side at a time. Both run at the same
    /// time, each in its own work tree.
    ///
    /// # Errors
    /// That the work trees cannot be moved.
    pub(super) fn new(
        args: &'a Args,
        copies: &'a Copies,
        built: [Vec<Executable>; 2],
    ) -> anyhow::Result<Self> {
        copies.bring(None)?;
        let moved = |side: usize| {
            let executables = built[side].iter();
            executables
                .map(|executable| executable.moved(&copies.places(side)))
                .collect()
        };
        Ok(Self {
            bench_args: &args.bench_args,
            executables: [moved(0), moved(1)],
            copies,
            built,
            verified: [None, None],
            choices: [BTreeMap::new(), BTreeMap::new()],
        })
    }

    /// Gives each side a new order of functions, unless the pair times a device alone.
    ///
    /// # Errors
    /// As [`Sampling::run`].
    fn renew(&self, pair: &Pair<'_>) -> anyhow::Result<()> {
        let is_of_device = |id: &String| id.split('/').nth(1) == Some("gpu");
        if pair.only.is_some_and(|only| only.iter().all(is_of_device)) {
            return Ok(());
        }
        for (side, built) in self.built.iter().enumerate() {
            let seed = seed();
            for executable in built.iter().filter(|built| built.order.is_some()) {
                self.copies.bring(Some(side))?;
                executable.renew(pair.number, side, seed, &pair.homes[side])?;
            }
        }
        Ok(self.copies.bring(None)?)
    }

    /// Adds to the outcome how a side failed, if it did, with the benchmarks that it did not finish.
    fn report_failure(
        &self,
        side: usize,
        ran: &Driven,
        pair: &Pair<'_>,
        other: &Baseline,
        outcome: &mut Outcome,
    ) {
        let how = match ran.status {
            Some(status) if status.success() => return,
            Some(status) => format!("failed ({status}); its output is above"),
            None => "hung and was ended".to_owned(),
        };
        outcome.over |= ran.status.is_none();
        let how = format!("{} {how}", pair.run(side));
        // Benchmarks that only the other side has are neither gone nor new.
        let verified = self.verified[side].iter().flatten();
        let verified = BTreeSet::from_iter(verified);
        let lacking = (other.results.keys()).filter(|id| !verified.contains(id));
        let failed = lacking.map(|id| (id.clone(), how.clone()));
        outcome.failed.extend(failed);
        let failure = format!("{how}; benchmarks that it did not finish are not compared");
        outcome.failures.push(failure);
    }

    /// The choices of both sides of a pair, so that only their code differs: alternately those of one
    /// side and of the other, two pairs each. Choices that only the other side made are taken from
    /// there, and a side ignores candidates that it lacks.
    fn choices_of(&self, pair: u32) -> BTreeMap<String, String> {
        let first = (pair / 2 % 2) as usize;
        let mut choices = self.choices[1 - first].clone();
        choices.extend(self.choices[first].clone());
        choices
    }

    /// The choices that differ between the two sides.
    fn different_choices(&self) -> impl Iterator<Item = String> {
        let [old, new] = &self.choices;
        let both = (old.iter()).filter_map(|(name, old)| Some((name, old, new.get(name)?)));
        both.filter(|(_, old, new)| old != new)
            .map(|(name, old, new)| {
                format!(
                    "{name}: base chose {old}, new {new} in the first pair; later pairs, if any, \
                     run both sides with one of the two, if both have it"
                )
            })
    }
}

impl Sampling for Turns<'_> {
    fn most_pairs(&self) -> u32 {
        most_pairs(self.built.iter().flatten())
    }

    fn run(&mut self, pair: &Pair<'_>, outcome: &mut Outcome) -> anyhow::Result<f64> {
        self.renew(pair)?;
        let choices = self.choices_of(pair.number);
        let told = [0, 1].map(|side: usize| Instructions {
            core: core(pair.number),
            // A benchmark that was verified once need not be verified in other processes of its
            // executable; one that failed or was not reached must not be timed unverified.
            only: pair.only.cloned().or_else(|| self.verified[side].clone()),
            verify: pair.number == 1,
            choices: choices.clone(),
        });
        let commands = |side: usize| -> Vec<Command> {
            let command = |executable: &Executable| {
                let mut command = executable.command();
                command
                    .args(self.bench_args)
                    .env("CRITERION_HOME", &pair.homes[side]);
                command
            };
            self.executables[side].iter().map(command).collect()
        };
        let b_first = pair.number.is_multiple_of(2);
        let ran = take([commands(0), commands(1)], told, b_first, pair.limit)?;
        let left = pair.homes.each_ref().map(|home| Baseline::read(home, NEW));
        let mut took = BTreeMap::<String, f64>::new();
        for (side, ran) in ran.iter().enumerate() {
            for (choice, chosen) in &ran.choices {
                let choices = &mut self.choices[side];
                choices.entry(choice.clone()).or_insert(chosen.clone());
            }
            for (id, seconds) in &ran.seconds {
                *took.entry(id.clone()).or_default() += seconds;
            }
            let ids = || left[side].results.keys().cloned().collect();
            self.verified[side].get_or_insert_with(ids);
        }
        if pair.number == 1 {
            outcome.remarks.extend(self.different_choices());
        }
        for (side, ran) in ran.iter().enumerate() {
            self.report_failure(side, ran, pair, &left[1 - side], outcome);
        }
        for (side, baseline) in outcome.sides.iter_mut().zip(left) {
            side.push(baseline);
        }
        let seconds = took.values().sum();
        if pair.number == 1 {
            let executables = self.built.iter_mut().chain(&mut self.executables).flatten();
            outcome.fixed = keep_slow_orders(executables, |_| seconds);
        }
        outcome.seconds.extend(took);
        Ok(seconds)
    }
}

/// The core that both sides of a pair share: another one for each pair, far from the last one, because
/// the host's other work differs by core.
fn core(pair: u32) -> Option<usize> {
    const GOLDEN_RATIO: f64 = 0.618_033_988_75;
    let cores = usable_cores();
    let at = (f64::from(pair) * GOLDEN_RATIO).fract() * cores.len() as f64;
    cores.get(at as usize).copied()
}

/// Runs the executables of both sides to their ends, in turns, A and B as `told`; `b_first` says who
/// begins. A side that dies, or takes longer than `limit` for one turn, lets the other go on.
///
/// # Errors
/// An interrupt, which ends both, or a side that cannot be started.
fn take(
    [a, b]: [Vec<Command>; 2],
    [told_a, told_b]: [Instructions; 2],
    b_first: bool,
    limit: Duration,
) -> anyhow::Result<[Driven; 2]> {
    let mut a = Driven::start(a, told_a, limit)?;
    let mut b = Driven::start(b, told_b, limit)?;
    loop {
        match (&a.pause, &b.pause) {
            (Pause::Ended, Pause::Ended) => return Ok([a, b]),
            (Pause::Ended, _) => b.go_on()?,
            (_, Pause::Ended) => a.go_on()?,
            // Which side makes its context first, and so has it first in memory, alternates from pair
            // to pair.
            (Pause::Start, Pause::Start) if b_first => b.go_on()?,
            (Pause::Start, _) => a.go_on()?,
            (_, Pause::Start) => b.go_on()?,
            (Pause::In(x), Pause::In(y)) if x == y => {
                let id = x.clone();
                let (mut a, mut b) = (|| a.sample(&id), || b.sample(&id));
                let mut sides: [&mut dyn Side<Error = ChildError>; 2] = [&mut a, &mut b];
                if b_first {
                    sides.reverse();
                }
                take_turns(&mut sides, Duration::MAX, |_| false)?;
            }
            // The other side will never reach this benchmark, or has it at another place.
            (Pause::In(x), Pause::In(y)) => {
                if b.comes_to(x) && !a.comes_to(y) {
                    b.go_on()?;
                } else {
                    a.go_on()?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write;
    use std::path::{Path, PathBuf};

    use super::*;
    use crossover_protocol::child::Parent;
    use crossover_protocol::turns::{PROTOCOL, TurnMessage, TurnReply};

    const SIDE: &str = "ab::turns::tests::side";
    const LONG: Duration = Duration::from_secs(60);

    /// A side that runs `ids` in two executables and writes down what it does, with the name of its folder.
    fn commands(home: &Path, ids: [&str; 2]) -> Vec<Command> {
        let run = |ids| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", SIDE, "--ignored"])
                .env("CRITERION_HOME", home)
                .env("SIDE_IDS", ids);
            command
        };
        ids.map(run).into()
    }

    fn instructions(only: &[&str]) -> Instructions {
        Instructions {
            only: Some(only.iter().copied().map(str::to_owned).collect()),
            choices: [("how".to_owned(), "as before".to_owned())].into(),
            ..Instructions::default()
        }
    }

    /// No test, but the process at the other end of the socket.
    #[test]
    #[ignore = "started by the tests below"]
    fn side() {
        let Some(socket) = std::env::var_os("CROSSOVER_TURNS") else {
            return;
        };
        let home = PathBuf::from(std::env::var_os("CRITERION_HOME").unwrap());
        let write = |id: &str| {
            let log = home.with_file_name("log");
            let log = fs::File::options().create(true).append(true).open(log);
            let line = format!("{} {id}\n", home.file_name().unwrap().display());
            log.unwrap().write_all(line.as_bytes()).unwrap();
        };
        let ids = std::env::var("SIDE_IDS").unwrap_or("x".to_owned());
        let mut parent = Parent::connect(Path::new(&socket)).unwrap();
        let mut say = |said: &TurnMessage| -> TurnReply { parent.ask(said).unwrap() };
        let ids: Vec<String> = ids.split_whitespace().map(str::to_owned).collect();
        let protocol = PROTOCOL;
        let TurnReply::Run(told) = say(&TurnMessage::Plan {
            protocol,
            ids: ids.clone(),
        }) else {
            panic!("not told how to run");
        };
        for id in ids.into_iter().filter(|id| told.wants(id)) {
            assert_eq!(say(&TurnMessage::Ready { id: id.clone() }), TurnReply::Go);
            write(&id);
            assert_eq!(say(&TurnMessage::Sampled { id: id.clone() }), TurnReply::Go);
            write(&id);
            let mut choices = told.choices.clone();
            choices.insert(id, "made".to_owned());
            assert_eq!(say(&TurnMessage::Chose { choices }), TurnReply::Go);
        }
    }

    #[test]
    fn each_side_runs_what_it_is_told_to_and_says_what_it_chose() {
        let dir = tempfile::tempdir().unwrap();
        let [a, b] = ["a", "b"].map(|side| commands(&dir.path().join(side), ["x y", "z"]));
        let told = [instructions(&["x", "z"]), instructions(&["z"])];
        let [a, b] = take([a, b], told, false, LONG).unwrap();
        for (side, chose) in [(a, &["how", "x", "z"][..]), (b, &["how", "z"])] {
            assert!(side.status.unwrap().success());
            assert_eq!(Vec::from_iter(side.choices.keys()), chose);
            assert_eq!(side.choices["how"], "as before");
        }
        let log = fs::read_to_string(dir.path().join("log")).unwrap();
        assert_eq!(log, "a x\na x\na z\nb z\nb z\na z\n");
    }

    /// The turns of two sides, each of which is this executable.
    fn turns<'a>(copies: &'a Copies, bench_args: &'a [String]) -> Turns<'a> {
        let one = || vec![Executable::of_bundle(std::env::current_exe().unwrap())];
        Turns {
            bench_args,
            copies,
            built: [Vec::new(), Vec::new()],
            executables: [one(), one()],
            verified: [None, None],
            choices: Default::default(),
        }
    }

    #[test]
    fn the_side_that_begins_alternates_from_pair_to_pair() {
        let dir = tempfile::tempdir().unwrap();
        let homes = ["a", "b"].map(|side| dir.path().join(side));
        let copies = Copies::new(None, None).unwrap();
        let arguments = ["--exact", SIDE, "--ignored"].map(str::to_owned);
        let mut turns = turns(&copies, &arguments);
        let only = BTreeSet::from(["x".to_owned()]);
        let firsts = [1, 2, 3].map(|number| {
            let pair = Pair {
                number,
                homes: &homes,
                only: Some(&only),
                limit: LONG,
                until: None,
            };
            turns.run(&pair, &mut Outcome::default()).unwrap();
            let log = fs::read_to_string(dir.path().join("log")).unwrap();
            fs::remove_file(dir.path().join("log")).unwrap();
            log.lines().take(2).map(str::to_owned).collect::<Vec<_>>()
        });
        assert_eq!(firsts, [["a x", "b x"], ["b x", "a x"], ["a x", "b x"]]);
    }

    #[test]
    fn both_sides_get_the_choices_of_one_side_for_two_pairs_and_then_of_the_other() {
        let copies = Copies::new(None, None).unwrap();
        let choices = |all: &[(&str, &str)]| {
            let all = all.iter();
            all.map(|(name, chosen)| ((*name).to_owned(), (*chosen).to_owned()))
                .collect()
        };
        let turns = Turns {
            choices: [
                choices(&[("tile", "8"), ("only old", "x")]),
                choices(&[("tile", "16"), ("only new", "y")]),
            ],
            ..turns(&copies, &[])
        };
        for (pair, tile) in [(2, "16"), (3, "16"), (4, "8"), (5, "8"), (6, "16")] {
            let all = [("tile", tile), ("only old", "x"), ("only new", "y")];
            assert_eq!(turns.choices_of(pair), choices(&all), "pair {pair}");
        }
        // There may be no later pair.
        let choices: Vec<String> = turns.different_choices().collect();
        let says =
            "tile: base chose 8, new 16 in the first pair; later pairs, if any, run both sides";
        assert!(
            choices.len() == 1 && choices[0].starts_with(says),
            "{choices:?}"
        );
    }
}
