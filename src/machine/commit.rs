//! The commit of the code that this process measures.
//!
//! Of another package than this one, git says it at run time, by when the executable was built. For this
//! one `build.rs` stamps the commit of the moment when the library was compiled, whether the sources had
//! changes beside it, and the id of their contents. Where they had, and the same contents have been
//! committed since, that commit is the one.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// A package with a bench executable; [`package!`](crate::package) is the one that names it.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// The folder of its manifest.
    pub folder: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// The [`Package`] in which this is written.
#[macro_export]
macro_rules! package {
    () => {
        $crate::machine::Package {
            folder: env!("CARGO_MANIFEST_DIR"),
            name: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
        }
    };
}

static MEASURED: OnceLock<Package> = OnceLock::new();

/// Says whose code this process measures.
pub(crate) fn measures(package: Package) {
    // An executable is of one package.
    let _ = MEASURED.set(package);
}

/// Whose code this process measures; `None` where it is this package's own.
pub(crate) fn measured() -> Option<&'static Package> {
    let own = env!("CARGO_MANIFEST_DIR");
    MEASURED.get().filter(|package| package.folder != own)
}

/// The commit of what this process measures, and whether its code had changes that were not
/// committed; `None` each where that is not known.
pub(crate) fn of_what_is_measured() -> (Option<String>, Option<bool>) {
    let Some(package) = measured() else {
        return of_this_build();
    };
    let built = std::env::current_exe().and_then(|executable| executable.metadata()?.modified());
    built.map_or((None, None), |built| of_checkout(package.folder, built))
}

fn of_checkout(folder: &str, built: SystemTime) -> (Option<String>, Option<bool>) {
    let seconds = built
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let head = git(folder, &["rev-parse", "HEAD"], "");
    let then = git(folder, &["rev-parse", &format!("HEAD@{{{seconds}}}")], "");
    let changes = git(
        folder,
        &["status", "--porcelain", "--untracked-files=no"],
        "",
    );
    let dirty = match changes.as_deref() {
        Some("") if head == then => Some(false),
        // What was changed may have been committed since.
        Some("") | None => None,
        Some(_) => Some(true),
    };
    (then.or(head), dirty)
}

/// What a measurement is made of, a path per line.
const SOURCES: &str = include_str!("sources.txt");

/// The commit, and whether its code had changes that were not committed; `None` each where it was
/// built outside a checkout.
fn of_this_build() -> (Option<String>, Option<bool>) {
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
        // A hook of another repository may run this.
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_WORK_TREE")
        .env("GIT_OPTIONAL_LOCKS", "0")
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
    fn the_commit_of_another_package_is_that_of_its_checkout() {
        let dir = tempfile::tempdir().unwrap();
        let checkout = dir.path().to_str().unwrap();
        let source = dir.path().join("lib.rs");
        let commit = |text: &str| {
            std::fs::write(&source, text).unwrap();
            let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
            git(checkout, &["add", "."], "").unwrap();
            git(checkout, &[&who[..], &["commit", "-qm", text]].concat(), "").unwrap();
            git(checkout, &["rev-parse", "HEAD"], "")
        };
        let day = std::time::Duration::from_secs(86_400);
        let (before, after) = (SystemTime::now() - day, SystemTime::now() + day);
        assert_eq!(of_checkout(checkout, after), (None, None));
        git(checkout, &["init", "-q"], "").unwrap();
        let first = commit("first");
        std::fs::create_dir(dir.path().join("target-reports")).unwrap();
        std::fs::write(dir.path().join("target-reports/results"), "").unwrap();
        assert_eq!(of_checkout(checkout, after), (first.clone(), Some(false)));
        std::fs::write(&source, "changed").unwrap();
        assert_eq!(of_checkout(checkout, after), (first.clone(), Some(true)));
        let second = commit("second");
        assert_eq!(of_checkout(checkout, after), (second, Some(false)));
        // Built before, when it may have had the changes.
        assert_eq!(of_checkout(checkout, before), (first, None));
    }

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
