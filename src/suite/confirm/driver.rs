//! Asks the processes, one after the other.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use crate::analysis::crossover::confirm::{self, WinsFrom};
use crate::model::record::{Confirmation, Duel};
use crate::suite::confirm::questions::{Asking, Question};
use crate::suite::confirm::{ORDER, Order, Said, Task};
use crate::suite::interrupt;
use crate::workload::calibrate;

/// A process that says nothing for so long hangs.
const SILENCE: Duration = Duration::from_secs(300);
/// How long until a signal is looked for again.
const GLANCE: Duration = Duration::from_millis(50);

/// Where an interval is wider than this after the first processes, more are asked: as a factor in
/// size, and in speedup.
const USEFUL: (f64, f64) = (1.5, 1.6);
/// No more processes once this much time has gone into them.
const LONGEST: Duration = Duration::from_secs(60);
/// Nor more than this.
const MOST_PROCESSES: usize = 25;

/// Median times by group, size and implementation.
type Times = BTreeMap<(String, u64), BTreeMap<String, f64>>;

/// Puts what the results of `run` answer to so many processes, and what they leave too open to
/// more. `keep` is called after each process, with what all of them said so far.
pub(in crate::suite) fn confirm(
    results: &Path,
    references: &Path,
    run: &str,
    processes: usize,
    mut keep: impl FnMut(Vec<Confirmation>),
) {
    let mut asking = Asking::of(results, references, run);
    if asking.questions.is_empty() || processes == 0 {
        return;
    }
    eprintln!(
        "putting {} question(s) to {processes} processes of their own",
        asking.questions.len()
    );
    let start = Instant::now();
    let mut slowest = Duration::ZERO;
    for number in 1..=MOST_PROCESSES.max(processes) {
        let before = start.elapsed();
        let open = match number <= processes {
            true => vec![true; asking.questions.len()],
            false if before + slowest > LONGEST => return,
            false => open(&asking.questions),
        };
        if !open.contains(&true) {
            return;
        }
        let order = order(&asking, &open, number == 1);
        let times = match ask(&order) {
            Ok(times) => times,
            // What fails once fails again.
            Err(error) => {
                if interrupt::signal().is_none() {
                    eprintln!("note: process {number} did not answer: {error}");
                }
                return;
            }
        };
        let said: Vec<_> = (asking.questions.iter())
            .map(|question| duels(&asking, question, &times))
            .collect();
        for ((question, duels), open) in asking.questions.iter_mut().zip(said).zip(open) {
            question.asked.processes.extend(duels.filter(|_| open));
        }
        slowest = slowest.max(start.elapsed() - before);
        let answered = asking.questions.iter().map(|question| &question.asked);
        let answered = answered.filter(|asked| !asked.processes.is_empty());
        keep(answered.cloned().collect());
    }
}

/// The questions whose intervals are too wide to be of use.
fn open(questions: &[Question]) -> Vec<bool> {
    let asked: Vec<Confirmation> = questions.iter().map(|q| q.asked.clone()).collect();
    let is_wide = |(low, high): (f64, f64), useful: f64| high / low > useful;
    confirm::answers(&asked)
        .into_iter()
        .zip(&asked)
        .map(|(answer, asked)| {
            // What no process could answer stays so.
            !asked.processes.is_empty()
                && answer.is_none_or(|answer| {
                    let size = match answer.from {
                        Some(WinsFrom::Size { low, high, .. }) => is_wide((low, high), USEFUL.0),
                        Some(WinsFrom::Always | WinsFrom::Never) => false,
                        None => true,
                    };
                    size || is_wide(answer.speedup_interval, USEFUL.1)
                })
        })
        .collect()
}

fn order(asking: &Asking, open: &[bool], verify: bool) -> Order {
    let mut tasks: Vec<Task> = Vec::new();
    let wanted = asking.questions.iter().zip(open).filter(|(_, open)| **open);
    for (question, _) in wanted {
        let group = &question.asked.group;
        for size in question.sizes() {
            let Some(cpu) = asking.best_cpu(group, size) else {
                continue;
            };
            let mut functions = BTreeSet::from([format!("cpu/{cpu}")]);
            if question.gpu_times.is_none() {
                functions.insert(format!("gpu/{}", question.asked.gpu));
            }
            let same = |task: &&mut Task| task.group == *group && task.size == size;
            match tasks.iter_mut().find(same) {
                Some(task) => task.functions.extend(functions),
                None => tasks.push(Task {
                    group: group.clone(),
                    size,
                    functions,
                }),
            }
        }
    }
    Order {
        verify,
        choices: calibrate::made(),
        tasks,
    }
}

/// What one process says to a question; `None` unless it says all.
fn duels(asking: &Asking, question: &Question, times: &Times) -> Option<Vec<Duel>> {
    let group = &question.asked.group;
    question
        .sizes()
        .into_iter()
        .map(|size| {
            let cpu = asking.best_cpu(group, size)?;
            let times = times.get(&(group.clone(), size))?;
            let gpu_ns = match &question.gpu_times {
                Some(curve) => curve.at(size as f64)?.median,
                None => *times.get(&format!("gpu/{}", question.asked.gpu))?,
            };
            Some(Duel {
                size,
                cpu_ns: *times.get(&format!("cpu/{cpu}"))?,
                cpu,
                gpu_ns,
            })
        })
        .collect()
}

/// Starts a process with the order and waits for what it says. What it could not measure is told
/// and is not among the times.
fn ask(order: &Order) -> Result<Times, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let executable = std::env::current_exe().map_err(|e| text(&e))?;
    let order = serde_json::to_string(order).map_err(|e| text(&e))?;
    let mut child = Command::new(executable)
        .env(ORDER, order)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| text(&e))?;
    let times = listen(&mut child);
    if times.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().map_err(|e| text(&e))?;
    match times {
        Ok(_) if !status.success() => Err(format!("it ended with {status}")),
        times => times,
    }
}

fn listen(child: &mut Child) -> Result<Times, String> {
    let out = child.stdout.take().ok_or("its output cannot be read")?;
    let (send, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if send.send(line).is_err() {
                return;
            }
        }
    });
    let mut times = Times::new();
    let mut heard = Instant::now();
    loop {
        match lines.recv_timeout(GLANCE) {
            Ok(line) => {
                heard = Instant::now();
                let said: Said = serde_json::from_str(&line)
                    .map_err(|error| format!("it said what is not understood: {error}"))?;
                match said.medians {
                    Ok(medians) => {
                        times.insert((said.group, said.size), medians);
                    }
                    Err(reason) => eprintln!(
                        "note: {} at {} is not confirmed: {reason}",
                        said.group, said.size
                    ),
                }
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(times),
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
