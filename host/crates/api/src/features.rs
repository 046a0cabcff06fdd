//! The features of a run, and the proposals of its agents, as they are asked for. Judges nothing.

use crate::runs::{FeatureRecheck, RunRef};
use longhaul_core::RunId;
use longhaul_core::work::FeatureSpec;
use serde::{Deserialize, Serialize};

/// Add a feature.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AddFeature {
    /// The run.
    pub run: RunRef,
    /// The feature.
    pub spec: FeatureSpec,
}

/// Replace what a feature asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EditFeature {
    /// The run.
    pub run: RunRef,
    /// The feature, with the id of the old one.
    pub spec: FeatureSpec,
}

/// Take a feature off the list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DropFeature {
    /// The run.
    pub run: RunRef,
    /// Its id.
    pub feature: String,
}

/// Run the checks of features that pass once more.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecheckFeatures {
    /// The run.
    pub run: RunRef,
    /// Only of this one.
    pub feature: Option<String>,
}

/// Show what a failing feature, or a revert, left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowKept {
    /// The run.
    pub run: RunRef,
    /// The feature, or the name that the revert gave it.
    pub name: String,
}

/// List what agents of a run proposed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListProposals {
    /// The run.
    pub run: RunRef,
}

/// Do what an agent proposed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AcceptProposal {
    /// The run.
    pub run: RunRef,
    /// The id of the proposal.
    pub proposal: String,
}

/// Do not do what an agent proposed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RejectProposal {
    /// The run.
    pub run: RunRef,
    /// The id of the proposal.
    pub proposal: String,
    /// Why.
    pub why: String,
}

/// The result of a recheck.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Rechecked))]
pub struct RecheckOutcome {
    /// The run.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub run: RunId,
    /// The features that pass, or did.
    pub features: Vec<FeatureRecheck>,
}

/// What was kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptWork {
    /// JSON, or whatever was kept.
    pub text: String,
}
