//! A group as a table: which implementations, on which clock, at which sizes.

use std::collections::BTreeMap;
use std::rc::Rc;

use crate::device::gpu::Gpu;
use crate::model::cost::{Cost, LinkBytes};
use crate::model::group_info::{GroupInfo, Truth, Unit};
use crate::model::id::{self, Device, Id};
use crate::model::role::{Data, Does, Format, Launches, Library, Role, Split, Threads};
use crate::suite::plan::Planned;
use crate::timing::{Clock, Rate};
use crate::workload::routine::{Made, Routine, Workload};
use crate::workload::{HostMemory, Transfer};
use crossover_protocol::settings::Profile;

type MakeCpu<W> = Box<dyn Fn(&Rc<W>) -> Made>;
type MakeGpu<W> = Box<dyn Fn(&Rc<Gpu>, &Rc<W>) -> Made>;
type CostOf = Rc<dyn Fn(u64) -> Cost>;

/// The sizes of each profile. They depend on nothing but the profile, so that two runs have
/// the same ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes {
    quick: Vec<u64>,
    default: Vec<u64>,
    full: Vec<u64>,
    odd: Vec<u64>,
}

impl Sizes {
    /// Sizes by profile.
    pub fn new(
        quick: impl IntoIterator<Item = u64>,
        default: impl IntoIterator<Item = u64>,
        full: impl IntoIterator<Item = u64>,
    ) -> Self {
        Self {
            quick: quick.into_iter().collect(),
            default: default.into_iter().collect(),
            full: full.into_iter().collect(),
            odd: Vec::new(),
        }
    }

    /// Further sizes of the profile `full`.
    pub fn in_full(mut self, sizes: impl IntoIterator<Item = u64>) -> Self {
        self.full.extend(sizes);
        self.full.sort_unstable();
        self
    }

    /// Sizes at which tests verify, instead of the smallest one and its neighbours: small ones, some
    /// of them no multiple of a block or a vector.
    pub fn odd(mut self, sizes: impl IntoIterator<Item = u64>) -> Self {
        self.odd = sizes.into_iter().collect();
        self
    }

    /// Powers of two, given by their exponents.
    pub fn powers_of_two(
        quick: impl IntoIterator<Item = u32>,
        default: impl IntoIterator<Item = u32>,
        full: impl IntoIterator<Item = u32>,
    ) -> Self {
        let power = |e| 1u64 << e;
        Self::new(
            quick.into_iter().map(power),
            default.into_iter().map(power),
            full.into_iter().map(power),
        )
    }

    /// The same sizes without those above a limit for each profile.
    pub fn up_to(&self, quick: u64, default: u64, full: u64) -> Self {
        let cut = |sizes: &[u64], limit| sizes.iter().copied().filter(|&s| s <= limit).collect();
        Self {
            quick: cut(&self.quick, quick),
            default: cut(&self.default, default),
            full: cut(&self.full, full),
            odd: self.odd.clone(),
        }
    }

    /// The sizes of a profile.
    pub fn of(&self, profile: Profile) -> &[u64] {
        match profile {
            Profile::Quick => &self.quick,
            Profile::Default => &self.default,
            Profile::Full => &self.full,
        }
    }

    pub(super) fn has_odd(&self) -> bool {
        !self.odd.is_empty()
    }

    /// Where tests verify: the odd sizes, or else the smallest and its neighbours.
    pub(super) fn for_tests(&self) -> Vec<u64> {
        match (self.odd.is_empty(), self.all().first()) {
            (true, Some(&smallest)) => (smallest.max(2) - 1..=smallest + 1).collect(),
            _ => self.odd.clone(),
        }
    }

    /// Every size of any profile, ascending.
    pub fn all(&self) -> Vec<u64> {
        let mut all: Vec<u64> = [&self.quick, &self.default, &self.full]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// One implementation of a group's operation: a row of its table. What no method changes is f32 on
/// all cores of the CPU, or f32 in device memory on the GPU with its calls queued.
pub struct Implementation<W> {
    pub(super) name: &'static str,
    pub(super) make: Make<W>,
    pub(super) clock: Clock,
    pub(super) role: Role,
    pub(super) untried: bool,
    pub(super) sizes: Option<Sizes>,
    pub(super) cost: Option<CostOf>,
}

pub(super) enum Make<W> {
    Cpu(MakeCpu<W>),
    Gpu(MakeGpu<W>),
}

impl<W> Implementation<W> {
    /// A CPU implementation, timed on the wall clock. Its id is `<group>/cpu/<name>/<size>`. `make`
    /// sets it up for the inputs of one size.
    pub fn cpu(name: &'static str, make: impl Fn(&Rc<W>) -> Made + 'static) -> Self {
        Self {
            name,
            make: Make::Cpu(Box::new(make)),
            clock: Clock::Wall,
            role: Role::cpu(),
            untried: false,
            sizes: None,
            cost: None,
        }
    }

    /// A GPU implementation, timed on `clock`. Its id is `<group>/gpu/<name>/<size>`. `make` sets it
    /// up for the inputs of one size, on the opened GPU.
    pub fn gpu(
        name: &'static str,
        clock: Clock,
        make: impl Fn(&Rc<Gpu>, &Rc<W>) -> Made + 'static,
    ) -> Self {
        Self {
            name,
            make: Make::Gpu(Box::new(make)),
            clock,
            role: Role::gpu(),
            untried: false,
            sizes: None,
            cost: None,
        }
    }

    /// Declares where the data of an iteration start and end.
    pub fn data(mut self, data: impl Into<Data>) -> Self {
        self.role.data = data.into();
        self
    }

    /// Makes the host wait for each call, and declares [`Data::Awaited`].
    ///
    /// # Panics
    /// On a CPU implementation, whose calls return when they are done.
    pub fn awaited(mut self) -> Self
    where
        W: 'static,
    {
        self.make = match self.make {
            Make::Gpu(make) => Make::Gpu(Box::new(move |gpu, problem| {
                let mut routine = make(gpu, problem)?;
                routine.wait_for_each()?;
                Ok(routine)
            })),
            Make::Cpu(_) => panic!("{} runs on the CPU and has nothing to wait for", self.name),
        };
        self.clock = Clock::Wall;
        self.data(Data::Awaited)
    }

    /// Declares how the GPU is given its kernels.
    pub fn launches(mut self, launches: Launches) -> Self {
        self.role.launches = Some(launches);
        self
    }

    /// Declares that one CPU thread computes.
    pub fn one_thread(mut self) -> Self {
        self.role.threads = Some(Threads::One);
        self
    }

    /// Declares that threads on all cores take part, as where several copy for the GPU.
    pub fn all_threads(mut self) -> Self {
        self.role.threads = Some(Threads::All);
        self
    }

    /// Declares the number format of the operands.
    pub fn format(mut self, format: impl Into<Format>) -> Self {
        self.role.format = format.into();
        self
    }

    /// Declares that f32 is emulated by products of operands in `format`.
    pub fn split(mut self, format: impl Into<Format>, split: Split) -> Self {
        self.role.split = Some(split);
        self.format(format)
    }

    /// Declares into how many pieces the work is cut.
    pub fn pieces(mut self, pieces: u32) -> Self {
        self.role.pieces = pieces;
        self
    }

    /// Declares what it measures, where that is not an operation on data.
    pub fn does(mut self, does: Does) -> Self {
        self.role.does = does;
        self
    }

    /// Declares the library that does the work. Say in `make` that it is not installed, with an
    /// [`Absence`](crate::device::Absence): the implementation is then skipped.
    pub fn library(mut self, library: Library) -> Self {
        self.role.library = Some(library);
        self
    }

    /// Declares the algorithm, in a word, where other rows do the same work by another.
    pub fn method(mut self, method: &str) -> Self {
        self.role.method = Some(method.to_owned());
        self
    }

    /// Keeps it out of answers: it is shown beside the others, and is never the best CPU code nor
    /// the GPU code that is compared with that.
    pub fn no_answer(mut self) -> Self {
        self.role.answers = false;
        self
    }

    /// Declares that no device has run it yet, so that nobody knows whether its results are right. A run
    /// names it and leaves it out, unless `CROSSOVER_UNTRIED=run` asks for it. The tests with a device
    /// (`--include-ignored`) run it; once they pass, take this away.
    pub fn untried(mut self) -> Self {
        self.untried = true;
        self
    }

    /// Replaces the group's sizes by sizes of its own.
    pub fn sizes(mut self, sizes: Sizes) -> Self {
        self.sizes = Some(sizes);
        self
    }

    /// Replaces the group's cost by one of its own.
    pub fn cost(mut self, cost: impl Fn(u64) -> Cost + 'static) -> Self {
        self.cost = Some(Rc::new(cost));
        self
    }

    pub(super) fn device(&self) -> Device {
        match self.make {
            Make::Cpu(_) => Device::Cpu,
            Make::Gpu(_) => Device::Gpu,
        }
    }

    pub(super) fn is_gpu(&self) -> bool {
        self.device() == Device::Gpu
    }

    /// Kernel or graph launches of an iteration; 0 on the CPU, whose time must not contain a wait for
    /// the device.
    pub(super) fn launches_of(&self, routine: &dyn Routine) -> u32 {
        match self.is_gpu() {
            true => routine.launches().max(1),
            false => 0,
        }
    }

    /// `cpu/<name>` or `gpu/<name>`: the function part of Criterion's id.
    pub(super) fn function(&self) -> String {
        id::function_of(self.device(), self.name)
    }
}

/// A group of benchmarks: one operation `W`, its implementations, its sizes.
pub struct Group<W> {
    pub(super) name: &'static str,
    pub(super) topic: GroupInfo,
    pub(super) rate: Option<Rate>,
    pub(super) sizes: Sizes,
    pub(super) cost: CostOf,
    pub(super) rows: Vec<Implementation<W>>,
}

impl<W: Workload> Group<W> {
    /// A group without implementations. `name` is the first part of its ids. `rate` is what
    /// Criterion prints as throughput; with `None` the page has no plot of a rate. `cost` gives the
    /// cost of one iteration at a size, which is stored with the results.
    pub fn new(
        name: &'static str,
        sizes: Sizes,
        rate: impl Into<Option<Rate>>,
        cost: impl Fn(u64) -> Cost + 'static,
    ) -> Self {
        let rate = rate.into();
        Self {
            name,
            topic: GroupInfo {
                rated: rate.is_some(),
                ..GroupInfo::of(name)
            },
            rate,
            sizes,
            cost: Rc::new(cost),
            rows: Vec::new(),
        }
    }

    /// Sets the heading and, in a sentence, what the group asks. The page and the list in the
    /// README show both.
    pub fn about(mut self, title: &str, question: &str) -> Self {
        self.topic.title = title.to_owned();
        self.topic.question = question.to_owned();
        self
    }

    /// Says what the sizes count: their symbol, the label of their axis, their unit.
    pub fn axis(mut self, symbol: &str, label: &str, unit: Unit) -> Self {
        self.topic.symbol = symbol.to_owned();
        self.topic.axis = label.to_owned();
        self.topic.unit = unit;
        self
    }

    /// Sets the words for what an iteration does, inside a sentence (`the chain`), and for one of
    /// the things that it is made of (`kernel`).
    pub fn words(mut self, work: &str, part: &str) -> Self {
        self.topic.work = work.to_owned();
        self.topic.part = part.to_owned();
        self
    }

    /// Declares that the implementations do different work, so that none of them is the fastest.
    pub fn no_winner(mut self) -> Self {
        self.topic.compares = false;
        self
    }

    /// Declares that the implementations time the same work on different clocks, and what their
    /// times are compared with.
    pub fn truth(mut self, truth: Truth) -> Self {
        self.topic.truth = Some(truth);
        self.no_winner()
    }

    /// Adds an implementation.
    pub fn with(mut self, row: Implementation<W>) -> Self {
        self.rows.push(row);
        self
    }

    /// Adds the rows of an operation on data in host memory: `transfer` from ordinary memory by plain
    /// copies, `transfer-staged` from there through pinned memory, and `transfer-pinned`. `link_bytes`
    /// cross the link at a size; `declare` adds what else is to be said of each row.
    pub fn with_transfers(
        mut self,
        make: impl Fn(&Rc<Gpu>, &Rc<W>, Transfer) -> Made + Copy + 'static,
        link_bytes: impl Fn(u64) -> LinkBytes + Copy + 'static,
        declare: impl Fn(Implementation<W>) -> Implementation<W>,
    ) -> Self {
        for (name, by) in [
            ("transfer", Transfer::Plain(HostMemory::Pageable)),
            ("transfer-staged", Transfer::Staged),
            ("transfer-pinned", Transfer::Pinned),
        ] {
            let cost = self.cost.clone();
            let row = Implementation::gpu(name, Clock::Wall, move |gpu, problem| {
                make(gpu, problem, by)
            })
            .cost(move |size| Cost {
                link_bytes: Some(link_bytes(size)),
                ..cost(size)
            });
            self.rows.push(declare(match by {
                Transfer::Plain(memory) => row.data(memory),
                Transfer::Pinned => row.data(Data::Pinned),
                Transfer::Staged => (row.data(Data::Ordinary))
                    .method("staged through pinned memory")
                    .all_threads(),
            }));
        }
        self
    }

    pub(super) fn sizes_of<'a>(&'a self, row: &'a Implementation<W>) -> &'a Sizes {
        row.sizes.as_ref().unwrap_or(&self.sizes)
    }

    /// Every benchmark of a profile, by size and then in the order of the table.
    pub fn planned(&self, profile: Profile) -> Vec<Planned> {
        let plan = self.plan(profile);
        plan.into_iter()
            .flat_map(|(size, rows)| rows.into_iter().map(move |row| (size, row)))
            .map(|(size, row)| {
                let id = self.id_of(row, size);
                Planned {
                    id: id.to_string(),
                    size,
                    clock: row.clock,
                    role: row.role.clone(),
                    untried: row.untried,
                    cost: self.cost_of(row, size),
                    throughput: self
                        .rate
                        .as_ref()
                        .map(|rate| (rate.amount(size as f64), rate.unit())),
                    host_bytes: W::host_bytes(size),
                    device_bytes: row.is_gpu().then(|| W::device_bytes(size)),
                    directory: id.directory(),
                }
            })
            .collect()
    }

    /// What a row at a size is called.
    pub(super) fn id_of(&self, row: &Implementation<W>, size: u64) -> Id {
        Id::new(self.name, &row.function(), size)
    }

    pub(super) fn cost_of(&self, row: &Implementation<W>, size: u64) -> Cost {
        row.cost.as_ref().unwrap_or(&self.cost)(size)
    }

    /// What runs in this profile: the sizes of all rows, ascending, and the rows that have each, so
    /// that inputs are made once per size.
    pub(super) fn plan(&self, profile: Profile) -> BTreeMap<u64, Vec<&Implementation<W>>> {
        let mut plan: BTreeMap<u64, Vec<&Implementation<W>>> = BTreeMap::new();
        for row in &self.rows {
            let mut sizes = self.sizes_of(row).of(profile).to_vec();
            sizes.sort_unstable();
            sizes.dedup();
            for size in sizes {
                plan.entry(size).or_default().push(row);
            }
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_profile_and_the_limits() {
        let sizes = Sizes::powers_of_two([3, 6], 0..=10, 0..=15).up_to(64, 256, 1 << 12);
        assert_eq!(sizes.of(Profile::Quick), [8, 64]);
        assert_eq!(sizes.of(Profile::Default).last(), Some(&256));
        assert_eq!(sizes.of(Profile::Full).last(), Some(&4096));
        assert_eq!(sizes.all().len(), 13);
    }
}
