//! Small repositories, and a `crossover ab` that builds nothing, for tests of the command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::printed::{printed, text};

/// Writes an executable `run` to a folder.
pub(crate) fn script(dir: &Path, body: &str) {
    executable(&dir.join("run"), body);
}

pub(crate) fn executable(path: &Path, body: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\nset -e\n{body}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

pub(crate) fn crossover(cwd: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_crossover"));
    alone(&mut command)
        .arg("ab")
        .current_dir(cwd)
        .env_remove("CARGO_TARGET_DIR")
        // Work trees go where the test can see that they are gone.
        .env("TMPDIR", cwd.join("tmp"))
        .stdin(Stdio::null());
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
}

pub(crate) fn git(dir: &Path, args: &[&str]) -> String {
    let output = alone(&mut Command::new("git"))
        .arg("-C")
        .arg(dir)
        .args(["-c", "user.name=A", "-c", "user.email=a@example.com"])
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

/// A repository with one commit and nothing that cargo could build.
pub(crate) fn repository(dir: &Path) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join(".gitignore"), "target*\ntmp\n/a\n").unwrap();
    fs::write(dir.join("file"), "committed\n").unwrap();
    git(dir, &["init", "--quiet"]);
    git(dir, &["add", "."]);
    git(dir, &["commit", "--quiet", "-m", "first"]);
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

/// Stands in for cargo, and describes no workspace.
pub(crate) fn cargo(dir: &Path, body: &str) -> PathBuf {
    let bin = dir.join("target-bin");
    script(&bin, &format!("[ \"$1\" != metadata ]\n{body}"));
    bin.join("run")
}

/// A bench executable as Criterion has them, in shell: it lists and runs `benchmarks`, each a name
/// and its time in nanoseconds, and logs what it runs behind the name of its folder. `$id` is the
/// benchmark in `body`, which comes before its result.
pub(crate) fn harness(path: &Path, log: &Path, benchmarks: &[(&str, f64)], body: &str) {
    let cases: String = benchmarks
        .iter()
        .map(|(id, ns)| format!("'{id}') ns={ns};;\n"))
        .collect();
    let ids = benchmarks
        .iter()
        .map(|(id, _)| format!("'{id}'"))
        .collect::<Vec<_>>();
    executable(
        path,
        &format!(
            r#"filter=. list=
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
  echo "$id" | grep -Eq -- "$filter" || continue
  if [ "$list" ]; then echo "$id: benchmark"; continue; fi
  case $id in
{cases}  esac
  echo "$(basename "$(dirname "$0")") $id" >> {log}
{body}
  dir=$CRITERION_HOME/$(echo "$id" | tr ':?' '__')/new
  mkdir -p "$dir"
  printf '{{"group_id":"%s","function_id":null,"value_str":null}}' "$id" > "$dir/benchmark.json"
  awk -v ns="$ns" -v seed="$$" 'BEGIN {{
    srand(seed); process = 1 + 0.002 * (rand() - 0.5)
    for (i = 0; i < 10; i++) {{ n = n "," 10; t = t "," 10 * ns * process * (1 + 0.002 * (rand() - 0.5)) }}
    printf "{{\"iters\":[%s],\"times\":[%s]}}", substr(n, 2), substr(t, 2)
  }}' > "$dir/sample.json"
done"#,
            ids = ids.join(" "),
            log = log.display(),
        ),
    );
}

/// What a stand-in for cargo does to have built this executable.
pub(crate) fn builds(executable: &Path) -> String {
    format!(
        r#"printf '%s\0' "$PWD" {} "PATH=$PATH" "" >> "$CROSSOVER_AB_BUILT""#,
        executable.display()
    )
}
