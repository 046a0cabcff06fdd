//! What can happen to a run: orders of the operator, and reports on the work that was asked for.
//!
//! Texts in reports were written by planners, agents and evaluators: hostile, and capped before they
//! are kept. A report names the key of its work and nothing else, so that one which comes late, or
//! twice, is told apart from the one that is awaited.

use crate::HarnessLimits;
use longhaul_core::event::WorkUsage;
use longhaul_core::work::{Evidence, FeatureSpec, Outcome, Plan, PlanStep, Synthesis, Verdict};
use longhaul_core::{Denial, Digest, LimitHit, Outage, RunId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Something that happened.
#[expect(clippy::large_enum_variant, reason = "the large one begins a run, once")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// The operator hands over a goal. The first input of a run, once.
    Begin {
        /// The run.
        run: RunId,
        /// What the operator wrote.
        goal: String,
        /// What the host knows that helps the planner, an object.
        context: serde_json::Value,
        /// What is configured.
        setup: HarnessSetup,
        /// The caps.
        limits: HarnessLimits,
    },
    /// Work ended, one way or the other.
    Done {
        /// Of the [`crate::Work`].
        key: String,
        /// What it used.
        used: WorkUsage,
        /// How it ended.
        report: WorkReport,
    },
    /// Work waits for a person and is not over: an effect with an unknown outcome, an approval.
    Parked {
        /// Of the [`crate::Work`].
        key: String,
        /// The question.
        question: String,
        /// What is asked for.
        wanted: PersonRequest,
    },
    /// What parked work waited for in front of a call is decided, and it can go on. Nothing to do when it waits no
    /// more: another person was quicker, or it was begun anew.
    Approved {
        /// The work's key.
        key: String,
    },
    /// The driver keeps what a person knows of the effect that parked work asks about, and the work can go on. Refused
    /// when it waits no more.
    Resolved {
        /// The work's key.
        key: String,
    },
    /// The driver takes that out again, before the work has used it. The work waits as it did.
    AnswerTakenBack {
        /// The work's key.
        key: String,
        /// The question.
        question: String,
        /// The command that answers it.
        answer_with: String,
    },
    /// A person answered.
    Answered {
        /// The feature that is blocked; none when the whole run waits.
        feature: Option<String>,
        /// In their words. For work that is parked, the driver has already put it where the work finds it.
        answer: String,
    },
    /// The time that [`crate::Park::until_ms`] asked for has come.
    Woke,
    /// The operator wants no new work to start. Work under way may end or be cancelled by the driver.
    PauseRequested,
    /// The operator wants the run to go on: after a pause, before the end of a wait, or when it had
    /// ended incomplete.
    Resume {
        /// Failing features may be tried again, [`HarnessLimits::feature_attempts_max`] times.
        retry_failing: bool,
        /// New caps, if they changed.
        limits: Option<HarnessLimits>,
    },
    /// The operator adds a feature.
    FeatureAdded {
        /// The feature; its id must be new.
        spec: FeatureSpec,
    },
    /// The operator replaces what a feature asks for. It is then built, and judged, anew.
    FeatureEdited {
        /// The feature, by its id.
        spec: FeatureSpec,
    },
    /// The operator takes a feature off the list.
    FeatureDropped {
        /// Its id.
        feature: String,
    },
    /// The operator had the goal read again.
    GoalReread {
        /// As it is now.
        goal: String,
        /// Features that it adds, or says something else of.
        steps: Vec<PlanStep>,
        /// Features that it had and has no more.
        dropped: Vec<String>,
    },
    /// The driver went back to an earlier commit on the operator's order; the run was not working.
    Reverted {
        /// Features that pass by what was left behind.
        features: Vec<String>,
        /// The commits that were left behind, newest first.
        left: Vec<String>,
        /// The commit that the branch and the tree are at now.
        to: String,
        /// The ref that keeps where the branch was; none when it did not move.
        kept_as: Option<String>,
    },
    /// The operator had the pinned checks of passing features run again; the run was not working.
    Regressed {
        /// Those that no longer pass, each with why.
        features: Vec<(String, String)>,
    },
    /// A person corrects what is worked on. The driver brings it to the agent at its next step.
    Steered {
        /// The feature, or task; none: all that is worked on, or the planner while it is asked.
        feature: Option<String>,
        /// In their words.
        text: String,
    },
    /// A person stops the work on one feature, or task. A resume takes it up again.
    TaskCancelled {
        /// Its id.
        feature: String,
    },
    /// The driver measured that the run worked as long as it may, see [`HarnessLimits::wall_ms_max`].
    WallUsedUp {
        /// How long it worked.
        spent_ms: u64,
    },
    /// The operator gives the run up. The tree is left as it is.
    Abandon {
        /// Why.
        reason: String,
    },
}

/// What parked work wants of a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonRequest {
    /// To know whether an effect happened; the command that tells.
    Effect(String),
    /// Words, or that something is mended.
    Words,
    /// An answer to the approval of this id.
    Approval(String),
}

/// What the operator configured, as far as the harness has to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HarnessSetup {
    /// The names under `[agents]`.
    pub agents: Vec<String>,
    /// Categories that the operator gave to an agent, over [`crate::route::ROUTES`].
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub categories: BTreeMap<String, String>,
    /// The names under `[checks]`.
    pub checks: Vec<String>,
    /// Those of them whose pass rests on an exit code alone.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub exit_checks: BTreeSet<String>,
    /// What the pass of others of them rests on that have no counterexamples. Runs of before have none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub weak_checks: BTreeMap<String, Evidence>,
    /// What becomes of a plan whose steps fail.
    pub strategy: Strategy,
    /// The agent that is asked, before the work on a feature begins, for criteria and checks that it
    /// lacks; none: features are judged by what they were planned with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_by: Option<String>,
    /// The plan that is followed; none: the planner is asked for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Plan>>,
    /// What agents are for, in the operator's words, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub described: BTreeMap<String, String>,
    /// Agents whose own opinion of how sure they are counts for nothing.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub confidence_ignored: BTreeSet<String>,
    /// The agent of an ask that takes what was given to nobody known; none: the first of `agents`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_agent: Option<String>,
    /// Who answers an ask.
    #[serde(skip_serializing_if = "Dispatch::is_auto")]
    pub dispatch: Dispatch,
    /// The evaluator, by its name, when it judges by checks alone: a criterion without one could not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks_only: Option<String>,
    /// Features that pass in the run before on this branch, by their ids, each with the digest of what it asks for.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub passed_before: BTreeMap<String, Digest>,
}

/// Who answers an ask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dispatch {
    /// One agent if there is one; of several a model says whether the goal is simple, for one of them, or complex,
    /// for a plan.
    #[default]
    Auto,
    /// This agent.
    Agent(String),
    /// One agent; of several a model says which.
    Route,
    /// Several, as a planner plans.
    Plan,
}

impl Dispatch {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// How a plan is worked through. All are the same graph of sessions; they differ in what a session is, and in what
/// happens when no step is left that can be worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The run ends, and features that fail stay so until a person has them tried again. The default.
    #[default]
    Session,
    /// The planner is asked again for what failed, up to `replans_max` times, then a person; once every
    /// step passes it is asked what the results come to.
    Pipeline,
    /// Tasks that give answers: there is no tree, nothing is judged and nothing committed. One agent answers, or
    /// the planner's tasks do as a pipeline's steps, and it is asked what their answers come to.
    Ask,
}

/// What a proposed check did on the tree before any work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The feature.
    pub feature: String,
    /// The check.
    pub check: String,
    /// How it ended.
    pub outcome: TrialOutcome,
}

/// How a check ended on the tree before any work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// It fails, as it should.
    Fails,
    /// It passes, so it would show nothing.
    Passes,
    /// It could not even be loaded, and why.
    CannotLoad(String),
}

/// How work ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkReport {
    /// [`crate::WorkKind::Choose`] gave this, in the model's words.
    Chosen(String),
    /// [`crate::WorkKind::Plan`] or [`crate::WorkKind::Replan`] gave this.
    Planned(Plan),
    /// [`crate::WorkKind::Synthesize`] gave this.
    Synthesized(Synthesis),
    /// [`crate::WorkKind::Propose`] gave this.
    Proposed {
        /// JSON, as the agent wrote it: see [`crate::contract`].
        output: String,
    },
    /// [`crate::WorkKind::TryChecks`] is done.
    Tried(Vec<Trial>),
    /// [`crate::WorkKind::Prepare`] is done.
    Prepared {
        /// The commit that the tree is at.
        base: String,
        /// Checks that passed there, before the work began.
        vacuous: Vec<String>,
        /// What the session should know, an object.
        orientation: serde_json::Value,
    },
    /// [`crate::WorkKind::Generate`] gave this. Its output stays with the driver.
    Generated(Outcome),
    /// [`crate::WorkKind::Generate`] gave this, and the tree is as the work found it.
    Unchanged(Outcome),
    /// [`crate::WorkKind::Judge`] gave this.
    Judged(Verdict),
    /// [`crate::WorkKind::Judge`] or [`crate::WorkKind::Commit`] was not done: no commit could hold what is in the
    /// tree, or a person refused it.
    Unfit {
        /// What is wrong with each file and what to do about it, a sentence each.
        files: Vec<String>,
    },
    /// [`crate::WorkKind::Merge`] is done: the tree holds both.
    Merged {
        /// The commit that it is now based on.
        base: String,
    },
    /// [`crate::WorkKind::Merge`] cannot be done: the branch changed the same lines.
    Conflicted {
        /// In which files.
        files: Vec<String>,
    },
    /// [`crate::WorkKind::Commit`] was not done: the branch is not where the tree started from.
    Moved,
    /// [`crate::WorkKind::Commit`] is done.
    Committed {
        /// Its id; none when nothing had changed.
        commit: Option<String>,
        /// The files that changed.
        files: Vec<String>,
        /// Those of them that are protected.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        protected: Vec<String>,
    },
    /// [`crate::WorkKind::Discard`] is done.
    Discarded,
    /// Work of any kind did not give what it should.
    Failed(WorkFailure),
}

/// Why work did not give what it should: the errors of all roles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkFailure {
    /// The task cannot be done as written.
    Impossible(String),
    /// A question for a person; of a planner, that the goal is unclear.
    Blocked(String),
    /// Not allowed.
    Denied(Denial),
    /// A cap of the invocation was reached.
    Limit(LimitHit),
    /// The plugin says that a service is not there now. The invocation has ended.
    Unavailable(Outage),
    /// A service that the host needed for the invocation is not there now. The invocation has not
    /// ended: the same work goes on from its journal.
    Suspended(Outage),
    /// A cap of the run has no room for what comes next. The invocation has not ended: the same work goes on from
    /// its journal.
    Budget(LimitHit),
    /// A provider refuses what the work needs, until a person mends something. The invocation has not ended: the same
    /// work goes on from its journal.
    Rejected(Denial),
    /// Anything else, a trap included.
    Failed(String),
}

impl WorkFailure {
    /// In one line, for people and for the next round.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Impossible(text) => format!("impossible as written: {text}"),
            Self::Blocked(question) => format!("blocked by a question: {question}"),
            Self::Denied(denial) => format!("denied: {denial}"),
            Self::Limit(limit) | Self::Budget(limit) => limit.to_string(),
            Self::Unavailable(outage) | Self::Suspended(outage) => format!("unavailable: {outage}"),
            Self::Rejected(Denial { reason, fix }) => format!("{reason}; {fix}"),
            Self::Failed(text) => text.clone(),
        }
    }
}
