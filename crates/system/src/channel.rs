//! A local channel between two processes, found by a path: a Unix socket, or on Windows the loopback
//! address with a token that only readers of the file know.

pub use crate::platform::channel::{Listener, Stream, bind, connect};

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};

    use super::*;

    #[test]
    fn two_ends_exchange_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("channel");
        assert!(connect(&path).is_err());
        let listener = bind(&path).unwrap();
        let other = std::thread::spawn(move || {
            let mut stream = connect(&path).unwrap();
            writeln!(stream, "ready").unwrap();
            let mut answer = String::new();
            BufReader::new(stream).read_line(&mut answer).unwrap();
            answer
        });
        let mut link = BufReader::new(listener.accept().unwrap().0);
        let mut said = String::new();
        link.read_line(&mut said).unwrap();
        assert_eq!(said, "ready\n");
        writeln!(link.get_mut(), "go").unwrap();
        assert_eq!(other.join().unwrap(), "go\n");
    }
}
