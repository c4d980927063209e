//! A run of several processes, started by `torchrun`, `mpirun` or `srun`: the rank of this process, and the
//! connections between rank 0 and the others. Messages are lines of JSON over TCP. The other ranks do what rank 0
//! asks them, and reply to each request.

use std::cell::Cell;
use std::env;
use std::io::{self, BufRead, BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::settings::{FurtherDevices, Settings};
use crate::turns::TURNS;
use crossover_machine::peers;
use crossover_system::process::end_at_once;
use crossover_timing::probe;

/// The variables of rank, number of processes and rank within the host. A launcher comes before Slurm, which may
/// have started it.
const LAUNCHERS: [[&str; 3]; 4] = [
    ["RANK", "WORLD_SIZE", "LOCAL_RANK"],
    [
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
    ],
    ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"],
    ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"],
];
/// The port of PyTorch.
const PORT: u16 = 29500;
/// All processes have started and are connected after this time.
pub const START: Duration = Duration::from_secs(60);
/// A process that owes a reply, or the part that another one waits for on the GPU, for this long counts as hung.
const SILENCE: Duration = Duration::from_secs(300);
/// The time in which a process notices that another one has ended, unless it waits for it on the GPU.
const GRACE: Duration = Duration::from_secs(5);
/// Time between two attempts to connect.
const SHORT: Duration = Duration::from_millis(20);

/// The place of this process in a run of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// Its number, from 0.
    pub rank: usize,
    /// How many processes there are.
    pub size: usize,
    /// Its number among the processes of its host.
    local: usize,
    /// Host and port of rank 0.
    address: (String, u16),
}

impl Rank {
    /// The place that the launcher's variables name; `None` for a process that runs alone.
    ///
    /// # Errors
    /// Variables that contradict each other, in a sentence.
    pub fn from_env() -> Result<Option<Self>, String> {
        Self::from_lookup(|name| env::var(name).ok())
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let text = |name| lookup(name).filter(|value| !value.is_empty());
        let number = |name: &str, value: String| {
            let wrong = |_| {
                format!(
                    "{name}={value} is no number; unset it, or start the run by torchrun, mpirun or srun"
                )
            };
            value.parse::<usize>().map_err(wrong)
        };
        // In the script of a batch job, which runs once, Slurm sets the variables of the whole job.
        let is_script = text("SLURM_JOB_ID").is_some() && text("SLURM_STEP_NUM_TASKS").is_none();
        let mut found: Option<([&str; 3], [usize; 2], Option<usize>)> = None;
        for names @ [of_rank, of_size, of_local] in LAUNCHERS {
            let is_slurm = of_rank.starts_with("SLURM");
            if is_slurm && is_script {
                continue;
            }
            let of_step = text("SLURM_STEP_NUM_TASKS").filter(|_| is_slurm);
            let (Some(rank), Some(size)) = (text(of_rank), of_step.or_else(|| text(of_size)))
            else {
                continue;
            };
            let (rank, size) = (number(of_rank, rank)?, number(of_size, size)?);
            let local = text(of_local).map(|local| number(of_local, local));
            let local = local.transpose()?;
            if rank >= size {
                return Err(format!(
                    "{of_rank}={rank} and {of_size}={size} contradict each other, because ranks count from 0; unset \
                     both, or start the run by torchrun, mpirun or srun"
                ));
            }
            match &mut found {
                None => found = Some((names, [rank, size], local)),
                // Slurm's variables may be the only ones that name the rank within the host.
                Some((_, place, its_local)) if *place == [rank, size] => {
                    *its_local = its_local.or(local);
                }
                // It may have started the launcher whose variables were found.
                Some(_) if is_slurm => {}
                Some((other, [of_other, its_size], _)) => {
                    return Err(format!(
                        "{}={of_other} of {its_size} and {of_rank}={rank} of {size} contradict each other; unset the \
                         variables of the launcher that did not start this process",
                        other[0]
                    ));
                }
            }
        }
        let found = found.filter(|(_, [_, size], _)| *size > 1);
        let Some((_, [rank, size], local)) = found else {
            return Ok(None);
        };
        if text(TURNS).is_some() {
            return Err("processes in turns are no ranks; start `crossover ab` without torchrun, mpirun or srun".to_owned());
        }
        let host = text("MASTER_ADDR").unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string());
        let port = text("MASTER_PORT").map_or(Ok(PORT), |port| {
            let wrong =
                |_| format!("MASTER_PORT={port} is no port; set it to a free one, such as {PORT}");
            port.parse().map_err(wrong)
        })?;
        // The launcher itself has the port then.
        let is_taken = text("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|value| value == "True");
        let address = (host, port.saturating_add(u16::from(is_taken)));
        Ok(Some(Self {
            rank,
            size,
            local: local.unwrap_or(rank),
            address,
        }))
    }

    /// A rank of processes on this host, which meet at a port.
    pub fn on_this_host(rank: usize, size: usize, port: u16) -> Self {
        let host = Ipv4Addr::LOCALHOST.to_string();
        Self {
            rank,
            size,
            local: rank,
            address: (host, port),
        }
    }

    /// Has the settings name the GPU of this process alone.
    ///
    /// # Errors
    /// They name fewer GPUs than this host has processes.
    pub fn choose_device(&self, settings: &mut Settings) -> Result<(), String> {
        let Some(first) = settings.device else {
            return Ok(());
        };
        // A launcher may show each process only its own.
        let is_only = || probe(0).is_ok() && peers::count().is_ok_and(|count| count == 1);
        settings.device = match &settings.further {
            FurtherDevices::Listed(others) if settings.device_named => {
                let listed = [&[first], &others[..]].concat();
                let own = listed.get(self.local).ok_or_else(|| {
                    format!(
                        "CROSSOVER_DEVICE names {} GPU(s), and rank {} is process {} of its host: name a GPU for \
                         each process, or unset it",
                        listed.len(),
                        self.rank,
                        self.local + 1
                    )
                })?;
                Some(*own)
            }
            _ if is_only() => Some(0),
            _ => Some(self.local),
        };
        settings.further = FurtherDevices::Listed(Vec::new());
        Ok(())
    }
}

/// A connection with another rank, and a thread that reads its messages.
struct RankLink {
    peer: usize,
    stream: TcpStream,
    messages: Receiver<Result<String, String>>,
    state: Arc<LinkState>,
}

#[derive(Default)]
struct LinkState {
    /// Number of replies that have not come yet.
    owed: AtomicUsize,
    /// Whether this process knows that the other one has ended.
    is_over: AtomicBool,
}

impl RankLink {
    fn new(peer: usize, stream: TcpStream, from: BufReader<TcpStream>) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(GRACE))?;
        let (to, messages) = mpsc::channel();
        let state = Arc::new(LinkState::default());
        let watched = state.clone();
        thread::spawn(move || watched.watch(peer, from, &to));
        Ok(Self {
            peer,
            stream,
            messages,
            state,
        })
    }

    /// If this fails the other process has ended, which the next message shows.
    fn send(&self, message: &impl Serialize) {
        let line = serde_json::to_string(message).map(|line| line + "\n");
        let _ = line.map(|line| (&self.stream).write_all(line.as_bytes()));
    }

    fn receive<M: DeserializeOwned>(&self) -> Result<M, String> {
        let gone = || Err(format!("rank {} has ended; start the run again", self.peer));
        let line = self.messages.recv().unwrap_or_else(|_| gone());
        self.state.is_over.fetch_or(line.is_err(), Ordering::SeqCst);
        serde_json::from_str(&line?).map_err(|error| format!("a message cannot be read: {error}"))
    }

    fn close(&self) {
        self.state.is_over.store(true, Ordering::SeqCst);
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Drop for RankLink {
    fn drop(&mut self) {
        self.close();
    }
}

impl LinkState {
    /// Hands the messages of a rank over until it ends. If this process does not notice that, it waits for
    /// the other one on the GPU, for ever.
    fn watch(
        &self,
        peer: usize,
        mut from: BufReader<TcpStream>,
        to: &Sender<Result<String, String>>,
    ) {
        let (mut line, mut since) = (String::new(), Instant::now());
        let why = loop {
            let read = from.read_line(&mut line).map_err(|error| error.kind());
            let waits = matches!(read, Err(ErrorKind::WouldBlock | ErrorKind::TimedOut));
            if line.ends_with('\n') {
                let _ = to.send(Ok(std::mem::take(&mut line)));
                let less = |owed: usize| owed.checked_sub(1);
                let _ = (self.owed).fetch_update(Ordering::SeqCst, Ordering::SeqCst, less);
            } else if !waits {
                break format!("rank {peer} ended during the run; see what it printed");
            }
            if !waits || self.owed.load(Ordering::SeqCst) == 0 {
                since = Instant::now();
            } else if since.elapsed() > SILENCE {
                break format!(
                    "rank {peer} has not replied, or not done its part, for {} s",
                    SILENCE.as_secs()
                );
            }
        };
        let _ = to.send(Err(why.clone()));
        thread::sleep(GRACE);
        if !self.is_over.load(Ordering::SeqCst) {
            eprintln!("error: {why}; results so far are kept, start the run again");
            end_at_once(1);
        }
    }
}

/// Rank 0's connections to the other ranks. When this is dropped, they end.
pub struct OtherRanks {
    links: Vec<RankLink>,
    /// Runs that were announced and have not begun.
    announced: Cell<u64>,
    /// Whether a reply follows when the announced runs are done.
    is_running: Cell<bool>,
}

impl OtherRanks {
    /// Waits until all other ranks have connected.
    ///
    /// # Errors
    /// A process that does not connect within this time, or is of another run.
    pub fn accept(me: &Rank, within: Duration) -> Result<Self, String> {
        let (host, port) = &me.address;
        let is_local = ["127.0.0.1", "localhost"].contains(&&**host);
        let interface = if is_local {
            Ipv4Addr::LOCALHOST
        } else {
            Ipv4Addr::UNSPECIFIED
        };
        let listener = TcpListener::bind((interface, *port));
        let listener = listener.and_then(|it| it.set_nonblocking(true).map(|()| it));
        let listener = listener.map_err(|error| {
            format!("rank 0 cannot wait for the other processes at port {port} ({error}); set MASTER_PORT to a free port")
        })?;
        let begun = Instant::now();
        let mut links: Vec<Option<RankLink>> = (1..me.size).map(|_| None).collect();
        while let Some(missing) = links.iter().position(Option::is_none) {
            if begun.elapsed() > within {
                return Err(format!(
                    "rank {} of {} did not connect to rank 0 at {host}:{port} within {} s; start all processes by one \
                     launcher, and set MASTER_ADDR to the host of rank 0",
                    missing + 1,
                    me.size,
                    within.as_secs()
                ));
            }
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(SHORT);
                continue;
            };
            let greeted = || -> io::Result<(usize, usize, RankLink)> {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(GRACE))?;
                let mut from = BufReader::new(stream.try_clone()?);
                let mut hello = String::new();
                from.read_line(&mut hello)?;
                let (rank, size) = serde_json::from_str(&hello)?;
                Ok((rank, size, RankLink::new(rank, stream, from)?))
            };
            // Another program's connection is none.
            let Ok((rank, size, link)) = greeted() else {
                continue;
            };
            let slot = rank.checked_sub(1).and_then(|at| links.get_mut(at));
            let slot = slot.filter(|slot| size == me.size && slot.is_none());
            *slot.ok_or_else(|| {
                format!(
                    "rank {rank} of {size} connected to rank 0 of {}, twice or from another run; start all processes by \
                     one launcher, and set MASTER_PORT to a port of this run alone",
                    me.size
                )
            })? = Some(link);
        }
        Ok(Self {
            links: links.into_iter().flatten().collect(),
            announced: Cell::new(0),
            is_running: Cell::new(false),
        })
    }

    /// Number of the other ranks.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// Sends a request to all, each of which replies, and waits for their replies, in the order of ranks.
    ///
    /// # Errors
    /// An error of one of them, or its end, with its rank.
    pub fn ask<R: DeserializeOwned>(&self, request: &impl Serialize) -> Result<Vec<R>, String> {
        self.tell(request, 1)?;
        self.hear()
    }

    /// Sends a request to all, each of which sends so many replies.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn tell(&self, request: &impl Serialize, replies: usize) -> Result<(), String> {
        if self.announced.take() > 0 {
            self.close();
        }
        if self.is_running.take() {
            self.hear::<()>()?;
        }
        for link in &self.links {
            link.state.owed.fetch_add(replies, Ordering::SeqCst);
            link.send(request);
        }
        Ok(())
    }

    /// One reply of each.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn hear<R: DeserializeOwned>(&self) -> Result<Vec<R>, String> {
        let reply = |link: &RankLink| {
            let reply = link.receive::<Result<R, String>>()?;
            reply.map_err(|error| format!("rank {}: {error}", link.peer))
        };
        // All, so that none is taken for the next request's.
        let replies: Vec<_> = self.links.iter().map(reply).collect();
        replies.into_iter().collect()
    }

    /// Asks all to run something so many times, and returns when they begin.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn announce(&self, request: &impl Serialize, runs: u64) -> Result<(), String> {
        self.tell(request, 2)?;
        self.hear::<()>()?;
        self.announced.set(runs);
        self.is_running.set(true);
        Ok(())
    }

    /// Notes that this process runs what it has announced. Returns whether it has.
    pub fn runs(&self) -> bool {
        let announced = self.announced.get();
        self.announced.set(announced.saturating_sub(1));
        announced > 0
    }

    /// Ends all other processes after an error: they may wait for this one for ever.
    pub fn close(&self) {
        self.links.iter().for_each(RankLink::close);
    }
}

impl Drop for OtherRanks {
    fn drop(&mut self) {
        self.links.iter().for_each(|link| link.send(&()));
    }
}

/// The connection of another rank to rank 0.
pub struct RankZero(RankLink);

impl RankZero {
    /// Connects to rank 0. From then on this process ends when rank 0 does.
    ///
    /// # Errors
    /// Rank 0 does not answer within this time.
    pub fn connect(me: &Rank, within: Duration) -> Result<Self, String> {
        let begun = Instant::now();
        let (host, port) = &me.address;
        let stream = loop {
            match TcpStream::connect((&**host, *port)) {
                Ok(stream) => break stream,
                Err(error) if begun.elapsed() > within => {
                    return Err(format!(
                        "it does not reach rank 0 at {host}:{port} ({error}); set MASTER_ADDR to the host of rank 0, and \
                         MASTER_PORT to a port that is free there"
                    ));
                }
                Err(_) => thread::sleep(SHORT),
            }
        };
        let from = stream.try_clone().map(BufReader::new);
        let link = from.and_then(|from| RankLink::new(0, stream, from));
        let link = link.map_err(|error| error.to_string())?;
        link.send(&(me.rank, me.size));
        Ok(Self(link))
    }

    /// The next request of rank 0; `None` at its end.
    ///
    /// # Errors
    /// Rank 0 ended early, or sent something else.
    pub fn next<R: DeserializeOwned>(&self) -> Result<Option<R>, String> {
        self.0.receive()
    }

    /// Replies.
    pub fn reply(&self, reply: &Result<impl Serialize, String>) {
        self.0.send(reply);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TORCH: &str = "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=a MASTER_PORT=7";

    fn rank(variables: &str) -> Result<Option<Rank>, String> {
        let pairs = variables.split(' ').filter_map(|pair| pair.split_once('='));
        Rank::from_lookup(|name| Some(pairs.clone().find(|it| it.0 == name)?.1.to_owned()))
    }

    #[test]
    fn each_launcher_names_the_place() {
        let place = |variables: &str| {
            let it = rank(variables).unwrap()?;
            Some((
                [it.rank, it.size, it.local],
                format!("{}:{}", it.address.0, it.address.1),
            ))
        };
        let of = |rank, address: &str| Some((rank, address.to_owned()));
        let shared = format!("{TORCH} TORCHELASTIC_USE_AGENT_STORE=True");
        for (variables, wanted) in [
            ("", None),
            ("RANK=0 WORLD_SIZE=1", None),
            // Of another program.
            ("RANK=3", None),
            (TORCH, of([1, 2, 1], "a:7")),
            (&shared, of([1, 2, 1], "a:8")),
            (
                "OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0",
                of([2, 4, 0], "127.0.0.1:29500"),
            ),
            (
                "SLURM_PROCID=1 SLURM_NTASKS=2",
                of([1, 2, 1], "127.0.0.1:29500"),
            ),
            ("PMI_RANK=1 PMI_SIZE=2", of([1, 2, 1], "127.0.0.1:29500")),
            (
                "PMI_RANK=5 PMI_SIZE=8 SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_LOCALID=1",
                of([5, 8, 1], "127.0.0.1:29500"),
            ),
            (
                "SLURM_JOB_ID=5 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3 SLURM_NTASKS=8 SLURM_LOCALID=1 MASTER_ADDR=b",
                of([3, 4, 1], "b:29500"),
            ),
            // A script of a batch job, and a launcher that Slurm has started.
            ("SLURM_JOB_ID=5 SLURM_PROCID=0 SLURM_NTASKS=4", None),
            (
                "SLURM_PROCID=0 SLURM_NTASKS=2 PMI_RANK=5 PMI_SIZE=8 MPI_LOCALRANKID=1",
                of([5, 8, 1], "127.0.0.1:29500"),
            ),
        ] {
            assert_eq!(place(variables), wanted, "{variables}");
        }
    }

    #[test]
    fn contradictions_are_one_sentence_with_the_remedy() {
        for (variables, words) in [
            (
                "RANK=2 WORLD_SIZE=2",
                "RANK=2 and WORLD_SIZE=2 contradict each other",
            ),
            ("RANK=x WORLD_SIZE=2", "RANK=x is no number; unset it"),
            (
                "RANK=0 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2",
                "RANK=0 of 2 and OMPI_COMM_WORLD_RANK=1 of 2 contradict each other; unset",
            ),
            (
                "RANK=0 WORLD_SIZE=2 MASTER_PORT=x",
                "MASTER_PORT=x is no port; set it",
            ),
            (
                "RANK=0 WORLD_SIZE=2 CROSSOVER_TURNS=x",
                "start `crossover ab` without",
            ),
        ] {
            let error = rank(variables).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_rank_takes_its_own_of_the_named_devices() {
        let rank = rank(TORCH).unwrap().unwrap();
        let device = |named: Option<(usize, Vec<usize>)>| {
            let mut settings = Settings::from_env().unwrap();
            settings.device_named = named.is_some();
            let (first, others) = named.unwrap_or_default();
            (settings.device, settings.further) = (Some(first), FurtherDevices::Listed(others));
            rank.choose_device(&mut settings).map(|()| settings.device)
        };
        assert_eq!(device(Some((4, vec![6]))), Ok(Some(6)));
        let error = device(Some((4, Vec::new()))).unwrap_err();
        assert!(
            error.contains("names 1 GPU(s), and rank 1 is process 2"),
            "{error}"
        );
    }

    #[test]
    fn processes_that_do_not_meet_are_named() {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr());
        let port = port.unwrap().port();
        let variables = |rank| format!("RANK={rank} WORLD_SIZE=3 MASTER_PORT={port}");
        let [zero, one] = [0, 1].map(|at| rank(&variables(at)).unwrap().unwrap());
        let alone = RankZero::connect(&one, Duration::ZERO).err().unwrap();
        assert!(
            alone.contains("does not reach rank 0 at 127.0.0.1:"),
            "{alone}"
        );
        let missing = OtherRanks::accept(&zero, Duration::ZERO).err().unwrap();
        assert!(
            missing.starts_with("rank 1 of 3 did not connect"),
            "{missing}"
        );
        let twice = thread::spawn(move || OtherRanks::accept(&zero, START).err());
        let ends = [0, 1].map(|_| RankZero::connect(&one, START).unwrap());
        let twice = twice.join().unwrap().unwrap();
        assert!(twice.contains("twice or from another run"), "{twice}");
        drop(ends);
    }
}
