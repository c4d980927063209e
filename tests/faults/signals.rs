//! Signals and closed pipes.
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use crate::run::{SOUND, bench, crossover, expect, files, measured, said, shown};

pub(crate) fn closed_pipe() {
    use std::os::unix::process::ExitStatusExt;
    let (dir, root) = measured();
    let commands = [
        crossover(&root, &["env"]),
        crossover(&root, &["report", "--no-reference"]),
        crossover(&root, &["export", dir.path().join("x").to_str().unwrap()]),
        bench(&root, &["--bench", "--quick", "sound"]),
        bench(&root, &["--list"]),
    ];
    for mut command in commands {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = said(&output);
        assert!(!said.contains("panicked"), "{command:?}: {said}");
        let signal = output.status.signal();
        let ended = output.status.code() == Some(0) || signal == Some(13);
        assert!(ended, "{command:?}: {:?} {said}", output.status);
    }
    assert_eq!(shown(&root), SOUND);
}

/// Waits until a benchmark is being measured, sends the signal, and gives exit code and words.
pub(crate) fn interrupted(root: &Path, signal: nix::sys::signal::Signal) -> (Option<i32>, String) {
    let arguments = [
        "--bench",
        "--warm-up-time",
        "0.2",
        "--measurement-time",
        "1",
    ];
    let mut child = bench(root, &[&arguments[..], &["sound"]].concat())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = child.stdout.take().unwrap();
    let printed = std::thread::spawn(move || {
        let mut text = String::new();
        out.read_to_string(&mut text).map(|_| text)
    });
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    // The first is finished when the second begins.
    let mut said = String::new();
    while !said.contains("Benchmarking sound/cpu/fill/8") {
        assert!(
            errors.read_line(&mut said).unwrap() > 0,
            "it never began: {said}"
        );
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, signal).unwrap();
    errors.read_to_string(&mut said).unwrap();
    let status = child.wait().unwrap();
    said += &printed.join().unwrap().unwrap();
    (status.code(), said)
}

pub(crate) fn signals() {
    use nix::sys::signal::Signal::{SIGHUP, SIGINT, SIGTERM};
    for (signal, code) in [(SIGINT, 130), (SIGTERM, 143), (SIGHUP, 129)] {
        let dir = tempfile::tempdir().unwrap();
        let (ended, said) = interrupted(dir.path(), signal);
        assert_eq!(ended, Some(code), "{said}");
        assert!(
            said.contains("interrupted: what was measured until then is kept"),
            "{said}"
        );
        assert!(!said.contains("FAILED"), "{said}");
        let ids = shown(dir.path());
        assert!(ids.contains(&"sound/cpu/fill/4".to_owned()), "{ids:?}");
        assert!(!ids.contains(&"sound/cpu/fill/32".to_owned()), "{ids:?}");
        for (path, bytes) in files(dir.path()) {
            assert!(!bytes.is_empty(), "{} is empty", path.display());
        }
        expect(
            &mut bench(dir.path(), &["--bench", "--quick", "sound"]),
            0,
            "",
        );
        assert_eq!(shown(dir.path()), SOUND);
    }
}
