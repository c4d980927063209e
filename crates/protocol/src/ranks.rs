//! The connections between rank 0 and the other ranks of a run of several processes. Messages are lines of JSON
//! over TCP. The other ranks do what rank 0 asks them, and reply to each request.

use std::cell::Cell;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::child::{Channel, GRACE, SILENCE, is_late, send};
use crate::rank::{Greeting, Rank};
use crossover_system::process::end_at_once;

/// Time between two attempts to connect.
const SHORT: Duration = Duration::from_millis(20);
/// Bytes of a longer greeting are not read.
const GREETING: u64 = 1024;

/// A connection with another rank, and a thread that reads its messages.
pub struct RankLink {
    peer: usize,
    stream: TcpStream,
    messages: Receiver<Result<Value, String>>,
    state: Arc<LinkState>,
}

#[derive(Default)]
struct LinkState {
    /// Number of replies that have not come yet; below zero if the other one sends requests.
    owed: AtomicIsize,
    /// Whether this process knows that the other one has ended, or will.
    is_over: AtomicBool,
}

impl RankLink {
    fn new(peer: usize, from: Channel<TcpStream>) -> io::Result<Self> {
        let stream = from.stream().try_clone()?;
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

    /// Connects to rank 0. From then on this process ends when rank 0 does.
    ///
    /// # Errors
    /// Rank 0 does not answer within this time.
    pub fn connect(me: &Rank, within: Duration) -> Result<Self, String> {
        let begun = Instant::now();
        let (host, port) = &me.address;
        let meet = || -> io::Result<Self> {
            let stream = TcpStream::connect((&**host, *port))?;
            let mut link = Channel::new(stream);
            link.send(&me.greeting(me.rank))?;
            let left = within.saturating_sub(begun.elapsed());
            let answer = greeting(&mut link, left.max(SHORT));
            if answer.is_ok_and(|theirs| theirs == me.greeting(0)) {
                return Self::new(0, link);
            }
            Err(io::Error::other("another program or run has that port"))
        };
        loop {
            match meet() {
                Ok(link) => return Ok(link),
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

    /// Sends a message. If this fails the other process has ended, which the next message shows.
    pub fn send(&self, message: &impl Serialize) {
        let _ = send(&self.stream, message);
    }

    /// The next message; an empty one is the last.
    ///
    /// # Errors
    /// The other rank ended early, or sent something else.
    pub fn receive<M: DeserializeOwned>(&self) -> Result<M, String> {
        let gone = || Err(format!("rank {} has ended; start the run again", self.peer));
        let message = self.messages.recv().unwrap_or_else(|_| gone());
        let is_last = matches!(message, Err(_) | Ok(Value::Null));
        self.state.is_over.fetch_or(is_last, Ordering::SeqCst);
        serde_json::from_value(message?)
            .map_err(|error| format!("a message cannot be read: {error}"))
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
    fn watch(&self, peer: usize, mut from: Channel<TcpStream>, to: &Sender<Result<Value, String>>) {
        let mut since = Instant::now();
        let why = loop {
            let waits = match from.receive() {
                Ok(message) => {
                    let _ = to.send(Ok(message));
                    self.owed.fetch_sub(1, Ordering::SeqCst);
                    false
                }
                Err(error) if is_late(&error) => true,
                Err(error) if error.kind() == ErrorKind::InvalidData => {
                    break format!("a message of rank {peer} cannot be read: {error}");
                }
                Err(_) => break format!("rank {peer} ended during the run; see what it printed"),
            };
            if !waits || self.owed.load(Ordering::SeqCst) <= 0 {
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
    /// Runs that were announced and have not begun. A reply follows when all are done.
    announced: Cell<Option<u64>>,
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
                let mut link = Channel::new(stream);
                let theirs = greeting(&mut link, GRACE)?;
                let rank = theirs.0;
                let slot = rank.checked_sub(1).and_then(|at| links.get_mut(at));
                let is_expected = theirs == me.greeting(rank);
                if let Some(slot) = slot.filter(|slot| is_expected && slot.is_none()) {
                    link.send(&me.greeting(0))?;
                    *slot = Some(RankLink::new(rank, link)?);
                }
                Ok(())
            };
            let _ = meet();
        }
        Ok(Self {
            links: links.into_iter().flatten().collect(),
            announced: Cell::new(None),
        })
    }

    /// Sends a request to all, each of which replies, and waits for their replies, in the order of ranks.
    ///
    /// # Errors
    /// An error of one of them, or its end, with its rank.
    pub fn ask<R: DeserializeOwned>(&self, request: &impl Serialize) -> Result<Vec<R>, String> {
        self.tell(request, 1)?;
        self.hear()
    }

    /// Sends a request to all, each of which sends this number of replies.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn tell(&self, request: &impl Serialize, replies: isize) -> Result<(), String> {
        if let Some(left) = self.announced.take() {
            if left > 0 {
                self.close();
            }
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

    /// Asks all to run something this many times, and returns when they begin.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn announce(&self, request: &impl Serialize, runs: u64) -> Result<(), String> {
        self.tell(request, 2)?;
        self.hear::<()>()?;
        self.announced.set(Some(runs));
        Ok(())
    }

    /// Notes that this process runs what it has announced. If nothing is left of that, it asks for one run.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub fn run(&self, once: &impl Serialize) -> Result<(), String> {
        let left = self.announced.get().filter(|left| *left > 0);
        if left.is_none() {
            self.announce(once, 1)?;
        }
        self.announced.set(Some(left.unwrap_or(1) - 1));
        Ok(())
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

/// The greeting of another process, which sends one at once.
fn greeting(link: &mut Channel<TcpStream>, within: Duration) -> io::Result<Greeting> {
    link.stream().set_read_timeout(Some(within))?;
    link.receive_short(GREETING)
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write};

    use super::*;
    use crate::child::START;
    use crate::rank::free_port;
    use crate::rank::tests::rank;

    /// Ranks of a run of three, whose launcher names the job.
    fn of_three<const N: usize>(ranks: [usize; N]) -> [Rank; N] {
        let port = free_port();
        ranks.map(|at| {
            let counts = format!("RANK={at} WORLD_SIZE=3 PMI_RANK={at} PMI_SIZE=3");
            let names = format!("{counts} TORCHELASTIC_RUN_ID=a MASTER_PORT={port}");
            rank(&names).unwrap().unwrap()
        })
    }

    #[test]
    fn processes_that_do_not_meet_are_named() {
        let [zero, one] = of_three([0, 1]);
        let alone = RankLink::connect(&one, Duration::ZERO).err().unwrap();
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
        let error = RankLink::connect(&one, SHORT).err().unwrap();
        assert!(error.contains("another program or run has"), "{error}");
        // Nor is a long line read to its end.
        let program = TcpListener::bind((Ipv4Addr::LOCALHOST, free_port())).unwrap();
        let mut other = TcpStream::connect(program.local_addr().unwrap()).unwrap();
        other.write_all(&[b'x'; 4096]).unwrap();
        let mut link = Channel::new(program.accept().unwrap().0);
        let error = greeting(&mut link, START).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{error}");
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
            let error = RankLink::connect(&stranger, 10 * SHORT).err().unwrap();
            assert!(error.contains("does not reach rank 0"), "{error}");
        }
        let ended = RankLink::connect(&one, START).unwrap();
        let twice = RankLink::connect(&one, 10 * SHORT);
        assert!(twice.is_err(), "rank 1 is there");
        let waiting = RankLink::connect(&two, START).unwrap();
        let others = others.join().unwrap().unwrap();
        drop(ended);
        waiting.send(&Ok::<_, String>(()));
        // It waits for rank 1 on the GPU.
        assert!(others.announce(&7, 1).is_err());
        drop(others);
        assert_eq!(waiting.receive(), Ok(Some(7)));
        let end = waiting.receive::<Option<u64>>();
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
        let one = RankLink::connect(&one, START).unwrap();
        assert_eq!(told.join().unwrap(), Ok(()));
        assert_eq!(one.receive::<Option<u64>>(), Ok(None));
        assert!(one.state.is_over.load(Ordering::SeqCst));
    }
}
