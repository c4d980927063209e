//! `crossover ab` in hooks, aliases and repositories of all kinds: what the user has is left alone,
//! and what is compared is what lies in the work tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::printed::{ended, ends, holds, printed, text};
use crate::repositories::{
    self, NO_PACKAGES, alone, builds, commit, crossover, executable, first_in_path, git, harness,
};

/// An event during the first build of a comparison, and the exit code of the comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Fate(&'static str, &'static str);

const SUCCEEDS: Fate = Fate("exit 0", "0\n");
const FAILS: Fate = Fate("exit 1", "2\n");
/// A child of the build would outlive both, and heeds no interrupt; so the user interrupts again and again.
const INTERRUPTED: Fate = Fate(
    "trap '' INT; sleep 600 & echo $! > $made/left; for again in 1 2 3; do kill -INT $PPID; sleep 0.3; done; wait; sleep 600",
    "130\n",
);
const KILLED: Fate = Fate("kill -KILL $PPID; exit 0", "137\n");

/// A folder with a repository in `main` and one more worktree in `linked`, which was made from a
/// third and is on no branch. Hooks and logs lie beside them.
struct House {
    dir: TempDir,
}

impl House {
    fn new(fate: Fate) -> Self {
        let this = Self {
            dir: tempfile::tempdir().unwrap(),
        };
        let main = this.path("main");
        repositories::repository(&main);
        fs::write(main.join("second"), "committed\n").unwrap();
        commit(&main, "second");
        fs::write(main.join("file"), "stashed\n").unwrap();
        git(&main, &["stash", "--quiet"]);
        git(&main, &["tag", "v1"]);
        let add = ["worktree", "add", "--quiet", "--detach"];
        git(&main, &[&add[..], &["../third"]].concat());
        git(&this.path("third"), &[&add[..], &["../linked"]].concat());
        fs::create_dir_all(this.path("tmp")).unwrap();
        fs::create_dir_all(this.path("made")).unwrap();
        this.cargo(fate.0);
        this.hooks();
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn made(&self, name: &str) -> String {
        fs::read_to_string(self.path("made").join(name)).unwrap_or_default()
    }

    /// Stands in for cargo. It builds by doing to its repository what a build script could, and
    /// logs what it sees.
    fn cargo(&self, build: &str) {
        let bench = self.path("made/bench/run");
        harness(&bench, &self.path("made/ran"), &[("sum", 20.0)], "");
        let body = format!(
            r#"{NO_PACKAGES}
made={made}
  env | grep ^GIT_ | sed s/=.*// >> $made/environment || true
  echo "$(cat file) | $(git status --porcelain | tr '\n' ' ')| $(git log -1 --format=%s) | $(git describe --tags 2>/dev/null)" >> $made/seen
  cat submodule/file >> $made/seen 2>/dev/null || true
  git -c user.name=B -c user.email=b@example.com commit --quiet --allow-empty --all -m build
  git tag built-in-$$
  git stash clear
  {built}
  {build}"#,
            made = self.path("made").display(),
            built = builds(&bench),
        );
        executable(&self.path("made").join("cargo"), &body);
    }

    /// `compare` runs `ab`, and notes the state of everything before and after; as does the hook
    /// `pre-commit`. Other hooks only log that they run.
    fn hooks(&self) {
        let body = format!(
            r#"dir={dir}
# All files of the repository and of its worktrees: index, HEAD, refs, logs, stashes, objects.
state() (
  cd $dir
  find main third linked -name 'target*' -prune -o -type f -exec cksum {{}} + | sort -k 3
)
state > $dir/made/before
: > $dir/made/hooks-ran
code=0
TMPDIR=$dir/tmp PATH=$dir/made:$PATH {crossover} ab --pairs 1 --budget 0 > $dir/made/output 2>&1 || code=$?
echo $code > $dir/made/code
cp $dir/made/hooks-ran $dir/made/hooks-of-ab
state > $dir/made/after"#,
            dir = self.dir.path().display(),
            crossover = env!("CARGO_BIN_EXE_crossover"),
        );
        let hooks = self.path("hooks");
        executable(&self.path("made").join("compare"), &body);
        executable(&hooks.join("pre-commit"), &body);
        let logs = format!("echo $0 >> {}", self.path("made/hooks-ran").display());
        for name in "post-checkout post-index-change reference-transaction".split(' ') {
            executable(&hooks.join(name), &logs);
        }
        let hooks = hooks.to_str().unwrap().to_owned();
        git(&self.path("main"), &["config", "core.hooksPath", &hooks]);
    }

    /// Nothing of the user's changed while `ab` ran, no hook of theirs ran, and nothing is left.
    fn left_alone(&self, fate: Fate, way: &str) {
        let way = format!("{way}, {fate:?}: {}", self.made("output"));
        assert_eq!(self.made("code"), fate.1, "{way}");
        let before = self.made("before");
        for file in ["main/.git/index", "main/.git/refs/stash", "linked/file"] {
            assert!(before.contains(file), "{way}");
        }
        assert_eq!(before, self.made("after"), "{way}");
        assert_eq!(self.made("hooks-of-ab"), "", "{way}");
        let names = git(&self.path("main"), &["rev-parse", "--local-env-vars"]);
        let environment = self.made("environment");
        // The user's settings arrive.
        assert!(environment.contains("GIT_CONFIG_PARAMETERS"), "{way}");
        for name in environment.lines() {
            let settings = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"].contains(&name);
            assert!(
                settings || !names.lines().any(|n| n == name),
                "{way} {name}"
            );
        }
        if fate == KILLED {
            assert_ne!(repositories::work_trees(self.dir.path()), 0, "{way}");
            // The next one clears up.
            self.cargo("exit 1");
            let output = self.ab(&self.path("main"), &[]);
            assert_eq!(output.status.code(), Some(2), "{way}{}", printed(&output));
        }
        if fate == INTERRUPTED {
            assert!(self.made("output").contains("interrupted"), "{way}");
            ends(self.made("left").trim());
        }
        assert_eq!(repositories::work_trees(self.dir.path()), 0, "{way}");
        let worktrees = git(&self.path("main"), &["worktree", "list"]);
        assert_eq!(worktrees.lines().count(), 3, "{way}");
    }

    /// `crossover ab` in a folder, outside a hook.
    fn ab(&self, cwd: &Path, environment: &[(&str, &str)]) -> Output {
        first_in_path(&mut crossover(cwd), &self.path("made"))
            .args(["--pairs", "1", "--budget", "0"])
            .env("TMPDIR", self.path("tmp"))
            .envs(environment.iter().copied())
            .output()
            .unwrap()
    }

    /// The output of both sides' builds there, and the errors that `ab` printed.
    fn seen(&self, cwd: &Path) -> String {
        let _ = fs::remove_file(self.path("made/seen"));
        let output = self.ab(cwd, &[]);
        ended(&output, 0, "");
        self.made("seen") + &text(&output.stderr)
    }

    /// The first of these lines.
    fn first_seen(&self, cwd: &Path, lines: usize) -> String {
        self.seen(cwd).split_inclusive('\n').take(lines).collect()
    }
}

pub(crate) fn a_commit_holds_what_was_staged() {
    for (place, fates) in [
        ("main", [SUCCEEDS, KILLED].as_slice()),
        ("linked", &[FAILS, INTERRUPTED]),
    ] {
        for &fate in fates {
            let house = House::new(fate);
            let top = house.path(place);
            fs::write(top.join("file"), "staged\n").unwrap();
            fs::write(top.join("added"), "staged\n").unwrap();
            git(&top, &["add", "file", "added"]);
            fs::write(top.join("file"), "not staged\n").unwrap();
            git(&top, &["commit", "--quiet", "-m", "third"]);
            let way = format!("commit in {place}");
            house.left_alone(fate, &way);
            let changed = git(&top, &["show", "--format=%s", "--name-status", "HEAD"]);
            assert_eq!(changed, "third\n\nA\tadded\nM\tfile\n", "{way}");
            assert_eq!(git(&top, &["show", "HEAD:file"]), "staged\n", "{way}");
            assert_eq!(git(&top, &["status", "--porcelain"]), " M file\n", "{way}");
            if fate == SUCCEEDS {
                // HEAD against the files as they lie in the work tree.
                assert_eq!(
                    house.made("seen"),
                    "committed | | second | v1\n\
                     not staged |  M file ?? added | second | v1\n",
                    "{way}"
                );
            }
        }
    }
}

/// A rebase is on no branch, the index of `commit -a` lies elsewhere, and git sets other variables for an
/// alias.
pub(crate) fn an_alias_a_rebase_and_a_commit_of_all_changes_go_on() {
    let house = House::new(SUCCEEDS);
    let (main, linked) = (house.path("main"), house.path("linked"));
    let compare = house.path("made/compare").display().to_string();
    let status = |top: &Path| git(top, &["status", "--porcelain"]);

    git(&linked, &["config", "alias.judge", &format!("!{compare}")]);
    fs::write(linked.join("file"), "staged\n").unwrap();
    git(&linked, &["add", "file"]);
    fs::create_dir(linked.join("below")).unwrap();
    git(&linked.join("below"), &["judge"]);
    house.left_alone(SUCCEEDS, "alias");
    assert_eq!(status(&linked), "M  file\n");

    git(&linked, &["reset", "--quiet", "--hard"]);
    let head = git(&linked, &["rev-parse", "HEAD"]);
    let rebase = ["rebase", "--quiet", "-x", &compare, "HEAD~1"];
    git(&linked, &rebase);
    house.left_alone(SUCCEEDS, "rebase");
    assert_eq!(git(&linked, &["rev-parse", "HEAD"]), head);
    assert_eq!(status(&linked), "");

    fs::write(main.join("file"), "changed\n").unwrap();
    fs::write(main.join("new"), "new\n").unwrap();
    git(&main, &["commit", "--quiet", "-a", "-m", "third"]);
    house.left_alone(SUCCEEDS, "commit -a");
    let changed = git(&main, &["show", "--format=%s", "--name-status", "HEAD"]);
    assert_eq!(changed, "third\n\nM\tfile\n");
    assert_eq!(git(&main, &["show", "HEAD:file"]), "changed\n");
    assert_eq!(status(&main), "?? new\n");
    holds(&house.made("seen"), "changed |  M file ?? new ");
}

pub(crate) fn a_repository_of_another_user_needs_the_users_consent() {
    let house = House::new(SUCCEEDS);
    let top = house.path("linked");
    // git's own tests pretend in this way.
    let foreign = ("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    let output = house.ab(&top, &[foreign]);
    let said = ended(&output, 2, "dubious ownership");
    assert_eq!(said.lines().count(), 1, "{said}");
    holds(&said, "git config --global --add safe.directory");
    // Settings of one call, as `git -c` hands them on.
    let consent = [
        foreign,
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
    ];
    ended(&house.ab(&top, &consent), 0, "");
}

pub(crate) fn submodules_are_compared_too() {
    let house = House::new(SUCCEEDS);
    let (main, other) = (house.path("main"), house.path("other"));
    repositories::repository(&other);
    let local = ["-c", "protocol.file.allow=always", "submodule", "--quiet"];
    git(
        &main,
        &[&local[..], &["add", "../other", "submodule"]].concat(),
    );
    git(&main, &["commit", "--quiet", "--no-verify", "-m", "third"]);
    let file = main.join("submodule/file");
    fs::write(&file, "changed\n").unwrap();
    let head = git(&main, &["rev-parse", "--short", "HEAD"]);
    assert_eq!(
        house.first_seen(&main, 4),
        "committed | | third | v1-1-gHEAD\ncommitted\n\
         committed |  M submodule | third | v1-1-gHEAD\nchanged\n"
            .replace("HEAD", head.trim())
    );
    // One that is not checked out is named.
    git(
        &main,
        &["submodule", "--quiet", "deinit", "--force", "submodule"],
    );
    let seen = house.seen(&main);
    holds(&seen, "git submodule update --init submodule");
    // So is a commit that was never fetched.
    git(&main, &[&local[..], &["update", "--init"]].concat());
    let entry = format!("160000,{},submodule", "1".repeat(40));
    git(&main, &["update-index", "--cacheinfo", &entry]);
    git(&main, &["commit", "--quiet", "--no-verify", "-m", "fourth"]);
    let output = house.ab(&main, &[]);
    ended(&output, 2, "git -C submodule fetch");
    assert_eq!(repositories::work_trees(house.dir.path()), 0);
}

/// A file that changed in the second of a commit, of which only the time of the index tells; two that the
/// user has git take for unchanged; a link and a pipe in place of a folder and a file; and one without its data.
pub(crate) fn the_work_tree_is_compared_as_it_is() {
    let house = House::new(SUCCEEDS);
    let (main, outside) = (house.path("main"), house.path("outside"));
    git(&main, &["config", "core.trustctime", "false"]);
    for folder in [&outside, &main.join("folder")] {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("deep"), "precious\n").unwrap();
    }
    fs::write(main.join("piped"), "committed\n").unwrap();
    fs::write(main.join("resolved"), "committed\n").unwrap();
    fs::write(main.join("skipped"), "committed\n").unwrap();
    fs::write(main.join(".gitattributes"), "large filter=lfs\n").unwrap();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n";
    fs::write(main.join("large"), pointer).unwrap();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    for text in ["one\n", "two\n"] {
        fs::write(main.join("file"), text).unwrap();
        let file = fs::File::options().append(true).open(main.join("file"));
        file.unwrap().set_modified(later).unwrap();
        if text == "one\n" {
            commit(&main, "third");
        }
    }
    git(&main, &["update-index", "--assume-unchanged", "second"]);
    git(&main, &["update-index", "--skip-worktree", "skipped"]);
    // A conflict that is resolved, but not added.
    let blob = git(&main, &["rev-parse", "HEAD:resolved"]);
    let entry = |mode, blob: &str, stage| format!("{mode} {} {stage}\tresolved\n", blob.trim());
    let stages = [1, 2, 3]
        .map(|stage| entry("100644", &blob, stage))
        .concat();
    let entries = entry("0", &"0".repeat(40), 0) + &stages;
    fs::write(house.path("entries"), entries).unwrap();
    let mut unmerge = Command::new("git");
    alone(&mut unmerge).current_dir(&main);
    unmerge.args(["update-index", "--index-info"]);
    let entries = fs::File::open(house.path("entries")).unwrap();
    assert!(unmerge.stdin(entries).status().unwrap().success());
    fs::write(main.join("resolved"), "changed\n").unwrap();
    fs::write(main.join("second"), "changed\n").unwrap();
    fs::write(main.join("skipped"), "changed\n").unwrap();
    fs::remove_dir_all(main.join("folder")).unwrap();
    std::os::unix::fs::symlink(&outside, main.join("folder")).unwrap();
    fs::remove_file(main.join("piped")).unwrap();
    nix::unistd::mkfifo(&main.join("piped"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let seen = house.seen(&main);
    holds(
        &seen,
        "two |  M file  D folder/deep  M resolved  M second  M skipped ?? folder | third",
    );
    holds(
        &seen,
        "git-lfs has not fetched the data of 1 file, such as large",
    );
    holds(&seen, "note: what git could not read above is as in HEAD");
    let deep = fs::read_to_string(outside.join("deep")).unwrap();
    assert_eq!(deep, "precious\n");
}

pub(crate) fn repositories_of_all_kinds_are_compared() {
    let house = House::new(SUCCEEDS);
    let main = house.path("main");
    git(&main, &["config", "uploadpack.allowFilter", "true"]);
    git(&main, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    fs::create_dir(main.join("folder")).unwrap();
    fs::write(main.join("folder/deep"), "committed\n").unwrap();
    commit(&main, "third");
    git(&main, &["tag", "v2"]);
    let url = format!("file://{}", main.display());
    let clone = |name: &str, option: &str| {
        let path = house.path(name);
        let to = path.to_str().unwrap();
        git(house.dir.path(), &["clone", "--quiet", option, &url, to]);
        path
    };
    let bare = clone("bare", "--bare");
    git(&bare, &["worktree", "add", "--quiet", "../of-bare", "HEAD"]);
    let sparse = clone("sparse", "--no-local");
    // By hand, because the options of `git sparse-checkout` depend on its version.
    git(&sparse, &["config", "core.sparseCheckout", "true"]);
    let patterns = sparse.join(".git/info/sparse-checkout");
    fs::create_dir_all(patterns.parent().unwrap()).unwrap();
    fs::write(patterns, "/file\n/.gitignore\n").unwrap();
    git(&sparse, &["read-tree", "-mu", "HEAD"]);
    assert!(!sparse.join("folder").exists());
    let places = [
        clone("shallow", "--depth=1"),
        clone("partial", "--filter=blob:none"),
        clone("with \"quotes\" \\ and #\nlines", "--no-local"),
        house.path("of-bare"),
        sparse,
    ];
    for place in places {
        let before = git(&place, &["status", "--porcelain"]);
        assert_eq!(
            house.first_seen(&place, 2),
            "committed | | third | v2\n".repeat(2),
            "{}",
            place.display()
        );
        assert_eq!(git(&place, &["status", "--porcelain"]), before);
    }
    let sha256 = house.path("sha256");
    fs::create_dir(&sha256).unwrap();
    git(&sha256, &["init", "--quiet", "--object-format=sha256"]);
    let output = house.ab(&sha256, &[]);
    holds(&printed(&output), "make a first commit");
    fs::write(sha256.join("file"), "committed\n").unwrap();
    fs::write(sha256.join(".gitignore"), "target*\n").unwrap();
    commit(&sha256, "first");
    assert!(house.seen(&sha256).starts_with("committed | | first | \n"));
    let output = house.ab(&bare, &[]);
    ended(&output, 2, "must be run in a work tree");
}

/// A build in a hook of another repository must not be stamped with that one's commit, and none
/// may write the index, which a hook's git holds.
pub(crate) fn a_build_is_stamped_with_the_commit_of_its_own_repository() {
    let dir = tempfile::tempdir().unwrap();
    let [hooks, own, none] = ["hooks", "own", "none"].map(|name| dir.path().join(name));
    fs::create_dir(&none).unwrap();
    repositories::repository(&hooks);
    repositories::repository(&own);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build.rs");
    let build = dir.path().join("build");
    let mut rustc = Command::new(option_env!("RUSTC").unwrap_or("rustc"));
    let rustc = rustc.args(["--edition", "2024", source, "-o"]).arg(&build);
    assert!(rustc.status().unwrap().success());
    let run = |dir: &Path| {
        let mut command = Command::new(&build);
        alone(&mut command)
            .current_dir(dir)
            .env("GIT_DIR", hooks.join(".git"))
            .env("GIT_INDEX_FILE", hooks.join(".git/index"));
        ended(&command.output().unwrap(), 0, "")
    };
    // Written again: the index does not know it as unchanged.
    fs::write(own.join("file"), "committed\n").unwrap();
    let index = fs::read(own.join(".git/index")).unwrap();
    let stamped = run(&own);
    let commit = git(&own, &["rev-parse", "HEAD"]);
    let want = format!(
        "cargo::rustc-env=CROSSOVER_COMMIT={commit}cargo::rustc-env=CROSSOVER_DIRTY=false\n"
    );
    assert!(stamped.ends_with(&want), "{stamped}");
    assert_eq!(fs::read(own.join(".git/index")).unwrap(), index);
    let stamped = run(&none);
    assert!(!stamped.contains("CROSSOVER_COMMIT"), "{stamped}");
}
