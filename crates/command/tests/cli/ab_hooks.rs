//! `crossover ab` in hooks, aliases and repositories of all kinds: what the user has is left alone,
//! and what is compared is what lies in the work tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use crate::printed::{ended, ends, expect, holds, lacks, text, with_line};
use crate::repositories::{ONE_PAIR, Place, alone, commit, executable, git, git_line, repository};

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

/// A repository in `main` and one more worktree in `linked`, which was made from a third and is on no branch.
/// Hooks and logs lie beside them.
struct House(Place);

impl House {
    fn new(fate: Fate) -> Self {
        let this = Self(Place::new("main"));
        let place = &this.0;
        repository(&place.top);
        place.commit("second", "committed\n");
        place.write("main/file", "stashed\n");
        place.git("stash --quiet");
        place.git("tag v1");
        place.git("worktree add --quiet --detach ../third");
        let third = place.path("third");
        git_line(&third, "worktree add --quiet --detach ../linked");
        place.harness("bench/run", &[("sum", 20.0)], "");
        place.write("made/seen", "");
        this.cargo(fate.0);
        this.hooks();
        this
    }

    fn made(&self, name: &str) -> String {
        fs::read_to_string(self.0.path("made").join(name)).unwrap_or_default()
    }

    /// Stands in for cargo. It builds by doing to its repository what a build script could, and
    /// logs what it sees.
    fn cargo(&self, build: &str) {
        let logs = r#"made=$dir/made
env | grep ^GIT_ | sed s/=.*// >> $made/environment || true
echo "$(cat file) | $(git status --porcelain | tr '\n' ' ')| $(git log -1 --format=%s) | $(git describe --tags 2>/dev/null)" >> $made/seen
cat submodule/file >> $made/seen 2>/dev/null || true
git -c user.name=B -c user.email=b@example.com commit --quiet --allow-empty --all -m build
git tag built-in-$$
git stash clear"#;
        self.0.cargo(logs, build);
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
TMPDIR=$dir/tmp PATH=$dir/bin:$PATH {crossover} ab {ONE_PAIR} > $dir/made/output 2>&1 || code=$?
echo $code > $dir/made/code
cp $dir/made/hooks-ran $dir/made/hooks-of-ab
state > $dir/made/after"#,
            dir = self.0.dir(),
            crossover = env!("CARGO_BIN_EXE_crossover"),
        );
        let hooks = self.0.path("hooks");
        executable(&self.0.path("made/compare"), &body);
        executable(&hooks.join("pre-commit"), &body);
        let logs = format!("echo $0 >> {}/made/hooks-ran", self.0.dir());
        for name in [
            "post-checkout",
            "post-index-change",
            "reference-transaction",
        ] {
            executable(&hooks.join(name), &logs);
        }
        let hooks = format!("config core.hooksPath {}", hooks.display());
        self.0.git(&hooks);
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
        let names = self.0.git("rev-parse --local-env-vars");
        let environment = self.made("environment");
        // The user's settings arrive, and no other variable of a hook.
        assert!(environment.contains("GIT_CONFIG_PARAMETERS"), "{way}");
        let settings = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"];
        let foreign = environment.lines().filter(|name| !settings.contains(name));
        let mut foreign = foreign.filter(|name| names.lines().any(|local| local == *name));
        assert_eq!(foreign.next(), None, "{way}");
        if fate == KILLED {
            assert_ne!(self.0.work_trees(), 0, "{way}");
            // The next one clears up.
            self.cargo("exit 1");
            self.0.ends(ONE_PAIR, 2, "");
        }
        if fate == INTERRUPTED {
            holds(&self.made("output"), "interrupted");
            ends(self.made("left").trim());
        }
        assert_eq!(self.0.work_trees(), 0, "{way}");
        assert_eq!(self.0.git("worktree list").lines().count(), 3, "{way}");
    }

    /// `crossover ab` in a folder, outside a hook.
    fn ab(&self, folder: &Path, variables: &str) -> Command {
        let mut ab = self.0.ab(ONE_PAIR);
        with_line(ab.current_dir(folder), variables);
        ab
    }

    /// The output of both sides' builds there, and the errors that `ab` printed.
    fn seen(&self, folder: &Path) -> String {
        self.0.write("made/seen", "");
        let output = self.ab(folder, "").output().unwrap();
        ended(&output, 0, "");
        self.made("seen") + &text(&output.stderr)
    }

    /// The first of these lines.
    fn first_seen(&self, folder: &Path, lines: usize) -> String {
        let seen = self.seen(folder);
        seen.split_inclusive('\n').take(lines).collect()
    }
}

pub(crate) fn a_commit_holds_what_was_staged() {
    for (worktree, fates) in [
        ("main", [SUCCEEDS, KILLED]),
        ("linked", [FAILS, INTERRUPTED]),
    ] {
        for fate in fates {
            let house = House::new(fate);
            let top = house.0.path(worktree);
            fs::write(top.join("file"), "staged\n").unwrap();
            fs::write(top.join("added"), "staged\n").unwrap();
            git_line(&top, "add file added");
            fs::write(top.join("file"), "not staged\n").unwrap();
            git_line(&top, "commit --quiet -m third");
            let way = format!("commit in {worktree}");
            house.left_alone(fate, &way);
            for (line, shown) in [
                (
                    "show --format=%s --name-status HEAD",
                    "third\n\nA\tadded\nM\tfile\n",
                ),
                ("show HEAD:file", "staged\n"),
                ("status --porcelain", " M file\n"),
            ] {
                assert_eq!(git_line(&top, line), shown, "{way}");
            }
            if fate == SUCCEEDS {
                // HEAD against the files as they lie in the work tree.
                let seen =
                    "committed | | second | v1\nnot staged |  M file ?? added | second | v1\n";
                assert_eq!(house.made("seen"), seen, "{way}");
            }
        }
    }
}

/// A rebase is on no branch, the index of `commit -a` lies elsewhere, and git sets other variables for an
/// alias.
pub(crate) fn an_alias_a_rebase_and_a_commit_of_all_changes_go_on() {
    let house = House::new(SUCCEEDS);
    let (main, linked) = (&house.0.top, house.0.path("linked"));
    let compare = house.0.path("made/compare").display().to_string();
    let status = |top: &Path| git_line(top, "status --porcelain");

    git_line(&linked, &format!("config alias.judge !{compare}"));
    fs::write(linked.join("file"), "staged\n").unwrap();
    git_line(&linked, "add file");
    fs::create_dir(linked.join("below")).unwrap();
    git_line(&linked.join("below"), "judge");
    house.left_alone(SUCCEEDS, "alias");
    assert_eq!(status(&linked), "M  file\n");

    git_line(&linked, "reset --quiet --hard");
    let head = git_line(&linked, "rev-parse HEAD");
    git_line(&linked, &format!("rebase --quiet -x {compare} HEAD~1"));
    house.left_alone(SUCCEEDS, "rebase");
    assert_eq!(git_line(&linked, "rev-parse HEAD"), head);
    assert_eq!(status(&linked), "");

    fs::write(main.join("file"), "changed\n").unwrap();
    fs::write(main.join("new"), "new\n").unwrap();
    git_line(main, "commit --quiet -a -m third");
    house.left_alone(SUCCEEDS, "commit -a");
    let changed = git_line(main, "show --format=%s --name-status HEAD");
    assert_eq!(changed, "third\n\nM\tfile\n");
    assert_eq!(git_line(main, "show HEAD:file"), "changed\n");
    assert_eq!(status(main), "?? new\n");
    holds(&house.made("seen"), "changed |  M file ?? new ");
}

pub(crate) fn a_repository_of_another_user_needs_the_users_consent() {
    let house = House::new(SUCCEEDS);
    let top = house.0.path("linked");
    // git's own tests pretend in this way.
    let foreign = "GIT_TEST_ASSUME_DIFFERENT_OWNER=1";
    let says = "dubious ownership … git config --global --add safe.directory";
    let error = expect(&mut house.ab(&top, foreign), 2, says);
    assert_eq!(error.lines().count(), 1, "{error}");
    // Settings of one call, as `git -c` hands them on.
    let consent = "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=*";
    expect(&mut house.ab(&top, &format!("{foreign} {consent}")), 0, "");
}

pub(crate) fn submodules_are_compared_too() {
    let house = House::new(SUCCEEDS);
    let main = &house.0.top;
    repository(&house.0.path("other"));
    let local = "-c protocol.file.allow=always submodule --quiet";
    let git = |line: &str| git_line(main, line);
    git(&format!("{local} add ../other submodule"));
    git("commit --quiet --no-verify -m third");
    house.0.write("main/submodule/file", "changed\n");
    let head = git("rev-parse --short HEAD");
    let seen = "committed | | third | v1-1-gHEAD\ncommitted\n\
        committed |  M submodule | third | v1-1-gHEAD\nchanged\n";
    let seen = seen.replace("HEAD", head.trim());
    assert_eq!(house.first_seen(main, 4), seen);
    // One that is not checked out is named.
    git("submodule --quiet deinit --force submodule");
    holds(&house.seen(main), "git submodule update --init submodule");
    // So is a commit that was never fetched.
    git(&format!("{local} update --init"));
    let commit = "1".repeat(40);
    git(&format!(
        "update-index --cacheinfo 160000,{commit},submodule"
    ));
    git("commit --quiet --no-verify -m fourth");
    house.0.ends(ONE_PAIR, 2, "git -C submodule fetch");
    assert_eq!(house.0.work_trees(), 0);
}

/// A file that changed in the second of a commit, of which only the time of the index tells; two that the
/// user has git take for unchanged; a link and a pipe in place of a folder and a file; and one without its data.
pub(crate) fn the_work_tree_is_compared_as_it_is() {
    let house = House::new(SUCCEEDS);
    let main = &house.0.top;
    let git = |line: &str| git_line(main, line);
    let write = |name: &str, text: &str| house.0.write(&format!("main/{name}"), text);
    git("config core.trustctime false");
    house.0.write("outside/deep", "precious\n");
    write("folder/deep", "precious\n");
    for file in ["piped", "resolved", "skipped"] {
        write(file, "committed\n");
    }
    write(".gitattributes", "large filter=lfs\n");
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n";
    write("large", pointer);
    let earlier = SystemTime::now() - Duration::from_secs(60);
    let set_time = |name: &str| {
        let file = fs::File::options().append(true).open(main.join(name));
        file.unwrap().set_modified(earlier).unwrap();
    };
    write("file", "one\n");
    set_time("file");
    commit(main, "third");
    git("update-index --assume-unchanged second");
    git("update-index --skip-worktree skipped");
    // A conflict that is resolved, but not added.
    let blob = git("rev-parse HEAD:resolved");
    let entry = |mode, blob: &str, stage| format!("{mode} {} {stage}\tresolved\n", blob.trim());
    let stages = [1, 2, 3].map(|stage| entry("100644", &blob, stage));
    let entries = entry("0", &"0".repeat(40), 0) + &stages.concat();
    house.0.write("entries", &entries);
    let mut unmerge = Command::new("git");
    with_line(alone(&mut unmerge), "update-index --index-info");
    let entries = fs::File::open(house.0.path("entries")).unwrap();
    let unmerge = unmerge.current_dir(main).stdin(entries);
    assert!(unmerge.status().unwrap().success());
    for file in ["resolved", "second", "skipped"] {
        write(file, "changed\n");
    }
    fs::remove_dir_all(main.join("folder")).unwrap();
    write("file", "two\n");
    set_time("file");
    set_time(".git/index");
    let outside = house.0.path("outside");
    std::os::unix::fs::symlink(outside, main.join("folder")).unwrap();
    fs::remove_file(main.join("piped")).unwrap();
    nix::unistd::mkfifo(&main.join("piped"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let seen = house.seen(main);
    for words in [
        "two |  M file  D folder/deep  M resolved  M second  M skipped ?? folder | third",
        "git-lfs has not fetched the data of 1 file, such as large",
        "note: what git could not read above is as in HEAD",
    ] {
        holds(&seen, words);
    }
    assert_eq!(house.0.read("outside/deep"), "precious\n");
}

pub(crate) fn repositories_of_all_kinds_are_compared() {
    let house = House::new(SUCCEEDS);
    house.0.git("config uploadpack.allowFilter true");
    house.0.git("config uploadpack.allowAnySHA1InWant true");
    house.0.write("main/folder/deep", "committed\n");
    commit(&house.0.top, "third");
    house.0.git("tag v2");
    let url = format!("file://{}", house.0.top.display());
    let clone = |name: &str, option: &str| -> PathBuf {
        let path = house.0.path(name);
        let to = path.to_str().unwrap();
        git(&house.0.top, &["clone", "--quiet", option, &url, to]);
        path
    };
    let bare = clone("bare", "--bare");
    git_line(&bare, "worktree add --quiet ../of-bare HEAD");
    let sparse = clone("sparse", "--no-local");
    // By hand, because the options of `git sparse-checkout` depend on its version.
    git_line(&sparse, "config core.sparseCheckout true");
    let patterns = "/file\n/.gitignore\n";
    house.0.write("sparse/.git/info/sparse-checkout", patterns);
    git_line(&sparse, "read-tree -mu HEAD");
    assert!(!sparse.join("folder").exists());
    for place in [
        clone("shallow", "--depth=1"),
        clone("partial", "--filter=blob:none"),
        clone("with \"quotes\" \\ and #\nlines", "--no-local"),
        house.0.path("of-bare"),
        sparse,
    ] {
        let before = git_line(&place, "status --porcelain");
        let seen = house.first_seen(&place, 2);
        let both = "committed | | third | v2\n".repeat(2);
        assert_eq!(seen, both, "{}", place.display());
        assert_eq!(git_line(&place, "status --porcelain"), before);
    }
    let sha256 = house.0.path("sha256");
    fs::create_dir(&sha256).unwrap();
    git_line(&sha256, "init --quiet --object-format=sha256");
    let first = "make a first commit";
    expect(&mut house.ab(&sha256, ""), 2, first);
    house.0.write("sha256/file", "committed\n");
    house.0.write("sha256/.gitignore", "target*\n");
    commit(&sha256, "first");
    assert!(house.seen(&sha256).starts_with("committed | | first | \n"));
    expect(&mut house.ab(&bare, ""), 2, "must be run in a work tree");
}

/// A build in a hook of another repository must not be stamped with that one's commit, and none
/// may write the index, which a hook's git holds.
pub(crate) fn a_build_is_stamped_with_the_commit_of_its_own_repository() {
    let place = Place::new("none");
    let [hooks, own] = ["hooks", "own"].map(|name| place.path(name));
    repository(&hooks);
    repository(&own);
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build.rs");
    let build = place.path("build");
    let mut rustc = Command::new(option_env!("RUSTC").unwrap_or("rustc"));
    let rustc = rustc.args(["--edition", "2024", source, "-o"]).arg(&build);
    assert!(rustc.status().unwrap().success());
    let run = |dir: &Path| {
        let mut command = Command::new(&build);
        let command = alone(&mut command).current_dir(dir);
        command.env("GIT_DIR", hooks.join(".git"));
        command.env("GIT_INDEX_FILE", hooks.join(".git/index"));
        expect(command, 0, "")
    };
    // Written again: the index does not know it as unchanged.
    place.write("own/file", "committed\n");
    let index = fs::read(own.join(".git/index")).unwrap();
    let stamped = run(&own);
    let commit = git_line(&own, "rev-parse HEAD");
    let want = format!(
        "cargo::rustc-env=CROSSOVER_COMMIT={commit}cargo::rustc-env=CROSSOVER_DIRTY=false\n"
    );
    assert!(stamped.ends_with(&want), "{stamped}");
    assert_eq!(fs::read(own.join(".git/index")).unwrap(), index);
    lacks(&run(&place.top), &["CROSSOVER_COMMIT"]);
}
