//! What an executable of Criterion can do, of any version from 0.4 on: which benchmarks it has, which
//! options it knows, and how one benchmark is run alone. What it knows is found by trying, since
//! forks differ.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::bail;

use crate::ab::child::{self, Output};
use crate::ab::executable::Executable;
use crossover_protocol::turns::{PROTOCOL, TurnMessage};
use crossover_words::units;

/// Arguments of the user's for the benchmarks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BenchArgs {
    filter: Option<String>,
    /// Whether the filter is the name of one benchmark.
    is_exact: bool,
    /// An option with its value, where it has one.
    options: Vec<Vec<String>>,
}

/// Options of Criterion that take a value.
const WITH_VALUE: &str = "--baseline --baseline-lenient --color --colour --confidence-level --format \
    --load-baseline --measurement-time --noise-threshold --nresamples --output-format \
    --plotting-backend --profile-time --sample-size --significance-level --warm-up-time";

impl BenchArgs {
    /// # Errors
    /// More than one filter, or an option that `ab` cannot keep to.
    pub(super) fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut this = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument == "--quick" {
                bail!("--quick: `ab` chooses how long each process measures; leave it out");
            }
            if argument == "--exact" {
                this.is_exact = true;
            } else if argument.starts_with('-') {
                let takes_value = WITH_VALUE.split(' ').any(|option| option == argument);
                let value = takes_value.then(|| arguments.next()).flatten();
                this.options
                    .push([argument].into_iter().chain(value).cloned().collect());
            } else if let Some(filter) = this.filter.replace(argument.clone()) {
                bail!(
                    "two filters after `--`, {filter} and {argument}: write `{filter}|{argument}`"
                );
            }
        }
        if let Some(filter) = this.filter.take_if(|_| this.is_exact) {
            this.filter = Some(format!("^{}$", regex::escape(&filter)));
        }
        Ok(this)
    }

    fn gave(&self, option: &str) -> bool {
        let is = |given: &str| {
            given
                .strip_prefix(option)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        self.options.iter().any(|given| is(&given[0]))
    }
}

/// What an executable turned out to be.
pub(super) enum Kind {
    /// It takes turns with another process, in the version of the protocol that is ours.
    TakesTurns,
    /// It has benchmarks of Criterion's, and runs each alone.
    Criterion(Harness),
    /// It lists none. Why, unless it is one of cargo's unit tests.
    Empty(Option<String>),
}

/// An executable of Criterion's.
#[derive(Debug)]
pub(super) struct Harness {
    pub(super) executable: Executable,
    /// What it runs, in its order.
    pub(super) ids: Vec<String>,
    /// Benchmarks that it does not run alone.
    never_alone: Vec<String>,
    /// What it prints that looks like a benchmark.
    ignored: Vec<String>,
    options: Vec<String>,
}

/// The filter that selects one benchmark.
fn pattern(id: &str) -> String {
    format!("^{}$", regex::escape(id))
}

/// What a process is asked for: each option and its value. Criterion takes
/// no fewer samples than ten, and its resamples are for intervals, which nobody reads. Samples of a
/// few milliseconds fit between two interruptions on a busy machine, which longer ones do not: of
/// one code's processes beside seven busy ones on two cores the fastest samples differed by 1.0 to
/// 1.2 %, where samples were four times as long by 1.6 to 2.5 %, and eight times as long by 30 to 54 %
/// (docs/comparing.md).
const OPTIONS: [[&str; 2]; 5] = [
    ["--noplot", ""],
    ["--nresamples", "100"],
    ["--sample-size", "10"],
    ["--warm-up-time", "0.02"],
    ["--measurement-time", "0.05"],
];

/// Starts the executable to learn what it is.
///
/// # Errors
/// An interrupt; that it cannot list its benchmarks, or knows no option of Criterion's.
///
/// With `offers_turns` it may also take turns.
pub(super) fn probe(
    executable: &Executable,
    user: &BenchArgs,
    limit: Duration,
    offers_turns: bool,
) -> anyhow::Result<Kind> {
    let name = &executable.name;
    let mut probe = Probe {
        executable,
        limit,
        noise: BTreeSet::new(),
        is_noisy: false,
    };
    let given = user.options.concat();
    let arguments = [given.clone(), Vec::from_iter(user.filter.clone())].concat();
    if offers_turns && probe.accepts_turns()? {
        return Ok(Kind::TakesTurns);
    }
    let listed = probe.list(&arguments)?;
    if listed.status.is_none() {
        bail!(
            "{name} did not list its benchmarks within --turn-limit; a Criterion that does not call \
             `configure_from_args` ignores `--list`"
        );
    }
    if !listed.succeeded() {
        // One of another harness, which does not know the user's options.
        let plain = probe.list(&[])?;
        return match plain.succeeded() && ids(&plain.stdout).is_empty() {
            true => Ok(Kind::Empty(why_empty(&plain, user))),
            false => bail!("{name} cannot list its benchmarks: it {}", listed.failure()),
        };
    }
    if ids(&listed.stdout).is_empty() {
        return Ok(Kind::Empty(why_empty(&listed, user)));
    }
    let nothing = probe.list(&[given.clone(), vec![SELECTS_NOTHING.to_owned()]].concat())?;
    probe.is_noisy = !nothing.stdout.trim().is_empty();
    probe.noise = ids(&nothing.stdout).into_iter().collect();
    let mut lines = ids(&listed.stdout);
    lines.retain(|line| !probe.noise.contains(line));

    let all = wanted(user).concat();
    let (mut options, (ids, mut ignored)) = match probe.names(&all, &lines)? {
        Some(names) => (all, names),
        None => {
            let known = probe.known(user)?;
            let names = match known.is_empty() {
                true => None,
                false => probe.names(&known, &lines)?,
            };
            let Some(names) = names else {
                bail!(
                    "{name} lists benchmarks, but knows no option of Criterion's or selects none of \
                     them by a regular expression"
                );
            };
            (known, names)
        }
    };
    ignored.extend(probe.noise.iter().cloned());
    options.extend(given);

    let (mut alone, mut never_alone) = (Vec::new(), Vec::new());
    for id in &ids {
        let is_alone = !is_doubtful(id, &ids) || probe.selects(&options, id)?;
        if is_alone {
            &mut alone
        } else {
            &mut never_alone
        }
        .push(id.clone());
    }
    Ok(Kind::Criterion(Harness {
        executable: executable.clone(),
        ids: alone,
        never_alone,
        ignored,
        options,
    }))
}

/// Those of [`OPTIONS`] that the user did not give.
fn wanted(user: &BenchArgs) -> Vec<Vec<String>> {
    let wanted = OPTIONS.iter().filter(|[name, _]| !user.gave(name));
    let parts = |option: &[&str; 2]| -> Vec<String> {
        let parts = option.iter().filter(|part| !part.is_empty());
        parts.map(|part| (*part).to_owned()).collect()
    };
    wanted.map(parts).collect()
}

/// A filter that selects no benchmark.
const SELECTS_NOTHING: &str = "crossover-ab-selects-nothing";

/// Why nothing is listed, unless this is the harness of unit tests, which counts what it lists.
fn why_empty(listed: &Output, user: &BenchArgs) -> Option<String> {
    let counts = |line: &str| line.contains(" test") && line.trim_end().ends_with(" benchmarks");
    if listed.stdout.lines().any(counts) {
        return None;
    }
    // As Criterion begins each result.
    if listed.stdout.contains("time:   [") {
        let why = "it runs its benchmarks instead of listing them, as a Criterion does that does not \
                   call `configure_from_args`";
        return Some(why.to_owned());
    }
    Some(match &user.filter {
        Some(filter) => format!("it has no benchmark that matches `{filter}`"),
        None => "it lists no benchmark".to_owned(),
    })
}

struct Probe<'a> {
    executable: &'a Executable,
    limit: Duration,
    /// Lines that look like benchmarks, and are printed whatever is selected.
    noise: BTreeSet<String>,
    /// Whether it prints more than its benchmarks.
    is_noisy: bool,
}

impl Probe<'_> {
    fn command(&self, arguments: &[String]) -> Command {
        let mut command = self.executable.command();
        command.arg("--list").args(arguments);
        command
    }

    fn list(&self, arguments: &[String]) -> anyhow::Result<Output> {
        child::output(&mut self.command(arguments), self.limit)
    }

    /// Whether it takes these options, and its pattern selects this benchmark and no other.
    fn selects(&self, options: &[String], id: &str) -> anyhow::Result<bool> {
        let listed = self.list(&[options, &[pattern(id)]].concat())?;
        let mut lines = ids(&listed.stdout);
        lines.retain(|line| !self.noise.contains(line));
        Ok(listed.succeeded()
            && match &lines[..] {
                [line] if self.is_noisy => line.ends_with(id),
                [line] => line == id,
                _ => false,
            })
    }

    /// The benchmarks on these lines, and the lines on which there is none; `None` where none can be
    /// selected or the options are not taken. Of an executable that prints more than its
    /// benchmarks each is selected: a text without a line break may stand before its name.
    fn names(
        &self,
        options: &[String],
        lines: &[String],
    ) -> anyhow::Result<Option<(Vec<String>, Vec<String>)>> {
        if !self.is_noisy {
            let mut plain = lines.iter().filter(|id| !is_doubtful(id, lines));
            let one = plain.next().or(lines.first());
            let selects = one.map_or(Ok(false), |id| self.selects(options, id))?;
            return Ok(selects.then(|| (lines.to_vec(), Vec::new())));
        }
        let (mut names, mut ignored) = (Vec::new(), Vec::new());
        for line in lines {
            let spaces = line.match_indices(' ').map(|(at, _)| &line[at + 1..]);
            let mut name = None;
            for spelling in std::iter::once(line.as_str()).chain(spaces) {
                if name.is_none() && self.selects(options, spelling)? {
                    name = Some(spelling.to_owned());
                }
            }
            match name {
                Some(name) => names.push(name),
                None => ignored.push(line.clone()),
            }
        }
        Ok((!names.is_empty()).then_some((names, ignored)))
    }

    /// Whether it takes turns when it is offered to, in our version of the protocol.
    fn accepts_turns(&self) -> anyhow::Result<bool> {
        let sockets = tempfile::tempdir()?;
        let socket = sockets.path().join("turns");
        let listener = crossover_system::channel::bind(&socket)?;
        let heard = std::thread::spawn(move || {
            let mut line = String::new();
            // Nobody answers, so it ends.
            let (link, _) = listener.accept().ok()?;
            BufReader::new(link).read_line(&mut line).ok()?;
            match serde_json::from_str(&line).ok()? {
                TurnMessage::Plan { protocol, .. } => Some(protocol),
                _ => None,
            }
        });
        let ran = child::output(
            self.command(&[]).env("CROSSOVER_TURNS", &socket),
            self.limit,
        );
        // The thread waits for one connection.
        drop(crossover_system::channel::connect(&socket));
        let protocol = heard.join().ok().flatten();
        ran.map(|_| protocol == Some(PROTOCOL))
    }

    /// The options that it takes.
    fn known(&self, user: &BenchArgs) -> anyhow::Result<Vec<String>> {
        let mut known: Vec<String> = Vec::new();
        for option in wanted(user) {
            if self.list(&option)?.succeeded() {
                known.extend(option);
            }
        }
        Ok(known)
    }
}

/// What it lists.
fn ids(stdout: &str) -> Vec<String> {
    // Until 0.4, and from 0.5 on. Whatever else the benchmarks print has no such end.
    let id = |line: &str| {
        let id = line
            .strip_suffix(": bench")
            .or(line.strip_suffix(": benchmark"));
        id.map(str::to_owned)
    };
    stdout.lines().filter_map(id).collect()
}

/// Whether a name in the list may not be what the filter selects: of two benchmarks with one name
/// Criterion lists the second with ` #2` behind it, and cuts names after 100 bytes.
fn is_doubtful(id: &str, all: &[String]) -> bool {
    const LONGEST: usize = 100;
    let twin = |other: &String| {
        other
            .strip_prefix(id)
            .is_some_and(|rest| rest.starts_with(" #"))
    };
    let is_cut = id.ends_with("...") && id.len() > LONGEST - 4;
    is_cut || id.contains(" #") || all.iter().any(twin)
}

impl Harness {
    /// What an executable cannot do.
    pub(super) fn remarks(&self) -> Vec<String> {
        let name = &self.executable.name;
        let mut remarks = Vec::new();
        if let Some(first) = self.never_alone.first() {
            remarks.push(format!(
            "left out: {} of {name} that cannot be run alone, since a name is used twice or longer \
             than 100 bytes, such as {first}",
            units::counted(self.never_alone.len(), "benchmark")
        ));
        }
        if let Some(first) = self.ignored.first() {
            remarks.push(format!(
                "ignored: {} that {name} prints and does not list when selected by name, such as \
             `{first}`",
                units::counted(self.ignored.len(), "line")
            ));
        }
        remarks
    }

    /// Runs one benchmark alone, with its results in `home`.
    pub(super) fn command(&self, id: &str, home: &Path) -> Command {
        let mut command = self.executable.command();
        command
            .args(&self.options)
            .arg(pattern(id))
            .env("CRITERION_HOME", home);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
        texts.map(str::to_owned).to_vec()
    }

    #[test]
    fn a_filter_is_told_from_options_and_their_values() {
        let parse = |arguments: &str| {
            BenchArgs::parse(&Vec::from_iter(arguments.split(' ').map(str::to_owned)))
        };
        let parsed = parse("--sample-size 20 parse --quiet --noise-threshold=0.1").unwrap();
        assert_eq!(parsed.filter.as_deref(), Some("parse"));
        assert_eq!(
            parsed.options,
            [
                texts(["--sample-size", "20"]),
                texts(["--quiet"]),
                texts(["--noise-threshold=0.1"])
            ]
            .map(Vec::from_iter)
        );
        assert!(parsed.gave("--sample-size") && parsed.gave("--noise-threshold"));
        assert!(!parsed.gave("--noise") && !parsed.gave("--warm-up-time"));
        let exact = parse("--exact a.b").unwrap();
        assert_eq!(exact.filter.as_deref(), Some(r"^a\.b$"));
        assert!(exact.options.is_empty());
        assert!(
            parse("--quick")
                .unwrap_err()
                .to_string()
                .contains("leave it out")
        );
        let two = parse("a b").unwrap_err().to_string();
        assert!(two.contains("`a|b`"), "{two}");
    }

    #[test]
    fn both_forms_of_a_list_are_read() {
        let listed = "loading: done\na/b: bench\n\nx: y/2: benchmark\nGnuplot not found\n";
        assert_eq!(ids(listed), ["a/b", "x: y/2"]);
    }

    #[test]
    fn names_that_a_filter_may_not_tell_apart_are_doubtful() {
        let long = "x".repeat(100) + "...";
        let all = texts(["a", "a #2", "ab", "b", "c..."]);
        for (id, doubtful) in [
            ("a", true),
            ("a #2", true),
            ("ab", false),
            ("b", false),
            ("c...", false),
            (&long, true),
        ] {
            assert_eq!(is_doubtful(id, &all), doubtful, "{id}");
        }
        assert_eq!(pattern("a.b(c)"), r"^a\.b\(c\)$");
    }
}
