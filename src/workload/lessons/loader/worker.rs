//! A thread that gathers batches ahead of their use.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle};

use crate::workload::lessons::loader::images::Images;
use crate::workload::routine::RoutineError;

/// A thread that gathers batches into buffers that are lent to it, in the order of its jobs. It
/// ends when this is dropped.
pub(super) struct Worker {
    jobs: Option<SyncSender<Job>>,
    done: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

/// A batch, and the buffer to gather it into. The buffer is the worker's until it says that
/// the job is done.
struct Job {
    batch: usize,
    to: NonNull<u8>,
}

// SAFETY: the address is that of a buffer which nobody else touches while the job is out: see
// `Worker::order`.
unsafe impl Send for Job {}

impl Worker {
    /// Starts the thread; it takes up to `jobs` jobs ahead.
    pub(super) fn start(images: &Arc<Images>, jobs: usize) -> Result<Self, RoutineError> {
        let (order, orders) = sync_channel::<Job>(jobs);
        let (say, done) = sync_channel(jobs);
        let images = images.clone();
        let thread = Builder::new().name("loader".to_owned()).spawn(move || {
            for Job { batch, to } in orders {
                // SAFETY: the buffer holds a batch, and is this thread's alone until `say`.
                let to =
                    unsafe { std::slice::from_raw_parts_mut(to.as_ptr(), images.batch_bytes()) };
                images.gather(batch, to);
                if say.send(()).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self {
            jobs: Some(order),
            done,
            thread: Some(thread),
        })
    }

    /// Lends the worker a buffer to gather a batch into.
    ///
    /// # Safety
    /// `to` must have room for a batch, initialised. Until [`wait`](Self::wait) has returned for this
    /// job, or the worker is dropped, it must not be freed, and nothing else may access it.
    pub(super) unsafe fn order(
        &mut self,
        batch: usize,
        to: NonNull<u8>,
    ) -> Result<(), RoutineError> {
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(Job { batch, to }));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(self.end()),
        }
    }

    /// Waits for the oldest job that has not been waited for.
    pub(super) fn wait(&mut self) -> Result<(), RoutineError> {
        self.done.recv().map_err(|_| self.end())
    }

    /// Why the thread is gone.
    fn end(&mut self) -> RoutineError {
        self.jobs = None;
        let panic = match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => panic,
            _ => return "a loader thread ended before its batches".into(),
        };
        let text = (panic.downcast_ref::<String>().map(String::as_str))
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("no message");
        format!("a loader thread panicked: {text}").into()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Without jobs the thread ends, and gives back the buffers that it was lent.
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::lessons::loader::images::{BATCHES, IMAGE};

    #[test]
    fn jobs_are_done_in_order() {
        let images = Arc::new(Images::new(IMAGE));
        let mut worker = Worker::start(&images, 2).unwrap();
        let mut expected = vec![0; IMAGE];
        let mut buffers = [vec![0u8; IMAGE], vec![0u8; IMAGE]];
        let addresses: Vec<_> = buffers
            .iter_mut()
            .map(|b| NonNull::new(b.as_mut_ptr()).unwrap())
            .collect();
        for batch in (0..BATCHES).step_by(2) {
            for (i, &address) in addresses.iter().enumerate() {
                // SAFETY: each buffer holds a batch and is read after its `wait` only.
                unsafe { worker.order(batch + i, address) }.unwrap();
            }
            for (i, address) in addresses.iter().enumerate() {
                worker.wait().unwrap();
                images.gather(batch + i, &mut expected);
                // SAFETY: the worker is done with this buffer.
                let gathered = unsafe { std::slice::from_raw_parts(address.as_ptr(), IMAGE) };
                assert_eq!(gathered, expected);
            }
        }
    }

    #[test]
    fn a_panic_of_the_thread_comes_back_and_nobody_waits_for_ever() {
        let images = Arc::new(Images::new(IMAGE));
        let mut worker = Worker::start(&images, 1).unwrap();
        let mut buffer = vec![0u8; IMAGE];
        let address = NonNull::new(buffer.as_mut_ptr()).unwrap();
        // SAFETY: the buffer outlives the worker and is not read.
        unsafe { worker.order(BATCHES, address) }.unwrap();
        let error = worker.wait().unwrap_err().to_string();
        assert!(error.contains("loader thread panicked"), "{error}");
        // SAFETY: as above.
        assert!(unsafe { worker.order(0, address) }.is_err());
    }
}
