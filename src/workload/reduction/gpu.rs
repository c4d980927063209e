//! The sum on the GPU.

use std::rc::Rc;

use cudarc::driver::sys::CUdeviceptr;

use crate::device::Gpu;
use crate::model::Verified;
use crate::timing::Launch;
use crate::workload::prepare::end_to_end::cut;
use crate::workload::prepare::{
    Buffers, EndToEnd, HostMemory, Prepared, Stage, Stages, end_to_end,
};
use crate::workload::reduction::problem::{REDUCTION, Sum};
use crate::workload::routine::{Result, Routine};

/// Threads of a block: `THREADS` in the source.
const THREADS: u32 = 256;
/// From this many terms per thread on, there are as many blocks as the device holds at once.
const TERMS: usize = 16;
/// Blocks per multiprocessor: as many as those with the fewest threads (compute capability 7.5) hold.
/// With 32 terms of each thread in flight, these are 128 KiB per multiprocessor, four times what a
/// memory of 5 TB/s with a latency of 0.9 µs needs from each of 132.
const BLOCKS: u32 = 4;
/// No chain of additions is longer at any size, even for 2^30 terms on 20 multiprocessors.
const LONGEST: usize = 2048;

/// How the blocks' sums are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSum {
    /// By a second kernel.
    BySecondKernel,
    /// By the last block, which an atomic counter finds. Atomic additions to the result would need a
    /// zeroed result, and would add in another order each time.
    ByLastBlock,
}

/// On terms in device memory. If the host `reads` the result, each iteration copies it to pinned memory
/// and waits: time it on the wall clock.
///
/// # Errors
/// Errors of CUDA and of the kernel's compilation.
pub fn resident(
    gpu: &Rc<Gpu>,
    problem: &Rc<Sum>,
    joined: BlockSum,
    reads: bool,
) -> Result<Box<dyn Routine>> {
    let (n, blocks) = (problem.x.len(), blocks(gpu, problem.x.len()));
    let mut work = Prepared::new(gpu)?;
    let x = work.upload(&problem.x)?.address;
    let parts = work.output::<f32>(blocks as usize)?.address;
    let y = work.output::<f32>(1)?;
    let counter = work.state(&[0u32])?.address;
    match joined {
        BlockSum::BySecondKernel => {
            for kernel in two_kernels(gpu, n, [x, y.address, parts], n, false)? {
                // SAFETY: `two_kernels` gives the arguments; the routine owns `n` terms and a part for each block.
                unsafe { work.kernel(kernel) };
            }
        }
        BlockSum::ByLastBlock => {
            let launch = gpu.launch(&REDUCTION, "sum_last_block", blocks, THREADS)?;
            let launch = launch.arg(x).arg(n as u64).arg(parts);
            // SAFETY: the kernel takes these; the routine owns them, with a part for each block.
            unsafe { work.kernel(launch.arg(counter).arg(y.address)) };
        }
    }
    let judge = problem.clone();
    let check = move |y: &[f32]| Sum::check(&judge, LONGEST, y);
    work.check_values(reads.then_some(HostMemory::Pinned), y, f32::NAN, check)?;
    work.notes.push(format!(
        "order: each thread every {THREADS} * blocks-th four terms in 16 chains, then pairs of its sums, of threads and of blocks"
    ));
    Ok(Box::new(work))
}

/// By two kernels, from terms in host memory to a result in host memory. It synchronises: time it on
/// the wall clock.
///
/// # Errors
/// As [`resident`].
pub fn from_host(gpu: &Rc<Gpu>, problem: &Rc<Sum>, memory: HostMemory) -> Result<Box<dyn Routine>> {
    end_to_end::from_host(gpu, problem, memory)
}

// SAFETY: a piece is a part of the terms.
unsafe impl EndToEnd for Sum {
    type Value = f32;

    const POISON: f32 = f32::NAN;

    fn words(&self) -> String {
        format!("sum of {} values", self.x.len())
    }

    fn operands(&self) -> Vec<&[f32]> {
        vec![&self.x]
    }

    fn result(&self) -> usize {
        1
    }

    fn scratch(&self, gpu: &Gpu) -> usize {
        blocks(gpu, self.x.len()) as usize
    }

    fn check(&self, result: &[f32]) -> Verified {
        Sum::check(self, LONGEST, result)
    }

    /// Each piece adds to the parts, and the last piece adds up the parts.
    fn stages(&self, gpu: &Rc<Gpu>, places: &Buffers, pieces: usize) -> Stages {
        let n = self.x.len();
        let stage = |(first, len): (usize, usize)| -> Result<Stage> {
            let from = places.piece(0, first, len);
            let at = [from.device, places.device[1], places.device[2]];
            let [shares, of_parts] = two_kernels(gpu, n, at, len, first > 0)?;
            let is_last = first + len == n;
            let of_parts = is_last.then_some(of_parts);
            Ok(Stage {
                uploads: vec![from],
                // SAFETY: a piece lies within the terms, which the caller of `of_stages` keeps.
                compute: Box::new(move |stream| unsafe {
                    shares.launch(stream)?;
                    of_parts.iter().try_for_each(|kernel| kernel.launch(stream))
                }),
                downloads: Vec::from_iter(is_last.then(|| places.piece(1, 0, 1))),
            })
        };
        cut(n, pieces).map(stage).collect()
    }
}

type Kernels = Result<[Launch; 2]>;

/// The kernels of a sum of `n` terms, on `len` of them, at the addresses of the terms, the result and
/// the parts. If `adds`, the first kernel adds to the parts.
fn two_kernels(gpu: &Gpu, n: usize, at: [CUdeviceptr; 3], len: usize, adds: bool) -> Kernels {
    let (blocks, [x, y, parts]) = (blocks(gpu, n), at);
    let shares = gpu.launch(&REDUCTION, "sum_shares", blocks, THREADS)?;
    let shares = shares.arg(x).arg(len as u64).arg(parts);
    let of_parts = gpu.launch(&REDUCTION, "sum_parts", 1, THREADS)?;
    let of_parts = of_parts.arg(parts).arg(blocks).arg(y);
    Ok([shares.arg(u32::from(adds)), of_parts])
}

/// Number of blocks that add `n` terms.
fn blocks(gpu: &Gpu, n: usize) -> u32 {
    let most = BLOCKS * gpu.properties().multiprocessors;
    let needed = n.div_ceil(TERMS * THREADS as usize);
    u32::try_from(needed).unwrap_or(most).clamp(1, most)
}
