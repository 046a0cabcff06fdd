//! Locks that are held while the store is read: a wait for one is as long as that read, and holds up no thread that a
//! runtime of many threads needs for other tasks.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use tokio::runtime::{Handle, RuntimeFlavor};

/// Locks `mutex`, whose holders may wait for the store. A panic of a holder is no reason to refuse it.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    let wait = || mutex.lock().unwrap_or_else(PoisonError::into_inner);
    match mutex.try_lock() {
        Ok(guard) => guard,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
            Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
            _ => wait(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};
    use std::time::Duration;
    use tokio::runtime::Builder;

    #[test]
    fn a_wait_for_a_lock_leaves_the_worker_to_the_task_that_ends_it() {
        let runtime = Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let locked = Arc::new(Mutex::new(1));
        let held = lock(&locked);
        let ((waits, began), (told, heard)) = (mpsc::channel(), mpsc::channel());
        let waiting = Arc::clone(&locked);
        let waiting = runtime.spawn(async move {
            waits.send(()).unwrap();
            *lock(&waiting)
        });
        began.recv().unwrap();
        drop(runtime.spawn(async move { told.send(()) }));
        let is_told = heard.recv_timeout(Duration::from_secs(30)).is_ok();
        drop(held);
        assert!(is_told, "the only worker waited for the lock");
        assert_eq!(runtime.block_on(waiting).unwrap(), 1);
    }

    #[tokio::test]
    async fn a_runtime_of_one_thread_locks_as_usual() {
        assert_eq!(*lock(&Mutex::new(1)), 1);
    }
}
