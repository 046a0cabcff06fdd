//! The service in the process that owns the data directory, as its client needs it: every operation, the events of a
//! run, and the end. It carries out nothing itself.

use longhaul_api::operations::Api;
use longhaul_api::seen::RunNotification;
use longhaul_core::RunId;
use std::any::Any;
use tokio::sync::mpsc::Sender;

/// A service in this process. The code that made it may ask for its type through [`Any`].
#[async_trait::async_trait]
pub trait LocalService: Api + Any {
    /// Sends the stored events of a run after the event `after`, then new ones, until no process works on the run.
    async fn watch(&self, run: &RunId, after: u64, sender: &Sender<RunNotification>);

    /// The runs that are worked on here.
    fn active(&self) -> Vec<RunId>;

    /// The runs that are worked on here and that no other process follows.
    fn unfollowed(&self) -> Vec<RunId>;

    /// Waits a little for runs that have ended and are being remembered.
    async fn end_remembering(&self);

    /// Stops every run once its effects and the answers of its models that are on their way have come, and waits for
    /// what others are being answered.
    async fn hand_over(&self);

    /// Stops every run without a trace, so that another process goes on with them.
    async fn stop(&self);
}
