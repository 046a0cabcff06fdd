//! The work of a run that is under way in this process, and the time that it takes.
//!
//! Starting and storing are the actor's: a piece of work here is a task that ends, or is cancelled.

use crate::executor::EndedWork;
use longhaul_engine::Cancel;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;
use tokio::task::JoinHandle;

/// One piece of work that is under way.
pub(super) struct RunningWork {
    pub(super) cancel: Cancel,
    pub(super) task: JoinHandle<EndedWork>,
}

impl RunningWork {
    pub(super) async fn stop(self) -> Option<EndedWork> {
        self.cancel.cancel();
        self.task.await.ok()
    }
}

/// Removes and returns the first work that has ended; pending for ever if there is none.
pub(super) async fn finished(running: &mut BTreeMap<String, RunningWork>) -> (String, Result<EndedWork, String>) {
    let (key, ended) = std::future::poll_fn(|cx| {
        let mut ended = running.iter_mut().filter_map(|(key, running)| match Pin::new(&mut running.task).poll(cx) {
            Poll::Ready(ended) => Some((key.clone(), ended)),
            Poll::Pending => None,
        });
        ended.next().map_or(Poll::Pending, Poll::Ready)
    })
    .await;
    running.remove(&key);
    (key, ended.map_err(|error| error.to_string()))
}

/// The time that a run worked: the clock advances while work is under way in this process.
pub(super) struct WorkClock {
    before_ms: u64,
    since: Option<Instant>,
}

impl WorkClock {
    /// A clock at rest, of a run that worked so long before.
    pub(super) fn new(before_ms: u64) -> Self {
        Self { before_ms, since: None }
    }

    pub(super) fn ms(&self) -> u64 {
        let now = self.since.map_or(0, |since| u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.before_ms.saturating_add(now)
    }

    pub(super) fn go(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    pub(super) fn rest(&mut self) {
        self.before_ms = self.ms();
        self.since = None;
    }
}
