//! `crossover ab` with cargo itself: both sides are built with the settings that `cargo bench` would find
//! in the user's folder, and each runs its own code.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use tempfile::TempDir;

use crate::compare::{compared, verdict};
use crate::printed::{ended, holds, text};
use crate::repositories::{
    BOTH, ONE_PAIR, Project, builds, clean, commit, crossover, executable, git, harness,
};

/// A repository of one package in `around/top`, whose bench target has a factor of its times compiled in.
struct Package(TempDir);

impl Package {
    /// The manifest gets these lines.
    fn new(manifest: &str) -> Self {
        let this = Self(tempfile::tempdir().unwrap());
        let top = this.top();
        let manifest = format!(
            "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n{manifest}\n\
             [[bench]]\nname = \"x\"\nharness = false\n"
        );
        this.write("around/top/Cargo.toml", &manifest);
        this.write("around/top/src/lib.rs", "");
        this.write("around/top/.gitignore", "Cargo.lock\ntarget*\ntmp\n");
        this.factor("\"1\"");
        let body =
            r#"ns=$(awk "BEGIN { print $ns * $FACTOR }"); echo "$ADDED $PLACE $SIDE" >> $log"#;
        harness(&this.path("run"), &this.path("log"), &BOTH[..1], body);
        git(&top, &["init", "--quiet"]);
        commit(&top, "first");
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn top(&self) -> PathBuf {
        self.path("around/top")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn factor(&self, factor: &str) {
        let run = self.path("run");
        let main = format!(
            "fn main() {{
    use std::os::unix::process::CommandExt;
    let mut run = std::process::Command::new({run:?});
    let error = run.args(std::env::args().skip(1)).env(\"FACTOR\", {factor}).exec();
    panic!(\"{{error}}\");
}}"
        );
        self.write("around/top/benches/x.rs", &main);
    }

    fn ab(&self, options: &str, set: impl FnOnce(&mut Command)) -> Output {
        let mut command = crossover(&self.top());
        command
            .args(options.split_whitespace())
            .env("TMPDIR", self.path("tmp"))
            .env_remove("CARGO_BUILD_BUILD_DIR");
        fs::create_dir_all(self.path("tmp")).unwrap();
        set(&mut command);
        let output = command.output().unwrap();
        assert_eq!(fs::read_dir(self.path("tmp")).unwrap().count(), 0);
        output
    }
}

const FOUR: &str = "--json --pairs 4 --budget 0";

#[test]
fn sides_never_share_an_executable_whatever_folder_the_settings_name() {
    let package = Package::new("");
    package.factor("\"3\"");
    let slower = |output: &Output| {
        let json = compared(output, 1);
        assert_eq!(verdict(&json, "sort/100"), "slower", "{json:#}");
        assert!(!json["warnings"].to_string().contains("equal executables"));
    };
    let shared = package.path("shared");
    slower(&package.ab(FOUR, |ab| {
        ab.env("CARGO_BUILD_BUILD_DIR", shared);
    }));
    package.write(
        "around/.cargo/config.toml",
        "[build]\nbuild-dir = \"built/{workspace-path-hash}\"\n",
    );
    slower(&package.ab(FOUR, |_| {}));
    // A relative one that both sides have.
    package.write("around/top/.gitignore", "Cargo.lock\ntarget*\ntmp\nbuilt\n");
    package.write(
        "around/top/.cargo/config.toml",
        "[build]\nbuild-dir = \"built\"\n",
    );
    commit(&package.top(), "settings");
    slower(&package.ab(&format!("{FOUR} HEAD~1 HEAD"), |_| {}));
    package.factor("\"1\"");
    let json = compared(&package.ab(FOUR, |_| {}), 0);
    assert_eq!(verdict(&json, "sort/100"), "faster", "{json:#}");
    let equal = package.ab("HEAD HEAD", |_| {});
    holds(&text(&equal.stdout), "equal");
}

#[test]
fn sides_that_were_built_to_one_file_are_refused() {
    let project = Project::new(&BOTH, "");
    project.write("file", "changed\n");
    let built = "export CARGO_TARGET_DIR=$(dirname \"$CARGO_TARGET_DIR\")\n";
    project.cargo(&(built.to_owned() + &builds(&project.path("target-bench/run"))));
    let output = project.ab(ONE_PAIR).output().unwrap();
    let said = ended(&output, 2, "both sides were built to one file, ");
    holds(&said, "target/ab/run: ");
    clean(project.top());
}

