//! Requests and responses about approvals and their rules. This module decides nothing.

use crate::runs::RunRef;
use longhaul_approval::{Approval, RunRule};
use longhaul_core::RunId;
use serde::{Deserialize, Serialize};

/// List approvals and rules.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListApprovals {
    /// The run whose approvals are listed. None: all runs.
    pub run: Option<RunRef>,
    /// True: only open approvals, and no rules. Default false: all of both.
    #[serde(default)]
    pub open: bool,
}

/// Show an approval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowApproval {
    /// The id of the approval, or a unique beginning of it.
    pub id: String,
}

/// Answer an approval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnswerApproval {
    /// The id of the approval, or a unique beginning of it.
    pub id: String,
    /// The answer as a person writes it.
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
    /// The approvals, the answered ones included.
    pub approvals: Vec<Approval>,
    /// The rules with their runs, the revoked ones included.
    pub rules: Vec<(RunId, RunRule)>,
}

/// An answered approval.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApprovalOutcome {
    /// The approval with its answer.
    pub approval: Approval,
    /// The rule that the answer made for the rest of the run. None: it made none.
    pub rule: Option<RunRule>,
    /// True when a process works on the run now.
    pub active: bool,
}
