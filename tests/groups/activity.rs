//! The gated clock against CUPTI's records, an independent one.

use std::rc::Rc;

use crossover_suite::device::Gpu;
use crossover_suite::suite::SizeSet;
use crossover_suite::timing::{Clock, CudaTime, GateMode};
use crossover_suite::workload::RoutineError;

const ITERATIONS: u64 = 100;
/// Groups that need several devices.
const OF_SEVERAL: [&str; 2] = ["peer_copy", "all_reduce"];

/// Prints a line for each gated benchmark of the size set `quick` on one device: its gated time without the constant of
/// its launches, and how long the device was busy.
pub(crate) fn agrees_with_gated() -> Result<(), RoutineError> {
    let gated = Clock::EventsGated;
    let gpu = Rc::new(Gpu::open(0)?);
    // SAFETY: no slice is used on another stream.
    let time = CudaTime::on_stream(unsafe { gpu.timed_stream() }, GateMode::Required)?;
    println!(
        "| benchmark | launches | kernels | gated less constants, ns | device busy, ns | more, ns |"
    );
    let mut apart = Vec::new();
    for group in crate::groups() {
        for planned in group.planned(SizeSet::Quick) {
            if planned.clock != gated || OF_SEVERAL.contains(&group.name()) {
                continue;
            }
            let (row, _) = planned.id.rsplit_once('/').ok_or("an id has a size")?;
            let function = &row[group.name().len() + 1..];
            group.with_routine(function, planned.size, &gpu, &mut |routine| {
                time.shorten_launches()?;
                let launches = time.count_launches(|| routine.run())?;
                let launches = launches.map_or(1.0, |counted| f64::from(counted.launches));
                time.measure(gated, ITERATIONS, || routine.run())?;
                let ns = time.measure(gated, ITERATIONS, || routine.run())? / ITERATIONS as f64;
                let constant = time.launch_constant(gated)?.ok_or("the gate works")?;
                let activity = time.measure_activity(ITERATIONS, || routine.run())?;
                let busy = activity.busy_ns as f64 / ITERATIONS as f64;
                let less = ns - launches * constant;
                let (id, more) = (&planned.id, busy - less);
                let kernels = activity.kernels as f64 / ITERATIONS as f64;
                println!("| {id} | {launches} | {kernels} | {less:.0} | {busy:.0} | {more:.0} |");
                // CUPTI's kernels are 0.4 to 0.5 µs longer (H200). A graph's gaps between nodes are in its gated time.
                if activity.busy_ns == 0 || more.abs() > 0.03 * ns + 1_000.0 * kernels {
                    apart.push(id.clone());
                }
                Ok(())
            })?;
        }
    }
    match apart[..] {
        [] => Ok(()),
        _ => Err(format!("apart by over 3 % and 1 µs per kernel: {apart:?}").into()),
    }
}
