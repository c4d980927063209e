//! The numbers of threads and the sizes of blocks that are tried.

/// Pinned buffers per thread: while the device copies one, the thread fills or empties the other.
pub(super) const SLOTS: usize = 2;
/// Bytes of a buffer, and upper bound on those of a block. All buffers together should stay in the
/// CPU's last-level cache, which the device then copies from and to.
const LARGEST: usize = 1 << 20;
/// Below this a block takes longer to be enqueued than to be copied.
const SMALLEST: usize = 1 << 16;

/// Bytes of a block where `threads` threads share out `bytes`.
pub(crate) fn block_bytes(bytes: usize, threads: usize) -> usize {
    (bytes / (SLOTS * threads).max(1)).clamp(SMALLEST, LARGEST)
}

/// From this many bytes on the number of threads is not tried, since each way needs memory of its
/// own.
const MANY_FROM: usize = 64 << 20;
/// With this many threads the link no longer waits for them.
const MOST_THREADS: usize = 16;

/// The numbers of threads to try for `bytes` on this machine. One core is left to the thread that
/// enqueues the device's work.
pub(crate) fn threads_to_try(bytes: usize) -> Vec<usize> {
    tried(bytes, rayon::current_num_threads())
}

fn tried(bytes: usize, cores: usize) -> Vec<usize> {
    let most = cores.saturating_sub(1).clamp(1, MOST_THREADS);
    if bytes >= MANY_FROM {
        return vec![most];
    }
    let mut tried: Vec<usize> = [1, 4, 8, MOST_THREADS]
        .into_iter()
        .map(|threads| threads.min(most))
        .filter(|threads| *threads == 1 || bytes >= threads * SMALLEST)
        .collect();
    tried.dedup();
    tried
}

/// How an operation reads and writes ordinary memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    /// The calling thread copies everything to pinned memory, and the result from it.
    Copied,
    /// This many threads copy, each through its own buffers.
    Threads(usize),
}

impl Through {
    /// The ways to try for `bytes`.
    pub(crate) fn ways(bytes: usize) -> Vec<Self> {
        /// Above this many bytes one thread is too slow to be tried.
        const COPIED_TO: usize = 16 << 20;
        /// Below this many bytes waking threads takes longer than copying.
        const THREADS_FROM: usize = 1 << 18;
        let mut ways = Vec::new();
        if bytes <= COPIED_TO {
            ways.push(Through::Copied);
        }
        if bytes >= THREADS_FROM {
            ways.extend(threads_to_try(bytes).into_iter().map(Through::Threads));
        }
        ways
    }

    pub(crate) fn name(self) -> String {
        match self {
            Through::Copied => "copied to pinned memory and from it".to_owned(),
            Through::Threads(1) => "one thread through pinned buffers".to_owned(),
            Through::Threads(threads) => format!("{threads} threads through pinned buffers"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_small_enough_for_every_thread_and_large_enough_for_a_copy() {
        assert_eq!(block_bytes(1 << 10, 1), SMALLEST);
        assert_eq!(block_bytes(1 << 30, 16), LARGEST);
        assert_eq!(block_bytes(8 << 20, 16), 1 << 18);
        assert_eq!(tried(1 << 10, 16), [1]);
        assert_eq!(tried(8 << 20, 16), [1, 4, 8, 15]);
        assert_eq!(tried(8 << 20, 2), [1]);
        assert_eq!(tried(1 << 30, 16), [15]);
    }
}
