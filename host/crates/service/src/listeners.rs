//! The listeners to changes of all runs. Knows no run; `news.rs` tells them.

use longhaul_core::RunId;
use tokio::sync::broadcast;

/// Runs that a listener may lag behind before it has to look at all of them.
const BACKLOG: usize = 1_024;

/// Receivers of the ids of changed runs.
pub(super) struct Listeners(pub(super) broadcast::Sender<RunId>);

impl Default for Listeners {
    fn default() -> Self {
        Self(broadcast::Sender::new(BACKLOG))
    }
}
