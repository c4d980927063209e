//! A kernel of known duration, timed in five ways. The id's size is the true time in nanoseconds.

use crossover_suite::model::{Cost, Truth, Unit};
use crossover_suite::suite::{Group, Implementation, Sizes};
use crossover_suite::timing::Clock::{Events, EventsCold, EventsGated, Submit, Wall};
use crossover_suite::workload::timing_methods::{self, Spin};

pub(crate) fn group() -> Group<Spin> {
    let decades = |exponents: &[u32]| exponents.iter().map(|&e| 10u64.pow(e)).collect::<Vec<_>>();
    let default = decades(&[3, 6]);
    let full = decades(&[3, 4, 5, 6, 7, 8]);
    let sizes = Sizes::new(default.clone(), default, full.clone()).odd([1_000, 12_345]);
    // Each size starts eleven processes, and the first call costs the same more at every size.
    let spin = timing_methods::spin;
    let cost = |_| Cost::default().launches(1);
    let on = |name, clock| Implementation::gpu(name, clock, spin);
    Group::new("timing_methods", sizes, None, cost)
        .about(
            "Timing a known kernel",
            "A kernel that spins for a known time, timed in five ways: by how much is each way \
             wrong, and at which durations?",
        )
        .no_inputs()
        .axis("t", "t, true time on the device", Unit::Time)
        .words("a kernel of known duration", "kernel")
        .truth(Truth::Size)
        .with(on("spin-submit", Submit))
        .with(on("spin-wall", Wall).awaited())
        .with(on("spin-events", Events))
        .with(on("spin-events-gated", EventsGated))
        .with(on("spin-events-cold", EventsCold))
}
