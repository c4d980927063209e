//! Starts a child process with an order and listens to it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::suite::confirm::{ORDER, Order, TaskResult};
use crate::suite::interrupt;

/// A process that prints nothing for this long is taken to hang.
const SILENCE: Duration = Duration::from_secs(300);
/// Time between two checks for a signal.
const GLANCE: Duration = Duration::from_millis(50);

/// Median times by group, size and implementation.
pub(super) type Times = BTreeMap<(String, u64), BTreeMap<String, f64>>;

/// What was chosen, by the name of the choice.
pub(super) type Choices = BTreeMap<String, String>;

/// What a process answered.
#[derive(Default)]
pub(super) struct Answered {
    pub(super) times: Times,
    pub(super) choices: Choices,
    /// How long its tasks took, by group.
    pub(super) took: BTreeMap<String, Duration>,
}

/// Starts a process with the order and waits for its answer. What it could not measure is printed as a
/// note and is not among the times.
pub(super) fn ask(order: &Order) -> Result<Answered, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let executable = std::env::current_exe().map_err(|e| text(&e))?;
    let order = serde_json::to_string(order).map_err(|e| text(&e))?;
    let mut child = Command::new(executable)
        .env(ORDER, order)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| text(&e))?;
    let said = listen(&mut child);
    if said.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| text(&e))?;
    match said {
        Ok(_) if !status.success() => Err(format!("it ended with {status}")),
        said => said,
    }
}

fn listen(child: &mut Child) -> Result<Answered, String> {
    let out = child.stdout.take().ok_or("its output cannot be read")?;
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let mut answered = Answered::default();
    let mut heard = Instant::now();
    loop {
        match lines.recv_timeout(GLANCE) {
            Ok(line) => {
                heard = Instant::now();
                let said: TaskResult = serde_json::from_str(&line).map_err(|error| {
                    format!(
                        "a line that it printed is no answer ({error}); a bench executable must \
                         print nothing of its own to standard output"
                    )
                })?;
                answered.choices.extend(said.choices);
                *answered.took.entry(said.group.clone()).or_default() += said.took;
                match said.medians {
                    Ok(medians) => {
                        let times = &mut answered.times;
                        times.insert((said.group, said.size), medians);
                    }
                    Err(reason) => eprintln!(
                        "note: {} at {} is not confirmed: {reason}",
                        said.group, said.size
                    ),
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(answered),
            Err(RecvTimeoutError::Timeout) if interrupt::signal().is_some() => {
                return Err("interrupted".to_owned());
            }
            Err(RecvTimeoutError::Timeout) if heard.elapsed() > SILENCE => {
                return Err(format!("it said nothing for {} s", SILENCE.as_secs()));
            }
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}
