//! Transforms by cuFFT.

use std::rc::Rc;

use cudarc::cufft::result::{self, CufftError};
use cudarc::cufft::sys;
use cudarc::driver::sys::CUdeviceptr;

use crate::device::{Absence, Gpu};
use crate::model::Verified;
use crate::timing::{CudaError, catch_panic};
use crate::workload::fft::cpu::{inverse, scale};
use crate::workload::fft::problem::{BATCH, Fft};
use crate::workload::prepare::{
    Buffers, EndToEnd, HostMemory, Prepared, Stage, Stages, end_to_end,
};
use crate::workload::routine::{Result, Routine};

/// On signals in device memory. The check also has the library invert the spectra.
///
/// # Errors
/// Errors of CUDA and cuFFT; an [`Absence`] without cuFFT.
pub fn resident(gpu: &Rc<Gpu>, problem: &Rc<Fft>) -> Result<Box<dyn Routine>> {
    let mut work = Prepared::new(gpu)?;
    let x = work.upload(&problem.x)?;
    let y = work.output::<f32>(problem.x.len())?;
    // Only the check writes this, not an iteration.
    let back = work.unobserved::<f32>(problem.x.len())?;
    let plan = CufftPlan::new(gpu, problem.n, BATCH)?;
    let forward = plan.clone();
    // SAFETY: `x` and `y` have the length of the plan's signals, and the routine owns them.
    let call = move || unsafe { forward.enqueue(Direction::Forward, x.address, y.address) };
    work.steps.counted_call(move |_| call())?;
    let problem = problem.clone();
    work.check_by(move |memory| {
        // SAFETY: `y` and `back` have the length of the plan's signals, and nothing runs during a check.
        unsafe { plan.enqueue(Direction::Inverse, y.address, back.address) }?;
        let (spectra, mut back) = (memory.read(y)?, memory.read(back)?);
        scale(problem.n, &mut back);
        Ok(problem.check(&spectra, &back))
    });
    Ok(Box::new(work))
}

/// On signals in host memory, where the spectra go. It synchronises: time it on the wall clock.
///
/// # Errors
/// As [`resident`].
pub fn from_host(gpu: &Rc<Gpu>, problem: &Rc<Fft>, memory: HostMemory) -> Result<Box<dyn Routine>> {
    end_to_end::from_host(gpu, problem, memory)
}

// SAFETY: a piece is some of the signals and their spectra.
unsafe impl EndToEnd for Fft {
    type Value = f32;

    const POISON: f32 = f32::NAN;

    fn words(&self) -> String {
        format!("{BATCH} transforms of {}", self.n)
    }

    fn operands(&self) -> Vec<&[f32]> {
        vec![&self.x]
    }

    fn result(&self) -> usize {
        self.x.len()
    }

    fn check(&self, result: &[f32]) -> Verified {
        Fft::check(self, result, &inverse(self.n, result))
    }

    /// No: the library would cross the link in each of its passes over the data.
    fn may_be_mapped(&self) -> bool {
        false
    }

    /// Equal pieces of whole signals.
    fn stages(&self, gpu: &Rc<Gpu>, buffers: &Buffers, pieces: usize) -> Stages {
        let signals = BATCH.div_ceil(pieces).next_power_of_two();
        let plan = CufftPlan::new(gpu, self.n, signals)?;
        let values = 2 * self.n * signals;
        let stage = |at: usize| {
            let [x, y] = [0, 1].map(|place| buffers.piece(place, at * values, values));
            let plan = plan.clone();
            Stage {
                uploads: vec![x],
                // SAFETY: a piece lies within both buffers, which the caller of `of_stages` keeps.
                compute: Box::new(move |_| unsafe {
                    plan.enqueue(Direction::Forward, x.device, y.device)
                }),
                downloads: vec![y],
            }
        };
        Ok((0..BATCH / signals).map(stage).collect())
    }
}

/// Why transforms by cuFFT are left out on a machine without it.
const NO_CUFFT: Absence = Absence::NoLibrary {
    library: "cuFFT",
    remedy: "install the CUDA toolkit's cuFFT (libcufft) to run its transforms",
};

/// Direction of a transform. The inverse lacks the factor 1/N.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward = -1,
    Inverse = 1,
}

/// A plan for complex transforms of one length, whose signals lie one after the other, on the GPU's
/// stream. The library allocates device memory for it.
pub(super) struct CufftPlan {
    handle: sys::cufftHandle,
    /// Its context and stream outlive the plan.
    gpu: Rc<Gpu>,
}

impl CufftPlan {
    /// # Errors
    /// [`NO_CUFFT`] without the library, and its own errors.
    pub(super) fn new(gpu: &Rc<Gpu>, n: usize, batch: usize) -> Result<Rc<Self>> {
        // SAFETY: opens the library and closes it again; its initialisers are the vendor's.
        if !unsafe { sys::is_culib_present() } {
            return Err(NO_CUFFT.into());
        }
        gpu.bind()?;
        let (n, batch) = (i32::try_from(n)?, i32::try_from(batch)?);
        let make = || result::plan_1d(n, sys::cufftType::CUFFT_C2C, batch);
        // cudarc panics where the library lacks a symbol.
        let made = catch_panic(make).map_err(|_| NO_CUFFT)?;
        let plan = Self {
            handle: made.map_err(error)?,
            gpu: gpu.clone(),
        };
        // SAFETY: the plan was just made, and keeps the GPU, with which the stream lives.
        unsafe { result::set_stream(plan.handle, gpu.stream().cu_stream().cast()) }
            .map_err(error)?;
        Ok(Rc::new(plan))
    }

    /// Enqueues the transforms.
    ///
    /// # Safety
    /// Both addresses must be of device memory for all signals of the plan, and nothing else may use
    /// it until the transforms are done.
    pub(super) unsafe fn enqueue(
        &self,
        direction: Direction,
        from: CUdeviceptr,
        to: CUdeviceptr,
    ) -> Result<(), CudaError> {
        let (from, to) = (from as *mut _, to as *mut _);
        // SAFETY: the plan lives; the caller promises memory for all signals, which nobody else uses.
        unsafe { result::exec_c2c(self.handle, from, to, direction as i32) }.map_err(error)
    }
}

impl Drop for CufftPlan {
    fn drop(&mut self) {
        // Another context may be current.
        let _ = self.gpu.bind();
        // SAFETY: made by `new` and destroyed once, while the GPU lives. After the context was lost this
        // fails, which was reported before.
        let _ = unsafe { result::destroy(self.handle) };
    }
}

fn error(error: CufftError) -> CudaError {
    CudaError::with_message("cuFFT", format!("{:?}", error.0))
}
