//! Copies of inputs that are used in rotation, so that no cache holds the next one.

use std::cell::Cell;
use std::rc::Rc;

use crate::cuda_time::CudaTime;
use crate::device::l2_bytes;
use crate::error::{BoxError, TimingError};

/// Copies of a benchmark's inputs that are used in turn. Between two uses of one, the others were
/// used, which together are twice as large as the device's L2 cache: each iteration finds its inputs
/// in memory, and no flush stands between the launches. This holds on every clock, and for replays of
/// a graph ([`measure_graph`](CudaTime::measure_graph)).
///
/// ```no_run
/// use crossover_timing::cudarc::driver::{CudaFunction, LaunchConfig, PushKernelArg};
/// use crossover_timing::{Clock, CudaTime};
///
/// # fn kernel(_: &CudaTime) -> CudaFunction { unimplemented!() }
/// // SAFETY: it is the only stream of the program.
/// let time = unsafe { CudaTime::new(0) }?;
/// let (kernel, stream) = (kernel(&time), time.stream().expect("opened on a device").clone());
/// let n = 1 << 20;
/// let mut inputs = time.rotating(4 * n, |_| stream.alloc_zeros::<f32>(n))?;
/// let ns = time.measure(Clock::EventsGated, 100, || {
///     let mut launch = stream.launch_builder(&kernel);
///     launch.arg(inputs.next_copy());
///     // SAFETY: the kernel takes `n` floats.
///     unsafe { launch.launch(LaunchConfig::for_num_elems(n as u32)) }.map(drop)
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Rotating<T> {
    copies: Vec<T>,
    next: usize,
    /// Tells a capture how many copies there are.
    in_turn: Rc<Cell<usize>>,
}

impl<T> Rotating<T> {
    /// The inputs whose turn it is; after the last, the first again.
    pub fn next_copy(&mut self) -> &mut T {
        let at = self.next;
        self.next = (at + 1) % self.copies.len();
        (self.in_turn).set(self.in_turn.get().max(self.copies.len()));
        &mut self.copies[at]
    }

    /// All copies, for example to fill or to check them.
    pub fn copies(&mut self) -> &mut [T] {
        &mut self.copies
    }
}

impl CudaTime {
    /// Makes as many copies of inputs of `bytes` as it takes for the others to fill the L2 cache twice
    /// while one is used; a single one without a GPU. `make` is given the number of the copy, from 0
    /// on.
    ///
    /// # Errors
    /// The error of `make`, or of the query for the size of the cache.
    pub fn rotating<T, E: Into<BoxError>>(
        &self,
        bytes: usize,
        mut make: impl FnMut(usize) -> Result<T, E>,
    ) -> Result<Rotating<T>, TimingError> {
        let count = match self.device() {
            Some(device) => copies(bytes, l2_bytes(&device.context)?),
            None => 1,
        };
        Ok(Rotating {
            copies: (0..count)
                .map(|number| make(number).map_err(|e| TimingError::from(e.into())))
                .collect::<Result<_, _>>()?,
            next: 0,
            in_turn: self.inner.copies_in_turn.clone(),
        })
    }
}

fn copies(bytes: usize, l2: usize) -> usize {
    1 + (2 * l2).div_ceil(bytes.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_copies_fill_the_cache_twice() {
        const MB: usize = 1 << 20;
        assert_eq!(copies(50 * MB, 50 * MB), 3);
        assert_eq!(copies(100 * MB, 50 * MB), 2);
        assert_eq!(copies(101 * MB, 50 * MB), 2);
        assert_eq!(copies(3 * MB, 50 * MB), 35);
        for bytes in [1, 4095, 7 * MB, 400 * MB] {
            assert!((copies(bytes, 50 * MB) - 1) * bytes >= 100 * MB);
        }
    }

    #[test]
    fn each_copy_has_its_turn() {
        let mut inputs = Rotating {
            copies: vec!['a', 'b', 'c'],
            next: 0,
            in_turn: Rc::default(),
        };
        let turns: String = (0..7).map(|_| *inputs.next_copy()).collect();
        assert_eq!(turns, "abcabca");
        assert_eq!(inputs.in_turn.get(), 3, "a capture must know");
        let alone = CudaTime::host_only().rotating(8, Ok::<_, TimingError>);
        assert_eq!(alone.unwrap().copies(), [0]);
    }
}
