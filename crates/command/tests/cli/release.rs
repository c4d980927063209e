//! `scripts/release` in a planted workspace. A stand-in for cargo publishes and documents nothing.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::bundle::SCRIPTS;
use crate::printed::{expect, holds, lacks, table};
use crate::repositories::{alone, commit, executable, git, repository};

/// A package that has all that crates.io asks for, and what else its manifest has.
fn package(name: &str, rest: &str) -> String {
    format!(
        "[package]\nname = \"{name}\"\nversion.workspace = true\ndescription = \"It is {name}\"\n\
         license = \"MIT\"\nrepository.workspace = true\ndocumentation = \"https://docs.rs/{name}\"\n\
         keywords = [\"gpu\"]\ncategories = [\"hardware-support\"]\n{rest}"
    )
}

/// A workspace that can be published: `one`, and `two` that needs it.
fn workspace() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path();
    repository(top);
    let needs = "[dependencies]\none = { version = \"0.2.0\", path = \"../one\" }\n";
    for (file, text) in [
        (
            "Cargo.toml",
            "[workspace]\nmembers = [\"one\", \"two\"]\nresolver = \"3\"\n[workspace.package]\n\
             version = \"0.2.0\"\nrepository = \"https://example.com/it\"\n",
        ),
        ("one/Cargo.toml", &package("one", "")),
        ("one/src/lib.rs", ""),
        ("two/Cargo.toml", &package("two", needs)),
        ("two/src/lib.rs", ""),
        ("CHANGELOG.md", "# Changelog\n\n## [0.2.0] - unreleased\n"),
    ] {
        fs::create_dir_all(top.join(file).parent().unwrap()).unwrap();
        fs::write(top.join(file), text).unwrap();
    }
    fs::create_dir(top.join("scripts")).unwrap();
    fs::copy(format!("{SCRIPTS}/release"), top.join("scripts/release")).unwrap();
    let cargo = env!("CARGO");
    let stand_in = format!(
        "case $1 in\nmetadata) exec '{cargo}' \"$@\" --offline;;\n\
         publish) echo '   Uploading one v0.2.0' >&2; echo '   Uploading two v0.2.0' >&2;;\nrun) echo '{{}}';;\nesac"
    );
    executable(&top.join("target/bin/cargo"), &stand_in);
    let mut lock = Command::new(cargo);
    let lock = lock.args(["generate-lockfile", "--offline"]);
    expect(lock.current_dir(top), 0, "");
    commit(top, "ready");
    dir
}

fn released(top: &Path, code: i32) -> String {
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}/target/bin:{path}", top.display());
    let mut release = Command::new("python3");
    let release = release.arg(top.join("scripts/release")).env("PATH", path);
    expect(alone(release), code, "")
}

pub(crate) fn a_release_that_is_ready_has_its_commands_in_order() {
    let dir = workspace();
    let shown = released(dir.path(), 0);
    let commands = shown.split_once("these commands:").expect("commands").1;
    for order in [
        "s/unreleased/ … git tag -a v0.2.0",
        "git push … publish --locked -p one … -p two",
    ] {
        holds(commands, order);
    }
    let schema = fs::read_to_string(dir.path().join("target/thresholds.schema.json"));
    assert_eq!(schema.unwrap(), "{}\n");
    // With its date and its tag nothing is left but to upload.
    let dated = "# Changelog\n\n## [0.2.0] - 2026-01-31\n";
    fs::write(dir.path().join("CHANGELOG.md"), dated).unwrap();
    commit(dir.path(), "Release 0.2.0");
    git(dir.path(), &["tag", "v0.2.0"]);
    lacks(&released(dir.path(), 0), &["unreleased"]);
}

pub(crate) fn what_a_release_lacks_is_named() {
    let dir = workspace();
    for [file, ready, lacking, named] in table(
        r#"
        Cargo.toml     | https://example.com/it |                              | fill in `repository`
        CHANGELOG.md   | 0.2.0                  | 0.1.0                        | `## [0.2.0] - unreleased`
        two/Cargo.toml | "0.2.0"                | "0.2"                        | two requires one ^0.2
        one/Cargo.toml | docs.rs/one            | docs.rs/two                  | one lacks `documentation
        two/Cargo.toml | ["gpu"]                | []                           | two lacks keywords
        two/Cargo.toml | ["gpu"]                | ["graphics processing unit"] | more than 20 letters
        one/Cargo.toml | license                | publish = false\nlicense     | two needs one
        "#,
    ) {
        let file = dir.path().join(file);
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains(ready), "{text}");
        let lacking = lacking.replace("\\n", "\n");
        fs::write(&file, text.replace(ready, &lacking)).unwrap();
        commit(dir.path(), "lacking");
        let faults = released(dir.path(), 1);
        holds(&faults, named);
        holds(&faults, "nothing is published yet");
        lacks(&faults, &["publish --locked"]);
        fs::write(&file, text).unwrap();
        commit(dir.path(), "ready");
    }
    git(dir.path(), &["tag", "v0.2.0"]);
    fs::write(dir.path().join("new"), "").unwrap();
    holds(&released(dir.path(), 1), "?? new");
    commit(dir.path(), "later");
    holds(&released(dir.path(), 1), "v0.2.0 names another commit");
}
