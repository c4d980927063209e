//! Two processes that take turns, what goes wrong with one of them, and one that this process drives.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crossover_protocol::child::Child;
use crossover_protocol::turns::{Instructions, PROTOCOL, TURNS, TurnMessage, TurnReply};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::faults::cut_short::shares;
use crate::faults::habits;
use crate::faults::run::{RUN, SOUND, Suite, files, read};
use crate::printed::{comes_true, ended, holds, lacks, printed, script};

/// Two bundles of this executable, in the folder of the test.
struct Bundles(Suite);

impl Bundles {
    /// The second one is started as `second` says once it has listed its benchmarks.
    fn new(second: &str) -> Self {
        let suite = Suite::new();
        let this = std::env::current_exe().unwrap();
        let bench = format!("env {RUN}=1 {} --bench \"$@\"", this.display());
        for (name, how) in [("a", "exec"), ("b", second)] {
            let text = how.replace("exec", &format!("exec {bench}"));
            let text = text.replace("start", &bench);
            let lists = format!("case \"$*\" in *--list*) exec {bench};; esac");
            let text = format!("#!/bin/sh\nshift\n{lists}\n{text}\n");
            script(&suite.path(name).join("run"), &text);
        }
        Self(suite)
    }

    fn dir(&self) -> &Path {
        self.0.dir.path()
    }

    /// Compares them with these options.
    fn ab(&self, options: &str) -> Command {
        let settings = "CROSSOVER_SIZES=quick CROSSOVER_DEVICE=none";
        let mut command = self.0.crossover(&format!("{settings} ab a b {options}"));
        command
            .current_dir(self.dir())
            .env("TMPDIR", self.dir())
            .stdin(Stdio::null());
        command
    }

    /// The results of one run of the last comparison.
    fn results(&self, run: &str) -> PathBuf {
        let comparisons = fs::read_dir(self.dir().join("target-reports/ab")).unwrap();
        let folders = comparisons.map(|comparison| comparison.unwrap().path());
        let newest = folders.filter(|path| path.is_dir()).max();
        newest.unwrap().join(run)
    }

    fn shown(&mut self, run: &str) -> Vec<String> {
        self.0.root = self.results(run);
        self.0.shown()
    }

    /// Fails if a process that was started for a comparison goes on.
    fn nothing_goes_on(&self) {
        let dir = self.dir().display().to_string();
        let is_ours = |process: fs::DirEntry| {
            let environment = fs::read(process.path().join("environ")).unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment);
            environment.contains(&dir) && environment.contains(TURNS)
        };
        let is_left = || fs::read_dir("/proc").unwrap().flatten().any(is_ours);
        assert!(comes_true(|| !is_left()), "a process of {dir} was left");
    }
}

/// Later processes do not verify, and do not time what failed in the first one.
pub(crate) fn two_sides_take_turns_without_what_failed() {
    let mut bundles = Bundles::new("exec");
    let mut ab = bundles.ab("--pairs 3 --budget 0 -- sound|faulty");
    let output = habits::all(&mut ab, bundles.dir()).output().unwrap();
    let messages = ended(&output, 1, "");
    lacks(&messages, &["one after the other"]);
    let last = ["16", "32", "4", "8"].map(|size| format!("faulty/cpu/last/{size}"));
    let sound = Vec::from_iter(last.iter().map(String::as_str).chain(SOUND));
    for run in ["a1", "b1", "a2", "b2", "a3", "b3"] {
        assert_eq!(bundles.shown(run), sound, "{run}: {messages}");
        let result = bundles.results(run).join("sound/cpu_fill/32/new");
        // Twenty, or ten if the process was held up in its warm-up.
        let sample = read(&result.join("sample.json"));
        let samples = sample["times"].as_array().unwrap().len();
        assert!(samples >= 10, "{run}: {samples}");
        let verified = !read(&result.join("crossover.json"))["verified"].is_null();
        assert_eq!(verified, run.ends_with('1'), "{run}: {messages}");
    }
    habits::nothing_is_left(bundles.dir());
    bundles.nothing_goes_on();
}

/// Where one side dies or hangs, all results of the other are there.
pub(crate) fn one_side_fails() {
    let with = |habit: &str| format!("{}={habit} start; exit $?", habits::HABITS);
    for (second, words) in [
        (with(habits::IS_KILLED), "failed (exit status: 137)"),
        (with(habits::IS_STOPPED), "hung and was ended"),
        ("exit 3".to_owned(), "failed (exit status: 3)"),
        ("sleep 600".to_owned(), "hung and was ended"),
    ] {
        let mut bundles = Bundles::new(&second);
        let output = bundles.ab("--turn-limit 10 -- sound").output().unwrap();
        let messages = printed(&output);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{messages}");
        holds(&messages, words);
        assert_eq!(bundles.shown("a1"), SOUND);
        bundles.nothing_goes_on();
    }
}

pub(crate) fn an_interrupt_between_turns() {
    let bundles = Bundles::new("exec");
    let start = Instant::now();
    bundles.ab("--budget 0 -- sound").output().unwrap();
    let seconds = start.elapsed().as_secs_f64();
    for share in shares(0.5) {
        let mut ab = bundles.ab("--budget 0.05 -- sound");
        let piped = ab.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = piped.spawn().unwrap();
        std::thread::sleep(Duration::from_secs_f64(seconds * share));
        kill(Pid::from_raw(child.id() as i32), Signal::SIGINT).unwrap();
        let output = child.wait_with_output().unwrap();
        let early = output.status.signal() == Some(2);
        let ended = matches!(output.status.code(), Some(130 | 0 | 1));
        assert!(early || ended, "{}", printed(&output));
        bundles.nothing_goes_on();
        for (path, bytes) in files(&bundles.dir().join("target-reports")) {
            assert!(!bytes.is_empty(), "{} is empty", path.display());
        }
    }
}

/// Executables of other commits are driven by the same lines.
pub(crate) fn messages_have_the_same_form_in_each_version() {
    assert_eq!(PROTOCOL, 2);
    for line in [
        r#"{"plan":{"protocol":2,"ids":["a"]}}"#,
        r#"{"ready":{"id":"a"}}"#,
        r#"{"sampled":{"id":"a"}}"#,
        r#"{"chose":{"choices":{"a":"b"}}}"#,
    ] {
        let message: TurnMessage = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&message).unwrap(), line);
    }
    let line = r#"{"run":{"core":null,"only":["a"],"verify":true,"choices":{}}}"#;
    let reply: TurnReply = serde_json::from_str(line).unwrap();
    assert_eq!(serde_json::to_string(&reply).unwrap(), line);
}

/// A run that is driven as `crossover ab` drives its sides, and its choices. It must end without an error.
fn driven(instructions: &Instructions) -> (Suite, BTreeMap<String, String>) {
    const LIMIT: Duration = Duration::from_secs(300);
    let suite = Suite::new();
    let log = suite.path("output");
    let output = File::create(&log).unwrap();
    let mut run = suite.bench("--bench choice");
    run.stdout(output.try_clone().unwrap()).stderr(output);
    let mut child = Child::start_asked(&mut run, TURNS).unwrap();
    let mut choices = BTreeMap::new();
    while let Some(message) = child.receive(LIMIT).unwrap() {
        let reply = match message {
            TurnMessage::Plan { .. } => TurnReply::Run(instructions.clone()),
            TurnMessage::Ready { .. } | TurnMessage::Sampled { .. } => TurnReply::Go,
            TurnMessage::Chose { choices: chosen } => {
                choices = chosen;
                TurnReply::Go
            }
        };
        child.reply(&reply);
    }
    let status = child.ends_within(LIMIT).unwrap();
    let log_text = fs::read_to_string(log).unwrap();
    assert!(status.is_some_and(|status| status.success()), "{log_text}");
    (suite, choices)
}

/// A side has several bench targets, and a later pair may need benchmarks of one.
pub(crate) fn nothing_to_run_is_no_error() {
    let nothing = Instructions {
        only: Some(BTreeSet::new()),
        ..Instructions::default()
    };
    assert!(!driven(&nothing).0.root.join("runs").exists());
}

pub(crate) fn choices_are_said_and_taken() {
    let result = |suite: &Suite| suite.sidecar("choice/cpu_best/4/new");
    let (suite, first) = driven(&Instructions::default());
    let (choice, chosen) = first.first_key_value().unwrap();
    assert_eq!(first.len(), 1, "{first:?}");
    assert!(result(&suite).notes[0].starts_with(chosen), "{chosen}");

    let told = |chosen: &str| {
        let choices = [(&**choice, chosen), ("not asked for here", "which")];
        let choices = choices.map(|(name, chosen)| (name.to_owned(), chosen.to_owned()));
        let instructions = Instructions {
            choices: choices.into(),
            ..Instructions::default()
        };
        driven(&instructions)
    };
    // Each of these is taken, whichever is the fastest.
    for other in ["three nested loops", "gemm"] {
        let (suite, taken) = told(other);
        let result = result(&suite);
        assert!(result.notes[0].starts_with(other), "{:?}", result.notes);
        assert_eq!(taken, [(choice.clone(), other.to_owned())].into());
        // The result names the routines that it was chosen from.
        assert_eq!(result.choices, taken);
    }
    let (_, measured) = told("by a library that is gone");
    assert!(!measured[choice].contains("gone"));
}
