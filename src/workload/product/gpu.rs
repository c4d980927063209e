//! The ways to compute a product on the GPU, and the choice of the fastest.

use std::fmt;
use std::rc::Rc;

use cudarc::driver::CudaStream;

use crate::device::Gpu;
use crate::timing::{CudaError, Launch};
use crate::workload::prepare::{choose, launches};
use crate::workload::product::cublas::{Algorithm, CublasCall, LtProduct, Workspace};
use crate::workload::product::shape::{Product, Shape};
use crate::workload::product::{few_rows, tile};
use crate::workload::routine::RoutineError;

/// A way to compute a product, with everything fixed.
pub(crate) enum GpuPlan {
    Cublas(CublasCall),
    CublasLt(Rc<LtProduct>, Algorithm),
    /// Named by how it divides the work.
    Own(String, Launch),
}

impl GpuPlan {
    /// By cuBLAS, which chooses the algorithm.
    ///
    /// # Errors
    /// As [`CublasCall::new`].
    pub(crate) fn cublas(gpu: &Gpu, product: &Product) -> Result<Self, RoutineError> {
        CublasCall::new(gpu, product).map(Self::Cublas)
    }

    /// By each algorithm that cuBLASLt proposes, in the order of its own estimate.
    ///
    /// # Errors
    /// Errors of CUDA and cuBLASLt.
    ///
    /// # Safety
    /// As for [`fastest`].
    pub(crate) unsafe fn cublaslt(
        workspace: &Rc<Workspace>,
        product: Product,
    ) -> Result<Vec<Self>, RoutineError> {
        // SAFETY: the caller gave matrices of these sizes, of which C overlaps none of the others.
        let (library, algorithms) = unsafe { LtProduct::new(workspace, product) }?;
        let library = Rc::new(library);
        let plan = |algorithm| Self::CublasLt(library.clone(), algorithm);
        Ok(algorithms.into_iter().map(plan).collect())
    }

    /// Enqueues the product. cuBLAS takes the GPU's stream.
    ///
    /// # Safety
    /// Nothing else may use C or the library's workspace at the same time, and A, B and what is
    /// added must be memory of matrices of these sizes and formats and stay as they are until the
    /// product has run. The context must be current on this thread.
    pub(crate) unsafe fn enqueue(&self, stream: &CudaStream) -> Result<(), CudaError> {
        // SAFETY: each plan was made with its arguments; the caller keeps others from its memory.
        unsafe {
            match self {
                GpuPlan::Cublas(call) => call.enqueue(),
                GpuPlan::CublasLt(product, algorithm) => product.enqueue(algorithm, stream),
                GpuPlan::Own(_, launch) => launch.launch(stream),
            }
        }
    }
}

impl fmt::Display for GpuPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GpuPlan::Cublas(_) => write!(f, "cuBLAS"),
            GpuPlan::CublasLt(_, algorithm) => write!(f, "cuBLASLt {algorithm}"),
            GpuPlan::Own(name, _) => write!(f, "our own kernel, {name}"),
        }
    }
}

/// The ways to try: cuBLASLt's algorithms and, if `product.own`, our own kernels.
///
/// # Errors
/// Errors of CUDA and cuBLASLt, lengths that do not fit.
///
/// # Safety
/// As [`fastest`].
unsafe fn candidates(
    gpu: &Gpu,
    workspace: &Rc<Workspace>,
    product: Product,
) -> Result<Vec<GpuPlan>, RoutineError> {
    let shape = product.shape()?;
    gpu.bind()?;
    // SAFETY: the caller gave matrices of these sizes, of which C overlaps none of the others.
    let mut plans = unsafe { GpuPlan::cublaslt(workspace, product) }?;
    if product.own {
        let own = tile::of_layer(gpu, &product, shape)?.into_iter();
        let own = own.chain(few_rows::candidates(gpu, &product, shape)?);
        plans.extend(own.map(|(name, launch)| GpuPlan::Own(name, launch)));
    }
    Ok(plans)
}

/// The name of the choice.
fn choice(gpu: &Gpu, product: &Product, plans: &[GpuPlan]) -> Result<String, RoutineError> {
    let Shape { batch, m, n, k } = product.shape()?;
    let count = match batch {
        1 => String::new(),
        count => format!("{count} times "),
    };
    let bias = product.bias.map_or("", |_| " with bias");
    let relu = if product.relu { " and ReLU" } else { "" };
    let added = product.added.map_or("", |_| ", added to a matrix");
    let is_own = |plan: &GpuPlan| matches!(plan, GpuPlan::Own(..));
    let own = if plans.iter().any(is_own) {
        " or a kernel of our own"
    } else {
        ""
    };
    Ok(format!(
        "{}, {count}{m} x {n} x {k} in {}{bias}{relu}{added}, by cuBLASLt{own} on {}",
        product.name,
        product.a.format.name(),
        gpu.properties().name
    ))
}

/// The fastest way to compute a product on this device, and its launches, counted by capturing it;
/// `None` if no way has this epilogue. The operands must hold numbers, because the calibration
/// multiplies them, and C is overwritten.
///
/// # Errors
/// Errors of CUDA and cuBLASLt, lengths that do not fit.
///
/// # Safety
/// The addresses must be device memory of matrices of these sizes and number as long as this
/// lives, and C must not overlap A, B or what is added.
pub(crate) unsafe fn fastest(
    gpu: &Rc<Gpu>,
    workspace: &Rc<Workspace>,
    product: Product,
) -> Result<Option<(GpuPlan, u32)>, RoutineError> {
    // SAFETY: the caller gave matrices of these sizes, of which C overlaps none of the others.
    let mut plans = unsafe { candidates(gpu, workspace, product) }?;
    if plans.is_empty() {
        return Ok(None);
    }
    let names: Vec<String> = plans.iter().map(GpuPlan::to_string).collect();
    let choice = choice(gpu, &product, &plans)?;
    let chosen = choose::on_gpu(gpu, &choice, &names, |at| {
        // SAFETY: the stream runs one plan at a time, and `choose` waits for what it enqueues.
        unsafe { plans[at].enqueue(gpu.stream()) }
    })?;
    let plan = plans.swap_remove(chosen);
    // SAFETY: nothing else is on the stream, and `launches` waits for what it enqueues.
    let launches = launches(gpu, || unsafe { plan.enqueue(gpu.stream()) })?;
    Ok(Some((plan, launches)))
}

#[cfg(test)]
mod tests;
