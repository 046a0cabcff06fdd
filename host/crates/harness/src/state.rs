//! The state of a run: all that the harness knows, as JSON with a version.
//!
//! Anyone may read it; only [`crate::step()`] changes it. Counts and percentages are computed from the
//! features and never stored, so they cannot disagree with them.

mod earlier;

use crate::action::{EndStatus, Park, Work};
use crate::input::{HarnessSetup, Strategy};
use crate::limits::HarnessLimits;
use longhaul_core::event::WorkUsage;
use longhaul_core::work::{FeatureSpec, FeatureStatus, Issue, OnFailure, Synthesis};
use longhaul_core::{Digest, RunId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version that this crate writes. A later one still reads it.
pub const VERSION: u32 = 2;

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// [`VERSION`] at the time of writing.
    pub version: u32,
    /// The run; none before it begins.
    pub run: Option<RunId>,
    /// What the operator wrote.
    pub goal: String,
    /// What the host knew that helps the planner, an object.
    pub context: serde_json::Value,
    /// What was configured when the run began.
    pub setup: HarnessSetup,
    /// The caps.
    pub limits: HarnessLimits,
    /// Where the run is.
    pub phase: Phase,
    /// Whether the operator wants no new work.
    pub paused: bool,
    /// The features, in the planner's order, added ones last.
    pub features: Vec<Feature>,
    /// What goes on side by side: the planner, or up to `parallel_max` sessions.
    pub lanes: Vec<Lane>,
    /// Tasks of an ask that a person stopped, where they were: a resume goes on with them there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<Lane>,
    /// Keys of work that was called off and whose use has not been handed in.
    pub cancelled: BTreeSet<String>,
    /// What all work used.
    pub used: WorkUsage,
    /// What the planner is told beside the goal: refusals of its plans, answers to its questions.
    pub plan_notes: Vec<SessionNote>,
    /// How far each cap is used.
    pub counts: Counts,
    /// How often the planner was asked after its first plan, in all: keys are made of it.
    #[serde(default)]
    pub asked_again: u32,
    /// What the planner made of the results, once the steps of a pipeline pass; or what an ask is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Synthesis>,
    /// Whether one agent answers an ask by itself, so that there is no planner to be asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
}

/// Where a run is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// It has not begun.
    New,
    /// There are lanes, of which some may wait; or it is paused after a revert, and a resume chooses what is
    /// next.
    Running,
    /// It is over, unless resumed. Lanes that a cap held back are still there.
    Ended {
        /// How.
        status: EndStatus,
        /// In one line.
        summary: String,
    },
}

/// A line of work: the planner's, or that of one session. It always stands at one piece of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// The attempt that it carries; none for the planner.
    pub session: Option<Session>,
    /// The work whose report is awaited, or that is held back by a pause, a wait or a cap.
    pub work: Work,
    /// What holds it back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
}

/// What a lane waits for, and what was said about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// For what.
    pub wait: WaitFor,
    /// What was said about it.
    pub park: Park,
}

/// What a lane waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// A service that is not there now; until a time.
    Outage,
    /// A person, about the work itself, which goes on under the same key.
    Work,
    /// A person, about the goal.
    Plan,
    /// A person, to mend the repository.
    Repository,
    /// A person, to mend what a provider refuses, for example a key or the name of a model.
    Provider,
    /// A resume with a higher cap. Once every lane waits for one, the run ends.
    Cap(Cap),
}

impl WaitFor {
    /// Whether [`crate::Input::Answered`] ends it.
    #[must_use]
    pub fn is_for_a_person(self) -> bool {
        matches!(self, Self::Work | Self::Plan | Self::Repository | Self::Provider)
    }
}

/// The caps that hold a lane back. Others end a session, or let none begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is the field of that name")]
pub enum Cap {
    TokensMax,
    CostMicrodollarsMax,
    UnavailableRetriesMax,
    RepositoryAttemptsMax,
    WallMsMax,
    ModelCallsMax,
    ToolCallsMax,
    FuelMax,
    MemoryBytesMax,
    EgressBytesMax,
    StoredBytesMax,
}

impl Cap {
    /// Its field in [`HarnessLimits`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TokensMax => "tokens_max",
            Self::CostMicrodollarsMax => "cost_microdollars_max",
            Self::UnavailableRetriesMax => "unavailable_retries_max",
            Self::RepositoryAttemptsMax => "repository_attempts_max",
            Self::WallMsMax => "wall_ms_max",
            Self::ModelCallsMax => "model_calls_max",
            Self::ToolCallsMax => "tool_calls_max",
            Self::FuelMax => "fuel_max",
            Self::MemoryBytesMax => "memory_bytes_max",
            Self::EgressBytesMax => "egress_bytes_max",
            Self::StoredBytesMax => "stored_bytes_max",
        }
    }

    /// The cap of that name among those that the ledger of a run holds it to.
    #[must_use]
    pub fn of_ledger(name: &str) -> Option<Self> {
        let caps = [
            Self::TokensMax,
            Self::CostMicrodollarsMax,
            Self::ModelCallsMax,
            Self::ToolCallsMax,
            Self::FuelMax,
            Self::MemoryBytesMax,
            Self::EgressBytesMax,
            Self::StoredBytesMax,
        ];
        caps.into_iter().find(|cap| cap.as_str() == name)
    }
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
    pub answers: Vec<SessionNote>,
    /// What its work used.
    pub used: WorkUsage,
    /// What the plan wants done when it fails; of meaning to a pipeline only.
    #[serde(default)]
    pub on_failure: OnFailure,
    /// The key of the work that made its last output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generated: Option<String>,
    /// What its agent thought of that output, between 0 and 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Whether a planner was asked because of that confidence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubted: bool,
    /// What a task of an ask answered: JSON, or its beginning as a string.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer: String,
    /// What was wrong with that output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issues: Vec<Issue>,
    /// How its sessions before went, one line a round, the last [`HISTORY_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<String>,
    /// Whether somebody looked for criteria and checks to add, see [`crate::WorkKind::Propose`].
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub proposed: bool,
    /// What was added then and waits for the evaluator's consent, see [`crate::WorkKind::Agree`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered: Option<Offered>,
    /// Whether a person was asked about it since only vacuous checks decide it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<Consent>,
}

/// Why a feature passes that a person took as done: nobody judged it.
pub const AS_A_PERSON_SAYS: &str = "true before the work began, as the operator says";

/// Why a feature passes that the run before built to the letter: that run judged it.
pub const BY_THE_RUN_BEFORE: &str = "judged to pass in the run before, and its checks still pass";

/// The word of a person on a feature that only vacuous checks decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consent {
    /// They are asked.
    Wanted,
    /// They want it worked on, and taken when its checks still pass and something was changed.
    Given,
}

/// What an agent added to a rubric.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offered {
    /// Ids of criteria.
    pub criteria: Vec<String>,
    /// Names of checks.
    pub checks: Vec<String>,
}

/// Rounds that a feature remembers of the sessions before: enough not to try the same again.
pub const HISTORY_MAX: usize = 12;

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
    /// A person, who stopped the work on it. A resume takes it up again.
    Cancel,
}

/// One attempt at a feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The feature.
    pub feature: String,
    /// The tree that it works in, from 0. No two sessions under way share one.
    #[serde(default)]
    pub slot: u32,
    /// The commit that its tree started from, or was last brought to; none before it was prepared.
    #[serde(default)]
    pub base: Option<String>,
    /// What the driver found that it should know, an object: commits, progress, decisions, hand-off.
    #[serde(default)]
    pub orientation: serde_json::Value,
    /// How often a round went on in a fresh invocation, of `handoffs_max`.
    #[serde(default)]
    pub handoffs: u32,
    /// How often commits of others were brought into its tree. No cap of its own: each is a commit.
    #[serde(default)]
    pub merges: u32,
    /// How often a person refused its commit. No cap of its own: each uses up a round.
    #[serde(default)]
    pub refusals: u32,
    /// Counts from 1.
    pub round: u32,
    /// What the round before left to mend.
    pub feedback: Vec<Issue>,
    /// What the agent said of each round before.
    pub earlier: Vec<String>,
    /// Whether its tree differs from `base`, as far as the last round left it.
    #[serde(default = "yes")]
    pub is_changed: bool,
}

/// Sessions that began before it was kept were judged as changed.
fn yes() -> bool {
    true
}

/// Something said, and what it was about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionNote {
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
    /// Of `replans_max`.
    pub replans: u32,
    /// Plans that went back to the planner since a check of theirs could not be loaded: at most one.
    pub checks_sent_back: u32,
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

impl Default for RunState {
    fn default() -> Self {
        Self::new()
    }
}

impl RunState {
    /// The state before [`crate::Input::Begin`].
    #[must_use]
    pub fn new() -> Self {
        Self {
            version: VERSION,
            run: None,
            goal: String::new(),
            context: serde_json::Value::Null,
            setup: HarnessSetup::default(),
            limits: HarnessLimits::default(),
            phase: Phase::New,
            paused: false,
            features: Vec::new(),
            lanes: Vec::new(),
            set_aside: Vec::new(),
            cancelled: BTreeSet::new(),
            used: WorkUsage::default(),
            plan_notes: Vec::new(),
            counts: Counts::default(),
            asked_again: 0,
            answer: None,
            direct: false,
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
            Some(1) => Ok(serde_json::from_value(earlier::from_first(value, VERSION))?),
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
            Phase::Running if self.paused => RunStatus::Paused,
            Phase::Running if self.lanes.iter().all(|lane| lane.wait.is_some()) => RunStatus::Parked,
            Phase::Running if self.is_planning() => RunStatus::Planning,
            Phase::Running => RunStatus::Working,
        }
    }

    /// What its lanes wait for, and that of which feature.
    pub fn waits(&self) -> impl Iterator<Item = (Option<&str>, &Wait)> {
        self.lanes.iter().filter_map(|lane| Some((lane.work.feature(), lane.wait.as_ref()?)))
    }

    /// When the first of its waits is over by itself: hand in [`crate::Input::Woke`] then.
    #[must_use]
    pub fn wakes_at_ms(&self) -> Option<u64> {
        self.waits().filter_map(|(_, wait)| wait.park.until_ms).min()
    }

    /// The session that works on a feature.
    #[must_use]
    pub fn session(&self, feature: &str) -> Option<&Session> {
        self.lanes.iter().filter_map(|lane| lane.session.as_ref()).find(|session| session.feature == feature)
    }

    /// What the driver needs of a state to carry out one piece of work: its caps, its feature, its lane. The whole
    /// of it, once for each of two hundred that wait, would be most of their memory.
    #[must_use]
    pub fn around(&self, work: &Work) -> Self {
        let lanes = self.lanes.iter().filter(|lane| lane.work.name == work.name);
        Self {
            run: self.run.clone(),
            limits: self.limits.clone(),
            phase: self.phase.clone(),
            features: work.feature().and_then(|id| self.feature(id)).cloned().into_iter().collect(),
            lanes: lanes.cloned().collect(),
            ..Self::new()
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

    /// The features that pass, each with the digest of what it asks for: what another run need not do again.
    #[must_use]
    pub fn passed(&self) -> BTreeMap<String, Digest> {
        let passing = self.features.iter().filter(|feature| feature.status == FeatureStatus::Passing);
        passing.map(|feature| (feature.spec.id.clone(), digest(&feature.spec))).collect()
    }

    pub(crate) fn feature_mut(&mut self, id: &str) -> Option<&mut Feature> {
        self.features.iter_mut().find(|feature| feature.spec.id == id)
    }

    pub(crate) fn is_ask(&self) -> bool {
        self.setup.strategy == Strategy::Ask
    }

    pub(crate) fn is_planning(&self) -> bool {
        self.features.is_empty()
    }

    /// Where among the lanes that of a feature is.
    pub(crate) fn lane_of(&self, feature: &str) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.work.feature() == Some(feature))
    }
}

impl Session {
    /// The first round of one.
    #[must_use]
    pub fn of(feature: &str) -> Self {
        Self {
            feature: feature.to_owned(),
            slot: 0,
            base: None,
            orientation: serde_json::Value::Null,
            handoffs: 0,
            merges: 0,
            refusals: 0,
            round: 1,
            feedback: Vec::new(),
            earlier: Vec::new(),
            is_changed: true,
        }
    }
}

/// Of all that a feature asks for.
pub(crate) fn digest(spec: &FeatureSpec) -> Digest {
    Digest::of(serde_json::to_string(spec).unwrap_or_default().as_bytes())
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

    /// Keeps one line of a session for those that follow.
    pub(crate) fn remember(&mut self, line: String) {
        self.history.push(line);
        let excess = self.history.len().saturating_sub(HISTORY_MAX);
        self.history.drain(..excess);
    }

    /// What the keys of its present session start with.
    pub(crate) fn key_prefix(&self) -> String {
        match self.sessions.saturating_sub(1) {
            0 => format!("f-{}", self.spec.id),
            epoch => format!("f-{}/e{epoch}", self.spec.id),
        }
    }
}
