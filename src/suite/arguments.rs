//! The parts of Criterion's command line that the suite needs and Criterion keeps private: the mode,
//! the filter and the place of results.

use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Command};
use criterion::BenchmarkFilter;
use regex::Regex;

use crossover_protocol::filter::{self, WITH_VALUE};

/// The mode of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Measures.
    #[default]
    Bench,
    /// Runs each benchmark once and verifies it (`--test`, or without `--bench`).
    Test,
    /// Prints the ids.
    List,
    /// Runs each benchmark for a profiler, without statistics.
    Profile,
}

/// Options of Criterion 0.8 without a value.
const FLAGS: &str = "verbose quiet noplot discard-baseline list ignored exact quick test bench nocapture \
    show-output include-ignored";

/// The command line for the suite. Criterion parses it too, and rejects unknown options.
#[derive(Clone, Debug)]
pub(crate) struct Arguments {
    /// The mode.
    pub mode: Mode,
    /// Folder beside `new/` that Criterion copies results to: the named baseline, `base`
    /// without one, `None` when nothing is copied.
    pub baseline: Option<String>,
    /// Results are written to disk.
    pub saves: bool,
    given: ArgMatches,
    filter: BenchmarkFilter,
}

impl Arguments {
    /// Parses the process's own command line.
    pub(crate) fn from_env() -> Self {
        Self::parse(std::env::args().skip(1))
    }

    pub(super) fn parse(arguments: impl IntoIterator<Item = String>) -> Self {
        let given = command().get_matches_from(arguments);
        let flag = |name: &str| given.get_flag(name);
        let value = |name: &str| given.get_one::<String>(name);
        let mode = if flag("list") {
            Mode::List
        } else if flag("test") || !flag("bench") {
            Mode::Test
        } else if value("profile-time").is_some() {
            Mode::Profile
        } else {
            Mode::Bench
        };
        let compares = value("baseline").is_some() || value("baseline-lenient").is_some();
        let saves =
            mode == Mode::Bench && !flag("discard-baseline") && value("load-baseline").is_none();
        let baseline = || {
            value("save-baseline")
                .map_or("base", String::as_str)
                .to_owned()
        };
        Self {
            mode,
            baseline: (saves && !compares).then(baseline),
            saves,
            filter: filter(&given),
            given,
        }
    }

    /// Whether the user set this option of Criterion's on the command line, so that the size set's
    /// value must not override it.
    pub(crate) fn gave(&self, option: &str) -> bool {
        self.value(option).is_some()
    }

    /// The value of an option of Criterion's, where one was given.
    pub(super) fn value(&self, option: &str) -> Option<&str> {
        self.given.get_one::<String>(option).map(String::as_str)
    }

    /// The value of an option of Criterion's, as a number.
    pub(super) fn number(&self, option: &str) -> Option<f64> {
        self.value(option)?.parse().ok()
    }

    /// The filter as it was written.
    pub(super) fn filter_text(&self) -> Option<&str> {
        self.value("FILTER")
    }

    /// Why the filter selects nothing, in a sentence; `None` where it is a regular expression.
    pub(super) fn bad_filter(&self) -> Option<String> {
        let is_exact = self.given.get_flag("exact");
        filter::bad_filter(self.filter_text().filter(|_| !is_exact)?)
    }

    /// How long Criterion warms a benchmark up for which the plan has so much.
    pub(super) fn warm_up(&self, planned: Duration) -> Duration {
        let given = self.number("warm-up-time");
        if self.is_quick() {
            Duration::ZERO
        } else {
            given.map_or(planned, Duration::from_secs_f64)
        }
    }

    /// Whether Criterion takes two samples and stops as soon as their spread is small.
    pub(super) fn is_quick(&self) -> bool {
        self.given.get_flag("quick")
    }

    /// Whether to print only results and problems.
    pub(super) fn is_quiet(&self) -> bool {
        self.given.get_flag("quiet")
    }

    /// Whether to hide Criterion's lines: the user neither chose their format nor has it compare with a
    /// baseline or save nothing.
    pub(super) fn hides_criterion(&self) -> bool {
        let asks = ["output-format", "baseline", "baseline-lenient"];
        self.saves
            && !self.given.get_flag("verbose")
            && !asks.iter().any(|option| self.gave(option))
    }

    /// Whether the filter selects this id, by Criterion's rules.
    pub(crate) fn selects(&self, id: &str) -> bool {
        match &self.filter {
            BenchmarkFilter::AcceptAll => true,
            BenchmarkFilter::RejectAll => false,
            BenchmarkFilter::Exact(exact) => id == exact,
            BenchmarkFilter::Regex(regex) => regex.is_match(id),
        }
    }
}

fn command() -> Command {
    let option = |name: &'static str, action| {
        let arg = Arg::new(name).long(name).action(action);
        match name {
            "color" | "save-baseline" | "baseline" | "verbose" | "noplot" => {
                arg.short(name.chars().next())
            }
            _ => arg,
        }
    };
    let with_value = WITH_VALUE
        .split(' ')
        .map(|name| option(name, ArgAction::Set));
    let flags = FLAGS
        .split(' ')
        .map(|name| option(name, ArgAction::SetTrue));
    Command::new("crossover")
        .no_binary_name(true)
        .ignore_errors(true)
        .disable_help_flag(true)
        .disable_version_flag(true)
        .arg(Arg::new("FILTER").index(1))
        .args(with_value)
        .args(flags)
}

fn filter(matches: &ArgMatches) -> BenchmarkFilter {
    if matches.get_flag("ignored") {
        return BenchmarkFilter::RejectAll;
    }
    match matches.get_one::<String>("FILTER") {
        None => BenchmarkFilter::AcceptAll,
        Some(text) if matches.get_flag("exact") => BenchmarkFilter::Exact(text.clone()),
        // An invalid one ends the run before it starts.
        Some(text) => Regex::new(text).map_or(BenchmarkFilter::RejectAll, BenchmarkFilter::Regex),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Arguments {
        Arguments::parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn results_go_where_criterion_puts_them() {
        let base = |line| parse(line).baseline;
        assert_eq!(base("--bench").as_deref(), Some("base"));
        assert_eq!(
            base("--bench --save-baseline main").as_deref(),
            Some("main")
        );
        assert_eq!(base("--bench -s main").as_deref(), Some("main"));
        assert_eq!(base("--bench --baseline main"), None);
        assert_eq!(base("--bench --baseline-lenient=main"), None);
        assert!(parse("--bench --baseline main").saves);
        assert!(!parse("--bench --discard-baseline").saves);
        assert!(!parse("--bench --load-baseline a --baseline b").saves);
        assert!(!parse("--bench --list").saves);
    }

    #[test]
    fn criterion_prints_where_it_is_asked_to() {
        for hides in ["--bench --quiet a", "--bench --save-baseline a"] {
            assert!(parse(hides).hides_criterion(), "{hides}");
        }
        for shows in [
            "--bench --test",
            "--bench -v",
            "--bench --output-format=bencher",
            "--bench --baseline a",
            "--bench --discard-baseline",
        ] {
            assert!(!parse(shows).hides_criterion(), "{shows}");
        }
    }

    #[test]
    fn filters() {
        let a = parse("--bench matmul/gpu");
        assert!(a.selects("matmul/gpu/cublas/64") && !a.selects("matmul/cpu/best/64"));
        let a = parse("--bench --warm-up-time 1 gpu/.*/64$ --sample-size=20");
        assert!(a.selects("matmul/gpu/cublas/64") && !a.selects("matmul/gpu/cublas/640"));
        assert!(a.gave("sample-size") && a.gave("warm-up-time") && !a.gave("nresamples"));
        let a = parse("--bench --exact matmul/cpu/best/64");
        assert!(a.selects("matmul/cpu/best/64") && !a.selects("matmul/cpu/best/640"));
        assert!(!parse("--bench --ignored").selects("matmul/cpu/best/64"));
        assert!(parse("--bench").selects("anything"));
    }
}
