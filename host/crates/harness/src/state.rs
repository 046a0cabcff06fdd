//! The state of a run: all that the harness knows, as JSON with a version.
//!
//! Anyone may read it; only [`crate::step()`] changes it. Counts and percentages are computed from the
//! features and never stored, so they cannot disagree with them.

use crate::action::{EndStatus, Job, Park, Work};
use crate::input::Setup;
use crate::limits::HarnessLimits;
use longhaul_core::RunId;
use longhaul_core::event::Used;
use longhaul_core::work::{FeatureSpec, FeatureStatus, Issue};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The version that this crate writes. A later one still reads it.
pub const VERSION: u32 = 1;

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// [`VERSION`] at the time of writing.
    pub version: u32,
    /// The run; none before it begins.
    pub run: Option<RunId>,
    /// What the operator wrote.
    pub goal: String,
    /// What the host knew that helps the planner, an object.
    pub context: serde_json::Value,
    /// What was configured when the run began.
    pub setup: Setup,
    /// The caps.
    pub limits: HarnessLimits,
    /// Where the run is.
    pub phase: Phase,
    /// Whether the operator wants no new work.
    pub paused: bool,
    /// The features, in the planner's order, added ones last.
    pub features: Vec<Feature>,
    /// The attempt that is under way.
    pub session: Option<Session>,
    /// The work whose report is awaited, or that is held back by a pause, a wait or a limit.
    pub outstanding: Option<Work>,
    /// Keys of work that was called off and whose use has not been handed in.
    pub cancelled: BTreeSet<String>,
    /// What all work used.
    pub used: Used,
    /// What the planner is told beside the goal: refusals of its plans, answers to its questions.
    pub plan_notes: Vec<Note>,
    /// How far each cap is used.
    pub counts: Counts,
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// It has not begun.
    New,
    /// There is outstanding work.
    Running,
    /// It waits, with outstanding work held back.
    Waiting {
        /// For what.
        wait: WaitFor,
        /// What was said about it.
        park: Park,
    },
    /// It is over, unless resumed.
    Ended {
        /// How.
        status: EndStatus,
        /// In one line.
        summary: String,
    },
}

/// What a run waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// A service that is not there now; until a time.
    Outage,
    /// A person, about the outstanding work itself, which goes on under the same key.
    Work,
    /// A person, about the goal.
    Plan,
    /// A person, to mend the repository.
    Repository,
}

/// One feature and what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Feature {
    /// What is asked for.
    pub spec: FeatureSpec,
    /// Where it is.
    pub status: FeatureStatus,
    /// Why, in one line.
    pub why: String,
    /// What blocks it; none unless its status is blocked.
    pub blocked_by: Option<BlockedBy>,
    /// How often it ended in failing.
    pub attempts: u32,
    /// Of these, the ones before a person asked for it again.
    pub attempts_forgiven: u32,
    /// How often it was begun.
    pub sessions: u32,
    /// Why it failed last; none once it passes.
    pub last_error: Option<String>,
    /// What the agent said of its last output.
    pub summary: String,
    /// Its last commit.
    pub commit: Option<String>,
    /// The files of that commit.
    pub files: Vec<String>,
    /// Checks that passed before the work began.
    pub vacuous: Vec<String>,
    /// What a person answered to its questions.
    pub answers: Vec<Note>,
    /// What its work used.
    pub used: Used,
}

/// What blocks a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedBy {
    /// A feature that it depends on.
    Dependency,
    /// A question, which is the reason given.
    Question,
    /// A refusal, which is the reason given with the line that would allow it.
    Denial,
}

/// One attempt at a feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The feature.
    pub feature: String,
    /// Counts from 1.
    pub round: u32,
    /// What the round before left to mend.
    pub feedback: Vec<Issue>,
    /// What the agent said of each round before.
    pub earlier: Vec<String>,
}

/// Something said, and what it was about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The question, or the plan that was refused.
    pub about: String,
    /// The answer, or why.
    pub text: String,
}

/// How far the caps of [`HarnessLimits`] are used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Of `sessions_max`.
    pub sessions: u32,
    /// Of `plan_attempts_max`.
    pub plan_attempts: u32,
    /// Of `unavailable_retries_max`.
    pub outages: u32,
    /// Of `repository_attempts_max`.
    pub repository_failures: u32,
    /// Of `failures_equal_max`.
    pub failures_equal: u32,
    /// The text that they share.
    pub failure_last: String,
    /// Of `edits_max`.
    pub edits: u32,
}

/// Where a run is, in one word for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words explain themselves")]
pub enum RunStatus {
    New,
    Planning,
    Working,
    Parked,
    Paused,
    Completed,
    Incomplete,
    Failed,
    Abandoned,
}

/// A stored state cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateError {
    /// A later longhaul wrote it.
    #[error(
        "the run's state has version {found}, this longhaul reads up to {VERSION}; resume it with the newer longhaul"
    )]
    Newer {
        /// What it has.
        found: u64,
    },
    /// It is no state at all.
    #[error("the run's state cannot be read: {0}; restore the data directory from a backup")]
    Damaged(#[from] serde_json::Error),
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// The state before [`crate::Input::Begin`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            version: VERSION,
            run: None,
            goal: String::new(),
            context: serde_json::Value::Null,
            setup: Setup::default(),
            limits: HarnessLimits::default(),
            phase: Phase::New,
            paused: false,
            features: Vec::new(),
            session: None,
            outstanding: None,
            cancelled: BTreeSet::new(),
            used: Used::default(),
            plan_notes: Vec::new(),
            counts: Counts::default(),
        }
    }

    /// As it is stored.
    ///
    /// # Panics
    /// Never: the fields are plain data, whose JSON exists.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data has JSON")
    }

    /// As it was stored.
    ///
    /// # Errors
    /// Every [`StateError`].
    pub fn from_json(text: &str) -> Result<Self, StateError> {
        // The version comes first, since the rest of a later state may not have our shape.
        let value: serde_json::Value = serde_json::from_str(text)?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(found) if found > u64::from(VERSION) => Err(StateError::Newer { found }),
            _ => Ok(serde_json::from_value(value)?),
        }
    }

    /// Where the run is.
    #[must_use]
    pub fn status(&self) -> RunStatus {
        match &self.phase {
            Phase::New => RunStatus::New,
            Phase::Ended { status: EndStatus::Completed, .. } => RunStatus::Completed,
            Phase::Ended { status: EndStatus::Incomplete, .. } => RunStatus::Incomplete,
            Phase::Ended { status: EndStatus::Failed, .. } => RunStatus::Failed,
            Phase::Ended { status: EndStatus::Abandoned, .. } => RunStatus::Abandoned,
            Phase::Running | Phase::Waiting { .. } if self.paused => RunStatus::Paused,
            Phase::Waiting { .. } => RunStatus::Parked,
            Phase::Running if self.is_planning() => RunStatus::Planning,
            Phase::Running => RunStatus::Working,
        }
    }

    /// A feature by its id.
    #[must_use]
    pub fn feature(&self, id: &str) -> Option<&Feature> {
        self.features.iter().find(|feature| feature.spec.id == id)
    }

    /// How many features have this status.
    #[must_use]
    pub fn count(&self, status: FeatureStatus) -> usize {
        count(&self.features, status)
    }

    pub(crate) fn feature_mut(&mut self, id: &str) -> Option<&mut Feature> {
        self.features.iter_mut().find(|feature| feature.spec.id == id)
    }

    pub(crate) fn is_planning(&self) -> bool {
        self.features.is_empty()
    }

    pub(crate) fn outstanding_job(&self) -> Option<&Job> {
        self.outstanding.as_ref().map(|work| &work.job)
    }
}

/// How many of `features` have this status.
#[must_use]
pub fn count(features: &[Feature], status: FeatureStatus) -> usize {
    features.iter().filter(|feature| feature.status == status).count()
}

/// Whether nothing is left to do: each feature passes or was dropped, and there is one.
#[must_use]
pub fn is_complete(features: &[Feature]) -> bool {
    let done = |feature: &Feature| matches!(feature.status, FeatureStatus::Passing | FeatureStatus::Dropped);
    !features.is_empty() && features.iter().all(done)
}

impl Feature {
    /// A feature that nobody worked on.
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
            used: Used::default(),
        }
    }

    /// Moves it to `status` with the bookkeeping that belongs to it: failing counts an attempt and
    /// keeps the reason, passing clears it.
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

    /// Whether it may be tried again, with an attempt left of `attempts_max`.
    #[must_use]
    pub fn has_attempts(&self, attempts_max: u32) -> bool {
        self.attempts.saturating_sub(self.attempts_forgiven) < attempts_max
    }

    /// What the keys of its present session start with.
    pub(crate) fn key_prefix(&self) -> String {
        match self.sessions.saturating_sub(1) {
            0 => format!("f-{}", self.spec.id),
            epoch => format!("f-{}/e{epoch}", self.spec.id),
        }
    }
}
