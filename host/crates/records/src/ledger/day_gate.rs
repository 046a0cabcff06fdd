//! The gate of a project's day: a model call passes it once its reservation is durable and the sum of the day allows it.
//!
//! A call is announced in a commit of its own, since a request to a model is announced in no journal: that of a read is
//! written with its answer. Only where the project has a cap of a day is there such a commit. A gate waits while other
//! reservations alone prevent the call, and asks the store again, since other servers notify nobody. It refuses once
//! what is used up for certain leaves no budget. While the store fails it lets nobody through.

use super::book::{LedgerBook, lock};
use super::day::{self, DayVerdict};
use longhaul_core::fault;
use longhaul_core::model::Usage;
use longhaul_core::store::{Batch, Store};
use longhaul_core::{InvocationId, LimitHit, RunId};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

/// The pause before a call that waits asks again, and what is added to it at random, so that calls of two servers which
/// were in each other's way do not meet again.
const PAUSE_MS: u64 = 500;
const PAUSE_MS_MORE: u64 = 500;

/// The gate of a run.
#[derive(Clone)]
pub(super) struct DayGate {
    pub(super) run: RunId,
    pub(super) store: Arc<dyn Store>,
    pub(super) book: Arc<Mutex<LedgerBook>>,
    /// A reservation was released, or a cap was raised.
    pub(super) freed: Arc<Notify>,
}

impl DayGate {
    /// Reserves the most that a call may use beside what it `wasted` so far. Returns once that is durable.
    pub(super) async fn pass(&self, invocation: &InvocationId, wasted: Usage, most: Usage) -> Result<(), LimitHit> {
        let mut is_failing = false;
        loop {
            // Registers before it checks, so that no release in between is missed.
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            match self.attempt(invocation, wasted, most).await {
                Ok(DayVerdict::Room) => return Ok(()),
                Ok(DayVerdict::Over(hit)) => return Err(hit),
                Ok(DayVerdict::Taken) => {}
                Err(error) => {
                    if !is_failing {
                        tracing::warn!(%invocation, "a call waits: the day of its project cannot be counted: {error:#}");
                    }
                    is_failing = true;
                }
            }
            tokio::select! {
                () = freed => {}
                () = tokio::time::sleep(pause()) => {}
            }
        }
    }

    async fn attempt(&self, invocation: &InvocationId, wasted: Usage, most: Usage) -> fault::Result<DayVerdict> {
        let Some((project, today)) = lock(&self.book).day.capped() else { return Ok(DayVerdict::Room) };
        let look = || -> fault::Result<DayVerdict> {
            // Read before the lock is taken: nobody waits for the store with it.
            let stored = day::rows(&*self.store, &project, today)?;
            Ok(lock(&self.book).day.verdict((invocation, today), (wasted, most), stored))
        };
        let mut verdict = look()?;
        if verdict == DayVerdict::Room {
            let batch = lock(&self.book).day.announce(&self.run, (invocation, today), (wasted, most));
            self.store.commit(batch).await?;
            verdict = look()?;
        }
        if verdict != DayVerdict::Room {
            let batch = self.lower(invocation, wasted);
            if !batch.is_empty() {
                self.store.commit(batch).await?;
            }
        }
        Ok(verdict)
    }

    fn lower(&self, invocation: &InvocationId, wasted: Usage) -> Batch {
        let mut book = lock(&self.book);
        book.day.lower(invocation, wasted);
        book.day.lowered(&self.run, invocation)
    }
}

fn pause() -> Duration {
    // Each state has other keys, and its hash is as random as a pause has to be.
    Duration::from_millis(PAUSE_MS + RandomState::new().hash_one(()) % PAUSE_MS_MORE)
}
