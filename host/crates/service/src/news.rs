//! Which runs there is something new of, for those who watch all of them.
//!
//! What is new is in the store; this only says where to look. Who is slow hears that they missed something.

use super::Service;
use longhaul_core::RunId;
use longhaul_core::fault;
use longhaul_records::record;
use tokio::sync::broadcast;

impl Service {
    /// Hears from now on of each run that is taken up, let go of, or changed while nobody works on it.
    pub fn news(&self) -> broadcast::Receiver<RunId> {
        self.listeners.0.subscribe()
    }

    /// The runs that are worked on in this moment.
    pub fn active(&self) -> Vec<RunId> {
        self.lock().keys().cloned().collect()
    }

    /// The number of the last event of a run; 0 where there is none.
    pub fn last_event(&self, run: &RunId) -> fault::Result<u64> {
        record::last_event(&*self.host.store, run)
    }

    /// Something is new of a run. Nobody listening is no error.
    pub(super) fn tell(&self, run: &RunId) {
        let _ = self.listeners.0.send(run.clone());
    }
}
