//! Child processes of this executable: it starts itself again with an order, JSON in the environment, and
//! the child prints a line of JSON for each reply.

use std::fmt::Display;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::timing::BoxError;
use crossover_system::interrupt;
use crossover_words::text::with_causes;

/// A process that prints nothing for this long counts as hung.
const SILENCE: Duration = Duration::from_secs(300);
/// Time between two checks for a signal.
const GLANCE: Duration = Duration::from_millis(50);

/// The order of a child.
pub(crate) trait Order: Serialize + DeserializeOwned {
    /// The environment variable that holds it.
    const VARIABLE: &'static str;
    /// The child's reply.
    type Reply: Serialize + DeserializeOwned;
}

/// Starts a child with an order and these variables, and hands its replies over until it ends.
///
/// # Errors
/// In a sentence: it cannot be started, fails, is silent for too long, prints something else, or a signal
/// has ended this run. The child has ended then too.
pub(crate) fn ask<O: Order>(
    order: &O,
    variables: &[(&str, &str)],
    hear: impl FnMut(O::Reply),
) -> Result<(), String> {
    let text = |error: &dyn Display| error.to_string();
    let executable = std::env::current_exe().map_err(|e| text(&e))?;
    let order = serde_json::to_string(order).map_err(|e| text(&e))?;
    let mut child = Command::new(executable)
        .env(O::VARIABLE, order)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| text(&e))?;
    let heard = listen(&mut child, hear);
    if heard.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| text(&e))?;
    match heard {
        Ok(()) if !status.success() => Err(format!("it ended with {status}")),
        heard => heard,
    }
}

fn listen<R: DeserializeOwned>(child: &mut Child, mut hear: impl FnMut(R)) -> Result<(), String> {
    let out = child.stdout.take().ok_or("its output cannot be read")?;
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let mut heard = Instant::now();
    loop {
        match lines.recv_timeout(GLANCE) {
            Ok(line) => {
                heard = Instant::now();
                let reply: Result<R, String> = serde_json::from_str(&line).map_err(|error| {
                    format!(
                        "a line that it printed is not an answer ({error}); an executable that runs groups must \
                         call `run_child` or `bench` first in `main`, and print nothing of its own to \
                         standard output"
                    )
                })?;
                hear(reply?);
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) if interrupt::signal().is_some() => {
                return Err("interrupted".to_owned());
            }
            Err(RecvTimeoutError::Timeout) if heard.elapsed() > SILENCE => {
                return Err(format!("it printed nothing for {} s", SILENCE.as_secs()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// Prints a reply.
pub(crate) type Say<'a, R> = &'a mut dyn FnMut(R) -> io::Result<()>;

/// Carries out the order of this process and returns its exit code; `None` in a process without an order of
/// this kind.
pub(crate) fn answer<O: Order>(
    carry_out: impl FnOnce(O, Say<'_, O::Reply>) -> Result<(), BoxError>,
) -> Option<ExitCode> {
    let order = std::env::var(O::VARIABLE).ok()?;
    let said = (serde_json::from_str(&order).map_err(BoxError::from))
        .and_then(|order| carry_out(order, &mut |reply| print(&Ok(reply))));
    let Err(error) = said else {
        return Some(ExitCode::SUCCESS);
    };
    // If this cannot be printed either, the exit code tells.
    let _ = print::<O::Reply>(&Err(with_causes(&*error)));
    Some(ExitCode::FAILURE)
}

fn print<R: Serialize>(reply: &Result<R, String>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(reply)?)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_replies_errors_or_refused() {
        let listen_to = |script: &str| {
            let mut child = Command::new("sh")
                .args(["-c", script])
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut replies: Vec<u32> = Vec::new();
            let heard = listen(&mut child, |reply| replies.push(reply));
            child.wait().unwrap();
            (replies, heard)
        };
        let said = |text: &str| Err(text.to_owned());
        assert_eq!(
            listen_to(r#"echo '{"Ok":1}'; echo '{"Ok":2}'"#),
            (vec![1, 2], Ok(()))
        );
        let fails = r#"echo '{"Ok":1}'; echo '{"Err":"no device"}'"#;
        assert_eq!(listen_to(fails), (vec![1], said("no device")));
        let (replies, heard) = listen_to("echo running 3 tests");
        assert!(replies.is_empty());
        assert!(
            heard
                .unwrap_err()
                .contains("call `run_child` or `bench` first")
        );
    }
}
