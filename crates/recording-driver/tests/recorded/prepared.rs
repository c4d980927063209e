//! Memory of a routine that is dropped, in the hands of another routine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::rc::Rc;

use crossover::device::Gpu;
use crossover::model::Verified;
use crossover::workload::HostMemory::Pageable;
use crossover::workload::{Device, Prepared, Routine, RoutineError};

use crate::stand_in::{StandIn, expect};

/// More values than the other routine has, so that nobody else gets their memory.
const FREED: usize = 1 << 20;

type Use = fn(&mut Prepared, own: Device<f32>, freed: Device<f32>) -> Result<(), RoutineError>;

/// Every way to hand memory to a routine, with the name that is printed.
const USES: &[(&str, Use)] = &[
    ("poison", |work, _, freed| {
        work.poison_by(freed, 0);
        Routine::poison(work)
    }),
    ("outputs", |work, _, freed| {
        work.poison_by(freed, 0);
        drop(work.outputs());
        Ok(())
    }),
    ("restore to", |work, own, freed| {
        work.restore(freed, own);
        Routine::restore(work)
    }),
    ("restore from", |work, own, freed| {
        work.restore(own, freed);
        Routine::restore(work)
    }),
    ("read", |work, _, freed| {
        work.check_values(None, freed, 0.0, |_| verified())?;
        work.check().map(drop)
    }),
    ("copy", |work, _, freed| {
        work.check_values(Some(Pageable), freed, 0.0, |_| verified())?;
        work.run()
    }),
];

fn verified() -> Verified {
    Verified {
        error: 0.0,
        bound: 0.0,
        method: String::new(),
    }
}

/// The task of the process that was started again: each use ends with a panic that names the cause, before
/// the driver is called.
pub(crate) fn run() -> ExitCode {
    std::panic::set_hook(Box::new(|_| {}));
    let gpu = Rc::new(Gpu::open(0).unwrap());
    let ends = |each: &Use| {
        let freed = Prepared::new(&gpu).unwrap().output(FREED).unwrap();
        let mut work = Prepared::new(&gpu).unwrap();
        let own = work.output(1).unwrap();
        let outcome = catch_unwind(AssertUnwindSafe(|| each(&mut work, own, freed)));
        let panic = outcome
            .err()
            .and_then(|panic| panic.downcast::<String>().ok());
        panic.is_some_and(|panic| panic.contains("are another routine's"))
    };
    let accepted = USES.iter().filter(|(_, each)| !ends(each));
    let names: Vec<&str> = accepted.map(|(name, _)| *name).collect();
    println!("accepted: {names:?}");
    ExitCode::from(u8::from(!names.is_empty()))
}

pub(crate) fn refused() {
    expect(&mut StandIn::new().command("prepared", "h200"), 0);
}
