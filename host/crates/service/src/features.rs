//! The operations on the features of runs. Each change is an order of the run.

use super::ServiceOperations;
use longhaul_api::features::{
    AcceptProposal, AddFeature, DropFeature, EditFeature, KeptWork, ListProposals, RecheckFeatures, RecheckOutcome,
    RejectProposal, ShowKept,
};
use longhaul_api::operations::FeatureOperations;
use longhaul_api::runs::AffectedRun;
use longhaul_core::fault;
use longhaul_harness::Input;
use longhaul_records::proposals::{self, Proposal};

#[async_trait::async_trait]
impl FeatureOperations for ServiceOperations<'_> {
    async fn add_feature(&self, AddFeature { run, spec }: AddFeature) -> fault::Result<AffectedRun> {
        self.0.order(&run, Input::FeatureAdded { spec }).await
    }

    async fn edit_feature(&self, EditFeature { run, spec }: EditFeature) -> fault::Result<AffectedRun> {
        self.0.order(&run, Input::FeatureEdited { spec }).await
    }

    async fn drop_feature(&self, DropFeature { run, feature }: DropFeature) -> fault::Result<AffectedRun> {
        self.0.order(&run, Input::FeatureDropped { feature }).await
    }

    async fn recheck_features(&self, request: RecheckFeatures) -> fault::Result<RecheckOutcome> {
        let RecheckFeatures { run, feature } = request;
        self.0.recheck(&run, feature).await
    }

    async fn kept_work(&self, ShowKept { run, name }: ShowKept) -> fault::Result<KeptWork> {
        self.0.kept(&self.0.find(&run)?, &name)
    }

    async fn proposals(&self, ListProposals { run }: ListProposals) -> fault::Result<Vec<Proposal>> {
        proposals::list(&*self.0.host.store, &self.0.find(&run)?.record.run)
    }

    async fn accept_proposal(&self, request: AcceptProposal) -> fault::Result<AffectedRun> {
        let AcceptProposal { run, proposal } = request;
        self.0.accept_proposal(&run, &proposal).await
    }

    async fn reject_proposal(&self, request: RejectProposal) -> fault::Result<AffectedRun> {
        let RejectProposal { run, proposal, reason } = request;
        self.0.reject_proposal(&run, &proposal, &reason).await
    }
}
