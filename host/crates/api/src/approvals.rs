//! Approvals and the rules that came of them, as they are asked for and shown. Decides nothing.

use crate::runs::RunRef;
use longhaul_approval::{Approval, RunRule};
use longhaul_core::RunId;
use serde::{Deserialize, Serialize};

/// List approvals and rules.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListApprovals {
    /// Only those of this run; none: of all runs.
    pub run: Option<RunRef>,
}

/// Show an approval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowApproval {
    /// Its id, or the beginning of it.
    pub id: String,
}

/// Answer an approval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerApproval {
    /// Its id, or the beginning of it.
    pub id: String,
    /// What the person wrote.
    pub text: String,
}

/// Revoke a rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RevokeRule {
    /// The run.
    pub run: RunRef,
    /// The id of the rule.
    pub rule: String,
}

/// Approvals and rules, the oldest of each run first.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalList {
    /// The answered ones included.
    pub approvals: Vec<Approval>,
    /// The revoked ones included.
    pub rules: Vec<(RunId, RunRule)>,
}

/// An approval that was answered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalOutcome {
    /// With the answer.
    pub approval: Approval,
    /// What the answer allows from now on.
    pub rule: Option<RunRule>,
    /// Whether its run is worked on in this moment.
    pub active: bool,
}
