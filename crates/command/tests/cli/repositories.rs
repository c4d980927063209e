//! Planted repositories and bundles, whose benchmarks are shell scripts, for tests of `crossover ab`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::command;
use crate::compare::compared;
use crate::printed::{printed, script, text};

pub(crate) const BOTH: [(&str, f64); 2] = [("sort/100", 100.0), ("sum", 20.0)];

/// Options for one pair of processes of each benchmark, compared as JSON.
pub(crate) const ONE_PAIR: &str = "--json --pairs 1 --budget 0";

/// How a stand-in for cargo describes a workspace without packages.
pub(crate) const NO_PACKAGES: &str =
    r#"if [ "$1" = metadata ]; then echo '{"packages":[]}'; exit; fi"#;

/// A repository with one commit of `file`, which a stand-in for cargo builds to benchmarks in shell.
pub(crate) struct Project(TempDir);

impl Project {
    /// See [`harness`].
    pub(crate) fn new(benchmarks: &[(&str, f64)], body: &str) -> Self {
        let this = Self(tempfile::tempdir().unwrap());
        repository(this.top());
        let bench = this.path("target-bench/run");
        harness(&bench, &this.ran(), benchmarks, body);
        this.cargo(&builds(&bench));
        this
    }

    pub(crate) fn top(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.top().join(name)
    }

    /// The log of what ran.
    pub(crate) fn ran(&self) -> PathBuf {
        self.path("target-ran")
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Stands in for cargo with this build, and describes a workspace without packages.
    pub(crate) fn cargo(&self, build: &str) {
        let body = format!("{NO_PACKAGES}\n{build}");
        executable(&self.path("target-bin/cargo"), &body);
    }

    /// `crossover ab` with the stand-in for cargo.
    pub(crate) fn ab(&self, options: &str) -> Command {
        let mut command = crossover(self.top());
        command.args(options.split_whitespace());
        first_in_path(&mut command, &self.path("target-bin"));
        command
    }
}

/// Bundles `old` and `fresh`, and the log of what ran.
pub(crate) struct Bundles(TempDir);

impl Bundles {
    /// See [`harness`]. What `old` prints and leaves must not matter.
    pub(crate) fn new(old: &[(&str, f64)], fresh: &[(&str, f64)], body_of_fresh: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let noise = "echo noise on standard output; echo more >&2";
        harness(&dir.path().join("old/run"), &log, old, noise);
        harness(&dir.path().join("fresh/run"), &log, fresh, body_of_fresh);
        Self(dir)
    }

    pub(crate) fn dir(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir().join(name)).unwrap()
    }

    /// Replaces a text in the script of a side.
    pub(crate) fn replace(&self, side: &str, text: &str, by: &str) {
        let run = self.dir().join(side).join("run");
        let before = fs::read_to_string(&run).unwrap();
        assert!(before.contains(text));
        script(&run, &before.replace(text, by));
    }

    pub(crate) fn command(&self, options: &str) -> Command {
        let mut command = crossover(self.dir());
        command.args(["old", "fresh"]);
        command.args(options.split_whitespace());
        command
    }

    pub(crate) fn ab(&self, options: &str) -> Output {
        self.command(options).output().unwrap()
    }

    /// The comparison, which ends with this code.
    pub(crate) fn compared(&self, options: &str, code: i32) -> Value {
        compared(&self.ab(&format!("--json {options}")), code)
    }
}

pub(crate) fn executable(path: &Path, body: &str) {
    script(path, &format!("#!/bin/sh\nset -e\n{body}\n"));
}

pub(crate) fn crossover(cwd: &Path) -> Command {
    let mut command = command::crossover(&["ab"]);
    alone(&mut command)
        .current_dir(cwd)
        .env("CARGO_PROFILE_BENCH_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_BENCH_LTO", "off")
        // Work trees go where the test can see that they are gone.
        .env("TMPDIR", cwd.join("tmp"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    fs::create_dir_all(cwd.join("tmp")).unwrap();
    command
}

/// Keeps what surrounds the tests away: they may run in a hook themselves, and whoever runs them
/// has settings of their own.
pub(crate) fn alone(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"GIT_") {
            command.env_remove(name);
        }
    }
    command
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        // Examples of hooks would be files in each new repository.
        .env("GIT_TEMPLATE_DIR", "")
}

/// Lets `command` find the programs of `folder` before others.
pub(crate) fn first_in_path<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    let path = std::env::var("PATH").unwrap();
    command.env("PATH", format!("{}:{path}", folder.display()))
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = alone(&mut Command::new("git"))
        .arg("-C")
        .arg(dir)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.com"])
        .args(["-c", "maintenance.auto=false"])
        .args(args)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "git {args:?}: {}",
        printed(&output)
    );
    text(&output.stdout)
}

/// Commits all changes and new files, without hooks.
pub(crate) fn commit(dir: &Path, message: &str) {
    git(dir, &["add", "."]);
    git(dir, &["commit", "--quiet", "--no-verify", "-m", message]);
}

/// A repository with one commit and nothing that cargo could build.
pub(crate) fn repository(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join(".gitignore"), "target*\ntmp\n/a\n").unwrap();
    fs::write(dir.join("file"), "committed\n").unwrap();
    git(dir, &["init", "--quiet"]);
    commit(dir, "first");
}

/// No worktree but the first, and nothing in the temporary folder.
pub(crate) fn clean(dir: &Path) {
    assert_eq!(git(dir, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(work_trees(dir), 0);
}

/// How many work trees `ab` has in the temporary folder.
pub(crate) fn work_trees(dir: &Path) -> usize {
    fs::read_dir(dir.join("tmp")).unwrap().count()
}

/// A bench executable as Criterion has them, in shell: it lists and runs `benchmarks`, each a name
/// and its time in nanoseconds, and logs what it runs behind the name of its folder. `body` comes
/// before a result; it knows the benchmark as `$id` and the log as `$log`.
pub(crate) fn harness(path: &Path, log: &Path, benchmarks: &[(&str, f64)], body: &str) {
    let cases: String = benchmarks
        .iter()
        .map(|(id, ns)| format!("'{id}') ns={ns};;\n"))
        .collect();
    let ids = benchmarks.iter().map(|(id, _)| format!("'{id}'"));
    executable(
        path,
        &format!(
            r#"log={log} filter=. list=
while [ $# -gt 0 ]; do
  case "$1" in
    bench|--bench|--noplot) ;;
    --list) list=1;;
    --nresamples|--sample-size|--warm-up-time|--measurement-time) shift;;
    -*) echo "error: unexpected argument '$1' found" >&2; exit 2;;
    *) filter=$1;;
  esac
  shift
done
for id in {ids}; do
  [ "$filter" = . ] || echo "$id" | grep -Eq -- "$filter" || continue
  if [ "$list" ]; then echo "$id: benchmark"; continue; fi
  case $id in
{cases}  esac
  folder=${{0%/*}}
  echo "${{folder##*/}} $id" >> $log
{body}
  name=$id
  case $id in *[:?]*) name=$(echo "$id" | tr ':?' '__');; esac
  dir=$CRITERION_HOME/$name/new
  mkdir -p "$dir"
  printf '{{"group_id":"%s","function_id":null,"value_str":null}}' "$id" > "$dir/benchmark.json"
  awk -v ns="$ns" -v seed="$$" 'BEGIN {{
    srand(seed); process = 1 + 0.002 * (rand() - 0.5)
    for (i = 0; i < 10; i++) {{ n = n "," 10; t = t "," 10 * ns * process * (1 + 0.002 * (rand() - 0.5)) }}
    printf "{{\"iters\":[%s],\"times\":[%s]}}", substr(n, 2), substr(t, 2)
  }}' > "$dir/sample.json"
done"#,
            ids = Vec::from_iter(ids).join(" "),
            log = log.display(),
        ),
    );
}

/// What a stand-in for cargo does to have built a copy of this executable, `$built`.
pub(crate) fn builds(executable: &Path) -> String {
    format!(
        r#"mkdir -p "$CARGO_TARGET_DIR"
built=$CARGO_TARGET_DIR/{}
cp {} "$built"
env -i "PATH=$PATH" "CROSSOVER_AB_BUILT=$CROSSOVER_AB_BUILT" {} record "$built""#,
        executable.file_name().unwrap().display(),
        executable.display(),
        env!("CARGO_BIN_EXE_crossover"),
    )
}
