//! Stands in for cuFFT: plans of complex transforms of f32 on signals that lie one behind the other.
//! <https://docs.nvidia.com/cuda/cufft/>

use std::ffi::c_int;

use crate::call::{Library, exported};
use crate::effects::Effect;
use crate::fault::Fault;
use crate::objects::Used;
use crate::state::{known, removed};

/// Numbers of cufftResult.
const CUFFT: Library = Library {
    all: &[1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 16, 17, 18, 19, 20],
    invalid: 4,
    no_memory: 2,
    failed: 6,
};

/// The memory that the library keeps for a plan is not modelled.
pub(crate) struct Plan {
    pub(crate) name: String,
    n: c_int,
    batch: c_int,
    stream: u64,
}

/// `CUFFT_C2C`.
const C2C: c_int = 0x29;

exported! { CUFFT:
    fn cufftPlan1d(state, n: c_int, of: c_int, batch: c_int) -> c_int {
        if of != C2C {
            return Err(Fault::unknown("a transform of type", of));
        }
        let (name, handle) = (state.names.next("fft"), state.made());
        log!("plan {name}: {batch} transforms of {n}");
        state.plans.insert(handle, Plan { name, n, batch, stream: 0 });
        Ok(handle as c_int)
    }

    fn cufftSetStream(state, plan: c_int, stream: u64) {
        let usable = state.usable_stream(stream)?;
        let plan = known(&mut state.plans, plan as u64, "plan")?;
        plan.stream = stream;
        log!("{} works on {}", plan.name, state.streams[&usable].name);
        Ok(())
    }

    fn cufftExecC2C(state, plan: c_int, from: u64, to: u64, direction: c_int) {
        let &mut Plan { ref name, n, batch, stream } = known(&mut state.plans, plan as u64, "plan")?;
        let words = if direction < 0 { "forward" } else { "inverse" };
        let values = n as u64 * batch as u64;
        let used = [("the spectra", to), ("the signals", from)].map(|(name, address)| Used {
            name,
            address,
            bytes: 8 * values,
        });
        state.memory.check_used(&used)?;
        let text = format!(
            "cufftExecC2C by {name}, {batch} of {n} {words}: {} -> {}",
            state.memory.name_of(from),
            state.memory.name_of(to)
        );
        let effect = Effect::Operations(5.0 * values as f64 * f64::from(n).log2());
        state.launch(stream, effect, used.to_vec(), |on| format!("{text} on {on}"))
    }

    fn cufftDestroy(state, plan: c_int) {
        let plan = removed(&mut state.plans, plan as u64, "plan")?;
        log!("destroy {}", plan.name);
        Ok(())
    }
}
