//! The folders in which CUPTI's library may be installed.

use std::env;
use std::path::{Path, PathBuf};

/// Names for the loader, newest first. The plain one is that of a development package.
pub(super) const NAMES: [&str; 3] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"];

/// The libraries in the toolkits of this machine, which the loader often does not search: those
/// that the environment names come first.
pub(super) fn libraries() -> Vec<PathBuf> {
    let named = ["CUDA_HOME", "CUDA_PATH"]
        .into_iter()
        .filter_map(env::var_os);
    let usual = ["/usr/local/cuda", "/opt/cuda"].map(PathBuf::from);
    let toolkits = named.map(PathBuf::from).chain(usual);
    toolkits.flat_map(|toolkit| in_toolkit(&toolkit)).collect()
}

/// CUPTI's libraries in a toolkit: in each of its folders the newest.
fn in_toolkit(toolkit: &Path) -> Vec<PathBuf> {
    // NVIDIA calls AArch64 servers `sbsa`.
    let target = match env::consts::ARCH {
        "aarch64" => "targets/sbsa-linux/lib",
        _ => "targets/x86_64-linux/lib",
    };
    let folders = ["extras/CUPTI/lib64", target, "lib64"].map(|folder| toolkit.join(folder));
    let newest = |folder: PathBuf| {
        let mut paths = NAMES.iter().map(|name| folder.join(name));
        paths.find(|path| path.exists())
    };
    folders.into_iter().filter_map(newest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toolkit_is_searched_where_nvidia_puts_the_library() {
        let toolkit = tempfile::tempdir().unwrap();
        let toolkit = toolkit.path();
        assert!(in_toolkit(toolkit).is_empty());
        let file = |path: &str| {
            let path = toolkit.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            path
        };
        let old = file("lib64/libcupti.so.12");
        let extras = file("extras/CUPTI/lib64/libcupti.so");
        file("lib64/libcupti.so");
        assert_eq!(in_toolkit(toolkit), [extras, old]);
    }
}
