//! The form of the file that `crossover export --thresholds` writes and [`Advice`](crate::Advice)
//! reads.
//!
//! Times are in nanoseconds. A speedup is the CPU's time over
//! the GPU's. An interval is the one in which another run's value lies with a probability of 95 %.
//! With the feature `schema`, the example `schema` prints the JSON schema of these types.

use serde::{Deserialize, Serialize, Serializer};

/// Version of the form. A reader refuses a higher one.
pub const SCHEMA: u32 = 1;

/// A speedup nearer to 1 than this decides nothing, because two benchmarks of one run drift by more
/// than their intervals show.
#[doc(hidden)]
pub const MINIMUM_EFFECT: f64 = 0.02;

/// Standard deviation of the logarithm of a speedup between processes of the same code, assumed where one
/// process measured. Code on many threads of a shared host may differ by more.
#[doc(hidden)]
pub const BETWEEN_PROCESSES: f64 = 0.10;

/// The thresholds of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thresholds {
    /// [`SCHEMA`] of the writer.
    pub schema: u32,
    /// Version of `crossover` that measured.
    pub crossover: String,
    /// Git commit that it was built from.
    pub commit: Option<String>,
    /// Start of the oldest run that an answer rests on, RFC 3339.
    pub date: String,
    /// The machine that the thresholds hold for.
    pub machine: Machine,
    /// The measured operations.
    pub operations: Vec<Operation>,
}

/// The machine that thresholds hold for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Machine {
    /// Model of the CPU.
    pub cpu: String,
    /// Processors that the CPU code might use at once.
    pub threads: usize,
    /// NUMA node that the run was bound to, where it was.
    pub numa_node: Option<u32>,
    /// Model of the GPU.
    pub gpu: String,
    /// Whether the GPU is of another machine than the CPU, which has none.
    pub gpu_of_another_machine: bool,
    /// Version of the GPU's driver.
    pub driver: Option<String>,
    /// The GPU's power limit, watts.
    pub power_limit_w: Option<f64>,
    /// Sizes of the CPU's caches, as Linux lists them: `48K 32K 2048K 107520K`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<String>,
    /// Vector extensions of the CPU; none where they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vector_extensions: Vec<String>,
}

/// One operation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Operation {
    /// Name, as in a [`Question`](crate::Question).
    pub name: String,
    /// Heading.
    pub title: String,
    /// Number format of the operands.
    pub format: String,
    /// The meaning of the size, such as `N, rows and columns of each matrix`.
    pub size: String,
    /// The shape of the operands at a size.
    pub shape: Shape,
    /// Extra time of the first call of a process: driver, context, code.
    pub first_call_ns: Option<f64>,
    /// The names of the two sides, if they are not code on a CPU and on a GPU: the first stands where the
    /// CPU does, the second where the GPU does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sides: Option<[String; 2]>,
    /// The answers, by where the data are.
    pub places: Vec<Place>,
}

/// The shape of an operation's operands at a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Nothing else: the operation has one size.
    #[default]
    Size,
    /// It is the order of square matrices that are multiplied: m = n = k.
    SquareProduct,
}

/// Where the data start and end.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Residency {
    /// On the device; the host queues calls without waiting for each.
    Queued,
    /// On the device; the host waits for each call.
    Awaited,
    /// In pinned host memory.
    Pinned,
    /// In ordinary host memory, copied by one plain call.
    #[default]
    Ordinary,
}

impl Residency {
    /// All of them.
    pub const ALL: [Residency; 4] = [
        Residency::Queued,
        Residency::Awaited,
        Residency::Pinned,
        Residency::Ordinary,
    ];

    /// The name in files and on command lines: `ordinary`.
    pub fn name(self) -> &'static str {
        match self {
            Residency::Queued => "queued",
            Residency::Awaited => "awaited",
            Residency::Pinned => "pinned",
            Residency::Ordinary => "ordinary",
        }
    }

    /// The place of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|data| data.name() == name)
    }

    /// In words: `on the device, one call awaited`.
    pub fn words(self) -> &'static str {
        match self {
            Residency::Queued => "on the device, a queue of calls",
            Residency::Awaited => "on the device, one call awaited",
            Residency::Pinned => "in pinned host memory",
            Residency::Ordinary => "in ordinary memory",
        }
    }

    /// Whether they start and end on the device.
    pub fn on_device(self) -> bool {
        matches!(self, Residency::Queued | Residency::Awaited)
    }
}

/// The answer for data in one place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Place {
    /// Where the data start and end.
    pub data: Residency,
    /// Name of the CPU implementation where the winner changes, or at the largest size.
    pub cpu: String,
    /// Name of the GPU implementation.
    pub gpu: String,
    /// Clock of the GPU's time.
    pub clock: String,
    /// From which size on the GPU wins.
    pub crossing: Crossing,
    /// The measured sizes, ascending.
    pub points: Vec<Point>,
    /// The nearest limit on either side, from each of these sizes on.
    pub limits: Vec<Binding>,
    /// The answer below the smallest size, if the speedup only falls or only rises towards it.
    pub below: Option<Choice>,
    /// The answer above the largest size, likewise.
    pub above: Option<Choice>,
    /// The decisions of [`Advice::decide`](crate::Advice::decide) for one call by a warm process, each
    /// from its size on to the next one's. The first is from size 1 on, and the last also holds above
    /// the measured sizes.
    pub answers: Vec<AnswerFrom>,
}

/// Sizes at an end that show how the speedup continues there.
const TELLING: usize = 3;

impl Place {
    /// Sets the answers beyond both ends from the measured points. Beyond an end there is no answer if one
    /// of the sizes there was measured without a result for both sides: one of them may have failed. A
    /// size with a choice excludes this choice alone.
    pub fn find_ends(&mut self, sizes: impl IntoIterator<Item = (f64, Option<Choice>)>) {
        let measured = || self.points.iter().filter(|point| point.processes > 0);
        (self.below, self.above) = (steady(measured()), steady(measured().rev()));
        let ends = self.points.first().zip(self.points.last());
        let Some((first, last)) = ends.map(|(first, last)| (first.size, last.size)) else {
            return;
        };
        for (size, excluded) in sizes {
            let end = match () {
                () if size < first => &mut self.below,
                () if size > last => &mut self.above,
                () => continue,
            };
            *end = end.filter(|choice| excluded.is_some_and(|excluded| excluded != *choice));
        }
    }
}

/// The answer beyond the end that `points` begin with, if the first points all have it and the speedup,
/// as far as the intervals tell, moves away from 1 towards the end or stays.
fn steady<'a>(points: impl Iterator<Item = &'a Point>) -> Option<Choice> {
    let points: Vec<&Point> = points.take(TELLING).collect();
    let first = points.first()?.choice();
    let goes_on = |pair: &[&Point]| {
        let speedup = pair[0].cpu_ns / pair[0].gpu_ns;
        match first {
            Choice::Gpu => speedup >= pair[1].low,
            Choice::Cpu => speedup <= pair[1].high,
            Choice::Unsure => false,
        }
    };
    let is_steady = points.len() == TELLING
        && points.iter().all(|point| point.choice() == first)
        && points.windows(2).all(goes_on);
    is_steady.then_some(first)
}

/// From which size on the GPU wins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Crossing {
    /// Who wins where.
    pub kind: CrossingKind,
    /// Each change of the winner, by size.
    pub changes: Vec<Change>,
    /// The smallest and the largest tested size.
    pub range: (f64, f64),
    /// Processes that the answer rests on.
    pub processes: usize,
}

/// Who wins where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CrossingKind {
    /// The GPU from one size on.
    From,
    /// The GPU at every measured size.
    Always,
    /// The GPU at none.
    Never,
    /// The GPU somewhere, and not at a larger size.
    BothWays,
    /// Another run may find either side ahead at the largest size.
    #[default]
    Undecided,
}

/// One change of the winner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The size at which the winner changes.
    pub size: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Whether the GPU wins above it.
    pub to_gpu: bool,
}

/// One measured size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// The size.
    #[serde(serialize_with = "shortest")]
    pub size: f64,
    /// The fastest CPU code: the GPU's time multiplied by the speedup.
    #[serde(serialize_with = "shortest")]
    pub cpu_ns: f64,
    /// The GPU code.
    #[serde(serialize_with = "shortest")]
    pub gpu_ns: f64,
    /// Lower end of the speedup's interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Processes that the times are medians of; 0 if the GPU's time is interpolated, which the interval
    /// includes.
    pub processes: usize,
}

/// Writes a whole number without a point.
fn shortest<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    match *value as i64 {
        whole if whole as f64 == *value => serializer.serialize_i64(whole),
        _ => serializer.serialize_f64(*value),
    }
}

impl Point {
    /// Who is faster at this size.
    pub fn choice(&self) -> Choice {
        Choice::of(self.cpu_ns / self.gpu_ns, self.low, self.high)
    }
}

/// Who is faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// The GPU.
    Gpu,
    /// The CPU.
    Cpu,
    /// The measurements do not decide.
    Unsure,
}

impl Choice {
    /// The choice for a speedup and its interval.
    pub(crate) fn of(speedup: f64, low: f64, high: f64) -> Self {
        let enough = 1.0 + MINIMUM_EFFECT;
        match () {
            () if low > 1.0 && speedup >= enough => Choice::Gpu,
            () if high < 1.0 && speedup <= 1.0 / enough => Choice::Cpu,
            () => Choice::Unsure,
        }
    }
}

/// The nearest limit from a size on: `launch`, `link`, `cache`, `memory` or `compute`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Binding {
    /// The size.
    pub from: f64,
    /// The limit of the CPU code.
    pub cpu: Option<String>,
    /// The limit of the GPU code.
    pub gpu: Option<String>,
}

/// The answer from a size on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerFrom {
    /// The size.
    pub from: f64,
    /// The answer.
    pub choice: Choice,
}
