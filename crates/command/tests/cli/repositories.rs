//! One fixture for the tests of `crossover ab`: a folder with a repository or with bundles, whose benchmarks
//! are shell scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::command;
use crate::compare::compared;
use crate::printed::{ended, printed, script, text, with_line};

pub(crate) const BOTH: [(&str, f64); 2] = [("sort/100", 100.0), ("sum", 20.0)];

/// Options for one pair of processes of each benchmark.
pub(crate) const ONE_PAIR: &str = "--pairs 1 --budget 0";

/// A folder for everything that a test of `ab` needs. Benchmarks write what they run to the file `log`,
/// programs in `bin` are found before others, and work trees go to `tmp`, where the test can see that they
/// are gone.
pub(crate) struct Place {
    dir: TempDir,
    /// The folder in which `ab` runs.
    pub(crate) top: PathBuf,
    /// The first arguments of `ab`.
    pub(crate) sides: &'static str,
}

impl Place {
    /// Nothing but the folders.
    pub(crate) fn new(top: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join(top);
        fs::create_dir_all(&top).unwrap();
        fs::create_dir(dir.path().join("tmp")).unwrap();
        let sides = "";
        Self { dir, top, sides }
    }

    /// The bundles `old` and `fresh`; see [`Self::harness`]. What `old` prints and leaves must not matter.
    pub(crate) fn bundles(old: &[(&str, f64)], fresh: &[(&str, f64)], body_of_fresh: &str) -> Self {
        let mut this = Self::new("");
        this.sides = "old fresh";
        let noise = "echo noise on standard output; echo more >&2";
        this.harness("old/run", old, noise);
        this.harness("fresh/run", fresh, body_of_fresh);
        this
    }

    /// A repository with one commit of `file`, which a stand-in for cargo builds to benchmarks in shell; see
    /// [`Self::harness`].
    pub(crate) fn project(benchmarks: &[(&str, f64)], body: &str) -> Self {
        let this = Self::new("top");
        repository(&this.top);
        this.harness("bench/run", benchmarks, body);
        this.cargo("", "");
        this
    }

    /// A bench executable as Criterion has them, in shell: it lists and runs `benchmarks`, each a name
    /// and its time in nanoseconds, and logs what it runs behind the name of its folder. `body` comes
    /// before a result; it knows the benchmark as `$id` and the log as `$log`.
    pub(crate) fn harness(&self, name: &str, benchmarks: &[(&str, f64)], body: &str) {
        let cases: String = benchmarks
            .iter()
            .map(|(id, ns)| format!("'{id}') ns={ns};;\n"))
            .collect();
        let ids = benchmarks.iter().map(|(id, _)| format!("'{id}'"));
        executable(
            &self.path(name),
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
                log = self.path("log").display(),
            ),
        );
    }

    /// A stand-in for cargo in a workspace without packages. It builds the benchmarks of the project, with
    /// these commands before and after.
    pub(crate) fn cargo(&self, before: &str, after: &str) {
        let no_packages = r#"if [ "$1" = metadata ]; then echo '{"packages":[]}'; exit; fi"#;
        let built = builds(&self.path("bench/run"));
        let body = format!(
            "{no_packages}\ndir={}\n{before}\n{built}\n{after}",
            self.dir()
        );
        executable(&self.path("bin/cargo"), &body);
    }

    pub(crate) fn dir(&self) -> String {
        self.dir.path().display().to_string()
    }

    /// The folders of programs, `bin` first.
    pub(crate) fn search_path(&self) -> String {
        format!("{}/bin:{}", self.dir(), std::env::var("PATH").unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// The file, which is removed.
    pub(crate) fn take(&self, name: &str) -> String {
        let text = self.read(name);
        fs::remove_file(self.path(name)).unwrap();
        text
    }

    /// Writes a file, with its folders.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Writes a package with the name of its folder, these lines in its manifest, and these bench targets.
    pub(crate) fn package(&self, folder: &str, lines: &str, benches: &[&str], main: &str) {
        let (_, name) = folder.rsplit_once('/').unwrap();
        let mut manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{lines}\n"
        );
        for bench in benches {
            manifest += &format!("[[bench]]\nname = \"{bench}\"\nharness = false\n");
            self.write(&format!("{folder}/benches/{bench}.rs"), main);
        }
        self.write(&format!("{folder}/Cargo.toml"), &manifest);
        self.write(&format!("{folder}/src/lib.rs"), "");
    }

    /// Replaces a text in the script of a bundle.
    pub(crate) fn replace(&self, side: &str, text: &str, by: &str) {
        let run = self.path(side).join("run");
        let before = fs::read_to_string(&run).unwrap();
        assert!(before.contains(text));
        script(&run, &before.replace(text, by));
    }

    /// git in the repository, with the words of a line.
    pub(crate) fn git(&self, line: &str) -> String {
        git_line(&self.top, line)
    }

    /// Writes a file of the repository, and commits all changes.
    pub(crate) fn commit(&self, name: &str, text: &str) {
        fs::write(self.top.join(name), text).unwrap();
        commit(&self.top, "second");
    }

    /// `crossover ab` with these variables and arguments.
    pub(crate) fn ab(&self, line: &str) -> Command {
        let mut command = command::crossover("ab");
        alone(&mut command)
            .current_dir(&self.top)
            .env("PATH", self.search_path())
            .env("CARGO_PROFILE_BENCH_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_BENCH_LTO", "off")
            .env("TMPDIR", self.path("tmp"))
            .env_remove("CARGO_BUILD_BUILD_DIR")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        with_line(with_line(&mut command, self.sides), line);
        command
    }

    /// The output of a comparison, which must end with this code and have these words.
    pub(crate) fn ends(&self, line: &str, code: i32, words: &str) -> String {
        ended(&self.ab(line).output().unwrap(), code, words)
    }

    /// The comparison as JSON.
    pub(crate) fn compared(&self, line: &str, code: i32) -> Value {
        compared(&self.ab(&format!("--json {line}")).output().unwrap(), code)
    }

    /// The one folder of results.
    pub(crate) fn kept(&self) -> PathBuf {
        let entries = fs::read_dir(self.top.join("target-reports/ab")).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let dirs = Vec::from_iter(paths.filter(|path| path.is_dir()));
        assert_eq!(dirs.len(), 1, "{dirs:?}");
        dirs[0].clone()
    }

    /// How many work trees are in the temporary folder.
    pub(crate) fn work_trees(&self) -> usize {
        fs::read_dir(self.path("tmp")).unwrap().count()
    }

    /// Fails where there is a worktree beside the first, or anything in the temporary folder.
    pub(crate) fn is_clean(&self) {
        assert_eq!(self.git("worktree list").lines().count(), 1);
        assert_eq!(self.work_trees(), 0);
    }
}

pub(crate) fn executable(path: &Path, body: &str) {
    script(path, &format!("#!/bin/sh\nset -e\n{body}\n"));
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

pub(crate) fn git_line(dir: &Path, line: &str) -> String {
    git(dir, &Vec::from_iter(line.split_whitespace()))
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
    assert!(output.status.success(), "{args:?}: {}", printed(&output));
    text(&output.stdout)
}

/// Commits all changes and new files, without hooks.
pub(crate) fn commit(dir: &Path, message: &str) {
    git_line(dir, "add .");
    git(dir, &["commit", "--quiet", "--no-verify", "-m", message]);
}

/// A repository with one commit and nothing that cargo could build.
pub(crate) fn repository(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join(".gitignore"), "target*\n").unwrap();
    fs::write(dir.join("file"), "committed\n").unwrap();
    git_line(dir, "init --quiet");
    commit(dir, "first");
}

/// The code of a bench target that starts the program of one Rust expression with FACTOR set to another one.
pub(crate) fn starts(program: &str, factor: &str) -> String {
    format!(
        r#"fn main() {{
    use std::os::unix::process::CommandExt;
    let mut run = std::process::Command::new({program});
    let error = run.args(std::env::args().skip(1)).env("FACTOR", {factor}).exec();
    panic!("{{error}}");
}}"#
    )
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
