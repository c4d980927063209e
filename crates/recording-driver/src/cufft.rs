//! Stands in for cuFFT: plans of complex transforms of f32 on signals that lie one behind the other.
//! <https://docs.nvidia.com/cuda/cufft/>

use std::ffi::c_int;

use crate::fault::{Fault, code};
use crate::library::{Handles, Library, library, unknown};
use crate::log;
use crate::objects::Used;
use crate::state::lock;

/// cufftResult.
const INVALID_PLAN: i32 = 1;
const ALLOC_FAILED: i32 = 2;
const INVALID_VALUE: i32 = 4;
const EXEC_FAILED: i32 = 6;
const INVALID_SIZE: i32 = 8;

const CUFFT: Library = Library {
    statuses: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 16, 17, 18, 19, 20],
    invalid: INVALID_VALUE,
    no_memory: ALLOC_FAILED,
    failed: EXEC_FAILED,
    logged: true,
    passes: true,
};

#[derive(Clone, Copy)]
pub(crate) struct Plan {
    n: c_int,
    batch: c_int,
    stream: u64,
}

/// A plan is a number of 32 bits. The memory that the library keeps for it is not modelled.
pub(crate) static PLANS: Handles<Plan> = Handles::new("fft", INVALID_PLAN, 0x0ff7_0000);

/// `CUFFT_C2C`.
const C2C: c_int = 0x29;

library! { CUFFT:
    fn cufftPlan1d(plan: *mut c_int, n: c_int, of: c_int, batch: c_int) = {
        if of != C2C {
            return Err(unknown("a transform of type", of));
        }
        if n < 1 || batch < 1 {
            return Err(Fault::new(INVALID_SIZE, format!("{batch} transforms of {n} values")));
        }
        let given = match CUFFT.follows() {
            true => Some(CUFFT.get(plan)? as u64),
            false => None,
        };
        let new = PLANS.insert(Plan { n, batch, stream: 0 }, given);
        CUFFT.put(plan, new as c_int)?;
        log::call(format_args!("plan {}: {batch} transforms of {n}", PLANS.name_of(new)));
        Ok(())
    };

    fn cufftSetStream(plan: c_int, stream: u64) = {
        let plan = plan as u64;
        PLANS.with(plan, |plan| plan.stream = stream)?;
        let mut state = lock();
        let usable = state.usable_stream(stream).map_err(|fault| CUFFT.invalid(fault.why))?;
        let (plan, stream) = (PLANS.name_of(plan), &state.streams[&usable].name);
        log::call(format_args!("{plan} works on {stream}"));
        Ok(())
    };

    fn cufftExecC2C(plan: c_int, from: u64, to: u64, direction: c_int) = {
        let name = PLANS.name_of(plan as u64);
        let Plan { n, batch, stream } = PLANS.copy(plan as u64)?;
        let words = match direction {
            -1 => "forward",
            1 => "inverse",
            other => return Err(CUFFT.invalid(format!("{other} is no direction"))),
        };
        let values = n as u64 * batch as u64;
        let used = [("the spectra", to), ("the signals", from)].map(|(name, address)| Used {
            name,
            address,
            bytes: 8 * values,
        });
        let mut state = lock();
        for Used { name, address, bytes } in &used {
            (state.memory.check(*address, *bytes))
                .map_err(|fault| Fault::corrupts(format!("{name}: {}", fault.why)))?;
        }
        let text = format!(
            "cufftExecC2C by {name}, {batch} of {n} {words}: {} -> {}",
            state.memory.name_of(from),
            state.memory.name_of(to)
        );
        let flop = 5.0 * values as f64 * f64::from(n).log2();
        let launched = state.launch_library(stream, &text, flop, used.to_vec());
        launched.map_err(|fault| Fault {
            code: match fault.code {
                code::OUT_OF_MEMORY => ALLOC_FAILED,
                _ => EXEC_FAILED,
            },
            ..fault
        })
    };

    fn cufftDestroy(plan: c_int) = {
        let name = PLANS.remove(plan as u64)?;
        log::call(format_args!("destroy {name}"));
        Ok(())
    };
}
