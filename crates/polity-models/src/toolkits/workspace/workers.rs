//! Threads that do what blocks: work with files and sandboxes.
//!
//! A sandbox ends with the thread that started it. These threads live as long as the workspace does, unlike those of a runtime.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::{io, thread};

type Job = Box<dyn FnOnce() + Send>;

/// A number of threads, and a queue of jobs for them.
pub(super) struct Workers {
    jobs: Sender<Job>,
}

impl Workers {
    pub(super) fn start(count: usize) -> io::Result<Workers> {
        let (jobs, queue) = channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for _ in 0..count {
            let queue = queue.clone();
            thread::Builder::new().name("workspace".into()).spawn(move || {
                loop {
                    let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(job) = job else { return };
                    // Whoever waits for the job sees that it has gone.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                }
            })?;
        }
        Ok(Workers { jobs })
    }

    /// Does a job once a thread is free, and jobs given earlier have begun.
    pub(super) fn take(&self, job: impl FnOnce() + Send + 'static) {
        // The threads live as long as this value.
        let _ = self.jobs.send(Box::new(job));
    }
}
