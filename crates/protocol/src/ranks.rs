//! A run of several processes, started by `torchrun`, `mpirun` or `srun`: the rank of this process, and the
//! connections between rank 0 and the others. Messages are lines of JSON over TCP. The other ranks do what rank 0
//! asks them, and reply to each request.

use std::cell::Cell;
use std::env;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream};
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

/// The variables of rank, number of processes, rank within the host, and job. A launcher comes before Slurm,
/// which may have started it.
const LAUNCHERS: [[&str; 4]; 4] = [
    ["RANK", "WORLD_SIZE", "LOCAL_RANK", "TORCHELASTIC_RUN_ID"],
    [
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "PMIX_NAMESPACE",
    ],
    ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "PMI_JOBID"],
    [
        "SLURM_PROCID",
        "SLURM_NTASKS",
        "SLURM_LOCALID",
        "SLURM_JOB_ID",
    ],
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
/// Bytes of a longer greeting are not read.
const GREETING: u64 = 1024;

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
    /// The launcher's name for the job, if it has one.
    job: String,
    /// The variables that name a rank.
    variables: String,
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
        let mut found: Option<([&str; 4], [usize; 2], Option<usize>)> = None;
        let mut variables = Vec::new();
        for names @ [of_rank, of_size, of_local, _] in LAUNCHERS {
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
            variables.push(of_rank);
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
        let Some(([.., of_job], [rank, size], local)) = found else {
            return Ok(None);
        };
        let variables = variables.join(" and ");
        if text(TURNS).is_some() {
            return Err(format!(
                "processes in turns are no ranks; start `crossover ab` without torchrun, mpirun or srun, or unset \
                 {variables}"
            ));
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
            job: text(of_job).unwrap_or_default(),
            variables,
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
            job: String::new(),
            variables: LAUNCHERS[0][0].to_owned(),
        }
    }

    /// What a rank of this run tells the process that it connects with: its number, that of all, and the job.
    fn greeting(&self, rank: usize) -> (usize, usize, String) {
        (rank, self.size, self.job.clone())
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
    /// A process does not connect within this time.
    pub fn accept(me: &Rank, within: Duration) -> Result<Self, String> {
        let (host, port) = &me.address;
        let is_same_everywhere = host == "localhost" || host.parse::<IpAddr>().is_ok();
        // The name of a host may stand for a loopback address there, and for another one at other hosts.
        let is_reached = |it: &TcpListener| {
            is_same_everywhere || it.local_addr().is_ok_and(|at| !at.ip().is_loopback())
        };
        let listener = TcpListener::bind((&**host, *port)).ok().filter(is_reached);
        let of_all = || TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port));
        let listener = listener.map_or_else(of_all, Ok);
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
                     launcher, and set MASTER_ADDR to the host of rank 0, or unset {} to run alone",
                    missing + 1,
                    me.size,
                    within.as_secs(),
                    me.variables
                ));
            }
            let Ok((stream, _)) = listener.accept() else {
                thread::sleep(SHORT);
                continue;
            };
            // A process of another run, or another program, gets no answer.
            let meet = || -> io::Result<()> {
                stream.set_nonblocking(false)?;
                let (theirs, from) = greeting(&stream, GRACE)?;
                let rank = theirs.0;
                let slot = rank.checked_sub(1).and_then(|at| links.get_mut(at));
                let is_expected = theirs == me.greeting(rank);
                if let Some(slot) = slot.filter(|slot| is_expected && slot.is_none()) {
                    let link = RankLink::new(rank, stream, from)?;
                    link.send(&me.greeting(0));
                    *slot = Some(link);
                }
                Ok(())
            };
            let _ = meet();
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
            // For one that has ended, the others may wait on the GPU for ever.
            let reply = link.receive::<Result<R, String>>();
            let reply = reply.inspect_err(|_| self.close())?;
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
        let meet = || -> io::Result<RankLink> {
            let stream = TcpStream::connect((&**host, *port))?;
            let line = serde_json::to_string(&me.greeting(me.rank))? + "\n";
            (&stream).write_all(line.as_bytes())?;
            let left = within.saturating_sub(begun.elapsed());
            let answer = greeting(&stream, left.max(SHORT)).ok();
            let answer = answer.filter(|(theirs, _)| *theirs == me.greeting(0));
            let foreign = || io::Error::other("another program or run has that port");
            RankLink::new(0, stream, answer.ok_or_else(foreign)?.1)
        };
        loop {
            match meet() {
                Ok(link) => return Ok(Self(link)),
                Err(error) if begun.elapsed() >= within => {
                    return Err(format!(
                        "it does not reach rank 0 at {host}:{port} ({error}); set MASTER_ADDR to the host of rank 0, and \
                         MASTER_PORT to a port that is free there, or unset {} to run alone",
                        me.variables
                    ));
                }
                Err(_) => thread::sleep(SHORT),
            }
        }
    }

    /// The next request of rank 0; `None` at its end.
    ///
    /// # Errors
    /// Rank 0 ended early, or sent something else.
    pub fn next<R: DeserializeOwned>(&self) -> Result<Option<R>, String> {
        let request = self.0.receive();
        let is_end = matches!(request, Ok(None));
        self.0.state.is_over.fetch_or(is_end, Ordering::SeqCst);
        request
    }

    /// Replies.
    pub fn reply(&self, reply: &Result<impl Serialize, String>) {
        self.0.send(reply);
    }
}

/// The greeting of another process, which sends one at once.
fn greeting(
    stream: &TcpStream,
    within: Duration,
) -> io::Result<((usize, usize, String), BufReader<TcpStream>)> {
    stream.set_read_timeout(Some(within))?;
    let mut from = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    from.by_ref().take(GREETING).read_line(&mut line)?;
    Ok((serde_json::from_str(&line)?, from))
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
                "start `crossover ab` without torchrun, mpirun or srun, or unset RANK",
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

    /// Ranks of a run of three, whose launcher names the job.
    fn of_three<const N: usize>(ranks: [usize; N]) -> [Rank; N] {
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|it| it.local_addr());
        let port = port.unwrap().port();
        ranks.map(|at| {
            let counts = format!("RANK={at} WORLD_SIZE=3 PMI_RANK={at} PMI_SIZE=3");
            let names = format!("{counts} TORCHELASTIC_RUN_ID=a MASTER_PORT={port}");
            rank(&names).unwrap().unwrap()
        })
    }

    #[test]
    fn processes_that_do_not_meet_are_named() {
        let [zero, one] = of_three([0, 1]);
        let alone = RankZero::connect(&one, Duration::ZERO).err().unwrap();
        let missing = OtherRanks::accept(&zero, Duration::ZERO).err().unwrap();
        for (error, words) in [
            (alone, "does not reach rank 0 at 127.0.0.1:"),
            (missing, "rank 1 of 3 did not connect"),
        ] {
            let is_named = error.contains(words);
            assert!(
                is_named && error.ends_with("unset RANK and PMI_RANK to run alone"),
                "{error}"
            );
        }
    }

    #[test]
    fn a_port_of_another_program_ends_the_wait() {
        let [one] = of_three([1]);
        let _program = TcpListener::bind((Ipv4Addr::LOCALHOST, one.address.1)).unwrap();
        let error = RankZero::connect(&one, SHORT).err().unwrap();
        assert!(error.contains("another program or run has"), "{error}");
        // Nor is a long line read to its end.
        let program = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut other = TcpStream::connect(program.local_addr().unwrap()).unwrap();
        other.write_all(&[b'x'; 4096]).unwrap();
        let stream = program.accept().unwrap().0;
        let error = greeting(&stream, SHORT).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    }

    #[test]
    fn greetings_of_other_runs_are_dropped_and_a_run_ends_together() {
        let [zero, one, two] = of_three([0, 1, 2]);
        let of_other_job = Rank {
            job: "b".to_owned(),
            ..one.clone()
        };
        let of_other_size = Rank {
            size: 2,
            ..one.clone()
        };
        let others = thread::spawn(move || OtherRanks::accept(&zero, START));
        for stranger in [of_other_job, of_other_size] {
            let error = RankZero::connect(&stranger, 10 * SHORT).err().unwrap();
            assert!(error.contains("does not reach rank 0"), "{error}");
        }
        let ended = RankZero::connect(&one, START).unwrap();
        let twice = RankZero::connect(&one, 10 * SHORT);
        assert!(twice.is_err(), "rank 1 is there");
        let waiting = RankZero::connect(&two, START).unwrap();
        let others = others.join().unwrap().unwrap();
        drop(ended);
        waiting.reply(&Ok(()));
        // It waits for rank 1 on the GPU.
        assert!(others.announce(&7, 1).is_err());
        drop(others);
        assert_eq!(waiting.next(), Ok(Some(7)));
        let end = waiting.next::<u64>();
        assert!(end.is_err(), "{end:?}");
    }

    #[test]
    fn a_rank_that_was_told_to_end_may_take_its_time() {
        let [zero, one] = of_three([0, 1]).map(|rank| Rank {
            size: 2,
            address: ("127.0.0.2".to_owned(), rank.address.1),
            ..rank
        });
        // Rank 0 listens on its own address alone.
        let _other = TcpListener::bind((Ipv4Addr::LOCALHOST, zero.address.1)).unwrap();
        let told = thread::spawn(move || OtherRanks::accept(&zero, START).map(drop));
        let one = RankZero::connect(&one, START).unwrap();
        assert_eq!(told.join().unwrap(), Ok(()));
        assert_eq!(one.next::<u64>(), Ok(None));
        assert!(one.0.state.is_over.load(Ordering::SeqCst));
    }
}
