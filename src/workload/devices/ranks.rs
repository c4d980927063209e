//! All-reduce with a process for each device. The routine of rank 0 has the other ranks do their parts, and tells
//! them how many runs follow before its clock starts. Each rank verifies its own result.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::device::Gpu;
use crate::model::Verified;
use crate::timing::{Announce, CudaTime, LaunchState, TimingError};
use crate::workload::devices::all_reduce::{AllReduce, Identity, Results, of_this_process};
use crate::workload::devices::{OnDevices, worst};
use crate::workload::prepare::in_version;
use crate::workload::routine::{Alteration, Result, Routine, RoutineError};
use crossover_machine::nccl::{Nccl, UniqueId};
use crossover_machine::peers::{first_gpu, is_only};
use crossover_protocol::child::START;
use crossover_protocol::rank::Rank;
use crossover_protocol::ranks::{OtherRanks, RankLink};
use crossover_protocol::settings::Settings;
use crossover_system::interrupt;
use crossover_words::text::{visible_lines, with_causes};

/// An order of rank 0 to another rank. Routines have numbers.
#[derive(Clone, Debug, Serialize, Deserialize)]
enum Order {
    /// Open the GPU and NCCL. The reply is the GPU's UUID.
    Open,
    /// Connect with the other ranks, by this unique id.
    Connect(Vec<u8>),
    /// Make a routine for these inputs.
    SetUp(u64, Identity, Results),
    /// Overwrite the results.
    Poison(u64),
    /// Run a routine, or the last one that an order named. A second reply follows when that is done.
    Run { routine: Option<u64>, runs: u64 },
    /// Verify the result, or an altered copy.
    Check(u64, Option<Alteration>),
    /// Probe the launches. The reply is whether they are long.
    Launches(LaunchRequest),
    /// Drop a routine.
    Drop(u64),
}

/// A request about the launches of a process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum LaunchRequest {
    /// Probe them.
    Probe,
    /// Restore long launches, then probe them.
    Shorten,
}

impl LaunchRequest {
    /// Probes the launches on the device of this clock.
    pub(crate) fn on(self, time: &CudaTime) -> Result<Option<LaunchState>, TimingError> {
        match self {
            LaunchRequest::Probe => time.launch_state(),
            LaunchRequest::Shorten => time.shorten_launches(),
        }
    }
}

/// A [`Verified`] whose numbers may be NaN: the bits of error and bound, and the method.
type VerifiedBits = (u64, u64, String);

/// The parts of a routine that the other ranks have. They drop them with this.
pub(super) struct RankParts {
    routine: u64,
    ranks: Rc<OtherRanks>,
}

/// The sum over all devices, on each of them.
///
/// # Errors
/// There is one device, or no NCCL; errors of NCCL and CUDA.
pub fn all_reduce(
    gpu: &Rc<Gpu>,
    problem: &Rc<AllReduce>,
    results: Results,
) -> Result<Box<dyn Routine>> {
    let mut routine = match &gpu.ranks {
        Some(ranks) => of_ranks(gpu, ranks, problem, results)?,
        None => of_this_process(gpu, problem, results)?,
    };
    // Connecting waits for the host, which behind a gate would wait for ever.
    routine.run()?;
    gpu.synchronize()?;
    Ok(Box::new(routine))
}

/// The sum over the devices of all ranks.
fn of_ranks(
    gpu: &Rc<Gpu>,
    ranks: &Rc<OtherRanks>,
    problem: &Rc<AllReduce>,
    results: Results,
) -> Result<OnDevices> {
    static MADE: AtomicU64 = AtomicU64::new(1);
    if !gpu.is_connected() {
        connect(gpu, ranks)?;
    }
    let routine = MADE.fetch_add(1, Ordering::Relaxed);
    let ranks = ranks.clone();
    // Dropped if the set-up fails on one rank.
    let rank_parts = RankParts { routine, ranks };
    let set_up = Order::SetUp(routine, problem.identity(), results);
    rank_parts.ranks.ask::<()>(&set_up)?;
    let mut work = of_this_process(gpu, problem, results)?;
    let processes = format!("{} processes", gpu.collectives()?.devices);
    work.parts[0].notes.push(processes);
    work.others = Some(rank_parts);
    Ok(work)
}

/// Connects the GPUs of all ranks.
fn connect(gpu: &Gpu, ranks: &OtherRanks) -> Result<()> {
    let nccl = Nccl::open()?;
    let mut gpus = vec![gpu.properties().uuid.clone()];
    gpus.extend(ranks.ask::<String>(&Order::Open)?);
    for (rank, uuid) in gpus.iter().enumerate() {
        let before = gpus[..rank].iter().position(|other| other == uuid);
        if let Some(before) = before {
            return Err(format!(
                "ranks {before} and {rank} have the same GPU ({uuid}); start one process for each GPU, and name the GPUs \
                 of a host with CROSSOVER_DEVICE=0,1"
            )
            .into());
        }
    }
    let id = nccl.unique_id()?;
    ranks.tell(&Order::Connect(id.0.to_vec()), 1)?;
    gpu.join(id, 0, gpus.len()).inspect_err(|_| ranks.close())?;
    ranks.hear::<()>()?;
    Ok(())
}

/// Has the other ranks probe their launches. Returns whether those of one are long. No rank is in a sum meanwhile:
/// each has replied to the last order, and waits for the next one.
pub(crate) fn launches_of_ranks(gpu: &Gpu, probe: LaunchRequest) -> Result<bool, RoutineError> {
    let Some(ranks) = gpu.ranks.as_ref().filter(|_| gpu.is_connected()) else {
        return Ok(false);
    };
    let launched = ranks.ask::<bool>(&Order::Launches(probe))?;
    Ok(launched.contains(&true))
}

impl RankParts {
    /// Overwrites their results.
    pub(super) fn poison(&self) -> Result<()> {
        self.ranks.ask::<()>(&Order::Poison(self.routine))?;
        Ok(())
    }

    /// Runs them, and the part of this process.
    pub(super) fn run(&self, own: impl FnOnce() -> Result<()>) -> Result<()> {
        let routine = Some(self.routine);
        self.ranks.run(&Order::Run { routine, runs: 1 })?;
        // The others would wait for this process.
        own().inspect_err(|_| self.ranks.close())
    }

    /// As [`Routine::announcer`].
    pub(super) fn announcer(&self) -> Announce {
        let ranks = self.ranks.clone();
        Rc::new(move |runs| {
            let routine = None;
            Ok(ranks.announce(&Order::Run { routine, runs }, runs)?)
        })
    }

    /// The worst verdict of all ranks, which verify at the same time.
    pub(super) fn verdict(
        &self,
        altered: Option<Alteration>,
        own: impl FnOnce() -> Result<Option<Verified>>,
    ) -> Result<Option<Verified>> {
        self.ranks.tell(&Order::Check(self.routine, altered), 1)?;
        let own = own();
        let verdicts = self.ranks.hear::<Option<VerifiedBits>>();
        let (own, verdicts) = (own?, verdicts?);
        let verdicts = (verdicts.into_iter().enumerate()).filter_map(|(at, verdict)| {
            let (error, bound, method) = verdict?;
            let [error, bound] = [error, bound].map(f64::from_bits);
            let mut verified = Verified {
                error,
                bound,
                method,
            };
            if !verified.passed() {
                verified.method += &format!(", on rank {}", at + 1);
            }
            Some(verified)
        });
        Ok(worst(verdicts.chain(own)))
    }
}

impl Drop for RankParts {
    fn drop(&mut self) {
        // Without the others nothing is left to do.
        let _ = self.ranks.ask::<()>(&Order::Drop(self.routine));
    }
}

/// The work of another rank than 0, until rank 0 ends. It prints and writes nothing but its own errors.
pub(crate) fn follow(me: &Rank) -> ExitCode {
    // Rank 0 gets the signal too, and ends this process.
    interrupt::catch();
    let followed = RankLink::connect(me, START).map_err(RoutineError::from);
    match followed.and_then(|zero| Follower::default().follow(me, &zero)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let error = visible_lines(&with_causes(&*error));
            eprintln!("error: rank {} of {}: {error}", me.rank, me.size);
            ExitCode::FAILURE
        }
    }
}

/// The state of another rank than 0.
#[derive(Default)]
struct Follower {
    // Dropped before the GPU.
    routines: BTreeMap<u64, Box<dyn Routine>>,
    last: u64,
    problem: Option<Rc<AllReduce>>,
    time: Option<CudaTime>,
    gpu: Option<Rc<Gpu>>,
}

impl Follower {
    /// Does what rank 0 orders.
    ///
    /// # Errors
    /// Errors after which other ranks would wait for this one. Rank 0 gets all.
    fn follow(&mut self, me: &Rank, zero: &RankLink) -> Result<()> {
        while let Some(order) = zero.receive::<Option<Order>>()? {
            let done = self.obey(me, &order, zero);
            let reply = done.as_ref().map_err(|error| with_causes(&**error));
            zero.send(&reply);
            if matches!(order, Order::Connect(_) | Order::Run { .. }) {
                done?;
            }
        }
        Ok(())
    }

    fn obey(&mut self, me: &Rank, order: &Order, zero: &RankLink) -> Result<Value> {
        match order {
            Order::Open => {
                let mut settings = Settings::from_env()?;
                me.choose_device(&mut settings, is_only)?;
                let gpu = Gpu::open(first_gpu(&settings)?.ordinal)?;
                Nccl::open()?;
                let uuid = gpu.properties().uuid.clone();
                let time = CudaTime::on_stream(gpu.stream(), settings.gate)?;
                // It only probes launches; rank 0 times the benchmarks and looks for work elsewhere.
                time.ignore_other_streams(true);
                self.time = Some(time);
                self.gpu = Some(Rc::new(gpu));
                Ok(uuid.into())
            }
            Order::Connect(id) => {
                let id = UniqueId(id.as_slice().try_into()?);
                self.gpu()?.join(id, me.rank, me.size)?;
                Ok(Value::Null)
            }
            Order::SetUp(routine, identity, results) => {
                let known = self.problem.take().filter(|it| it.identity() == *identity);
                let make = || Rc::new(in_version(identity.0, identity.1));
                let problem = known.unwrap_or_else(make);
                let made = of_this_process(self.gpu()?, &problem, *results);
                self.problem = Some(problem);
                self.routines.insert(*routine, Box::new(made?));
                Ok(Value::Null)
            }
            // It has no host memory, for which `poison` would wait.
            Order::Poison(of) => self.routine(*of)?.restore().map(Value::from),
            Order::Run { routine, runs } => {
                let last = self.last;
                let routine = self.routine(routine.unwrap_or(last))?;
                zero.send(&Ok::<_, String>(()));
                (0..*runs).try_for_each(|_| routine.run())?;
                self.wait().map(Value::from)
            }
            Order::Check(of, altered) => {
                self.wait()?;
                let routine = self.routine(*of)?;
                let verified = match altered {
                    None => Some(routine.check()?),
                    Some(by) => routine.check_altered(*by)?,
                };
                let bits = |it: Verified| (it.error.to_bits(), it.bound.to_bits(), it.method);
                Ok(serde_json::to_value(verified.map(bits))?)
            }
            Order::Launches(probe) => {
                let state = self.time.as_ref().map(|time| probe.on(time));
                let state = state.transpose()?.flatten();
                Ok(state.is_some_and(|state| state.is_long).into())
            }
            Order::Drop(of) => {
                self.routines.remove(of);
                Ok(Value::Null)
            }
        }
    }

    fn gpu(&self) -> Result<&Rc<Gpu>> {
        Ok(self.gpu.as_ref().ok_or("it has opened no GPU")?)
    }

    fn wait(&self) -> Result<()> {
        Ok(self.gpu.as_ref().map_or(Ok(()), |gpu| gpu.synchronize())?)
    }

    fn routine(&mut self, of: u64) -> Result<&mut Box<dyn Routine>> {
        self.last = of;
        Ok(self.routines.get_mut(&of).ok_or("it has no such routine")?)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crossover_protocol::rank::free_port;

    /// Wrong by a number.
    struct Fake(f64);

    impl Routine for Fake {
        fn poison(&mut self) -> Result<()> {
            Ok(())
        }

        fn run(&mut self) -> Result<()> {
            Ok(())
        }

        fn check(&mut self) -> Result<Verified> {
            Ok(Verified {
                error: self.0,
                bound: 1.0,
                method: "difference".to_owned(),
            })
        }
    }

    /// The verdict of a rank 0 with a right result, and a rank 1 whose result is wrong by `error`.
    fn verdict(error: f64) -> Verified {
        let port = free_port();
        let [zero, one] = [0, 1].map(|rank| {
            let variables = [("RANK", rank), ("WORLD_SIZE", 2), ("MASTER_PORT", port)];
            let value = |name: &str| Some(variables.iter().find(|it| it.0 == name)?.1.to_string());
            Rank::from_lookup(value).unwrap().unwrap()
        });
        let other = thread::spawn(move || {
            let zero = RankLink::connect(&one, START).unwrap();
            let mut other = Follower::default();
            other.routines.insert(7, Box::new(Fake(error)));
            other.follow(&one, &zero).map_err(|error| error.to_string())
        });
        let others = RankParts {
            routine: 7,
            ranks: Rc::new(OtherRanks::accept(&zero, START).unwrap()),
        };
        let verified = others.verdict(None, || Fake(0.0).check().map(Some));
        drop(others);
        assert_eq!(other.join().unwrap(), Ok(()));
        verified.unwrap().unwrap()
    }

    #[test]
    fn the_results_of_other_ranks_count() {
        assert!(verdict(0.5).passed());
        for error in [2.0, f64::NAN] {
            let text = verdict(error).failure().unwrap();
            assert!(text.contains("(difference, on rank 1)"), "{text}");
        }
    }
}
