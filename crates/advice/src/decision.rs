//! The one rule by which a size is decided, for programs, the command and the page.

use std::fmt;

use crate::curve::{Interpolated, Position, PreparedOperation, PreparedPlace};
use crate::thresholds::{Choice, Residency, Shape};

/// A program's question.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Question<'a> {
    /// Name of the operation.
    pub operation: &'a str,
    /// How large it is.
    pub size: Size,
    /// Where the data start and end.
    pub data: Residency,
    /// How many times the operation works on the data once they are moved; at least 1.
    pub reuse: u32,
    /// Whether the process has used the device before.
    pub warm: bool,
}

impl<'a> Question<'a> {
    /// A question about one call by a warm process, on data in ordinary memory.
    pub fn new(operation: &'a str, size: impl Into<Size>) -> Self {
        Self {
            operation,
            size: size.into(),
            data: Residency::Ordinary,
            reuse: 1,
            warm: true,
        }
    }

    /// The question about another size.
    pub fn size(self, size: impl Into<Size>) -> Self {
        let size = size.into();
        Self { size, ..self }
    }

    /// The question with its data in another place.
    pub fn data(self, data: Residency) -> Self {
        Self { data, ..self }
    }

    /// The question with this many operations on the same data, which are moved once.
    pub fn reuse(self, reuse: u32) -> Self {
        Self { reuse, ..self }
    }

    /// The question about the first call of a process to the device.
    pub fn cold(self) -> Self {
        Self {
            warm: false,
            ..self
        }
    }
}

/// How large an operation is.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Size {
    /// A size as the thresholds define it.
    Of(f64),
    /// A matrix product of m × k with k × n.
    Product {
        /// Rows of the left matrix.
        m: u64,
        /// Columns of the right matrix.
        n: u64,
        /// Columns of the left matrix.
        k: u64,
    },
}

macro_rules! sizes {
    ($($number:ty),*) => {$(
        impl From<$number> for Size {
            fn from(size: $number) -> Self {
                Size::Of(size as f64)
            }
        }
    )*};
}
sizes!(f64, u64, usize, i32);

/// m, n and k.
impl From<(u64, u64, u64)> for Size {
    fn from((m, n, k): (u64, u64, u64)) -> Self {
        Size::Product { m, n, k }
    }
}

/// m, n and k.
impl From<(usize, usize, usize)> for Size {
    fn from((m, n, k): (usize, usize, usize)) -> Self {
        (m as u64, n as u64, k as u64).into()
    }
}

/// The time on either side, all calls of the question together.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Estimate {
    /// The CPU's time in the processes that measured this place of the data.
    pub cpu_ns: f64,
    /// The GPU's time, with the copies of the data and the start of a cold process: the CPU's time
    /// divided by the speedup.
    pub gpu_ns: f64,
    /// The CPU's time over the GPU's in the processes that measured both for this place of the data.
    pub speedup: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The measured size whose times these are, if the size of the question lies outside the measured
    /// ones: their smallest or largest. Otherwise they are the times of the question's size.
    pub nearest: Option<f64>,
}

/// The basis of an answer, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The size was measured.
    Measured,
    /// It lies between two measured sizes.
    Between,
    /// It lies below the smallest measured size, and the speedup falls or rises steadily there.
    Below,
    /// It lies above the largest measured size, and the speedup falls or rises steadily there.
    Above,
    /// The product lies between two square ones: one with as much arithmetic, and one with as many
    /// elements.
    Shape,
    /// The interval of the speedup includes 1, or the speedup is as good as 1.
    Close,
    /// The size lies outside the measured range, where the speedup does not change steadily.
    Outside,
    /// There is no such operation among the thresholds.
    NoOperation,
    /// The operation was not measured with the data there.
    NoPlace,
    /// How often the data are used matters, and the operation was not measured on the device.
    NoReuse,
    /// The cost of the first call was not measured.
    NoFirstCall,
    /// The operation is not a product of square matrices.
    NoShape,
    /// The size or the number of uses is not a number above zero.
    NoSize,
    /// The thresholds are of another machine: see [`Advice::concerns`](crate::Advice::concerns).
    OtherMachine,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Measured => "measured at this size",
            Reason::Between => "between two measured sizes",
            Reason::Below => {
                "as at the smallest measured size, towards which the speedup changes steadily"
            }
            Reason::Above => {
                "as at the largest measured size, towards which the speedup changes steadily"
            }
            Reason::Shape => {
                "between the square products with as much arithmetic and with as many elements"
            }
            Reason::Close => "the measurements do not separate the two",
            Reason::Outside => "outside the measured sizes",
            Reason::NoOperation => "this operation was not measured",
            Reason::NoPlace => "this operation was not measured with its data there",
            Reason::NoReuse => "this operation was not measured with its data on the device",
            Reason::NoFirstCall => "what the first call costs was not measured",
            Reason::NoShape => "the sizes of this operation are not those of square products",
            Reason::NoSize => "a size and a number of uses are above zero",
            Reason::OtherMachine => "the thresholds are of another machine",
        })
    }
}

impl std::error::Error for Reason {}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// Who is faster.
    pub choice: Choice,
    /// Who is faster on the machine of the thresholds.
    pub there: Choice,
    /// The times and the speedup, where they are known; outside the measured sizes, those of the
    /// [nearest](Estimate::nearest) one.
    pub estimate: Option<Estimate>,
    /// The basis of the answer.
    pub reason: Reason,
    /// Whether the thresholds are of another machine. Then the choice is [`Choice::Unsure`], beside that
    /// machine's times.
    pub other_machine: bool,
}

impl Answer {
    /// An answer without an estimate.
    pub(crate) fn unsure(reason: Reason) -> Self {
        Self {
            choice: Choice::Unsure,
            there: Choice::Unsure,
            estimate: None,
            reason,
            other_machine: false,
        }
    }

    /// All reasons: the basis, after [`Reason::OtherMachine`] if it applies.
    pub fn reasons(&self) -> impl Iterator<Item = Reason> {
        let other = self.other_machine.then_some(Reason::OtherMachine);
        other.into_iter().chain([self.reason])
    }
}

/// Decides a question about an operation that was measured.
pub(crate) fn decide(operation: &PreparedOperation, question: &Question) -> Answer {
    let sizes = match Lookup::of(operation.shape, question.size) {
        Ok(sizes) if question.reuse > 0 => sizes,
        Ok(_) => return Answer::unsure(Reason::NoSize),
        Err(reason) => return Answer::unsure(reason),
    };
    let Some(moved) = operation.place(question.data) else {
        return Answer::unsure(Reason::NoPlace);
    };
    let at = sizes.look_up(moved);
    let speedups = at.speedups();
    let reuse = f64::from(question.reuse);
    let mut cpu_ns = reuse * at.cpu().exp();
    let mut of_all = speedups;
    let mut ends = [at.end(moved), None];
    if question.reuse > 1 && !question.data.on_device() {
        let resident = operation
            .place(Residency::Queued)
            .or(operation.place(Residency::Awaited));
        let Some(resident) = resident else {
            return Answer::unsure(Reason::NoReuse);
        };
        let there = sizes.look_up(resident);
        ends[1] = there.end(resident);
        (cpu_ns, of_all) = used_again(operation, &at, &there, reuse);
    }
    if !question.warm {
        let Some(first_call_ns) = operation.first_call_ns else {
            return Answer::unsure(Reason::NoFirstCall);
        };
        for (of_all, speedup) in of_all.iter_mut().zip(speedups) {
            // If the speedup is higher, the CPU takes longer, and the first call weighs less.
            let cpu_ns = cpu_ns * speedup / speedups[0];
            *of_all = 1.0 / (1.0 / *of_all + first_call_ns / cpu_ns);
        }
    }
    let [speedup, low, high] = of_all;
    let choice = Choice::of(speedup, low, high);
    let nearest = ends.iter().flatten().next().map(|end| end.nearest);
    let (choice, reason) = settled(choice, ends, at.reason());
    Answer {
        choice,
        there: choice,
        estimate: Some(Estimate {
            cpu_ns,
            gpu_ns: cpu_ns / speedup,
            speedup,
            low,
            high,
            nearest,
        }),
        reason,
        other_machine: false,
    }
}

/// The choice and its basis. Beyond an end of the measured sizes it holds if every curve continues steadily there.
fn settled(choice: Choice, ends: [Option<End>; 2], basis: Reason) -> (Choice, Reason) {
    let mut ends = ends.into_iter().flatten();
    match ends.next() {
        Some(first) if first.says == Some(choice) && ends.all(|end| end.says == Some(choice)) => {
            (choice, first.reason)
        }
        Some(_) => (Choice::Unsure, Reason::Outside),
        None if choice == Choice::Unsure => (choice, Reason::Close),
        None => (choice, basis),
    }
}

/// The first side's time and the speedups of `reuse` calls, one of which moves the data. The others find them on
/// the device: the speedup is the harmonic mean of both, weighted by the times of the first side. For a CPU these
/// are equal, and moving the data never gains time.
fn used_again(
    operation: &PreparedOperation,
    moved: &Between,
    there: &Between,
    reuse: f64,
) -> (f64, [f64; 3]) {
    let is_cpu = !operation.is_of_programs;
    let weight = if is_cpu {
        1.0
    } else {
        (there.cpu() - moved.cpu()).exp()
    };
    let weights = 1.0 + (reuse - 1.0) * weight;
    let mut speedups = moved.speedups();
    for (speedup, there) in speedups.iter_mut().zip(there.speedups()) {
        let there = if is_cpu { there.max(*speedup) } else { there };
        *speedup = weights / (1.0 / *speedup + (weights - 1.0) / there);
    }
    (weights * moved.cpu().exp(), speedups)
}

/// Logarithms of the sizes that a question is looked up at.
#[derive(Clone, Copy)]
enum Lookup {
    One(f64),
    /// Square products with as much arithmetic as the product of the question, and with as many
    /// elements in its three matrices. The second is the larger. Either side takes at least as long as
    /// for the first, and at most as long as for the second.
    Two(f64, f64),
}

impl Lookup {
    fn of(shape: Shape, size: Size) -> Result<Self, Reason> {
        match size {
            Size::Of(size) if size.is_finite() && size > 0.0 => Ok(Lookup::One(size.ln())),
            Size::Product { m, n, k } if m > 0 && n > 0 && k > 0 => {
                let (m, n, k) = (m as f64, n as f64, k as f64);
                match shape {
                    Shape::Size => Err(Reason::NoShape),
                    Shape::SquareProduct if m == n && n == k => Ok(Lookup::One(m.ln())),
                    Shape::SquareProduct => Ok(Lookup::Two(
                        (m.ln() + n.ln() + k.ln()) / 3.0,
                        ((m * k + k * n + m * n) / 3.0).ln() / 2.0,
                    )),
                }
            }
            _ => Err(Reason::NoSize),
        }
    }

    fn look_up(self, place: &PreparedPlace) -> Between {
        match self {
            Lookup::One(size) => Between(place.curve.at(size), None),
            Lookup::Two(small, large) => {
                Between(place.curve.at(small), Some(place.curve.at(large)))
            }
        }
    }
}

/// A curve at one size, or between its values at two sizes.
struct Between(Interpolated, Option<Interpolated>);

/// A size outside the measured ones.
struct End {
    reason: Reason,
    /// The end of the measured sizes.
    nearest: f64,
    /// The answer there, if the curve continues steadily.
    says: Option<Choice>,
}

impl Between {
    /// The speedup and the ends of its interval.
    fn speedups(&self) -> [f64; 3] {
        let Between(small, large) = self;
        let Some(large) = large else {
            return [small.value, small.low, small.high].map(f64::exp);
        };
        let middle = f64::midpoint(small.value, large.value);
        let gpu = |at: &Interpolated| at.time - at.value;
        // The CPU at its fastest and the GPU at its slowest, and the reverse.
        let low = small.low + gpu(small) - gpu(large);
        let high = large.high + gpu(large) - gpu(small);
        [middle, low.min(middle), high.max(middle)].map(f64::exp)
    }

    /// Logarithm of the CPU's time in the processes that measured this place.
    fn cpu(&self) -> f64 {
        let Between(small, large) = self;
        large.map_or(small.time, |large| f64::midpoint(small.time, large.time))
    }

    fn reason(&self) -> Reason {
        match (&self.1, self.0.position) {
            (Some(_), _) => Reason::Shape,
            (None, Position::Measured) => Reason::Measured,
            (None, _) => Reason::Between,
        }
    }

    fn end(&self, place: &PreparedPlace) -> Option<End> {
        let (first, last) = place.range;
        let end = |reason, nearest, says| {
            Some(End {
                reason,
                nearest,
                says,
            })
        };
        match (self.0.position, self.1.map(|large| large.position)) {
            (Position::Below, None | Some(Position::Below)) => {
                end(Reason::Below, first, place.below)
            }
            (Position::Above, _) => end(Reason::Above, last, place.above),
            // One of the two sizes lies outside.
            (Position::Below, _) => end(Reason::Outside, first, None),
            (_, Some(Position::Above)) => end(Reason::Outside, last, None),
            _ => None,
        }
    }
}
