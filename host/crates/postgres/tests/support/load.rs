//! Callers that commit one batch after the other, each as soon as the one before is durable.

#![allow(dead_code, reason = "each test uses its part")]

use crate::server::wait;
use crate::stores::batch;
use longhaul_core::store::{Store as _, StoreError};
use longhaul_postgres::PostgresStore;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// The callers. Some commit at once, so that their batches go together.
pub const CALLERS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

/// The commits that a test waits for before it disturbs them.
const MORE: u64 = 60;

/// Callers at work.
pub struct Load {
    counts: Arc<[AtomicU64; CALLERS.len()]>,
    stop: Arc<AtomicBool>,
    callers: Vec<JoinHandle<Option<StoreError>>>,
}

impl Load {
    /// Starts all callers.
    pub fn start(runtime: &Runtime, store: &Arc<PostgresStore>) -> Self {
        let (counts, stop) = (Arc::<[AtomicU64; CALLERS.len()]>::default(), Arc::<AtomicBool>::default());
        let callers = (0..CALLERS.len()).map(|at| {
            runtime.spawn(commit_until_stopped(Arc::clone(store), at, Arc::clone(&counts), Arc::clone(&stop)))
        });
        let callers = callers.collect();
        Self { counts, stop, callers }
    }

    /// Waits until some more batches are durable.
    #[track_caller]
    pub fn wait_for_more(&self) {
        let before = self.total();
        wait("more batches are committed", || self.total() > before + MORE);
    }

    /// The number of durable batches.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Ordering::SeqCst)).sum()
    }

    /// Lets each caller end its commit; returns its number of durable batches, and the error that it ended with.
    pub fn stop(self, runtime: &Runtime) -> Vec<(u64, Option<StoreError>)> {
        self.stop.store(true, Ordering::SeqCst);
        let ended = self.callers.into_iter().map(|caller| runtime.block_on(caller).expect("no panic"));
        let ended: Vec<_> = ended.collect();
        self.counts.iter().map(|count| count.load(Ordering::SeqCst)).zip(ended).collect()
    }
}

async fn commit_until_stopped(
    store: Arc<PostgresStore>,
    at: usize,
    counts: Arc<[AtomicU64; CALLERS.len()]>,
    stop: Arc<AtomicBool>,
) -> Option<StoreError> {
    while !stop.load(Ordering::SeqCst) {
        let number = counts[at].load(Ordering::SeqCst);
        match store.commit(batch(CALLERS[at], number)).await {
            Ok(()) => counts[at].store(number + 1, Ordering::SeqCst),
            // Nothing of the batch was written, so it is committed again. If it was, that is a conflict.
            Err(StoreError::Unreachable { .. }) => {}
            Err(why) => return Some(why),
        }
    }
    None
}
