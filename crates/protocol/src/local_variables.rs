//! The environment variables by which git tells its hooks and aliases on which repository they run.
//! A child that works on another repository must not see them.

use std::process::Command;
use std::sync::OnceLock;

/// Of the variables that git lists, those that carry the settings of `git -c`, such as
/// `safe.directory`, and name no repository. git itself keeps these two when it enters a submodule.
const SETTINGS: [&str; 2] = ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"];

/// Has `command` find its repository by its current folder alone.
pub fn remove(command: &mut Command) -> &mut Command {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    for name in NAMES.get_or_init(names) {
        command.env_remove(name);
    }
    command
}

/// git's own list, since a later version may add to it. Where there is no git, no hook runs.
fn names() -> Vec<String> {
    let listed = Command::new("git")
        .args(["rev-parse", "--local-env-vars"])
        .output();
    let listed = listed.map_or_else(|_| Vec::new(), |output| output.stdout);
    String::from_utf8_lossy(&listed)
        .lines()
        .filter(|name| !SETTINGS.contains(name))
        .map(str::to_owned)
        .collect()
}
