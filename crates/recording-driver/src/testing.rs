//! Set-up that several tests of this crate share.

use crate::context;
use crate::device::description;
use crate::launch::Shape;
use crate::state::State;

/// A kernel without parameters.
pub(crate) const IMAGE: &str = "\
crossover-image
source test.cu
kernel 1024 k
end
";

/// A driver whose context is current on this thread.
pub(crate) fn opened() -> (State, u64) {
    let mut state = State::new(description());
    let context = state.retain();
    context::set_current(context);
    (state, context)
}

const ONE: Shape = Shape {
    grid: [1; 3],
    block: [1; 3],
    shared: 0,
    programmatic: false,
    cooperative: false,
};

/// Launches a kernel without parameters.
pub(crate) fn launched(state: &mut State, stream: u64) {
    let loaded = state.functions.iter().find(|(_, f)| f.kernel.name == "k");
    let function = loaded.map(|(&handle, _)| handle).unwrap_or_else(|| {
        let module = state.load_module(IMAGE).unwrap();
        state.function(module, "k").unwrap()
    });
    // SAFETY: the kernel has no parameters.
    unsafe { state.launch(function, ONE, stream, std::ptr::null()) }.unwrap();
}
