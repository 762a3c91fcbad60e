//! The queue from the rounds to the writer: ordered jobs, bounded in bytes, with failures reported back.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use polity_kernel::event::Part;

use super::batch::Batch;
use super::error::{Result, TableError};

/// A job for the writer.
pub(super) enum Job {
    /// Rows for the table at this index.
    Rows(usize, Batch),
    /// Close the part of every table (first and last round), and send the parts back.
    Close(u32, u32, Sender<Vec<Part>>),
    /// Give closed parts their names; durably, if true.
    Publish(bool),
}

/// A queue between one caller and one writer.
pub(super) struct Queue {
    /// Maximum bytes of waiting rows; one batch is always allowed.
    limit: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<(Job, usize)>,
    /// Bytes of the waiting rows and of the current job.
    bytes: usize,
    /// Unfinished jobs, including the current one.
    open: usize,
    /// No more jobs will arrive.
    hung_up: bool,
    /// Why the writer stopped, if it did.
    ended: Option<TableError>,
}

impl Queue {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Adds a job of the given size; waits while the writer is too far behind.
    pub(super) fn push(&self, job: Job, bytes: usize) -> Result<()> {
        let fits = |state: &State| state.bytes == 0 || state.bytes + bytes <= self.limit;
        let mut state = self.wait(|state| state.ended.is_some() || fits(state));
        if let Some(why) = &state.ended {
            return Err(why.clone());
        }
        state.bytes += bytes;
        state.open += 1;
        state.jobs.push_back((job, bytes));
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until all jobs are done.
    pub(super) fn drain(&self) -> Result<()> {
        let state = self.wait(|state| state.ended.is_some() || state.open == 0);
        state.ended.clone().map_or(Ok(()), Err)
    }

    /// Signals that no more jobs will arrive and that waiting jobs may be dropped.
    pub(super) fn hang_up(&self) {
        let mut state = self.lock();
        state.hung_up = true;
        state.jobs.clear();
        drop(state);
        self.changed.notify_all();
    }

    /// The writer's side: runs jobs until none will arrive or one fails.
    pub(super) fn serve(&self, mut work: impl FnMut(Job) -> Result<()>) {
        // If the writer dies, callers must not wait forever.
        let _end = End(self);
        loop {
            let mut state = self.wait(|state| state.hung_up || !state.jobs.is_empty());
            let Some((job, bytes)) = state.jobs.pop_front() else {
                return;
            };
            drop(state);
            let done = work(job);
            let mut state = self.lock();
            state.bytes -= bytes;
            state.open -= 1;
            if let Err(why) = done {
                state.ended = Some(why);
                return;
            }
            self.changed.notify_all();
        }
    }

    fn wait(&self, until: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        self.changed.wait_while(self.lock(), |state| !until(state)).unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct End<'a>(&'a Queue);

impl Drop for End<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.ended.get_or_insert(TableError::Stopped);
        // Waiting rows will not be written; free their memory at once.
        state.jobs.clear();
        drop(state);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn who_is_too_far_ahead_waits() {
        let (queue, pushed) = (Queue::new(100), AtomicUsize::new(0));
        thread::scope(|scope| {
            scope.spawn(|| {
                for bytes in [60, 40, 1, 500, 1] {
                    queue.push(Job::Publish(false), bytes).unwrap();
                    pushed.fetch_add(1, Ordering::SeqCst);
                }
                queue.drain().unwrap();
                queue.hang_up();
            });
            thread::sleep(Duration::from_millis(50));
            let waiting = pushed.load(Ordering::SeqCst);
            let mut done = 0;
            queue.serve(|_| {
                // While the large job runs, nothing else is queued.
                assert!(done != 3 || pushed.load(Ordering::SeqCst) <= 4);
                done += 1;
                Ok(())
            });
            assert_eq!(waiting, 2, "100 bytes wait, not one more");
            assert_eq!(done, 5);
        });
    }

    #[test]
    fn a_writer_that_dies_leaves_nobody_waiting() {
        let queue = Queue::new(1);
        queue.push(Job::Publish(false), 1).unwrap();
        let died = thread::scope(|scope| scope.spawn(|| queue.serve(|_| panic!("as a defect would"))).join().is_err());
        assert!(died);
        assert!(matches!(queue.push(Job::Publish(false), 1), Err(TableError::Stopped)));
        assert!(matches!(queue.drain(), Err(TableError::Stopped)));
    }
}
