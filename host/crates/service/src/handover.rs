//! The end of an owner that others are served by: their runs stop where they can be gone on with, and nothing that is
//! on its way is cut off.
//!
//! From [`Service::hand_over`] on nothing is begun here any more. Whoever asks for something is not answered; they hear
//! that this process is gone, and ask the next owner. Looks at runs are answered to the end.

use super::Service;
use super::served::FollowerGuard;
use longhaul_core::RunId;
use std::collections::HashSet;
use std::time::Duration;

/// The longest wait for a notice of a changed run, before the active runs are looked at again.
const LOOK: Duration = Duration::from_millis(200);

/// Longest wait for requests of others that are being answered: as long as for work that is handed over.
const ANSWERS_WAIT: Duration = Duration::from_millis(longhaul_engine::HAND_OVER_MS_MAX);

impl Service {
    /// Another process follows a run from now on, and would go on with it.
    pub fn followed(&self, run: &RunId) -> FollowerGuard {
        self.served.follow(run)
    }

    /// True once this process ends, and begins nothing any more.
    pub fn is_closing(&self) -> bool {
        *self.served.closing.borrow()
    }

    /// The runs that are worked on here and that no other process follows.
    pub fn unfollowed(&self) -> Vec<RunId> {
        self.active_here().into_iter().filter(|run| !self.served.is_followed(run)).collect()
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
