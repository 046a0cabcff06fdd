//! The lock of a compilation: of several that need the same compiled code at the same time, one compiles it.
//!
//! It saves work and protects nothing: without it each compiles, and each ends with a whole file. So a file system that
//! knows no locks is used without them, and a holder that was stopped holds nobody up for long. The system releases the
//! lock of a holder that ends, however it ends.

use crate::unfinished;
use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::oneshot;

/// Longest time to wait for a holder. An interpreter compiles in about 10 seconds, and in some more on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// A lock that is held until this is dropped.
pub(crate) struct CompileLock {
    path: PathBuf,
    _file: File,
}

impl CompileLock {
    /// Takes the lock of the compilation into the file `compiled`, and waits for its holder. None: there is no lock to
    /// be had, or the holder takes too long.
    pub(crate) async fn take(name: &str, compiled: &Path) -> Option<Self> {
        Self::take_within(WAIT_MAX, name, compiled).await
    }

    async fn take_within(wait_max: Duration, name: &str, compiled: &Path) -> Option<Self> {
        let path = unfinished::lock_of(compiled);
        // Without the file there is no lock; the compilation tells why no file can be made there.
        let file = File::create(&path).ok()?;
        let file = match file.try_lock() {
            Ok(()) => file,
            Err(TryLockError::WouldBlock) => {
                tracing::info!(plugin = name, "another process is compiling it; waiting for that");
                tokio::time::timeout(wait_max, locked(file)).await.ok()??
            }
            Err(TryLockError::Error(error)) => {
                tracing::debug!(plugin = name, "compiling without a lock: {error}");
                return None;
            }
        };
        Some(Self { path, _file: file })
    }
}

impl Drop for CompileLock {
    fn drop(&mut self) {
        // Those who wait have it open. Who comes after them finds the code, or compiles beside them at worst.
        let _ = fs::remove_file(&self.path);
    }
}

/// The file once its lock is taken; none if it cannot be.
async fn locked(file: File) -> Option<File> {
    let (send, receive) = oneshot::channel();
    let wait = move || {
        if file.lock().is_ok() {
            // The lock is released if nobody waits any more.
            let _ = send.send(file);
        }
    };
    // A thread by itself, since the end of a runtime waits for those of its pool, and this one may wait for ever.
    std::thread::Builder::new().name("compile-lock".into()).spawn(wait).ok()?;
    receive.await.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Two of one process exclude each other as two of two processes do.
    #[tokio::test]
    async fn a_second_one_waits_for_the_first_but_not_for_ever_and_nothing_is_left() {
        let place = tempfile::tempdir().unwrap();
        let compiled = place.path().join("a.cwasm");
        let first = CompileLock::take("a", &compiled).await.unwrap();
        let other = CompileLock::take("b", &place.path().join("b.cwasm")).await;
        assert!(other.is_some(), "other code has a lock of its own");
        let in_vain = CompileLock::take_within(Duration::from_millis(20), "a", &compiled).await;
        assert!(in_vain.is_none(), "the holder is at work or was stopped");
        let second = tokio::spawn(async move { CompileLock::take("a", &compiled).await.is_some() });
        tokio::task::yield_now().await;
        drop((first, other));
        assert!(second.await.unwrap());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn a_directory_in_which_no_lock_can_be_made_has_none() {
        assert!(CompileLock::take("a", Path::new("/proc/no-such/a.cwasm")).await.is_none());
    }
}
