//! The rank of this process in a run of several, started by `torchrun`, `mpirun` or `srun`.

use std::env;
use std::net::Ipv4Addr;

use crate::settings::{FurtherDevices, Settings};
use crate::turns::TURNS;

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

/// The place of this process in a run of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The number of the process, from 0.
    pub rank: usize,
    /// How many processes there are.
    pub size: usize,
    /// The number among the processes of the host.
    pub(crate) local: usize,
    /// Host and port of rank 0.
    pub(crate) address: (String, u16),
    /// The launcher's name for the job, if it has one.
    pub(crate) job: String,
    /// The variables that name a rank.
    pub(crate) variables: String,
}

/// The variables of a launcher, rank and number of processes, and the rank within the host.
type Launcher = ([&'static str; 4], [usize; 2], Option<usize>);

/// The launchers that have set their variables, which must agree.
fn launchers(text: &impl Fn(&str) -> Option<String>) -> Result<Vec<Launcher>, String> {
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
    let mut found: Vec<Launcher> = Vec::new();
    for names @ [of_rank, of_size, of_local, _] in LAUNCHERS {
        let is_slurm = of_rank.starts_with("SLURM");
        let of_step = text("SLURM_STEP_NUM_TASKS").filter(|_| is_slurm);
        let place = text(of_rank).zip(of_step.or_else(|| text(of_size)));
        let Some((rank, size)) = place.filter(|_| !(is_slurm && is_script)) else {
            continue;
        };
        let (rank, size) = (number(of_rank, rank)?, number(of_size, size)?);
        let local = text(of_local).map(|local| number(of_local, local));
        if rank >= size {
            return Err(format!(
                "{of_rank}={rank} and {of_size}={size} contradict each other, because ranks count from 0; unset \
                 both, or start the run by torchrun, mpirun or srun"
            ));
        }
        // Slurm may have started the launcher whose variables were found.
        let other = found.first().filter(|_| !is_slurm);
        if let Some((other, [of_other, its_size], _)) = other.filter(|it| it.1 != [rank, size]) {
            return Err(format!(
                "{}={of_other} of {its_size} and {of_rank}={rank} of {size} contradict each other; unset the \
                 variables of the launcher that did not start this process",
                other[0]
            ));
        }
        found.push((names, [rank, size], local.transpose()?));
    }
    Ok(found)
}

/// A rank's number, how many there are, and the job.
pub(crate) type Greeting = (usize, usize, String);

impl Rank {
    /// The place that the launcher's variables name; `None` for a process that runs alone.
    ///
    /// # Errors
    /// Variables that contradict each other, in a sentence.
    pub fn from_env() -> Result<Option<Self>, String> {
        Self::from_lookup(|name| env::var(name).ok())
    }

    /// As [`from_env`](Self::from_env), from variables that are looked up.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        let text = |name: &str| lookup(name).filter(|value| !value.is_empty());
        let found = launchers(&text)?;
        let first = found.first().filter(|(_, [_, size], _)| *size > 1);
        let Some(&([.., of_job], place @ [rank, size], _)) = first else {
            return Ok(None);
        };
        // Slurm's variables may be the only ones that name the rank within the host.
        let mut agreeing = found.iter().filter(|it| it.1 == place);
        let local = agreeing.find_map(|it| it.2);
        let variables: Vec<&str> = found.iter().map(|(names, ..)| names[0]).collect();
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

    /// The first message of a rank of this run.
    pub(crate) fn greeting(&self, rank: usize) -> Greeting {
        (rank, self.size, self.job.clone())
    }

    /// Has the settings name the GPU of this process alone. `is_only` tells whether the process sees one.
    ///
    /// # Errors
    /// They name fewer GPUs than this host has processes.
    pub fn choose_device(
        &self,
        settings: &mut Settings,
        is_only: impl Fn() -> bool,
    ) -> Result<(), String> {
        let Some(first) = settings.device else {
            return Ok(());
        };
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

/// A port at which nothing listens, for tests; another one at each call. By default, no system gives one of
/// these to a connection, or to a listener that asks for any port, so it stays free until a test uses it.
///
/// # Panics
/// All of these ports are in use.
#[cfg(any(test, feature = "free-port"))]
pub fn free_port() -> u16 {
    use std::net::TcpStream;
    use std::process;
    use std::sync::atomic::{AtomicU32, Ordering};

    static CALLS: AtomicU32 = AtomicU32::new(0);
    let mut ports = (0..8192).map(|_| {
        let at = process::id().wrapping_mul(16) + CALLS.fetch_add(1, Ordering::Relaxed);
        4096 + (at % 8192) as u16
    });
    // To listen for a moment would take the port: a process that another thread starts then keeps it a while.
    let is_free = |port: &u16| TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).is_err();
    ports.find(is_free).expect("a free port from 4096 to 12287")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    const TORCH: &str = "RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR=a MASTER_PORT=7";

    pub(crate) fn rank(variables: &str) -> Result<Option<Rank>, String> {
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
            ("RANK=2 WORLD_SIZE=2", "contradict each other"),
            ("RANK=x WORLD_SIZE=2", "RANK=x is no number; unset it"),
            (
                "RANK=0 WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2",
                "RANK=0 of 2 and OMPI_COMM_WORLD_RANK=1 of 2 contradict each other; unset",
            ),
            ("RANK=0 WORLD_SIZE=2 MASTER_PORT=x", "PORT=x is no port"),
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
            rank.choose_device(&mut settings, || false)
                .map(|()| settings.device)
        };
        assert_eq!(device(Some((4, vec![6]))), Ok(Some(6)));
        let error = device(Some((4, Vec::new()))).unwrap_err();
        assert!(
            error.contains("names 1 GPU(s), and rank 1 is process 2"),
            "{error}"
        );
    }
}
