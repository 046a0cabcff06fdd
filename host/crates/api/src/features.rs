//! Requests and responses about the features of a run and the proposals of its agents. This module judges nothing.

use crate::runs::{FeatureRecheck, RunRef};
use longhaul_core::RunId;
use longhaul_core::work::FeatureSpec;
use serde::{Deserialize, Serialize};

/// Add a feature to a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AddFeature {
    /// The run.
    pub run: RunRef,
    /// The feature. Its id must not be in use.
    pub spec: FeatureSpec,
}

/// Replace the definition of a feature.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EditFeature {
    /// The run.
    pub run: RunRef,
    /// The new definition, with the id of the feature.
    pub spec: FeatureSpec,
}

/// Drop a feature from a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DropFeature {
    /// The run.
    pub run: RunRef,
    /// The id of the feature.
    pub feature: String,
}

/// Run the checks of passing features again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecheckFeatures {
    /// The run.
    pub run: RunRef,
    /// The id of one feature. None: all passing features.
    pub feature: Option<String>,
}

/// Show the kept work of a failing feature, or of a revert.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowKept {
    /// The run.
    pub run: RunRef,
    /// The id of the feature, or the name that the revert gave the work.
    pub name: String,
}

/// List the proposals of the agents of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListProposals {
    /// The run.
    pub run: RunRef,
}

/// Accept a proposal and carry it out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AcceptProposal {
    /// The run.
    pub run: RunRef,
    /// The id of the proposal.
    pub proposal: String,
}

/// Reject a proposal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RejectProposal {
    /// The run.
    pub run: RunRef,
    /// The id of the proposal.
    pub proposal: String,
    /// The reason, for people.
    pub reason: String,
}

/// The result of a recheck.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RecheckOutcome {
    /// The run.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run: RunId,
    /// The results of each feature that passes, or passed until now.
    pub features: Vec<FeatureRecheck>,
}

/// Kept work that is in no commit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptWork {
    /// A patch of the changes, or the JSON of an answer.
    pub text: String,
}
