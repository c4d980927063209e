//! The rows of each network, from one kernel per operation to one graph.

use std::rc::Rc;

use crossover_suite::device::Gpu;
use crossover_suite::model::Launches::{Fused, Graph, OneByOne};
use crossover_suite::model::{Cost, Format, Launches, Library, LinkBytes};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::{self, Events, EventsGated, Wall};
use crossover_suite::workload::{HostMemory, Result, Routine, Workload};

type CpuMaker<W> = fn(&Rc<W>, usize) -> Result<Box<dyn Routine>>;
type GpuMaker<W> =
    fn(&Rc<Gpu>, &Rc<W>, Format, Launches, Option<HostMemory>) -> Result<Box<dyn Routine>>;

/// The parts that differ between networks.
pub(crate) struct Network<W> {
    /// Makes the routine on up to this many threads.
    pub(crate) on_cpu: CpuMaker<W>,
    pub(crate) on_gpu: GpuMaker<W>,
    pub(crate) one_thread_sizes: Sizes,
    /// Sizes at which launches matter: with a large batch these rows hardly differ.
    pub(crate) launch_sizes: Sizes,
    /// Cost of a batch in a format, in few kernels or one per operation.
    pub(crate) cost: fn(u64, Format, bool) -> Cost,
    pub(crate) link_bytes: fn(u64) -> LinkBytes,
}

impl<W: Workload> Network<W> {
    pub(crate) fn rows(&self, group: Group<W>) -> Group<W> {
        let (on_cpu, make, cost) = (self.on_cpu, self.on_gpu, self.cost);
        let row = |name, clock: Clock, format: Format, launches| {
            Implementation::gpu(name, clock, move |gpu, problem| {
                make(gpu, problem, format, launches, None)
            })
            .launches(launches)
            .cost(move |batch| cost(batch, format, launches != OneByOne))
            .format(format)
            .library(Library::Cublas)
        };
        let eager = |name, clock| row(name, clock, Format::F32, OneByOne);
        let launch_sizes = || self.launch_sizes.clone();
        group
            .with(Implementation::cpu("best", move |problem| {
                on_cpu(problem, rayon::current_num_threads())
            }))
            .with(
                Implementation::cpu("best-1-thread", move |problem| on_cpu(problem, 1))
                    .one_thread()
                    .reference_only()
                    .sizes(self.one_thread_sizes.clone()),
            )
            .with(eager("eager", Events))
            .with(eager("eager-gated", EventsGated).sizes(launch_sizes()))
            .with(eager("eager-awaited", Wall).awaited())
            .with(row("fused", Events, Format::F32, Fused).sizes(launch_sizes()))
            .with(row("fused-gated", EventsGated, Format::F32, Fused).sizes(launch_sizes()))
            .with(row("graph", Events, Format::F32, Graph))
            .with(row("graph-gated", EventsGated, Format::F32, Graph))
            .with(row("graph-awaited", Wall, Format::F32, Graph).awaited())
            // Its format has fewer bits than the CPU's, so it is no answer.
            .with(row("graph-bf16-gated", EventsGated, Format::Bf16, Graph).reference_only())
            .with_transfers(
                move |gpu, problem, memory| make(gpu, problem, Format::F32, Graph, Some(memory)),
                self.link_bytes,
                |row, _| row.launches(Graph).library(Library::Cublas),
            )
    }
}
