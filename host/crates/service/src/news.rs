//! Notices of changed runs, for watchers of all runs.
//!
//! The changes are in the store; a notice only names the run. Slow watchers are told that they missed notices.

use super::Service;
use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_records::record;
use tokio::sync::broadcast;

impl Service {
    /// Receives from now on a notice of each run that becomes active or inactive, or changes while it is inactive.
    pub fn news(&self) -> broadcast::Receiver<RunId> {
        self.listeners.0.subscribe()
    }

    /// The runs that are worked on in this moment, here or by workers.
    pub fn active(&self) -> Vec<RunId> {
        let mut active = self.active_here();
        active.extend(self.remote().names().cloned());
        active
    }

    /// The runs that are worked on here.
    pub fn active_here(&self) -> Vec<RunId> {
        self.lock().keys().cloned().collect()
    }

    /// True when a run is worked on, here or by a worker.
    pub(super) fn is_active(&self, run: &RunId) -> bool {
        self.lock().contains_key(run) || self.remote().has(run)
    }

    /// The number of the last event of a run; 0 where there is none.
    pub fn last_event(&self, run: &RunId) -> fault::Result<u64> {
        record::last_event(&*self.host.store, run)
    }

    /// Notifies of a change of a run. To have no listener is no error.
    pub(super) fn tell(&self, run: &RunId) {
        // Tokens that calls in flight reserved count as used once nobody works on the run.
        self.index.reread(run);
        let _ = self.listeners.0.send(run.clone());
    }
}
