//! One feature of a run and its state, and questions about a list of features.
//!
//! It decides nothing: the steps choose the status of a feature, and [`Feature::become_status`] counts the attempts.

use super::session::SessionNote;
use longhaul_core::Digest;
use longhaul_core::event::WorkUsage;
use longhaul_core::work::{FeatureSpec, FeatureStatus, Issue, OnFailure};
use serde::{Deserialize, Serialize};

/// One feature and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    /// The definition of the feature.
    pub spec: FeatureSpec,
    /// The status of the feature.
    pub status: FeatureStatus,
    /// The reason, in one line.
    pub why: String,
    /// The cause of its block; none unless its status is blocked.
    pub blocked_by: Option<BlockedBy>,
    /// The number of times that it ended in failing.
    pub attempts: u32,
    /// The attempts before a person retried it.
    pub attempts_forgiven: u32,
    /// The number of its sessions.
    pub sessions: u32,
    /// The reason why it failed last; none once it passes.
    pub last_error: Option<String>,
    /// The agent's summary of its last output.
    pub summary: String,
    /// The id of its last commit.
    pub commit: Option<String>,
    /// The files of that commit.
    pub files: Vec<String>,
    /// Checks that passed before the work began.
    pub vacuous: Vec<String>,
    /// A person's answers to its questions.
    pub answers: Vec<SessionNote>,
    /// The usage of its work.
    pub used: WorkUsage,
    /// The reaction to its failure in the plan. Only pipelines use it.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// The key of the work that made its last output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<String>,
    /// The agent's confidence in that output, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// True when the planner was asked because of that confidence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubted: bool,
    /// The answer of a task of an ask: JSON, or its beginning as a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// The issues of that output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<Issue>,
    /// The history of its earlier sessions, one line a round, the last [`HISTORY_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<String>,
    /// True when an agent was asked for additional criteria and checks, see [`crate::WorkKind::Propose`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proposed: bool,
    /// The additions that wait for the evaluator's consent, see [`crate::WorkKind::Agree`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Offered>,
    /// A person's consent, asked for when only vacuous checks decide it; none: the person was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
}

/// The reason of a pass that a person declared: no evaluator judged it.
pub const AS_A_PERSON_SAYS: &str = "true before the work began, as the operator says";

/// The reason of a pass that the previous run reached with the same spec: that run judged it.
pub const BY_THE_RUN_BEFORE: &str = "all checks passed in the run before, and still pass";

/// A person's consent for a feature that only vacuous checks decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// The person is asked.
    Wanted,
    /// The person wants it worked on, and accepted when its checks still pass and the work changed something.
    Given,
}

/// An agent's additions to a rubric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    /// Ids of criteria.
    pub criteria: Vec<String>,
    /// Names of checks.
    pub checks: Vec<String>,
}

/// Rounds that a feature remembers of earlier sessions: enough not to repeat an attempt.
pub const HISTORY_MAX: usize = 12;

/// The cause of a feature's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedBy {
    /// A feature that it depends on.
    Dependency,
    /// A question, which is the stated reason.
    Question,
    /// A refusal, which is the stated reason with the line that would allow it.
    Denial,
    /// A person, who stopped the work on it. A resume continues it.
    Cancel,
}

impl Feature {
    /// A new feature without work.
    #[must_use]
    pub fn new(spec: FeatureSpec) -> Self {
        Self {
            spec,
            status: FeatureStatus::NotStarted,
            why: String::new(),
            blocked_by: None,
            attempts: 0,
            attempts_forgiven: 0,
            sessions: 0,
            last_error: None,
            summary: String::new(),
            commit: None,
            files: Vec::new(),
            vacuous: Vec::new(),
            answers: Vec::new(),
            used: WorkUsage::default(),
            on_failure: OnFailure::default(),
            generated: None,
            confidence: None,
            doubted: false,
            answer: String::new(),
            issues: Vec::new(),
            history: Vec::new(),
            proposed: false,
            offered: None,
            consent: None,
        }
    }

    /// Changes it to `status` with the bookkeeping for it: failing counts an attempt and stores the reason, passing
    /// clears it.
    pub fn become_status(&mut self, status: FeatureStatus, why: &str) {
        self.status = status;
        why.clone_into(&mut self.why);
        self.blocked_by = None;
        match status {
            FeatureStatus::Failing => {
                self.attempts = self.attempts.saturating_add(1);
                self.last_error = Some(why.to_owned());
            }
            FeatureStatus::Passing => self.last_error = None,
            FeatureStatus::NotStarted | FeatureStatus::InProgress | FeatureStatus::Blocked | FeatureStatus::Dropped => {
            }
        }
    }

    /// True when it may be retried, with an attempt left of `attempts_max`.
    #[must_use]
    pub fn has_attempts(&self, attempts_max: u32) -> bool {
        self.attempts.saturating_sub(self.attempts_forgiven) < attempts_max
    }

    /// Stores one line of a session's history for later sessions.
    pub(crate) fn remember(&mut self, line: String) {
        self.history.push(line);
        let excess = self.history.len().saturating_sub(HISTORY_MAX);
        self.history.drain(..excess);
    }

    /// The prefix of the keys of its present session.
    pub(crate) fn key_prefix(&self) -> String {
        match self.sessions.saturating_sub(1) {
            0 => format!("f-{}", self.spec.id),
            epoch => format!("f-{}/e{epoch}", self.spec.id),
        }
    }
}

/// The digest of a feature's spec.
pub(crate) fn digest(spec: &FeatureSpec) -> Digest {
    Digest::of(serde_json::to_string(spec).unwrap_or_default().as_bytes())
}

/// The number of `features` that have this status.
#[must_use]
pub fn count(features: &[Feature], status: FeatureStatus) -> usize {
    features.iter().filter(|feature| feature.status == status).count()
}

/// True when nothing is left to do: there are features, and each passes or was dropped.
#[must_use]
pub fn is_complete(features: &[Feature]) -> bool {
    let done = |feature: &Feature| matches!(feature.status, FeatureStatus::Passing | FeatureStatus::Dropped);
    !features.is_empty() && features.iter().all(done)
}
