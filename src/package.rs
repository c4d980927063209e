//! The commit of the code that this process measures.
//!
//! For another package than this one, git tells it at run time, compared with the time at which the
//! executable was built. For this package, `build.rs` stamps the commit, and whether the sources had
//! uncommitted changes, when the library is compiled.

use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// A package with a bench executable; [`package!`](crate::package) is the one that names it.
#[derive(Clone, Copy, Debug)]
pub struct Package {
    /// The folder of its manifest.
    pub folder: &'static str,
    /// Name.
    pub name: &'static str,
    /// Version.
    pub version: &'static str,
}

/// The [`Package`] in which the macro is used.
#[macro_export]
macro_rules! package {
    () => {
        $crate::Package {
            folder: env!("CARGO_MANIFEST_DIR"),
            name: env!("CARGO_PKG_NAME"),
            version: env!("CARGO_PKG_VERSION"),
        }
    };
}

impl Package {
    /// The package; `None` if it is this one.
    pub(crate) fn other(self) -> Option<Self> {
        (self.folder != env!("CARGO_MANIFEST_DIR")).then_some(self)
    }
}

/// The commit of a package, or without one of this package, and whether it had uncommitted changes; `None`
/// each if unknown.
pub(crate) fn commit(package: Option<Package>) -> (Option<String>, Option<bool>) {
    let Some(package) = package else {
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
    let head = git(folder, &["rev-parse", "HEAD"]);
    let then = git(folder, &["rev-parse", &format!("HEAD@{{{seconds}}}")]);
    let changes = git(folder, &["status", "--porcelain", "--untracked-files=no"]);
    let dirty = match changes.as_deref() {
        Some("") if head == then => Some(false),
        // The changes may have been committed since.
        Some("") | None => None,
        Some(_) => Some(true),
    };
    (then.or(head), dirty)
}

/// The commit, and whether its sources had uncommitted changes when the library was compiled; `None`
/// each if it was compiled outside a checkout.
fn of_this_build() -> (Option<String>, Option<bool>) {
    let commit = option_env!("CROSSOVER_COMMIT").map(str::to_owned);
    (
        commit,
        option_env!("CROSSOVER_DIRTY").map(|dirty| dirty == "true"),
    )
}

fn git(checkout: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .args(["-C", checkout])
        .args(arguments)
        // This may run in a hook of another repository.
        .env_remove("GIT_DIR")
        .env_remove("GIT_INDEX_FILE")
        .env_remove("GIT_WORK_TREE")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
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
            git(checkout, &["add", "."]).unwrap();
            git(checkout, &["commit", "-qm", text]).unwrap();
            git(checkout, &["rev-parse", "HEAD"])
        };
        let day = std::time::Duration::from_secs(86_400);
        let (before, after) = (SystemTime::now() - day, SystemTime::now() + day);
        assert_eq!(of_checkout(checkout, after), (None, None));
        git(checkout, &["init", "-q"]).unwrap();
        for (name, value) in [
            ("user.name", "a"),
            ("user.email", "a@b"),
            ("commit.gpgSign", "false"),
            ("core.hooksPath", "/dev/null"),
            ("core.logAllRefUpdates", "true"),
        ] {
            git(checkout, &["config", name, value]).unwrap();
        }
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
}
