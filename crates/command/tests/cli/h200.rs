//! The batched matrix product on an H200, as its run left it: three implementations, two sizes.

use std::fs;
use std::path::Path;

/// One file per line: its path in the folder of the results, and what is in it.
const FILES: &str = include_str!("h200.txt");

/// Puts these results in the folder.
pub(crate) fn unpack(results: &Path) {
    for line in FILES.lines() {
        let (path, contents) = line.split_once(' ').expect("a path and contents");
        let path = results.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a new folder");
        fs::write(path, contents).expect("a new file");
    }
}
