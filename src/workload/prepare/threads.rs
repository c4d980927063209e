//! Threads that share work of a few microseconds.
//!
//! Rayon's threads sleep between two calls from outside of its pool, and waking them takes longer than
//! a small product. The threads of a [`Threads::Spinning`] pool spin for a moment before they sleep,
//! and the calling thread takes part in the work. The pool ends them, and [`Threads::park`] puts them
//! to sleep earlier, so that no thread spins while another implementation is timed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::Duration;
use std::{fs, thread};

use micropool::iter::{ExactParallelSourceExt, IntoExactParallelSource, ParallelIteratorExt};
use micropool::{ThreadPool, ThreadPoolBuilder};
use rayon::iter::{IndexedParallelIterator, ParallelIterator};

/// Iterations of a loop with one `pause` before a thread sleeps: 65 µs on a Zen 5, up to 150 µs on
/// Xeons, whose `pause` takes longer. That is many times the time between two small products.
const SPINS: usize = 3_000;

/// The threads that work.
pub(crate) enum Threads {
    /// The calling thread alone.
    One,
    /// All threads of Rayon's current pool.
    Rayon,
    /// The calling thread and those of a pool that spins for a moment before it sleeps.
    Spinning(Pool),
}

impl Threads {
    /// At most `count` threads, including the calling one.
    pub(crate) fn up_to(count: usize) -> Self {
        match count {
            0 | 1 => Self::One,
            count => Self::Spinning(Pool::new(count)),
        }
    }

    /// As many as Rayon has.
    pub(crate) fn all() -> Self {
        Self::up_to(rayon::current_num_threads())
    }

    /// How many threads work, including the calling one where it takes part.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::One => 1,
            Self::Rayon => rayon::current_num_threads(),
            Self::Spinning(pool) => pool.workers.len() + 1,
        }
    }

    /// Hands the items out one by one, and waits until all are done. Other threads take over the items
    /// of a thread that was interrupted.
    ///
    /// # Panics
    /// If `work` panics, once all items have been handed out.
    pub(crate) fn each<T: Send>(&self, items: Vec<T>, work: impl Fn(T) + Sync) {
        match self {
            Self::One => items.into_iter().for_each(work),
            Self::Rayon => (rayon::iter::IntoParallelIterator::into_par_iter(items))
                .with_max_len(1)
                .for_each(&work),
            Self::Spinning(pool) => pool.each(items, work),
        }
    }

    /// Waits until the threads of a spinning pool sleep.
    pub(crate) fn park(&self) {
        if let Self::Spinning(pool) = self {
            pool.park();
        }
    }
}

/// A pool that spins for a moment before it sleeps. Dropping it ends its threads.
pub(crate) struct Pool {
    pool: ThreadPool,
    /// The file in `/proc` with the state of each thread, on Linux.
    workers: Vec<Option<PathBuf>>,
}

impl Pool {
    /// A pool of `count` threads, including the calling one.
    fn new(count: usize) -> Self {
        let workers: Arc<Mutex<Vec<Option<PathBuf>>>> = Arc::default();
        let all_there = Arc::new(Barrier::new(count));
        let spawn = {
            let (workers, all_there) = (Arc::clone(&workers), Arc::clone(&all_there));
            move |index: usize, work: Box<dyn FnOnce() + Send>| {
                let (workers, all_there) = (Arc::clone(&workers), Arc::clone(&all_there));
                let run = move || {
                    let stat = fs::read_link("/proc/thread-self").ok();
                    let stat = stat.map(|link| PathBuf::from("/proc").join(link).join("stat"));
                    // A panic while the lock is held loses a path at most.
                    let mut paths = workers.lock().unwrap_or_else(PoisonError::into_inner);
                    paths.push(stat);
                    drop(paths);
                    all_there.wait();
                    work();
                };
                let builder = thread::Builder::new().name(format!("spinning-{index}"));
                builder.spawn(run).expect("the system has a thread to give")
            }
        };
        let pool = ThreadPoolBuilder::default()
            .num_threads(count - 1)
            .idle_spin_cycles(SPINS)
            .spawn_handler(spawn)
            .build();
        all_there.wait();
        let workers = std::mem::take(&mut *workers.lock().unwrap_or_else(PoisonError::into_inner));
        Self { pool, workers }
    }

    fn each<T: Send>(&self, items: Vec<T>, work: impl Fn(T) + Sync) {
        // The pool aborts the process at a panic in a task.
        let panicked: Mutex<Option<Box<dyn Any + Send>>> = Mutex::new(None);
        (items.into_par_iter())
            .with_thread_pool(self.pool.split_per_item())
            .for_each(|item| {
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| work(item))) {
                    let mut first = panicked.lock().unwrap_or_else(PoisonError::into_inner);
                    first.get_or_insert(panic);
                }
            });
        let panicked = panicked.into_inner();
        if let Some(panic) = panicked.unwrap_or_else(PoisonError::into_inner) {
            resume_unwind(panic);
        }
    }

    fn park(&self) {
        /// Time between two checks, and the most checks: a spinning thread that shares its core takes
        /// longer to fall asleep.
        const PAUSE: Duration = Duration::from_micros(50);
        const CHECKS: usize = 20_000;
        for worker in &self.workers {
            let Some(stat) = worker else {
                // Long enough for all threads, if their state cannot be read.
                return thread::sleep(Duration::from_millis(5));
            };
            for _ in 0..CHECKS {
                if sleeps(&fs::read_to_string(stat).unwrap_or_default()) {
                    break;
                }
                thread::sleep(PAUSE);
            }
        }
    }
}

/// Whether a thread sleeps, by its line in `/proc`: the state follows the name, which ends at the last
/// parenthesis. A thread that has ended counts as asleep.
fn sleeps(stat: &str) -> bool {
    let (_, after) = stat.rsplit_once(')').unwrap_or_default();
    !after.trim_start().starts_with('R')
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    #[test]
    fn every_item_is_worked_on_once() {
        for threads in [Threads::One, Threads::Rayon, Threads::up_to(4)] {
            for count in [0, 1, 3, 1000] {
                let done: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                for _ in 0..2 {
                    let work = |item: &AtomicUsize| _ = item.fetch_add(1, Relaxed);
                    threads.each(done.iter().collect(), work);
                }
                assert!(done.iter().all(|item| item.load(Relaxed) == 2));
            }
        }
    }

    #[test]
    fn a_panic_reaches_the_caller_and_the_pool_goes_on() {
        let threads = Threads::up_to(3);
        let panics = |item: usize| assert_ne!(item, 5, "the fifth");
        let caught = catch_unwind(AssertUnwindSafe(|| threads.each((0..9).collect(), panics)));
        let panic = caught.unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains("the fifth"), "{text}");
        threads.each((6..9).collect(), panics);
    }

    #[test]
    fn parked_threads_sleep_and_dropped_ones_are_gone() {
        let threads = Threads::up_to(3);
        let Threads::Spinning(pool) = &threads else {
            panic!("three threads are a pool");
        };
        let stats: Vec<PathBuf> = pool.workers.iter().flatten().cloned().collect();
        assert_eq!(stats.len(), 2);
        for _ in 0..10 {
            threads.each((0..100).collect(), |_: usize| ());
            threads.park();
            for stat in &stats {
                let line = fs::read_to_string(stat).unwrap();
                assert!(line.contains("(spinning-") && sleeps(&line), "{line}");
            }
        }
        drop(threads);
        // A thread that was joined may be listed for a moment.
        let is_gone = |_| {
            thread::sleep(Duration::from_millis(1));
            !stats.iter().any(|stat| stat.exists())
        };
        assert!((0..1000).any(is_gone));
    }

    #[test]
    fn the_state_follows_the_name() {
        assert!(sleeps("7 (a) R) S 1 2"));
        assert!(!sleeps("7 (a) S) R 1 2"));
        assert!(sleeps(""));
    }
}
