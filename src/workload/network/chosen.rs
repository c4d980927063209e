//! One product of a network, computed in the way that is fastest on this device.

use std::fmt;
use std::rc::Rc;

use cudarc::driver::CudaStream;

use crate::device::Gpu;
use crate::timing::{CudaError, Launch};
use crate::workload::network::tensor::Element;
use crate::workload::network::tile::{self, Tile};
use crate::workload::prepare::{
    Algorithm, Epilogue, LtProduct, Product, Workspace, choose, launches,
};
use crate::workload::routine::RoutineError;

/// A way to compute a product, with everything fixed.
pub(super) enum GpuPlan {
    Library(Rc<LtProduct>, Algorithm),
    Own(Tile, Launch),
}

impl GpuPlan {
    /// Enqueues the product.
    ///
    /// # Safety
    /// Nothing else may use C or the library's workspace at the same time, and A, B and what is
    /// added must stay as they are until the product has run. The context must be current on this
    /// thread.
    pub(super) unsafe fn enqueue(&self, stream: &CudaStream) -> Result<(), CudaError> {
        // SAFETY: `ways` made the way with its arguments; the caller keeps others from its memory.
        unsafe {
            match self {
                GpuPlan::Library(product, algorithm) => product.enqueue(algorithm, stream),
                GpuPlan::Own(_, launch) => launch.launch(stream),
            }
        }
    }
}

impl fmt::Display for GpuPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuPlan::Library(_, algorithm) => write!(f, "cuBLASLt {algorithm}"),
            GpuPlan::Own(tile, _) => write!(f, "our own kernel, {tile}"),
        }
    }
}

/// All ways to compute a product: the library's algorithms and, if `product.own`, our own kernels.
///
/// # Errors
/// Those of CUDA and cuBLASLt, lengths that do not fit.
///
/// # Safety
/// As [`fastest`].
unsafe fn ways(
    gpu: &Gpu,
    workspace: &Rc<Workspace>,
    product: Product,
) -> Result<Vec<GpuPlan>, RoutineError> {
    let (m, k) = product.a.shape();
    let (b_rows, n) = product.b.shape();
    if b_rows != k || product.c.shape() != (m, n) || product.c.transposed {
        return Err(format!("{}: the lengths do not fit", product.name).into());
    }
    gpu.bind()?;
    // SAFETY: the caller gave matrices of these sizes, of which C overlaps none of the others.
    let (library, algorithms) = unsafe { LtProduct::new(workspace, product) }?;
    let library = Rc::new(library);
    let algorithms = algorithms.into_iter();
    let mut ways: Vec<GpuPlan> = algorithms
        .map(|algorithm| GpuPlan::Library(library.clone(), algorithm))
        .collect();
    if product.own {
        let tiles = tile::launches(gpu, &product)?.into_iter();
        ways.extend(tiles.map(|(tile, launch)| GpuPlan::Own(tile, launch)));
    }
    Ok(ways)
}

/// The name of the choice.
fn choice(gpu: &Gpu, product: &Product, ways: &[GpuPlan]) -> String {
    let ((m, k), (_, n)) = (product.a.shape(), product.b.shape());
    let element = match product.a.element == Element::F32.data_type() {
        true => "f32",
        false => "BF16",
    };
    let epilogue = match product.epilogue {
        Epilogue::Nothing => "",
        Epilogue::Bias(_) => " with bias",
        Epilogue::ReluBias(_) => " with bias and ReLU",
    };
    let added = if product.added.is_some() {
        ", added to a matrix"
    } else {
        ""
    };
    let count = match product.count {
        1 => String::new(),
        count => format!("{count} times "),
    };
    let own = match ways.iter().any(|way| matches!(way, GpuPlan::Own(..))) {
        true => " or a kernel of our own",
        false => "",
    };
    let device = &gpu.properties().name;
    format!(
        "{}, {count}{m} x {n} x {k} in {element}{epilogue}{added}, by cuBLASLt{own} on {device}",
        product.name
    )
}

/// The fastest way to compute a product on this device, and its launches, counted by capturing it;
/// `None` if no way has this epilogue. The operands must hold numbers, because the calibration
/// multiplies them, and C is overwritten.
///
/// # Errors
/// Those of CUDA and cuBLASLt, lengths that do not fit.
///
/// # Safety
/// The addresses must be device memory of matrices of these sizes and number as long as this
/// lives, and C must not overlap A, B or what is added.
pub(super) unsafe fn fastest(
    gpu: &Rc<Gpu>,
    workspace: &Rc<Workspace>,
    product: Product,
) -> Result<Option<(GpuPlan, u32)>, RoutineError> {
    // SAFETY: the caller gave matrices of these sizes, of which C overlaps none of the others.
    let mut ways = unsafe { ways(gpu, workspace, product) }?;
    if ways.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = ways.iter().map(GpuPlan::to_string).collect();
    let choice = choice(gpu, &product, &ways);
    let chosen = choose::on_gpu(gpu, &choice, &names, |at| {
        // SAFETY: the stream runs one way at a time, and `choose` waits for what it enqueues.
        unsafe { ways[at].enqueue(gpu.stream()) }
    })?;
    let way = ways.swap_remove(chosen);
    // SAFETY: nothing else is on the stream, and `launches` waits for what it enqueues.
    let launches = launches(gpu, || unsafe { way.enqueue(gpu.stream()) })?;
    Ok(Some((way, launches)))
}

#[cfg(test)]
mod tests;
