//! The other processes that this one serves: their requests under way, and the runs that they follow.
//!
//! Decides nothing about runs; `handover.rs` ends what is kept here.

use longhaul_api::operations::Handling;
use longhaul_core::RunId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Requests and followers, and whether no more are served.
pub(super) struct Served {
    pub(super) closing: watch::Sender<bool>,
    /// Requests that change something and are being answered.
    pub(super) answering: watch::Sender<usize>,
    /// Other processes that follow a run, and would go on with it.
    followers: Arc<Mutex<HashMap<RunId, usize>>>,
}

impl Default for Served {
    fn default() -> Self {
        Self { closing: watch::Sender::new(false), answering: watch::Sender::new(0), followers: Arc::default() }
    }
}

/// A request that is being answered.
pub(super) struct Answering<'a>(Option<&'a watch::Sender<usize>>);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        if let Some(count) = self.0 {
            count.send_modify(|count| *count -= 1);
        }
    }
}

/// Another process that follows a run, as long as this is kept.
pub struct FollowerGuard(Arc<Mutex<HashMap<RunId, usize>>>, RunId);

impl Drop for FollowerGuard {
    fn drop(&mut self) {
        let mut followers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = followers.get_mut(&self.1) {
            *count -= 1;
        }
        followers.retain(|_, count| *count > 0);
    }
}

impl Served {
    /// Another process follows a run, as long as the answer is kept.
    pub(super) fn follow(&self, run: &RunId) -> FollowerGuard {
        *self.lock().entry(run.clone()).or_default() += 1;
        FollowerGuard(Arc::clone(&self.followers), run.clone())
    }

    /// The number of runs that other processes follow.
    pub(super) fn followed(&self) -> usize {
        self.lock().len()
    }

    /// True when another process follows a run.
    pub(super) fn is_followed(&self, run: &RunId) -> bool {
        self.lock().contains_key(run)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, usize>> {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to answer. Never returns for what would begin something once the end has begun.
    pub(super) async fn begin(&self, handling: Handling) -> Answering<'_> {
        if handling == Handling::Look {
            return Answering(None);
        }
        self.answering.send_modify(|count| *count += 1);
        let answering = Answering(Some(&self.answering));
        if *self.closing.borrow() {
            drop(answering);
            return std::future::pending().await;
        }
        answering
    }
}
