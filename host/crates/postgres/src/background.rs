//! The thread with a runtime, on which all connections live.
//!
//! Callers are in a runtime of one thread, of many, or in none, and may be dropped with their runtime. Connections that
//! lived in it would end with it, and waiting for them in it would block it. So they have a runtime of their own, which
//! a caller waits for as for a disk. Where that takes longer than a disk would, a caller's runtime of many threads goes
//! on with another one in the place of the thread that waits.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::sync::oneshot;

/// Threads of the runtime. While one encodes a large batch, the other renews the lease.
const WORKERS: usize = 2;

/// The time after which a caller's thread is replaced in its runtime while it waits. Most reads are answered sooner,
/// and the exchange of a thread is a part of the time of a read.
const SOON: Duration = Duration::from_millis(2);

/// The longest time for tasks to end when the store is dropped. Those with work to finish are awaited before.
const STOP_MAX: Duration = Duration::from_secs(1);

/// A runtime on a thread of its own. Dropping this ends it, also inside of another runtime.
pub(crate) struct Background {
    handle: Handle,
    /// The sender that ends the work; none only while this is dropped.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    pub(crate) fn start() -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (told, started) = mpsc::sync_channel(1);
        // Made on its own thread, where it may also be dropped.
        let thread = std::thread::Builder::new().name("longhaul-postgres".to_owned()).spawn(move || {
            let built = Builder::new_multi_thread()
                .worker_threads(WORKERS)
                .thread_name("longhaul-postgres")
                .enable_all()
                .build();
            match built {
                Ok(runtime) => {
                    // The starter is waiting.
                    let _ = told.send(Ok(runtime.handle().clone()));
                    serve(runtime, stopped);
                }
                Err(why) => drop(told.send(Err(why))),
            }
        })?;
        let handle = started.recv().map_err(|_| io::Error::other("its thread ended"))??;
        Ok(Self { handle, stop: Some(stop), thread: Some(thread) })
    }

    /// Runs `future` there, whether its caller waits for it or not.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<T> {
        self.handle.spawn(future)
    }

    /// Runs `future` there and blocks until it ends; none when it panicked. What is run has a bound of its own.
    pub(crate) fn wait<T: Send + 'static>(&self, future: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (told, outcome) = mpsc::sync_channel(1);
        drop(self.handle.spawn(async move {
            // The receiver waits below.
            let _ = told.send(future.await);
        }));
        match outcome.recv_timeout(SOON) {
            Ok(value) => Some(value),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => block_aside(|| outcome.recv().ok()),
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // Its panic was told where it happened.
            let _ = thread.join();
        }
    }
}

/// Blocks this thread. A runtime of many threads, whose tasks would wait for it, goes on with another one; a runtime of
/// one thread has no other.
fn block_aside<T>(blocking: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(blocking),
        _ => blocking(),
    }
}

fn serve(runtime: Runtime, stopped: oneshot::Receiver<()>) {
    // The sender is dropped and sends nothing.
    let _ = runtime.block_on(stopped);
    runtime.shutdown_timeout(STOP_MAX);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    #[test]
    fn callers_of_every_kind_wait_for_it_and_drop_it() {
        let ask = || {
            let background = Background::start().expect("a thread");
            assert_eq!(background.wait(async { 7 }), Some(7));
            let panicked: Option<u8> = background.wait(async { panic!("expected by this test") });
            assert_eq!(panicked, None);
        };
        ask();
        Builder::new_current_thread().build().expect("a runtime").block_on(async { ask() });
        Builder::new_multi_thread().worker_threads(1).build().expect("a runtime").block_on(async { ask() });
    }

    #[test]
    fn a_runtime_of_one_worker_goes_on_while_a_task_waits() {
        let background = Background::start().expect("a thread");
        let runtime = Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let (other_is_done, told) = oneshot::channel();
        let (waits, began) = mpsc::channel();
        let waiting = runtime.spawn(async move {
            waits.send(()).expect("the test listens");
            background.wait(async move { timeout(Duration::from_secs(30), told).await })
        });
        began.recv().expect("it begins");
        // The wait ends by a task that the same worker would run.
        drop(runtime.spawn(async move { other_is_done.send(7) }));
        let waited = runtime.block_on(waiting).expect("no panic");
        assert_eq!(waited.and_then(Result::ok).and_then(Result::ok), Some(7));
    }
}
