//! Compares the machine of a file of thresholds with this machine.

use std::fmt;
use std::fs;
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::thresholds::{Machine, Thresholds};

/// Older thresholds are a concern, days: compilers, drivers and libraries change.
const OLD: i64 = 180;

/// Properties of this machine that are known without a GPU library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostInfo {
    /// Model of the CPU.
    pub cpu: Option<String>,
    /// Processors that this process may use at once.
    pub threads: Option<usize>,
    /// Sizes of the CPU's caches, as Linux lists them: `48K 32K 2048K 107520K`.
    pub caches: Option<String>,
    /// Vector extensions, such as `avx2`; empty where they are not known.
    pub vector_extensions: Vec<String>,
    /// Models of the GPUs; empty where they are not known.
    pub gpus: Vec<String>,
    /// Version of the GPU's driver.
    pub driver: Option<String>,
    /// Days since 1 January 1970.
    pub today: Option<i64>,
}

impl HostInfo {
    /// This machine, as Linux and NVIDIA's driver describe it in `/proc` and `/sys`. Elsewhere the number
    /// of threads, the vector extensions and the date are known. Unknown properties are not compared.
    pub fn detect() -> Self {
        let read = |path: &str| fs::read_to_string(path).ok();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).ok();
        let gpus = fs::read_dir("/proc/driver/nvidia/gpus").into_iter();
        let gpus = gpus.flatten().flatten();
        Self {
            cpu: read("/proc/cpuinfo").and_then(|text| field(&text, "model name")),
            threads: available_parallelism().ok().map(NonZero::get),
            caches: caches(),
            vector_extensions: vector_extensions(),
            gpus: gpus
                .filter_map(|gpu| fs::read_to_string(gpu.path().join("information")).ok())
                .filter_map(|text| field(&text, "Model"))
                .collect(),
            driver: read("/proc/driver/nvidia/version").and_then(|text| driver(&text)),
            today: now.map(|time| (time.as_secs() / 86_400) as i64),
        }
    }
}

/// The machine of thresholds that are measured here: with the first GPU, if there is one.
impl From<HostInfo> for Machine {
    fn from(here: HostInfo) -> Self {
        Self {
            cpu: here.cpu.unwrap_or_default(),
            threads: here.threads.unwrap_or(1),
            gpu: here.gpus.into_iter().next().unwrap_or_default(),
            driver: here.driver,
            caches: here.caches,
            vector_extensions: here.vector_extensions,
            ..Self::default()
        }
    }
}

/// The sizes of the caches of the first processor.
fn caches() -> Option<String> {
    let size = |index: usize| {
        let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size");
        Some(fs::read_to_string(path).ok()?.trim().to_owned())
    };
    let sizes: Vec<String> = (0..).map_while(size).collect();
    (!sizes.is_empty()).then(|| sizes.join(" "))
}

/// Names of the extensions detected at run time, from a list that numerical code of the suite uses.
fn vector_extensions() -> Vec<String> {
    #[allow(unused_mut, reason = "stays empty on other architectures")]
    let mut found: Vec<String> = Vec::new();
    macro_rules! detect {
        ($detected:ident: $($name:tt),*) => {
            $(if std::arch::$detected!($name) { found.push($name.to_owned()); })*
        };
    }
    #[cfg(target_arch = "x86_64")]
    detect!(is_x86_feature_detected: "sse4.2", "avx", "avx2", "fma", "avx512f", "avx512bw",
        "avx512dq", "avx512vl", "avx512vnni", "avx512bf16", "avx512fp16");
    #[cfg(target_arch = "aarch64")]
    detect!(is_aarch64_feature_detected: "neon", "fp16", "bf16", "dotprod", "i8mm", "sve", "sve2");
    found
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = pairs.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// The version in `NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ...`: the first word
/// of three numbers, or of two in older ones.
fn driver(text: &str) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
    let is_version = |word: &&str| {
        let numbers = || word.split('.');
        numbers().count() >= 2 && numbers().all(|number| number.parse::<u32>().is_ok())
    };
    line.split_whitespace().find(is_version).map(str::to_owned)
}

/// Why thresholds may not hold here: displayed, a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Concern {
    sentence: String,
    is_other_machine: bool,
}

impl Concern {
    fn other_machine(sentence: String) -> Self {
        Self {
            sentence,
            is_other_machine: true,
        }
    }

    fn doubt(sentence: String) -> Self {
        Self {
            sentence,
            is_other_machine: false,
        }
    }

    /// Whether the thresholds are of another machine, so that they decide nothing here.
    pub fn is_other_machine(&self) -> bool {
        self.is_other_machine
    }

    /// The differences between the machine of the thresholds and `here`.
    pub(crate) fn all(thresholds: &Thresholds, here: &HostInfo) -> Vec<Self> {
        let machine = &thresholds.machine;
        let mut concerns = Vec::new();
        if let Some(ours) = here.cpu.as_ref().filter(|ours| **ours != machine.cpu) {
            concerns.push(Self::other_machine(format!(
                "the thresholds were measured on the CPU {}, and this one is {ours}",
                machine.cpu
            )));
        }
        let features = |caches: &Option<String>, extensions: &[String]| {
            [caches.clone().unwrap_or_default(), extensions.join(" ")]
        };
        let theirs = features(&machine.caches, &machine.vector_extensions);
        let ours = features(&here.caches, &here.vector_extensions);
        let mut compared = vec!["the number of threads"];
        for (name, (theirs, ours)) in ["caches", "vector extensions"]
            .into_iter()
            .zip(theirs.into_iter().zip(ours))
        {
            if theirs.is_empty() || ours.is_empty() {
                continue;
            }
            compared.push(name);
            if theirs != ours {
                concerns.push(Self::other_machine(format!(
                    "the thresholds were measured on a CPU with {name} {theirs}, and this one has {name} {ours}"
                )));
            }
        }
        let has_model = |cpu: &str| cpu.contains(|c: char| c.is_ascii_digit());
        if concerns.is_empty()
            && let Some(cpu) = here.cpu.as_ref().filter(|cpu| !has_model(cpu))
        {
            concerns.push(Self::doubt(format!(
                "CPUs named {cpu} may differ in speed; besides the name only {} could be compared",
                compared.join(", ")
            )));
        }
        if let Some(ours) = here.threads.filter(|ours| *ours != machine.threads) {
            concerns.push(Self::other_machine(format!(
                "the thresholds were measured with {} threads, and there are {ours} here",
                machine.threads
            )));
        }
        concerns.extend(Self::of_gpu(machine, here));
        concerns.extend(Self::of_age(&thresholds.date, here));
        concerns
    }

    /// Another GPU, or another driver.
    fn of_gpu(machine: &Machine, here: &HostInfo) -> Vec<Self> {
        let mut concerns = Vec::new();
        // Without a GPU the times are of two CPU programs.
        let known = !machine.gpu.is_empty() && !here.gpus.is_empty();
        let is_here = !known || here.gpus.contains(&machine.gpu);
        if machine.gpu_of_another_machine || !is_here {
            concerns.push(Self::other_machine(format!(
                "the thresholds were measured on the GPU of another machine, {}",
                machine.gpu
            )));
        }
        if let Some((theirs, ours)) = machine.driver.as_ref().zip(here.driver.as_ref())
            && theirs != ours
        {
            concerns.push(Self::doubt(format!(
                "the thresholds were measured with driver {theirs}, and this one is {ours}"
            )));
        }
        concerns
    }

    /// Thresholds that are old, or dated in the future.
    fn of_age(date: &str, here: &HostInfo) -> Option<Self> {
        let days = here.today? - day(date)?;
        if days > OLD {
            return Some(Self::doubt(format!("the thresholds are {days} days old")));
        }
        // A day begins earlier elsewhere.
        (days < -1).then(|| {
            Self::doubt(format!(
                "the thresholds are dated {} days from now: check this machine's clock, or measure again",
                -days
            ))
        })
    }
}

impl fmt::Display for Concern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

/// Days from 1 January 1970 to the day that an RFC 3339 time begins with.
fn day(date: &str) -> Option<i64> {
    let mut parts = date.get(..10)?.splitn(3, '-');
    let mut part = |range: std::ops::RangeInclusive<i64>| {
        let number = parts.next()?.parse().ok()?;
        range.contains(&number).then_some(number)
    };
    let (year, month, day) = (part(1970..=9999)?, part(1..=12)?, part(1..=31)?);
    // Years that begin in March have their leap day at the end.
    let year = if month <= 2 { year - 1 } else { year };
    let since_march = (153 * ((month + 9) % 12) + 2) / 5;
    // 719,468 days lie between 1 March of the year 0 and 1 January 1970.
    Some(365 * year + year / 4 - year / 100 + year / 400 + since_march + day - 1 - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(day("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(day("2000-02-29"), Some(11_016));
        assert_eq!(day("2000-03-01"), Some(11_017));
        assert_eq!(day("2026-11-22T22:53:57Z"), Some(20_779));
        for wrong in ["", "2026-13-01", "2026-xx-01", "äöüäöüäöü", "-999999999"] {
            assert_eq!(day(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_cpu_of_the_same_name_without_a_model_may_be_another_one() {
        let here = HostInfo {
            cpu: Some("Intel(R) Xeon(R) Processor".into()),
            caches: Some("48K 32K 2048K 107520K".into()),
            ..HostInfo::default()
        };
        let mut thresholds = Thresholds::default();
        thresholds.machine.cpu = here.cpu.clone().unwrap();
        for (caches, sentence) in [
            (None, "besides the name only the number of threads could"),
            (here.caches.clone(), "the number of threads, caches could"),
            (Some("32K 1024K".into()), "with caches 32K"),
        ] {
            thresholds.machine.caches = caches;
            let concerns = Concern::all(&thresholds, &here);
            let words = Vec::from_iter(concerns.iter().map(Concern::to_string)).join("; ");
            assert!(words.contains(sentence), "{words}");
        }
    }

    #[test]
    fn the_driver_says_its_version() {
        let open =
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\n";
        assert_eq!(driver(open).as_deref(), Some("580.159.04"));
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  390.157  Wed Oct 12\nGCC version: 9.4.0";
        assert_eq!(driver(closed).as_deref(), Some("390.157"));
        assert_eq!(driver("GCC version: 9.4.0"), None);
    }

    #[test]
    fn only_what_is_known_and_differs_is_a_concern() {
        let mut thresholds = Thresholds {
            date: "2026-11-22T22:53:57Z".into(),
            ..Thresholds::default()
        };
        thresholds.machine.cpu = "a1".into();
        thresholds.machine.threads = 16;
        thresholds.machine.gpu = "NVIDIA H200".into();
        thresholds.machine.driver = Some("580.159.04".into());
        let are_other_machines = |thresholds: &Thresholds, here: &HostInfo| -> Vec<bool> {
            let concerns = Concern::all(thresholds, here);
            concerns.iter().map(Concern::is_other_machine).collect()
        };
        assert_eq!(Concern::all(&thresholds, &HostInfo::default()), []);
        let same = HostInfo {
            cpu: Some("a1".into()),
            threads: Some(16),
            caches: Some("48K 2048K".into()),
            vector_extensions: vec!["avx2".into(), "fma".into()],
            gpus: vec!["NVIDIA H200".into()],
            driver: Some("580.159.04".into()),
            today: Some(20_779 + OLD),
        };
        assert_eq!(Concern::all(&thresholds, &same), []);
        let other = HostInfo {
            cpu: Some("b1".into()),
            threads: Some(8),
            caches: Some("32K 1024K".into()),
            vector_extensions: vec!["avx2".into()],
            gpus: vec!["NVIDIA T4".into()],
            driver: Some("1.2".into()),
            today: Some(20_780 + OLD),
        };
        let known = [true, true, true, false, false];
        assert_eq!(are_other_machines(&thresholds, &other), known);
        let mut early = same.clone();
        early.today = Some(20_777);
        assert_eq!(are_other_machines(&thresholds, &early).len(), 1);
        // Known on both sides.
        thresholds.machine.caches = same.caches.clone();
        thresholds.machine.vector_extensions = same.vector_extensions.clone();
        assert_eq!(Concern::all(&thresholds, &same), []);
        let known = [true, true, true, true, true, false, false];
        assert_eq!(are_other_machines(&thresholds, &other), known);
        thresholds.machine.gpu_of_another_machine = true;
        assert!(are_other_machines(&thresholds, &same)[0]);
    }
}
