//! Where CUPTI's library may be installed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Names for the loader, newest first. The plain one is that of a development package.
pub(super) const NAMES: [&str; 3] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so"];

/// The libraries in the toolkits of this machine, which the loader often does not search: those
/// that the environment names first, then the newest.
pub(super) fn libraries() -> Vec<PathBuf> {
    let variable = |name: &str| env::var_os(name).filter(|v| !v.is_empty());
    let named = ["CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"].map(variable);
    let mut toolkits: Vec<PathBuf> = named.into_iter().flatten().map(PathBuf::from).collect();
    toolkits.extend(variable("PATH").and_then(of_nvcc));
    toolkits.extend(beginning_with(Path::new("/usr/local"), "cuda"));
    toolkits.push(PathBuf::from("/opt/cuda"));
    let mut seen = BTreeSet::new();
    (toolkits.iter())
        .flat_map(|toolkit| in_toolkit(toolkit))
        // /usr/local/cuda is a link to one of the others.
        .filter(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())))
        .collect()
}

/// The toolkit whose `bin` on PATH has the compiler, links followed.
fn of_nvcc(path: OsString) -> Option<PathBuf> {
    env::split_paths(&path)
        .map(|folder| folder.join("nvcc"))
        .find(|nvcc| nvcc.is_file())
        .and_then(|nvcc| nvcc.canonicalize().ok())
        .and_then(|nvcc| Some(nvcc.parent()?.parent()?.to_owned()))
}

/// Folders of `parent` whose names begin with `name`: `name` itself first, then the others from
/// the last to the first, so that newer versions come before older ones.
fn beginning_with(parent: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = entries
        .map(|e| e.path())
        .filter(|p| {
            p.file_name()
                .is_some_and(|n| n.to_string_lossy().starts_with(name))
        })
        .collect();
    folders.sort();
    folders[..].reverse();
    folders.sort_by_key(|p| p.file_name().is_some_and(|n| n != name));
    folders
}

/// CUPTI's libraries in a toolkit: in each of its folders the newest.
fn in_toolkit(toolkit: &Path) -> Vec<PathBuf> {
    let mut folders = vec![toolkit.join("extras/CUPTI/lib64")];
    let targets = beginning_with(&toolkit.join("targets"), env::consts::ARCH);
    // NVIDIA calls AArch64 servers `sbsa`.
    let sbsa = (env::consts::ARCH == "aarch64").then(|| toolkit.join("targets/sbsa-linux"));
    folders.extend(targets.into_iter().chain(sbsa).map(|t| t.join("lib")));
    folders.push(toolkit.join("lib64"));
    (folders.iter())
        .filter_map(|folder| {
            NAMES
                .map(|n| folder.join(n))
                .into_iter()
                .find(|p| p.exists())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes an empty file and the folders that it lies in.
    fn file(root: &Path, path: &str) -> PathBuf {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        path
    }

    fn folder() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().canonicalize().unwrap();
        (dir, path)
    }

    #[test]
    fn a_toolkit_is_searched_where_nvidia_puts_the_library() {
        let (_dir, toolkit) = folder();
        assert!(in_toolkit(&toolkit).is_empty());
        let old = file(&toolkit, "lib64/libcupti.so.12");
        let extras = file(&toolkit, "extras/CUPTI/lib64/libcupti.so");
        file(&toolkit, "lib64/libcupti.so");
        let target = file(
            &toolkit,
            &format!("targets/{}-linux/lib/libcupti.so.13", env::consts::ARCH),
        );
        assert_eq!(in_toolkit(&toolkit), [extras, target, old]);
    }

    #[test]
    fn the_compiler_on_the_path_tells_its_toolkit() {
        let (_dir, root) = folder();
        file(&root, "cuda-13.0/bin/nvcc");
        let path = env::join_paths([root.join("elsewhere"), root.join("cuda-13.0/bin")]);
        assert_eq!(of_nvcc(path.unwrap()), Some(root.join("cuda-13.0")));
        assert_eq!(of_nvcc("".into()), None);
    }

    #[test]
    fn the_plain_folder_comes_first_and_then_the_newest() {
        let (_dir, root) = folder();
        for name in ["cuda-12.8/x", "cuda/x", "cuda-13.0/x", "other/x"] {
            file(&root, name);
        }
        let names: Vec<_> = (beginning_with(&root, "cuda").iter())
            .map(|p| p.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["cuda", "cuda-13.0", "cuda-12.8"]);
    }
}
