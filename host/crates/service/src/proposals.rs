//! Accepts and rejects proposals of agents. To accept one gives the order that a person could have given.

use super::{RunRef, Service};
use longhaul_api::runs::AffectedRun;
use longhaul_core::RunId;
use longhaul_core::fault::{self, Context as _};
use longhaul_core::text::truncate;
use longhaul_core::work::FeatureStatus;
use longhaul_harness::{Input, RunState};
use longhaul_records::proposals::{self, ProposalStatus, ProposedChange};
use std::sync::Arc;

/// Longest reason of a rejection that is kept, in bytes.
const WHY_BYTES_MAX: usize = 2_048;

impl Service {
    /// Gives the order, then notes it, also over a rejection that came meanwhile. A kill in between leaves the proposal
    /// open and its change made, so what is done already is only noted.
    pub(super) async fn accept_proposal(self: &Arc<Self>, which: &RunRef, id: &str) -> fault::Result<AffectedRun> {
        let stored = self.find(which)?;
        let proposal = proposals::open(&*self.host.store, &stored.record.run, id)?;
        let (run, order) = (stored.record.run, order_of(&stored.state, &proposal.change)?);
        let Some(input) = order else {
            return self.decide(run, id, &ProposalStatus::Accepted { at_ms: self.host.clock.now_ms() }).await;
        };
        self.order(which, input).await?;
        proposals::accepted(&*self.host.store, &run, id, self.host.clock.now_ms()).await?;
        Ok(AffectedRun { run })
    }

    pub(super) async fn reject_proposal(&self, which: &RunRef, id: &str, why: &str) -> fault::Result<AffectedRun> {
        let standing =
            ProposalStatus::Rejected { at_ms: self.host.clock.now_ms(), why: truncate(why.trim(), WHY_BYTES_MAX) };
        self.decide(self.find(which)?.record.run, id, &standing).await
    }

    async fn decide(&self, run: RunId, id: &str, standing: &ProposalStatus) -> fault::Result<AffectedRun> {
        proposals::decide(&*self.host.store, &run, id, standing).await?;
        Ok(AffectedRun { run })
    }
}

/// The input to the harness; none when the run has the change already.
fn order_of(state: &RunState, change: &ProposedChange) -> fault::Result<Option<Input>> {
    let status = |id: &str| state.feature(id).map(|feature| feature.status);
    Ok(match change {
        ProposedChange::AddFeature { spec } if state.feature(&spec.id).is_some_and(|found| found.spec == *spec) => None,
        ProposedChange::AddFeature { spec } => Some(Input::FeatureAdded { spec: spec.clone() }),
        ProposedChange::DropFeature { feature } if status(feature) == Some(FeatureStatus::Dropped) => None,
        ProposedChange::DropFeature { feature } => Some(Input::FeatureDropped { feature: feature.clone() }),
        ProposedChange::RestoreFeature { feature } => {
            let found = state.feature(feature).or_unknown(|| format!("feature `{feature}` is gone"))?;
            let spec = found.spec.clone();
            (found.status == FeatureStatus::Dropped).then_some(Input::FeatureEdited { spec })
        }
        // The person who accepts names its place; see `longhaul features accept`.
        ProposedChange::NewProject { .. } => None,
    })
}
