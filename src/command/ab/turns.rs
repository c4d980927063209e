//! Two processes that run one at a time: sample by sample in the order A B B A, so that both meet
//! the same host. What they say is in [`crate::suite::turns`].
#![cfg(unix)]

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::command::ab::child;
use crate::suite::turns::{GO, PROTOCOL, Said};

/// How long until an interrupt is looked for again.
const GLANCE: Duration = Duration::from_millis(50);

/// What became of a side.
#[derive(Debug)]
pub(super) struct Ended {
    /// `None` where it hung and was ended.
    pub(super) status: Option<ExitStatus>,
    /// It said what it runs, and waited where it should.
    pub(super) took_turns: bool,
}

/// The core that both sides of a pair of processes share: another one for each pair, since cores
/// differ by what else the host has them do.
pub(super) fn core(pair: u32, pairs: u32) -> Option<usize> {
    let cores = usable_cores();
    let at = (pair - 1) as usize * cores.len() / pairs as usize;
    cores.get(at).copied()
}

#[cfg(target_os = "linux")]
fn usable_cores() -> Vec<usize> {
    use nix::sched::{CpuSet, sched_getaffinity};
    let Ok(set) = sched_getaffinity(nix::unistd::Pid::from_raw(0)) else {
        return Vec::new();
    };
    let usable = |core: &usize| set.is_set(*core).unwrap_or(false);
    (0..CpuSet::count()).filter(usable).collect()
}

#[cfg(not(target_os = "linux"))]
fn usable_cores() -> Vec<usize> {
    Vec::new()
}

/// Runs both to their ends, in turns; `b_first` says who begins. One that does not know how to
/// take turns runs alone while the other stands still; one that dies, or takes longer than `limit`
/// for one turn, lets the other go on.
///
/// # Errors
/// An interrupt, which ends both, or a side that cannot be started.
pub(super) fn take(
    a: Command,
    b: Command,
    b_first: bool,
    core: Option<usize>,
    limit: Duration,
) -> anyhow::Result<[Ended; 2]> {
    let sockets = tempfile::tempdir()?;
    let start = |command, name| Side::start(command, &sockets.path().join(name), core, limit);
    // One that does not take turns has run to its end when the other is started.
    let (mut a, mut b) = if b_first {
        let b = start(b, "b")?;
        (start(a, "a")?, b)
    } else {
        (start(a, "a")?, start(b, "b")?)
    };
    let mut turn_of_b = b_first;
    loop {
        match (&a.at, &b.at) {
            (At::Ended, At::Ended) => break,
            (At::Ended, _) => b.go_on()?,
            (_, At::Ended) => a.go_on()?,
            (At::Start, _) => a.go_on()?,
            (_, At::Start) => b.go_on()?,
            (At::Benchmark(x), At::Benchmark(y)) if x == y => {
                let id = x.clone();
                let (first, second) = match turn_of_b {
                    true => (&mut b, &mut a),
                    false => (&mut a, &mut b),
                };
                first.go_on()?;
                // Who samples more goes on alone.
                if second.at == At::Benchmark(id) {
                    second.go_on()?;
                }
                turn_of_b = !turn_of_b;
            }
            // The other will never come to this one, or has it at another place.
            (At::Benchmark(x), At::Benchmark(y)) => match b.comes_to(x) && !a.comes_to(y) {
                true => b.go_on()?,
                false => a.go_on()?,
            },
        }
    }
    Ok([a.ended(), b.ended()])
}

#[derive(Debug, PartialEq, Eq)]
enum At {
    /// Connected, nothing set up.
    Start,
    /// Stands still before or between samples of it.
    Benchmark(String),
    Ended,
}

struct Side {
    child: Child,
    listener: UnixListener,
    link: Option<BufReader<UnixStream>>,
    /// What it runs after where it is.
    ahead: Vec<String>,
    at: At,
    took_turns: bool,
    status: Option<ExitStatus>,
    /// Where what one thread drives is sampled.
    core: Option<usize>,
    /// What a turn may take.
    limit: Duration,
}

impl Side {
    /// Starts it, and waits until it stands still or, without knowing how, is through.
    fn start(
        mut command: Command,
        socket: &Path,
        core: Option<usize>,
        limit: Duration,
    ) -> anyhow::Result<Self> {
        let listener = UnixListener::bind(socket)?;
        listener.set_nonblocking(true)?;
        command.env("CROSSOVER_TURNS", socket);
        let mut this = Self {
            child: child::start_quietly(&mut command)?,
            listener,
            link: None,
            ahead: Vec::new(),
            at: At::Start,
            took_turns: false,
            status: None,
            core,
            limit,
        };
        this.arrive()?;
        Ok(this)
    }

    /// Waits for the next executable of this side, or for its end.
    fn arrive(&mut self) -> anyhow::Result<()> {
        self.link = None;
        loop {
            child::check()?;
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false)?;
                    stream.set_read_timeout(Some(GLANCE))?;
                    self.link = Some(BufReader::new(stream));
                    return self.hear();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error).context("the sides could not be connected"),
            }
            if let Some(status) = self.child.try_wait()? {
                self.status = Some(status);
                self.at = At::Ended;
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Lets it run until it stands still again.
    fn go_on(&mut self) -> anyhow::Result<()> {
        let link = self.link.as_mut().context("it has ended")?;
        // Where this fails it has died, which is heard next.
        let core = self.core.map(|core| format!(" {core}")).unwrap_or_default();
        let _ = link.get_mut().write_all(format!("{GO}{core}\n").as_bytes());
        self.hear()
    }

    fn hear(&mut self) -> anyhow::Result<()> {
        let start = Instant::now();
        let mut line = Vec::new();
        loop {
            child::check()?;
            let link = self.link.as_mut().context("it has ended")?;
            match link.read_until(b'\n', &mut line) {
                Ok(_) => break,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                // Its process died.
                Err(_) => line.clear(),
            }
            if start.elapsed() > self.limit {
                self.link = None;
                child::end(&mut self.child);
                self.at = At::Ended;
                return Ok(());
            }
        }
        match serde_json::from_slice(&line) {
            Ok(Said::Plan { protocol, ids }) if protocol == PROTOCOL => {
                self.took_turns = true;
                self.ahead = ids;
                self.at = At::Start;
                Ok(())
            }
            Ok(Said::Ready { id } | Said::Sampled { id }) => {
                if let Some(here) = self.ahead.iter().position(|ahead| *ahead == id) {
                    self.ahead.drain(..=here);
                }
                self.at = At::Benchmark(id);
                Ok(())
            }
            // The end of an executable, or of what is understood: it runs alone.
            _ => self.arrive(),
        }
    }

    fn comes_to(&self, id: &str) -> bool {
        self.ahead.iter().any(|ahead| ahead == id)
    }

    fn ended(&self) -> Ended {
        Ended {
            status: self.status,
            took_turns: self.took_turns,
        }
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // One that stands still learns so that nobody drives it any more.
        self.link = None;
        if self.at != At::Ended {
            child::end(&mut self.child);
        }
    }
}
