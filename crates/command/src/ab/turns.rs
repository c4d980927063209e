//! Two processes that run one at a time: sample by sample in the order A B B A, so that both meet
//! the same host. What they say is in [`crossover_protocol::turns`].

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::ab::Args;
use crate::ab::child::{self, GLANCE, Process};
use crate::ab::executable::Executable;
use crate::ab::pairs::{Outcome, Pair, Sampling, left_in};
use crate::ab::worktree::Copies;
use crossover_protocol::turns::{Instructions, PROTOCOL, TurnMessage, TurnReply};
use crossover_system::{channel, usable_cores};

/// The executables of both sides, which take turns.
pub(super) struct Turns<'a> {
    bench_args: &'a [String],
    executables: [Vec<Executable>; 2],
    /// The benchmarks that each side verified in the first pair.
    verified: [Option<BTreeSet<String>>; 2],
    /// The calibrated choices of each side.
    choices: [BTreeMap<String, String>; 2],
}

impl<'a> Turns<'a> {
    /// For executables built at the path that `copies` gives to one work tree at a time. Both run at
    /// the same time, each in its own work tree.
    ///
    /// # Errors
    /// That the work trees cannot be moved.
    pub(super) fn new(
        args: &'a Args,
        copies: &Copies,
        executables: [Vec<Executable>; 2],
    ) -> anyhow::Result<Self> {
        copies.bring(None)?;
        let moved = |side: usize| {
            let executables = executables[side].iter();
            executables
                .map(|executable| executable.moved(&copies.tree(), &copies.aside(side)))
                .collect()
        };
        Ok(Self {
            bench_args: &args.bench_args,
            executables: [moved(0), moved(1)],
            verified: [None, None],
            choices: [BTreeMap::new(), BTreeMap::new()],
        })
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
    fn run(&mut self, pair: &Pair<'_>, outcome: &mut Outcome) -> anyhow::Result<f64> {
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
        let left = pair.homes.each_ref().map(|home| left_in(home));
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
            let how = match ran.status {
                Some(status) if status.success() => continue,
                Some(status) => format!("failed ({status}); its output is above"),
                None => "hung and was ended".to_owned(),
            };
            outcome.over |= ran.status.is_none();
            let how = format!("{} {how}", pair.run(side));
            // Benchmarks that only the other side has are neither gone nor new.
            let verified = self.verified[side]
                .iter()
                .flatten()
                .collect::<BTreeSet<_>>();
            let lacking = left[1 - side].results.keys();
            let lacking = lacking.filter(|id| !verified.contains(id));
            let failed = lacking.map(|id| (id.clone(), how.clone()));
            outcome.failed.extend(failed);
            let failure = format!("{how}; benchmarks that it did not finish are not compared");
            outcome.failures.push(failure);
        }
        for (side, baseline) in outcome.sides.iter_mut().zip(left) {
            side.push(baseline);
        }
        let seconds = took.values().sum();
        outcome.seconds.extend(took);
        Ok(seconds)
    }
}

/// Whether an executable takes turns where it is offered to, in our version of the protocol.
///
/// # Errors
/// An interrupt, or that it cannot be started.
pub(super) fn are_taken_by(executable: &Executable, limit: Duration) -> anyhow::Result<bool> {
    let sockets = tempfile::tempdir()?;
    let mut command = executable.command();
    command.arg("--list");
    let side = Side::start(vec![command], &sockets.path().join("turns"), None, limit)?;
    Ok(side.at == At::Start)
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
) -> anyhow::Result<[Side; 2]> {
    let sockets = tempfile::tempdir()?;
    let mut a = Side::start(a, &sockets.path().join("a"), Some(told_a), limit)?;
    let mut b = Side::start(b, &sockets.path().join("b"), Some(told_b), limit)?;
    let mut turn_of_b = b_first;
    loop {
        match (&a.at, &b.at) {
            (At::Ended, At::Ended) => break,
            (At::Ended, _) => b.go_on()?,
            (_, At::Ended) => a.go_on()?,
            // Which side makes its context first, and so has it first in memory, alternates from pair
            // to pair.
            (At::Start, At::Start) if b_first => b.go_on()?,
            (At::Start, _) => a.go_on()?,
            (_, At::Start) => b.go_on()?,
            (At::Benchmark(x), At::Benchmark(y)) if x == y => {
                let id = x.clone();
                let (first, second) = match turn_of_b {
                    true => (&mut b, &mut a),
                    false => (&mut a, &mut b),
                };
                first.go_on()?;
                // The side with more samples continues alone.
                if second.at == At::Benchmark(id) {
                    second.go_on()?;
                }
                turn_of_b = !turn_of_b;
            }
            // The other side will never reach this benchmark, or has it at another place.
            (At::Benchmark(x), At::Benchmark(y)) => match b.comes_to(x) && !a.comes_to(y) {
                true => b.go_on()?,
                false => a.go_on()?,
            },
        }
    }
    Ok([a, b])
}

#[derive(Debug, PartialEq, Eq)]
enum At {
    /// Connected, nothing set up.
    Start,
    /// Stands still before or between samples of it.
    Benchmark(String),
    Ended,
}

struct Side {
    /// The remaining executables.
    commands: std::vec::IntoIter<Command>,
    listener: channel::Listener,
    /// Dropped before the process, which then learns that nobody drives it any more.
    link: Option<BufReader<channel::Stream>>,
    process: Option<Process>,
    /// The benchmarks after the current one.
    ahead: Vec<String>,
    at: At,
    /// Of the first executable that failed, or of the last one; `None` where it hung and was ended.
    status: Option<ExitStatus>,
    /// The results of its calibrations, by the name of the choice.
    choices: BTreeMap<String, String>,
    /// How long it ran for each benchmark.
    seconds: BTreeMap<String, f64>,
    /// Its instructions; `None` if it is only tested whether it takes turns.
    told: Option<Instructions>,
    /// The time limit of a turn.
    limit: Duration,
}

impl Side {
    /// Starts the first executable, and waits until it stands still.
    fn start(
        mut commands: Vec<Command>,
        socket: &Path,
        told: Option<Instructions>,
        limit: Duration,
    ) -> anyhow::Result<Self> {
        let listener = channel::bind(socket)?;
        listener.set_nonblocking(true)?;
        for command in &mut commands {
            command.env("CROSSOVER_TURNS", socket);
        }
        let mut this = Self {
            commands: commands.into_iter(),
            listener,
            link: None,
            process: None,
            ahead: Vec::new(),
            at: At::Start,
            status: None,
            choices: BTreeMap::new(),
            seconds: BTreeMap::new(),
            told,
            limit,
        };
        this.arrive()?;
        Ok(this)
    }

    /// Waits for the next executable of this side, or for its end.
    fn arrive(&mut self) -> anyhow::Result<()> {
        self.link = None;
        let mut start = Instant::now();
        while start.elapsed() < self.limit {
            child::check()?;
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false)?;
                    stream.set_read_timeout(Some(GLANCE))?;
                    self.link = Some(BufReader::new(stream));
                    return self.hear();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("the sides could not be connected"),
            }
            if let Some(process) = &mut self.process {
                let Some(status) = process.ends_within(Duration::from_millis(2))? else {
                    continue;
                };
                let failed = self.status.filter(|status| !status.success());
                self.status = Some(failed.unwrap_or(status));
            }
            let Some(mut command) = self.commands.next() else {
                self.at = At::Ended;
                return Ok(());
            };
            self.process = Some(match self.told {
                Some(_) => Process::start_quietly(&mut command)?,
                None => Process::start(command.stderr(Stdio::null()), Stdio::null())?,
            });
            start = Instant::now();
        }
        self.give_up();
        Ok(())
    }

    /// Ends a process that hangs.
    fn give_up(&mut self) {
        self.link = None;
        self.process = None;
        self.status = None;
        self.at = At::Ended;
    }

    /// Lets it run until it stands still again.
    fn go_on(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        let reply = match self.at {
            At::Start => TurnReply::Run(self.told.clone().unwrap_or_default()),
            _ => TurnReply::Go,
        };
        self.tell(&reply)?;
        self.hear()?;
        // Includes the work before its current point, such as set-up.
        if let At::Benchmark(id) = &self.at {
            *self.seconds.entry(id.clone()).or_default() += start.elapsed().as_secs_f64();
        }
        Ok(())
    }

    fn tell(&mut self, told: &TurnReply) -> anyhow::Result<()> {
        let line = serde_json::to_string(told)? + "\n";
        let link = self.link.as_mut().context("it has ended")?;
        // If this fails the process has died, which the next read detects.
        let _ = link.get_mut().write_all(line.as_bytes());
        Ok(())
    }

    fn hear(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        let mut line = Vec::new();
        loop {
            child::check()?;
            let link = self.link.as_mut().context("it has ended")?;
            match link.read_until(b'\n', &mut line) {
                Ok(_) => break,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                // Its process died.
                Err(_) => line.clear(),
            }
            if start.elapsed() > self.limit {
                self.give_up();
                return Ok(());
            }
        }
        match serde_json::from_slice(&line) {
            Ok(TurnMessage::Plan { protocol, ids }) if protocol == PROTOCOL => {
                let wants = |id: &&String| self.told.as_ref().is_none_or(|told| told.wants(id));
                self.ahead = ids.iter().filter(wants).cloned().collect();
                self.at = At::Start;
                Ok(())
            }
            Ok(TurnMessage::Ready { id } | TurnMessage::Sampled { id }) => {
                if let Some(here) = self.ahead.iter().position(|ahead| *ahead == id) {
                    self.ahead.drain(..=here);
                }
                self.at = At::Benchmark(id);
                Ok(())
            }
            Ok(TurnMessage::Chose { choices }) => {
                self.choices.extend(choices);
                self.tell(&TurnReply::Go)?;
                self.hear()
            }
            // The end of an executable.
            _ => self.arrive(),
        }
    }

    fn comes_to(&self, id: &str) -> bool {
        self.ahead.iter().any(|ahead| ahead == id)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SIDE: &str = "ab::turns::tests::side";
    const LONG: Duration = Duration::from_secs(60);
    /// In place of ids: it connects to nobody.
    const HANGS: &str = "hangs";

    /// A side that runs `ids` in two executables and writes down what it does.
    fn commands(log: &Path, ids: [&str; 2]) -> Vec<Command> {
        let run = |ids| {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", SIDE, "--ignored"])
                .env("SIDE_LOG", log)
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
        let Ok(log) = std::env::var("SIDE_LOG") else {
            return;
        };
        let write = |text: &str| {
            let mut log = fs::File::options()
                .create(true)
                .append(true)
                .open(&log)
                .unwrap();
            log.write_all(format!("{text}\n").as_bytes()).unwrap();
        };
        let ids = std::env::var("SIDE_IDS").unwrap();
        if ids == HANGS {
            std::thread::sleep(LONG);
        }
        let socket = std::env::var_os("CROSSOVER_TURNS").unwrap();
        let mut link = BufReader::new(channel::connect(Path::new(&socket)).unwrap());
        let mut say = |said: &TurnMessage| -> TurnReply {
            let line = serde_json::to_string(said).unwrap() + "\n";
            link.get_mut().write_all(line.as_bytes()).unwrap();
            let mut answer = String::new();
            link.read_line(&mut answer).unwrap();
            serde_json::from_str(&answer).unwrap()
        };
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
        let log = dir.path().join("log");
        let a = commands(&log, ["x y", "z"]);
        let b = commands(&log, ["x y", "z"]);
        let told = [instructions(&["x", "z"]), instructions(&["z"])];
        let [a, b] = take([a, b], told, false, LONG).unwrap();
        for (side, chose) in [(a, &["how", "x", "z"][..]), (b, &["how", "z"])] {
            assert!(side.status.unwrap().success());
            assert_eq!(Vec::from_iter(side.choices.keys()), chose);
            assert_eq!(side.choices["how"], "as before");
        }
        assert_eq!(fs::read_to_string(log).unwrap(), "x\nx\nz\nz\nz\nz\n");
    }

    #[test]
    fn a_side_that_never_connects_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let commands = || commands(&log, [HANGS, "x"]);
        let told = || Instructions::default();
        let limit = Duration::from_millis(100);
        let sides = take([commands(), commands()], [told(), told()], false, limit).unwrap();
        for side in sides {
            assert!(side.at == At::Ended && side.status.is_none());
        }
        assert!(!log.exists());
    }

    #[test]
    fn both_sides_get_the_choices_of_one_side_for_two_pairs_and_then_of_the_other() {
        let choices = |all: &[(&str, &str)]| {
            let all = all.iter();
            all.map(|(name, chosen)| ((*name).to_owned(), (*chosen).to_owned()))
                .collect()
        };
        let turns = Turns {
            bench_args: &[],
            executables: [Vec::new(), Vec::new()],
            verified: [None, None],
            choices: [
                choices(&[("tile", "8"), ("only old", "x")]),
                choices(&[("tile", "16"), ("only new", "y")]),
            ],
        };
        for (pair, tile) in [(2, "16"), (3, "16"), (4, "8"), (5, "8"), (6, "16")] {
            let all = [("tile", tile), ("only old", "x"), ("only new", "y")];
            assert_eq!(turns.choices_of(pair), choices(&all), "pair {pair}");
        }
        // There may be no later pair.
        let said: Vec<String> = turns.different_choices().collect();
        let says =
            "tile: base chose 8, new 16 in the first pair; later pairs, if any, run both sides";
        assert!(said.len() == 1 && said[0].starts_with(says), "{said:?}");
    }
}
