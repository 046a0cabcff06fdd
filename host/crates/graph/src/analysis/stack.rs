//! A thread with a large stack, for parsers that recurse.
//!
//! The whole process has one such thread, which handles one source after another: a thread for every step would cost
//! more than its analysis. Only deeply nested sources come here; see `NESTING_SMALL`.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

/// The stack of the thread, in bytes: 512 MiB of addresses, of which the system backs only the touched pages.
///
/// Enough for the deepest source that passes the caps, at 16 KiB a level of the parser's and the walk's frames in a
/// build without optimisation.
const STACK_BYTES: usize = 512 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// Runs `work` on the thread with the large stack, and returns its result. A panic in it is passed on.
///
/// Returns `None` if the system gives no such thread.
pub(super) fn on_large_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    static WORKER: OnceLock<Option<Mutex<Sender<Job>>>> = OnceLock::new();
    let worker = WORKER.get_or_init(start).as_ref()?;
    let (answer, answered) = channel::<Result<T, Box<dyn Any + Send>>>();
    let job: Job = Box::new(move || {
        // A dropped receiver means that the caller panicked; then the result is not needed.
        let _ = answer.send(catch_unwind(AssertUnwindSafe(work)));
    });
    worker.lock().unwrap_or_else(PoisonError::into_inner).send(job).ok()?;
    match answered.recv().ok()? {
        Ok(value) => Some(value),
        Err(panic) => resume_unwind(panic),
    }
}

fn start() -> Option<Mutex<Sender<Job>>> {
    let (jobs, queue) = channel::<Job>();
    let spawned = thread::Builder::new().name("analysis".into()).stack_size(STACK_BYTES).spawn(move || serve(&queue));
    spawned.ok().map(|_| Mutex::new(jobs))
}

fn serve(queue: &Receiver<Job>) {
    while let Ok(job) = queue.recv() {
        job();
    }
}

#[cfg(test)]
mod tests {
    use super::on_large_stack;

    #[test]
    fn the_thread_goes_on_after_work_that_panicked() {
        let panicked = std::panic::catch_unwind(|| on_large_stack(|| -> u32 { panic!("as asked") }));
        assert!(panicked.is_err());
        assert_eq!(on_large_stack(|| 7), Some(7));
    }
}
