//! Starts each executable to learn which benchmarks it has, which options it knows and whether it takes
//! turns, and so chooses how both sides are run. Any Criterion from 0.4 on and its forks are tried, since
//! forks and bundles name no version.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::bail;

use crate::ab::Args;
use crate::ab::child::{self, Output, RESULT};
use crate::ab::driven::takes_turns;
use crate::ab::executable::Executable;
use crate::ab::pairs::Sampling;
use crate::ab::processes::{Harness, Processes, SELECTS_NOTHING, pattern};
use crate::ab::subject::Version;
use crate::ab::turns::Turns;
use crate::ab::worktree::Copies;
use crossover_protocol::filter::WITH_VALUE;
use crossover_words::text::with_causes;
use crossover_words::units;

/// Arguments of the user's for the benchmarks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BenchArgs {
    filter: Option<String>,
    /// An option with its value, where it has one.
    options: Vec<Vec<String>>,
}

impl BenchArgs {
    /// # Errors
    /// More than one filter, or an option that `ab` cannot keep to.
    pub(super) fn parse(arguments: &[String]) -> anyhow::Result<Self> {
        let mut this = Self::default();
        let mut is_exact = false;
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            if argument == "--quick" {
                bail!("--quick: `ab` chooses how long each process measures; leave it out");
            }
            if argument == "--exact" {
                is_exact = true;
            } else if argument.starts_with('-') {
                let name = argument.strip_prefix("--");
                let takes_value = WITH_VALUE.split(' ').any(|option| Some(option) == name);
                let value = takes_value.then(|| arguments.next()).flatten();
                let option = [argument].into_iter().chain(value).cloned();
                this.options.push(option.collect());
            } else if let Some(filter) = this.filter.replace(argument.clone()) {
                bail!(
                    "two filters after `--`, {filter} and {argument}: write `{filter}|{argument}`"
                );
            }
        }
        if is_exact {
            this.filter = this.filter.map(|id| pattern(&id));
        }
        Ok(this)
    }

    fn gave(&self, option: &str) -> bool {
        let mut given = self.options.iter();
        given.any(|given| given[0].split('=').next() == Some(option))
    }
}

/// Probes the executables of both sides, and chooses how they are run. What a reader must know of them
/// goes to `remarks`.
///
/// # Errors
/// An interrupt, or that the sides have no benchmark in common.
pub(super) fn choose<'a>(
    args: &'a Args,
    user: &BenchArgs,
    copies: &'a Copies,
    sides: &[Version; 2],
    remarks: &mut Vec<String>,
) -> anyhow::Result<Box<dyn Sampling + 'a>> {
    let limit = Duration::from_secs(args.turn_limit.into());
    let (mut takers, mut harnesses) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let mut left_out = BTreeSet::new();
    for offers_turns in [true, false] {
        for (side, subject) in sides.iter().enumerate() {
            // Where one cannot take turns, short processes serve all.
            let executables = if offers_turns {
                subject.executables.clone()
            } else {
                std::mem::take(&mut takers[side])
            };
            for executable in executables {
                copies.bring(Some(side))?;
                match probe(&executable, user, limit, offers_turns) {
                    Ok(Probed::TakesTurns) => takers[side].push(executable),
                    Ok(Probed::RunsAlone(harness, remark)) => {
                        harnesses[side].extend(harness.map(|harness| *harness));
                        left_out.extend(remark);
                    }
                    Err(error) if child::interrupted() => return Err(error),
                    Err(error) => {
                        let why = with_causes(error.as_ref());
                        left_out.insert(format!("left out: {}: {why}", subject.label));
                    }
                }
            }
        }
        let has_others = harnesses.iter().any(|side| !side.is_empty());
        if !has_others && takers.iter().all(|side| !side.is_empty()) {
            remarks.extend(left_out);
            return Ok(Box::new(Turns::new(args, copies, takers)?));
        }
    }
    let are_empty = harnesses.each_ref().map(Vec::is_empty);
    let processes = Processes::new(copies, harnesses, &mut left_out);
    let empty = sides
        .iter()
        .zip(are_empty)
        .filter(|(_, is_empty)| *is_empty);
    let empty = empty.map(|(side, _)| format!("{} has no benchmark", side.label));
    let empty = Vec::from_iter(empty);
    if !empty.is_empty() {
        let left_out: String = left_out.iter().map(|why| format!("; {why}")).collect();
        bail!(
            "nothing to compare: {}{left_out}. A filter after `--`, `-p` and `--bench` choose benchmarks of \
             Criterion",
            empty.join(", ")
        );
    }
    remarks.extend(left_out);
    Ok(Box::new(processes))
}

/// The kind of an executable.
enum Probed {
    /// It takes turns with another process, in our version of the protocol.
    TakesTurns,
    /// It runs each of its benchmarks of Criterion alone, if it lists any. The text names other lines that it
    /// lists, or says why there is no benchmark; there is none for the harness of unit tests.
    RunsAlone(Option<Box<Harness>>, Option<String>),
}

/// Criterion's options for a process, each with its value. Ten samples are the fewest that Criterion
/// takes, and its resamples are for intervals that nobody reads. On a busy machine samples of a few
/// milliseconds fit between two interruptions: beside seven busy processes on two cores, the fastest
/// samples of one code's processes differed by 1.0 to 1.2 %; with samples four times as long by 1.6 to
/// 2.5 %, and eight times as long by 30 to 54 %.
const OPTIONS: [&str; 5] = [
    "--noplot",
    "--nresamples 100",
    "--sample-size 10",
    "--warm-up-time 0.02",
    "--measurement-time 0.05",
];

/// Starts the executable to find its kind. With `offers_turns` it may also take turns.
///
/// # Errors
/// An interrupt; that it cannot list its benchmarks, or knows no option of Criterion's.
fn probe(
    executable: &Executable,
    user: &BenchArgs,
    limit: Duration,
    offers_turns: bool,
) -> anyhow::Result<Probed> {
    if offers_turns && takes_turns(executable, limit)? {
        return Ok(Probed::TakesTurns);
    }
    let name = &executable.name;
    let mut probe = Probe {
        executable,
        limit,
        noise: None,
    };
    let given = user.options.concat();
    let filter = user.filter.iter().cloned();
    let listed = probe.list(&Vec::from_iter(given.iter().cloned().chain(filter)))?;
    if let Some(silent) = probe.silent(&listed, user)? {
        return Ok(silent);
    }
    let (lines, mut ignored) = probe.sort_lines(&listed, &given)?;
    let (options, knows_one) = probe.options(user)?;
    let ids = probe.ids(&options, &lines, &mut ignored)?;
    if ids.is_empty() || !knows_one {
        bail!(
            "{name} lists benchmarks, but knows no option of Criterion's or selects none of them by a \
             regular expression"
        );
    }
    let remark = ignored.first().map(|first| {
        format!(
            "left out: {} that {name} lists and does not run alone, such as `{first}`: other text, or \
             a name that is used twice or is longer than 100 bytes",
            units::counted(ignored.len(), "line")
        )
    });
    let harness = Harness {
        executable: executable.clone(),
        ids,
        options,
    };
    Ok(Probed::RunsAlone(Some(Box::new(harness)), remark))
}

/// Why nothing is listed, unless this is the harness of unit tests, which prints the number of tests.
fn why_empty(name: &str, listed: &Output, user: &BenchArgs) -> Option<String> {
    let counts = |line: &str| line.contains(" test") && line.trim_end().ends_with(" benchmarks");
    if listed.stdout.lines().any(counts) {
        return None;
    }
    let why = match &user.filter {
        // As Criterion begins each result.
        _ if listed.stdout.contains(RESULT) => {
            "it runs its benchmarks instead of listing them, as a Criterion does that does not call \
             `configure_from_args`"
                .to_owned()
        }
        Some(filter) => format!("it has no benchmark that matches `{filter}`"),
        None => "it lists no benchmark".to_owned(),
    };
    Some(format!("left out: {name}: {why}"))
}

struct Probe<'a> {
    executable: &'a Executable,
    limit: Duration,
    /// Lines that look like benchmarks, and are printed whatever is selected; `None` where it prints
    /// nothing but its benchmarks.
    noise: Option<Vec<String>>,
}

impl Probe<'_> {
    fn list(&self, arguments: &[String]) -> anyhow::Result<Output> {
        let mut command = self.executable.command();
        child::output(command.arg("--list").args(arguments), self.limit)
    }

    /// The kind of an executable that lists no benchmark; `None` if it lists some.
    ///
    /// # Errors
    /// That it cannot list its benchmarks.
    fn silent(&self, listed: &Output, user: &BenchArgs) -> anyhow::Result<Option<Probed>> {
        let name = &self.executable.name;
        let without = |listed: &Output| Probed::RunsAlone(None, why_empty(name, listed, user));
        if listed.status.is_none() {
            bail!(
                "{name} did not list its benchmarks within --turn-limit; a Criterion that does not call \
                 `configure_from_args` ignores `--list`"
            );
        }
        if listed.succeeded() {
            let is_empty = benchmarks(&listed.stdout).is_empty();
            return Ok(is_empty.then(|| without(listed)));
        }
        // One of another harness, which does not know the user's options.
        let plain = self.list(&[])?;
        if plain.succeeded() && benchmarks(&plain.stdout).is_empty() {
            return Ok(Some(without(&plain)));
        }
        bail!("{name} cannot list its benchmarks: it {}", listed.failure())
    }

    /// The lines that may be benchmarks, and those that are printed whatever is selected.
    fn sort_lines(
        &mut self,
        listed: &Output,
        given: &[String],
    ) -> anyhow::Result<(Vec<String>, Vec<String>)> {
        let nothing = [given, &[SELECTS_NOTHING.to_owned()]].concat();
        let nothing = self.list(&nothing)?.stdout;
        if nothing.trim().is_empty() {
            // Other lines are the beginnings of names.
            return Ok((whole_names(&listed.stdout), Vec::new()));
        }
        let ignored = benchmarks(&nothing);
        let mut lines = benchmarks(&listed.stdout);
        lines.retain(|line| !ignored.contains(line));
        self.noise = Some(ignored.clone());
        Ok((lines, ignored))
    }

    /// The options for each process, with those of the user, and whether it knows one of Criterion's.
    fn options(&self, user: &BenchArgs) -> anyhow::Result<(Vec<String>, bool)> {
        let wanted: Vec<Vec<String>> = (OPTIONS.iter())
            .map(|option| option.split(' ').map(str::to_owned).collect())
            .filter(|option: &Vec<String>| !user.gave(&option[0]))
            .collect();
        let gave_all = wanted.is_empty();
        let mut options = wanted.concat();
        if !self.list(&options)?.succeeded() {
            options.clear();
            for option in wanted {
                if self.list(&option)?.succeeded() {
                    options.extend(option);
                }
            }
        }
        let knows_one = gave_all || !options.is_empty();
        options.extend(user.options.concat());
        Ok((options, knows_one))
    }

    /// The benchmarks that it runs alone; other lines go to `ignored`.
    fn ids(
        &self,
        options: &[String],
        lines: &[String],
        ignored: &mut Vec<String>,
    ) -> anyhow::Result<Vec<String>> {
        let (mut ids, mut selects_plain) = (Vec::new(), false);
        for line in lines {
            // One plain name stands for all of an executable that prints nothing else.
            let is_plain = self.noise.is_none() && !is_doubtful(line, lines);
            // A name of several lines is selected by no pattern, and left out by its characters.
            if is_plain && selects_plain || line.contains('\n') {
                ids.push(line.clone());
                continue;
            }
            match self.name(options, line)? {
                Some(id) => ids.push(id),
                // Others with a plain name would be left out without a word.
                None if is_plain => return Ok(Vec::new()),
                None => ignored.push(line.clone()),
            }
            selects_plain |= is_plain;
        }
        Ok(ids)
    }

    /// Whether it takes these options, and its pattern selects this benchmark and no other.
    fn selects(&self, options: &[String], id: &str) -> anyhow::Result<bool> {
        let listed = self.list(&[options, &[pattern(id)]].concat())?;
        let mut lines = benchmarks(&listed.stdout);
        if let Some(noise) = &self.noise {
            lines.retain(|line| !noise.contains(line));
        }
        Ok(listed.succeeded()
            && match &lines[..] {
                // A text without a line break may stand before its name.
                [line] if self.noise.is_some() => line.ends_with(id),
                [line] => line == id,
                _ => false,
            })
    }

    /// The benchmark on this line that its pattern selects alone. Other text may stand before its name
    /// where the executable prints more than its benchmarks.
    fn name(&self, options: &[String], line: &str) -> anyhow::Result<Option<String>> {
        let spaces = line.match_indices(' ').map(|(at, _)| &line[at + 1..]);
        let inner = spaces.filter(|_| self.noise.is_some());
        for name in [line].into_iter().chain(inner) {
            if self.selects(options, name)? {
                return Ok(Some(name.to_owned()));
            }
        }
        Ok(None)
    }
}

/// The name of a benchmark on a line of a list, until Criterion 0.4 and from 0.5 on.
fn listed_name(line: &str) -> Option<&str> {
    let name = line.strip_suffix(": bench");
    name.or(line.strip_suffix(": benchmark"))
}

/// The benchmarks that are listed.
fn benchmarks(stdout: &str) -> Vec<String> {
    let names = stdout.lines().filter_map(listed_name);
    names.map(str::to_owned).collect()
}

/// The benchmarks of a list without other text, whose names may have line breaks.
fn whole_names(stdout: &str) -> Vec<String> {
    let (mut names, mut begun) = (Vec::new(), String::new());
    for line in stdout.lines() {
        match listed_name(line) {
            Some(end) => names.push(std::mem::take(&mut begun) + end),
            // Criterion prints an empty line between groups.
            None if begun.is_empty() && line.is_empty() => {}
            None => begun = begun + line + "\n",
        }
    }
    names
}

/// Whether a name in the list may not be what the filter selects: of two benchmarks with one name
/// Criterion lists the second with ` #2` behind it, and cuts names after 100 bytes.
fn is_doubtful(id: &str, all: &[String]) -> bool {
    const LONGEST: usize = 100;
    let is_twin = |other: &String| {
        let rest = other.strip_prefix(id);
        rest.is_some_and(|rest| rest.starts_with(" #"))
    };
    let is_cut = id.ends_with("...") && id.len() > LONGEST - 4;
    is_cut || id.contains(" #") || all.iter().any(is_twin)
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
