//! The commit of the code that this process runs.
//!
//! `build.rs` stamps the commit of the moment when the library was compiled, whether the sources had
//! changes beside it, and the id of their contents. Where they had, and the same contents have been
//! committed since, that commit is the one.

use std::io::Write;
use std::process::{Command, Stdio};

/// What a measurement is made of, a path per line.
const SOURCES: &str = include_str!("sources.txt");

/// The commit, and whether its code had changes that were not committed; `None` each where it was
/// built outside a checkout.
pub(crate) fn of_this_build() -> (Option<String>, Option<bool>) {
    let commit = option_env!("CROSSOVER_COMMIT");
    let dirty = option_env!("CROSSOVER_DIRTY").map(|dirty| dirty == "true");
    if dirty == Some(true)
        && let Some(built) = option_env!("CROSSOVER_SOURCES")
        && let Some(head) = head_with(env!("CARGO_MANIFEST_DIR"), built)
    {
        return (Some(head), Some(false));
    }
    (commit.map(str::to_owned), dirty)
}

/// The commit of the checkout's HEAD, if its sources have this id.
fn head_with(checkout: &str, id: &str) -> Option<String> {
    let head = git(checkout, &["rev-parse", "HEAD"], "")?;
    let mut list = vec!["ls-tree", "-r", &head, "--"];
    list.extend(SOURCES.lines());
    let files = git(checkout, &list, "")?;
    // `<mode> blob <id>`, a tab, and the path.
    let line = |line: &str| {
        let (about, file) = line.split_once('\t')?;
        Some(format!("{} {file}\n", about.rsplit(' ').next()?))
    };
    let mut lines: Vec<String> = files.lines().map(line).collect::<Option<_>>()?;
    lines.sort();
    let committed = git(checkout, &["hash-object", "--stdin"], &lines.concat())?;
    (committed == id).then_some(head)
}

fn git(checkout: &str, arguments: &[&str], input: &str) -> Option<String> {
    let mut git = Command::new("git")
        .args(["-C", checkout])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    git.stdin.take()?.write_all(input.as_bytes()).ok()?;
    let output = git.wait_with_output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    (output.status.success()).then(|| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_that_were_committed_since_have_that_commit() {
        let dir = tempfile::tempdir().unwrap();
        let checkout = dir.path().to_str().unwrap();
        let git = |arguments: &[&str]| git(checkout, arguments, "").unwrap();
        let who = ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm"];
        let commit = |message: &str| {
            git(&["add", "."]);
            git(&[&who[..], &[message]].concat());
            git(&["rev-parse", "HEAD"])
        };
        git(&["init", "-q"]);
        std::fs::create_dir(dir.path().join("src")).unwrap();
        let source = dir.path().join("src/lib.rs");
        std::fs::write(&source, "fn before() {}\n").unwrap();
        let before = commit("before");
        std::fs::write(&source, "fn built() {}\n").unwrap();
        // What the build script makes of it.
        let blob = git(&["hash-object", "src/lib.rs"]);
        let list = format!("{blob} src/lib.rs\n");
        let built = super::git(checkout, &["hash-object", "--stdin"], &list).unwrap();
        assert_eq!(head_with(checkout, &built), None, "{before} is other code");
        let committed = commit("built");
        assert_eq!(head_with(checkout, &built), Some(committed));
        std::fs::write(dir.path().join("notes"), "no source\n").unwrap();
        let noted = commit("notes");
        assert_eq!(head_with(checkout, &built), Some(noted));
        std::fs::write(&source, "fn after() {}\n").unwrap();
        commit("after");
        assert_eq!(head_with(checkout, &built), None);
        assert_eq!(head_with("/nowhere", &built), None);
    }
}
