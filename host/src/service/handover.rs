//! The end of an owner that others are served by: their runs stop where they can be gone on with, and nothing that is
//! on its way is cut off.
//!
//! From [`Service::hand_over`] on nothing is begun here any more. Whoever asks for something is not answered; they hear
//! that this process is gone, and ask the next owner. Looks at runs are answered to the end.

use super::{Request, Service};
use longhaul_core::RunId;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How often it is looked which runs have stopped, where nobody tells.
const LOOK: Duration = Duration::from_millis(200);

/// How long requests of others that are being answered are waited for: as long as work that is handed over.
const ANSWERS_WAIT: Duration = Duration::from_millis(longhaul_engine::HAND_OVER_MS_MAX);

/// Who is served, and whether it comes to its end.
pub(super) struct Served {
    closing: watch::Sender<bool>,
    /// Requests that change something and are being answered.
    answering: watch::Sender<usize>,
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
pub struct Follows(Arc<Mutex<HashMap<RunId, usize>>>, RunId);

impl Drop for Follows {
    fn drop(&mut self) {
        let mut followers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = followers.get_mut(&self.1) {
            *count -= 1;
        }
        followers.retain(|_, count| *count > 0);
    }
}

impl Served {
    /// Begins to answer. Never returns for what would begin something once the end has begun.
    pub(super) async fn begin(&self, request: &Request) -> Answering<'_> {
        if only_looks(request) {
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

impl Service {
    /// Another process follows a run from now on, and would go on with it.
    pub fn followed(&self, run: &RunId) -> Follows {
        let followers = Arc::clone(&self.served.followers);
        *followers.lock().unwrap_or_else(PoisonError::into_inner).entry(run.clone()).or_default() += 1;
        Follows(followers, run.clone())
    }

    /// The runs that are worked on here and that no other process follows.
    pub fn unfollowed(&self) -> Vec<RunId> {
        let followers = self.served.followers.lock().unwrap_or_else(PoisonError::into_inner);
        self.active().into_iter().filter(|run| !followers.contains_key(run)).collect()
    }

    /// Stops every run once its effects and the answers of its models that are on their way have come, and waits for
    /// what others are being answered. Others go on with the runs.
    pub async fn hand_over(&self) {
        self.served.closing.send_replace(true);
        let mut answering = self.served.answering.subscribe();
        if tokio::time::timeout(ANSWERS_WAIT, answering.wait_for(|count| *count == 0)).await.is_err() {
            tracing::warn!("requests of others are cut off: they take longer than {ANSWERS_WAIT:?}");
        }
        let mut news = self.news();
        let mut told = HashSet::new();
        loop {
            let active: Vec<_> = self.lock().iter().map(|(run, active)| (run.clone(), active.handle.clone())).collect();
            if active.is_empty() {
                return;
            }
            for (run, handle) in active {
                if told.insert(run) {
                    handle.hand_over().await;
                }
            }
            let _ = tokio::time::timeout(LOOK, news.recv()).await;
        }
    }
}

/// Whether a request can be answered while this process ends: who follows a run looks what became of it.
fn only_looks(request: &Request) -> bool {
    matches!(
        request,
        Request::Status { .. }
            | Request::Events { .. }
            | Request::Runs
            | Request::Projects
            | Request::Journal { .. }
            | Request::Approvals { .. }
            | Request::Approval { .. }
    )
}
