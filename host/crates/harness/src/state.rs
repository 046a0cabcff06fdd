//! The state of a run: everything that the harness knows, as JSON with a version.
//!
//! Any code may read it; only [`crate::step()`] changes it. Counts and percentages are computed from the features and
//! never stored, so they cannot disagree with them.

mod earlier;
mod feature;
mod session;

use crate::action::{EndStatus, Park, Work};
use crate::input::{HarnessSetup, Strategy};
use crate::limits::HarnessLimits;
use longhaul_core::event::WorkUsage;
use longhaul_core::work::{FeatureStatus, Synthesis};
use longhaul_core::{Digest, RunId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) use feature::digest;
pub use feature::{
    AS_A_PERSON_SAYS, BY_THE_RUN_BEFORE, BlockedBy, Consent, Feature, HISTORY_MAX, Offered, count, is_complete,
};
pub use session::{Session, SessionNote};

/// The version that this crate writes. Later versions still read it.
pub const VERSION: u32 = 2;

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunState {
    /// [`VERSION`] at the time of writing.
    pub version: u32,
    /// The run; none before it begins.
    pub run: Option<RunId>,
    /// The goal in the words of its author.
    pub goal: String,
    /// The host's context for the planner, an object.
    pub context: serde_json::Value,
    /// The configuration when the run began.
    pub setup: HarnessSetup,
    /// The limits of the run.
    pub limits: HarnessLimits,
    /// The phase of the run.
    pub phase: Phase,
    /// True when the operator paused new work.
    pub paused: bool,
    /// The features, in the planner's order, added ones last.
    pub features: Vec<Feature>,
    /// The parallel lanes: the planner, or up to `parallel_max` sessions.
    pub lanes: Vec<Lane>,
    /// Tasks of an ask that a person stopped, with their work: a resume continues them there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<Lane>,
    /// Keys of cancelled work whose usage was not reported yet.
    pub cancelled: BTreeSet<String>,
    /// The usage of all work.
    pub used: WorkUsage,
    /// Notes for the planner beside the goal: refusals of its plans, answers to its questions.
    pub plan_notes: Vec<SessionNote>,
    /// The used part of each cap.
    pub counts: Counts,
    /// The number of times that the planner was asked after its first plan: keys are derived from it.
    #[serde(default)]
    pub asked_again: u32,
    /// The planner's synthesis of the results, once the steps of a pipeline pass; or the answer of an ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Synthesis>,
    /// True when one agent answers an ask by itself, so that no planner is asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub direct: bool,
}

/// The phase of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "phase", rename_all = "snake_case")]
pub enum Phase {
    /// No work began.
    New,
    /// There are lanes, some of which may wait; or it is paused after a revert, and a resume chooses the next work.
    Running,
    /// The run ended, unless it is resumed. Lanes that a limit held back still exist.
    Ended {
        /// The status with which it ended.
        status: EndStatus,
        /// The summary, in one line.
        summary: String,
    },
}

/// A line of work: the planner's, or that of one session. It always has one piece of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// The session of the lane. None: the planner's.
    pub session: Option<Session>,
    /// The work whose report is awaited, or that is held back by a pause, a wait or a cap.
    pub work: Work,
    /// The wait of the lane. None: it is not held back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
}

/// A lane's wait, and its notice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The condition of the wait.
    pub wait: WaitFor,
    /// The notice for people.
    pub park: Park,
}

/// The condition of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitFor {
    /// An unavailable service, or the next day of a project that used up this one; until a time.
    Outage,
    /// A person, about the work itself, which continues under the same key.
    Work,
    /// A person, about the goal.
    Plan,
    /// A person, to repair the repository.
    Repository,
    /// A person, to correct the cause of a provider's refusal, for example a key or the name of a model.
    Provider,
    /// A resume with a higher cap. Once every lane waits for one, the run ends.
    Cap(Cap),
}

impl WaitFor {
    /// True when [`crate::Input::Answered`] ends it.
    #[must_use]
    pub fn is_for_a_person(self) -> bool {
        matches!(self, Self::Work | Self::Plan | Self::Repository | Self::Provider)
    }
}

/// A limit at which a lane is held back. Other limits end a session, or refuse a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cap {
    /// The tokens of the run.
    TokensMax,
    /// The cost of the run, in millionths of a US dollar.
    CostMicrodollarsMax,
    /// The retries of a service that is not available.
    UnavailableRetriesMax,
    /// The failed attempts to commit or to clean the tree.
    RepositoryAttemptsMax,
    /// The wall time, in milliseconds.
    WallMsMax,
    /// The replies of models.
    ModelCallsMax,
    /// The tool calls.
    ToolCallsMax,
    /// The fuel of guests.
    FuelMax,
    /// The highest memory of a guest, in bytes.
    MemoryBytesMax,
    /// The bytes that are sent to the network.
    EgressBytesMax,
    /// The bytes of answers in journals.
    StoredBytesMax,
}

impl Cap {
    /// The name of its field in [`HarnessLimits`].
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

    /// The cap of that name among those that the ledger of a run enforces.
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

/// The used part of the caps of [`HarnessLimits`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// Used part of `sessions_max`.
    pub sessions: u32,
    /// Used part of `plan_attempts_max`.
    pub plan_attempts: u32,
    /// Used part of `unavailable_retries_max`.
    pub outages: u32,
    /// Used part of `repository_attempts_max`.
    pub repository_failures: u32,
    /// Used part of `failures_equal_max`.
    pub failures_equal: u32,
    /// The text that they share.
    pub failure_last: String,
    /// Used part of `edits_max`.
    pub edits: u32,
    /// Used part of `replans_max`.
    pub replans: u32,
    /// Plans that went back to the planner because a check could not be loaded: at most one.
    pub checks_sent_back: u32,
}

/// The status of a run, for people and JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// It was accepted, and no work began.
    New,
    /// A planner is at work.
    Planning,
    /// Its features are being worked on.
    Working,
    /// It waits: for a person, a service, or a limit.
    Parked,
    /// A person paused it.
    Paused,
    /// It ended, and every feature passes or was dropped.
    Completed,
    /// It ended, and some features do not pass.
    Incomplete,
    /// It ended while it was planning.
    Failed,
    /// A person abandoned it.
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
        /// The version of the state.
        found: u64,
    },
    /// The stored bytes are not a state.
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

    /// The stored form.
    ///
    /// # Panics
    /// Never: the fields are plain data, which always has JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("plain data has JSON")
    }

    /// Parses the stored form.
    ///
    /// # Errors
    /// Every [`StateError`].
    pub fn from_json(text: &str) -> Result<Self, StateError> {
        // The version comes first, since the rest of a later state may have another shape.
        let value: serde_json::Value = serde_json::from_str(text)?;
        match value.get("version").and_then(serde_json::Value::as_u64) {
            Some(found) if found > u64::from(VERSION) => Err(StateError::Newer { found }),
            Some(1) => Ok(serde_json::from_value(earlier::from_first(value, VERSION))?),
            _ => Ok(serde_json::from_value(value)?),
        }
    }

    /// The status of the run.
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

    /// The waits of its lanes, each with its feature.
    pub fn waits(&self) -> impl Iterator<Item = (Option<&str>, &Wait)> {
        self.lanes.iter().filter_map(|lane| Some((lane.work.feature(), lane.wait.as_ref()?)))
    }

    /// The end of the first timed wait, in milliseconds since 1970-01-01 UTC: send [`crate::Input::Woke`] then.
    #[must_use]
    pub fn wakes_at_ms(&self) -> Option<u64> {
        self.waits().filter_map(|(_, wait)| wait.park.until_ms).min()
    }

    /// The session that works on a feature.
    #[must_use]
    pub fn session(&self, feature: &str) -> Option<&Session> {
        self.lanes.iter().filter_map(|lane| lane.session.as_ref()).find(|session| session.feature == feature)
    }

    /// The part of a state that the driver needs to carry out one piece of work: its caps, its feature, its lane. A
    /// whole state for each of two hundred waiting lanes would be most of their memory.
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

    /// The number of features that have this status.
    #[must_use]
    pub fn count(&self, status: FeatureStatus) -> usize {
        count(&self.features, status)
    }

    /// The features that pass, each with the digest of its spec: another run need not build them again.
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

    /// The position of a feature's lane.
    pub(crate) fn lane_of(&self, feature: &str) -> Option<usize> {
        self.lanes.iter().position(|lane| lane.work.feature() == Some(feature))
    }
}
