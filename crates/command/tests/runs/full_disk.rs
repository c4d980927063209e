//! A library that is preloaded: with it a process meets a full disk, has no locks, or is killed.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The library, built once.
pub(crate) fn library() -> &'static Path {
    static BUILT: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = BUILT.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("full_disk.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runs/full_disk.c");
        // The compiler that Rust links with, so it is there.
        let built = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-o"])
            .args([path.as_os_str(), source.as_os_str(), "-ldl".as_ref()])
            .status();
        assert!(built.unwrap().success());
        (dir, path)
    });
    path
}
