//! Nested sine from and to host memory, in pieces: what overlapping the upload, the kernel and the
//! download saves, and what overlapping needs.
//!
//! The size is the number of f32 values. All host memory is pinned. The limit is the time of
//! the longer one-way copy: the link carries both directions at once.

use std::rc::Rc;

use crate::device::{Gpu, kernel::Source};
use crate::model::{Cost, Launches};
use crate::workload::nested_sine::{self, NestedSine};
use crate::workload::prepare::pieces::cut;
use crate::workload::prepare::{HostMemory, On, Prepared, Steps};
use crate::workload::routine::{Made, Workload};

/// The inputs. They are those on which nested sine was timed before adversarial ones had a run of
/// their own: here copies take the time, whatever the values, and ids keep their meaning.
pub struct Streams(Rc<NestedSine>);

impl Workload for Streams {
    fn new(size: u64) -> Self {
        Self(Rc::new(NestedSine::mixed(size)))
    }

    fn host_bytes(size: u64) -> u64 {
        // Input, pinned copy, pinned output, and a copy of the output for the check.
        16 * size
    }

    fn device_bytes(size: u64) -> u64 {
        8 * size
    }

    fn kernels() -> &'static [&'static Source] {
        const { &[&nested_sine::NESTED_SINE] }
    }

    fn visit_inputs(&self, visit: &mut dyn FnMut(&[u8])) {
        self.0.visit_inputs(visit);
    }
}

/// As [`nested_sine::cost_transfer`].
pub fn cost(size: u64) -> Cost {
    nested_sine::cost_transfer(size)
}

/// Upload, kernel and download of at most `pieces` pieces, each stage on a stream of its own. With
/// one piece the stages follow each other. With [`Launches::Synchronised`] the host waits after
/// each stage of each piece: the streams are the same, and nothing overlaps.
///
/// # Errors
/// Other launches than [`Launches::OneByOne`] and [`Launches::Synchronised`], errors of CUDA and of
/// the kernel's compilation.
///
/// # Panics
/// If `pieces` is 0.
pub fn pieces(gpu: &Rc<Gpu>, problem: &Rc<Streams>, pieces: u32, launching: Launches) -> Made {
    let waits = match launching {
        Launches::OneByOne => false,
        Launches::Synchronised => true,
        other => return Err(format!("pieces are not launched {other:?}").into()),
    };
    let problem = &problem.0;
    let mut work = Prepared::new(gpu)?;
    work.steps = Steps::with_streams(gpu)?;
    let n = problem.len();
    let x = work.output::<f32>(n)?;
    let y = work.output::<f32>(n)?;
    let from = work.host_input(HostMemory::Pinned, problem, |problem| problem.input())?;
    let to = work.host_output(HostMemory::Pinned, nested_sine::POISON, n)?;
    let steps = &mut work.steps;
    for (first, len) in cut(n, pieces as usize) {
        let [from, to] = [from, to].map(|host| {
            let first = host.values.cast::<f32>().wrapping_add(first);
            std::ptr::slice_from_raw_parts_mut(first, len)
        });
        let [x, y] = [x.at(first), y.at(first)];
        let kernel = nested_sine::gpu::fused_launch::<f32>(gpu, x, y, len as u64)?;
        // SAFETY: the piece lies within all four, which are the routine's.
        unsafe {
            steps.upload(On::Up, from, x);
            steps.order(On::Up, On::Compute)?;
            if waits {
                steps.wait(On::Up);
            }
            steps.kernel(kernel);
            steps.order(On::Compute, On::Down)?;
            if waits {
                steps.wait(On::Compute);
            }
            steps.download(On::Down, y, to);
            if waits {
                steps.wait(On::Down);
            }
        }
    }
    for stream in [On::Up, On::Compute, On::Down] {
        steps.wait(stream);
    }
    // The other streams are not ordered behind the GPU's.
    work.poison(|memory| Ok(memory.gpu().synchronize()?));
    let problem = problem.clone();
    work.check_by(move |memory| problem.check_output(memory.values(to)?));
    Ok(Box::new(work))
}
