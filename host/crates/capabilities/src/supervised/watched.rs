//! The state that supervision adds to an invocation: costs that were not reported yet, and its reservation.

use longhaul_core::LimitHit;
use longhaul_core::model::{Model, ModelError, ModelReply, ModelRequest, ReplyListener, Usage};
use longhaul_core::supervisor::{NoReservation, Reservation, Tries, UsageDelta};

/// Usage that the supervisor has not received yet.
#[derive(Default)]
pub(crate) struct UnreportedUsage {
    pub(super) more: UsageDelta,
    pub(super) held: Option<Box<dyn Reservation>>,
    /// Costs of answers that could not be used, in this attempt.
    pub(super) wasted: Usage,
    /// A batch of calls was checked as a whole: each is announced before any is made, so none may be refused then.
    pub(super) is_cleared: bool,
}

impl UnreportedUsage {
    /// Asks a model, each attempt within the reservation. Its cost beside the reply is counted, however it ends.
    ///
    /// # Errors
    /// The cap of the run without budget for one more attempt.
    pub(crate) async fn ask(
        &mut self,
        model: &dyn Model,
        request: &ModelRequest,
        heard: ReplyListener<'_>,
    ) -> Result<Result<ModelReply, ModelError>, LimitHit> {
        let free = NoReservation { was_cut_off: false };
        let tries = Tries::new(self.held.as_deref().unwrap_or(&free));
        let reply = model.ask(request, heard, &tries).await;
        let (tally, over) = tries.end();
        let wasted = tally.wasted();
        self.more.usage = self.more.usage.plus(wasted);
        self.more.egress_bytes = self.more.egress_bytes.saturating_add(tally.sent_bytes());
        self.wasted = self.wasted.plus(wasted);
        over.map_or(Ok(reply), Err)
    }
}
