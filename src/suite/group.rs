//! A group as a table: which implementations, on which clock, at which sizes.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::rc::Rc;

use crate::device::gpu::Gpu;
use crate::device::kernel::Source;
use crate::model::cost::{Cost, LinkBytes};
use crate::model::group_info::{GroupInfo, Truth, Unit};
use crate::model::id::{self, Device, Id};
use crate::model::role::{
    Devices, Format, Launches, Library, Measures, Residency, Role, Split, Threads,
};
use crate::suite::sizes::{Planned, Sizes};
use crate::timing::{Clock, Rate};
use crate::workload::HostMemory::{self, Pageable, Pinned};
use crate::workload::in_version;
use crate::workload::routine::{Result, Routine, Workload};
use crossover_protocol::settings::SizeSet;

/// The inputs of a size, of the type that the group's operation has.
pub(super) type Inputs = Rc<dyn Any>;
type MakeCpu = Box<dyn Fn(&Inputs) -> Result<Box<dyn Routine>>>;
type MakeGpu = Box<dyn Fn(&Rc<Gpu>, &Inputs) -> Result<Box<dyn Routine>>>;
type Visit<'a> = &'a mut dyn FnMut(&[u8]);
type CostOf = Rc<dyn Fn(u64) -> Cost>;

/// One implementation of a group's operation: a row of its table. The defaults are f32 on all cores of
/// the CPU, or f32 in device memory on the GPU with queued calls.
pub struct Implementation<W> {
    row: AnyRow,
    operation: PhantomData<W>,
}

/// An implementation, whatever its operation.
pub(super) struct AnyRow {
    name: &'static str,
    make: Make,
    pub(super) clock: Clock,
    pub(super) role: Role,
    pub(super) sizes: Option<Sizes>,
    cost: Option<CostOf>,
    kernels: Option<u32>,
}

enum Make {
    Cpu(MakeCpu),
    Gpu(MakeGpu),
}

impl<W: 'static> Implementation<W> {
    fn new(name: &'static str, make: Make, clock: Clock, role: Role) -> Self {
        Self {
            row: AnyRow {
                name,
                make,
                clock,
                role,
                sizes: None,
                cost: None,
                kernels: None,
            },
            operation: PhantomData,
        }
    }

    /// A CPU implementation, timed on the wall clock. Its id is `<group>/cpu/<name>/<size>`. `make`
    /// sets it up for the inputs of one size.
    pub fn cpu(
        name: &'static str,
        make: impl Fn(&Rc<W>) -> Result<Box<dyn Routine>> + 'static,
    ) -> Self {
        let make = Make::Cpu(Box::new(move |inputs| make(&typed(inputs))));
        Self::new(name, make, Clock::Wall, Role::cpu())
    }

    /// A GPU implementation, timed on `clock`. Its id is `<group>/gpu/<name>/<size>`. `make` sets it
    /// up for the inputs of one size, on the opened GPU.
    pub fn gpu(
        name: &'static str,
        clock: Clock,
        make: impl Fn(&Rc<Gpu>, &Rc<W>) -> Result<Box<dyn Routine>> + 'static,
    ) -> Self {
        let make = Make::Gpu(Box::new(move |gpu, inputs| make(gpu, &typed(inputs))));
        Self::new(name, make, clock, Role::gpu())
    }

    /// Declares where the data of an iteration start and end.
    pub fn data(mut self, data: impl Into<Residency>) -> Self {
        self.row.role.data = data.into();
        self
    }

    /// Makes the host wait for each call, and declares [`Residency::Awaited`].
    ///
    /// # Panics
    /// On a CPU implementation, whose calls return when they are done.
    pub fn awaited(mut self) -> Self {
        self.row.make = match self.row.make {
            Make::Gpu(make) => Make::Gpu(Box::new(move |gpu, inputs| {
                let mut routine = make(gpu, inputs)?;
                routine.wait_for_each()?;
                Ok(routine)
            })),
            Make::Cpu(_) => panic!(
                "{} runs on the CPU and has nothing to wait for",
                self.row.name
            ),
        };
        self.row.clock = Clock::Wall;
        self.data(Residency::Awaited)
    }

    /// Declares how the GPU is given its kernels.
    pub fn launches(mut self, launches: Launches) -> Self {
        self.row.role.launches = Some(launches);
        self
    }

    /// Declares that one CPU thread computes.
    pub fn one_thread(mut self) -> Self {
        self.row.role.threads = Some(Threads::One);
        self
    }

    /// Declares that threads on all cores take part, as where several copy for the GPU.
    pub fn all_threads(mut self) -> Self {
        self.row.role.threads = Some(Threads::All);
        self
    }

    /// Declares the number format of the operands.
    pub fn format(mut self, format: impl Into<Format>) -> Self {
        self.row.role.format = format.into();
        self
    }

    /// Declares that f32 is emulated by products of operands in `format`.
    pub fn split(mut self, format: impl Into<Format>, split: Split) -> Self {
        self.row.role.split = Some(split);
        self.format(format)
    }

    /// Declares into how many pieces the work is cut.
    pub fn pieces(mut self, pieces: u32) -> Self {
        self.row.role.pieces = pieces;
        self
    }

    /// Declares what it measures, if that is no operation on data.
    pub fn measures(mut self, measures: Measures) -> Self {
        self.row.role.measures = measures;
        self
    }

    /// Declares the library that does the work. Say in `make` that it is not installed, with an
    /// [`Absence`](crate::device::Absence): the implementation is then skipped.
    pub fn library(mut self, library: Library) -> Self {
        self.row.role.library = Some(library);
        self
    }

    /// Declares which devices work, in a group that compares one with several.
    pub fn devices(mut self, devices: Devices) -> Self {
        self.row.role.devices = Some(devices);
        self
    }

    /// Declares the algorithm, in a word, where other rows do the same work by another.
    pub fn method(mut self, method: &str) -> Self {
        self.row.role.method = Some(method.to_owned());
        self
    }

    /// Keeps it out of answers, as a row of fewer bits, of one thread or of one phase: it is shown beside the
    /// others, and is never the best CPU code nor the GPU code that is compared with that.
    pub fn reference_only(mut self) -> Self {
        self.row.role.answers = false;
        self
    }

    /// Replaces the group's sizes by sizes of its own.
    pub fn sizes(mut self, sizes: Sizes) -> Self {
        self.row.sizes = Some(sizes);
        self
    }

    /// Replaces the group's cost by one of its own.
    pub fn cost(mut self, cost: impl Fn(u64) -> Cost + 'static) -> Self {
        self.row.cost = Some(Rc::new(cost));
        self
    }

    /// Replaces the number of kernels in the cost, where it launches others than the group's.
    pub fn kernels(mut self, kernels: u32) -> Self {
        self.row.kernels = Some(kernels);
        self
    }
}

/// The inputs as their operation's type.
fn typed<W: 'static>(inputs: &Inputs) -> Rc<W> {
    let inputs = inputs.clone().downcast();
    inputs.expect("a row is given the inputs of its group's operation")
}

impl AnyRow {
    pub(super) fn device(&self) -> Device {
        match self.make {
            Make::Cpu(_) => Device::Cpu,
            Make::Gpu(_) => Device::Gpu,
        }
    }

    pub(super) fn is_gpu(&self) -> bool {
        self.device() == Device::Gpu
    }

    /// Whether iterations compute their outputs: `false` on a GPU whose driver executes no kernels.
    pub(super) fn is_executed(&self) -> bool {
        !self.is_gpu() || Gpu::executes_kernels()
    }

    /// Sets the implementation up for these inputs; `gpu` opens the device where it is needed.
    pub(super) fn set_up(
        &self,
        inputs: &Inputs,
        gpu: impl FnOnce() -> Result<Rc<Gpu>>,
    ) -> Result<Box<dyn Routine>> {
        match &self.make {
            Make::Cpu(make) => make(inputs),
            Make::Gpu(make) => make(&gpu()?, inputs),
        }
    }

    /// `cpu/<name>` or `gpu/<name>`: the function part of Criterion's id.
    pub(super) fn function(&self) -> String {
        id::function_of(self.device(), self.name)
    }
}

/// A group of benchmarks: one operation `W`, its implementations, its sizes.
pub struct Group<W> {
    group: AnyGroup,
    operation: PhantomData<W>,
}

/// A [`Group`] of any operation, for lists of groups: `group.into()`.
pub struct AnyGroup {
    pub(super) name: &'static str,
    pub(super) topic: GroupInfo,
    pub(super) rate: Option<Rate>,
    pub(super) sizes: Sizes,
    pub(super) cost: CostOf,
    pub(super) rows: Vec<AnyRow>,
    pub(super) operation: AnyOperation,
    pub(super) has_inputs: bool,
    pub(super) verified_by_tests: bool,
    /// Whether it needs more devices than one.
    pub(super) on_several: bool,
    /// Whether each of these devices may belong to a process of its own.
    pub(super) in_processes: bool,
}

/// The parts of a [`Workload`] that a group needs, without its type, so that the suite is compiled once
/// instead of once per operation.
pub(super) struct AnyOperation {
    pub(super) inputs: fn(u64) -> Inputs,
    edge_cases: fn() -> Option<Inputs>,
    version: fn(u64, u64) -> Inputs,
    /// The last version that was made.
    last: Cell<u64>,
    /// The edge cases, inputs by size, and inputs with other values.
    untimed: RefCell<BTreeMap<(u64, bool), Option<Inputs>>>,
    pub(super) host_bytes: fn(u64) -> u64,
    pub(super) device_bytes: fn(u64) -> u64,
    kernels: fn() -> &'static [&'static Source],
    pub(super) visit_inputs: fn(&Inputs, Visit),
}

impl AnyOperation {
    /// Inputs of a size with other values than the timed inputs, and than all made before.
    pub(super) fn other_values(&self, size: u64) -> Inputs {
        self.last.set(self.last.get() + 1);
        (self.version)(size, self.last.get())
    }

    /// Inputs that are verified and not timed: of a size, with other values if `other`, and the edge cases as
    /// size 0. They are made once for all implementations, because their reference takes long.
    pub(super) fn untimed(&self, size: u64, other: bool) -> Option<Inputs> {
        let make = || match (size, other) {
            (0, _) => (self.edge_cases)(),
            (_, true) => Some(self.other_values(size)),
            (_, false) => Some((self.inputs)(size)),
        };
        let mut known = self.untimed.borrow_mut();
        known.entry((size, other)).or_insert_with(make).clone()
    }

    /// Frees the inputs that are not timed.
    pub(super) fn forget_untimed(&self) {
        self.untimed.take();
    }
}

impl<W> From<Group<W>> for AnyGroup {
    fn from(group: Group<W>) -> Self {
        group.group
    }
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
        let operation = AnyOperation {
            inputs: |size| Rc::new(W::new(size)),
            edge_cases: || Some(Rc::new(W::edge_cases()?)),
            version: |size, version| Rc::new(in_version::<W>(size, version)),
            last: Cell::new(0),
            untimed: RefCell::default(),
            host_bytes: W::host_bytes,
            device_bytes: W::device_bytes,
            kernels: W::kernels,
            visit_inputs: |inputs, visit| typed::<W>(inputs).visit_inputs(visit),
        };
        Self {
            group: AnyGroup {
                name,
                topic: GroupInfo {
                    rated: rate.is_some(),
                    ..GroupInfo::of(name)
                },
                rate,
                sizes,
                cost: Rc::new(cost),
                rows: Vec::new(),
                operation,
                has_inputs: true,
                verified_by_tests: false,
                on_several: false,
                in_processes: false,
            },
            operation: PhantomData,
        }
    }

    /// Sets the heading and the question, a sentence. The page and the list in the README show both.
    pub fn about(mut self, title: &str, question: &str) -> Self {
        self.group.topic.title = title.to_owned();
        self.group.topic.question = question.to_owned();
        self
    }

    /// Sets the meaning of the sizes: their symbol, the label of their axis, their unit.
    pub fn axis(mut self, symbol: &str, label: &str, unit: Unit) -> Self {
        self.group.topic.symbol = symbol.to_owned();
        self.group.topic.axis = label.to_owned();
        self.group.topic.unit = unit;
        self
    }

    /// Sets the words for the work of an iteration, inside a sentence (`the chain`), and for one of its
    /// parts (`kernel`).
    pub fn words(mut self, work: &str, part: &str) -> Self {
        self.group.topic.work = work.to_owned();
        self.group.topic.part = part.to_owned();
        self
    }

    /// Declares that no implementation reads inputs, such as those that allocate memory.
    pub fn no_inputs(mut self) -> Self {
        self.group.has_inputs = false;
        self
    }

    /// Declares that the implementations do different work, so that none of them is the fastest.
    pub fn no_winner(mut self) -> Self {
        self.group.topic.compares = false;
        self
    }

    /// Declares that the implementations time the same work on different clocks, and what their
    /// times are compared with.
    pub fn truth(mut self, truth: Truth) -> Self {
        self.group.topic.truth = Some(truth);
        self.no_winner()
    }

    /// Declares that the group is about several devices: it is in no run with one.
    pub fn on_several_devices(mut self) -> Self {
        self.group.on_several = true;
        self
    }

    /// Declares that the devices may be of a process each, which `torchrun`, `mpirun` or `srun` has started.
    pub fn in_several_processes(mut self) -> Self {
        self.group.in_processes = true;
        self
    }

    /// Adds an implementation.
    pub fn with(mut self, row: Implementation<W>) -> Self {
        self.group.rows.push(row.row);
        self
    }

    /// Adds the rows of an operation on data in host memory: `transfer` from ordinary memory by plain
    /// copies, and `transfer-pinned`. `link_bytes` cross the link at a size; `declare` completes each
    /// row.
    pub fn with_transfers(
        mut self,
        make: impl Fn(&Rc<Gpu>, &Rc<W>, HostMemory) -> Result<Box<dyn Routine>> + Copy + 'static,
        link_bytes: impl Fn(u64) -> LinkBytes + Copy + 'static,
        declare: impl Fn(Implementation<W>, HostMemory) -> Implementation<W>,
    ) -> Self {
        for (name, memory) in [("transfer", Pageable), ("transfer-pinned", Pinned)] {
            let cost = self.group.cost.clone();
            let row = Implementation::gpu(name, Clock::Wall, move |gpu, problem| {
                make(gpu, problem, memory)
            })
            .cost(move |size| Cost {
                link_bytes: Some(link_bytes(size)),
                ..cost(size)
            });
            self = self.with(declare(row.data(memory), memory));
        }
        self
    }
}

impl AnyGroup {
    /// The group's name, the first part of its ids.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The group's title, question and axis.
    pub fn topic(&self) -> &GroupInfo {
        &self.topic
    }

    /// Device and name of each implementation, such as `gpu/cublas`, in the order of the table.
    pub fn functions(&self) -> Vec<String> {
        self.rows.iter().map(AnyRow::function).collect()
    }

    /// The implementation of this device and name.
    pub(super) fn row(&self, function: &str) -> Result<&AnyRow> {
        let row = self.rows.iter().find(|row| row.function() == function);
        row.ok_or_else(|| "there is no such implementation".into())
    }

    /// The kernel sources of its GPU implementations.
    pub fn kernels(&self) -> &'static [&'static Source] {
        (self.operation.kernels)()
    }

    /// Makes the inputs of a size and calls `visit` with their bytes, in pieces, for a digest.
    pub fn visit_inputs(&self, size: u64, visit: &mut dyn FnMut(&[u8])) {
        (self.operation.visit_inputs)(&(self.operation.inputs)(size), visit);
    }

    /// Declares that tests call [`verify`](Self::verify) for every implementation, so a run that
    /// measures does not verify the odd sizes again.
    pub fn verified_by_tests(mut self) -> Self {
        self.verified_by_tests = true;
        self
    }

    pub(super) fn sizes_of<'a>(&'a self, row: &'a AnyRow) -> &'a Sizes {
        row.sizes.as_ref().unwrap_or(&self.sizes)
    }

    /// Every benchmark of a size set, by size and then in the order of the table.
    pub fn planned(&self, set: SizeSet) -> Vec<Planned> {
        (self.plan(set).into_iter())
            .map(|(size, row)| {
                let id = self.id_of(row, size);
                Planned {
                    id: id.to_string(),
                    size,
                    clock: row.clock,
                    role: row.role.clone(),
                    cost: self.cost_of(row, size),
                    throughput: self
                        .rate
                        .as_ref()
                        .map(|rate| (rate.amount(size as f64), rate.unit())),
                    host_bytes: (self.operation.host_bytes)(size),
                    device_bytes: row.is_gpu().then(|| (self.operation.device_bytes)(size)),
                }
            })
            .collect()
    }

    /// The id of a row at a size.
    pub(super) fn id_of(&self, row: &AnyRow, size: u64) -> Id {
        Id::new(self.name, &row.function(), size)
    }

    pub(super) fn cost_of(&self, row: &AnyRow, size: u64) -> Cost {
        let cost = row.cost.as_ref().unwrap_or(&self.cost)(size);
        Cost {
            launches: row.kernels.or(cost.launches),
            ..cost
        }
    }

    /// The benchmarks of this size set: by size, so that inputs are made once per size, and then in the
    /// order of the table.
    pub(super) fn plan(&self, set: SizeSet) -> Vec<(u64, &AnyRow)> {
        let of_row = |row| {
            let sizes: BTreeSet<u64> = self.sizes_of(row).of(set).iter().copied().collect();
            sizes.into_iter().map(move |size| (size, row))
        };
        let mut plan: Vec<(u64, &AnyRow)> = self.rows.iter().flat_map(of_row).collect();
        plan.sort_by_key(|(size, _)| *size);
        plan
    }
}
