//! The inputs of a run: orders of the operator, and reports on requested work.
//!
//! Planners, agents and evaluators wrote the texts in reports: untrusted, and capped before they are stored. A report
//! names only the key of its work, so that a late or repeated report is distinguished from the awaited one.

use crate::HarnessLimits;
use longhaul_core::event::WorkUsage;
use longhaul_core::work::{Evidence, FeatureSpec, Outcome, Plan, PlanStep, Synthesis, Verdict};
use longhaul_core::{Denial, Digest, LimitHit, Outage, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// An input of the state machine.
#[expect(clippy::large_enum_variant, reason = "the large one begins a run, once")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "input", rename_all = "snake_case")]
pub enum Input {
    /// The operator gives a goal. The first input of a run, once.
    Begin {
        /// The id of the run.
        run: RunId,
        /// The goal in the words of its author.
        goal: String,
        /// The host's context for the planner, an object.
        context: serde_json::Value,
        /// The configuration.
        setup: HarnessSetup,
        /// The limits of the run.
        limits: HarnessLimits,
    },
    /// Work ended, successfully or not.
    Done {
        /// The key of the [`crate::Work`].
        key: String,
        /// The resources that the work used.
        used: WorkUsage,
        /// The result of the work.
        report: WorkReport,
    },
    /// Work waits for a person and is not over: an effect with an unknown outcome, an approval.
    Parked {
        /// The key of the [`crate::Work`].
        key: String,
        /// The question, for a person.
        question: String,
        /// The requested answer.
        wanted: PersonRequest,
    },
    /// The decision that parked work waited for in front of a call was made, and the work can continue. Ignored when it
    /// does not wait any more: another person answered first, or it was begun again.
    Approved {
        /// The key of the work.
        key: String,
    },
    /// The driver stored a person's knowledge of the effect that parked work asks about, and the work can continue.
    /// Refused when it does not wait any more.
    Resolved {
        /// The key of the work.
        key: String,
    },
    /// The driver withdrew that answer before the work used it. The work waits as before.
    AnswerTakenBack {
        /// The key of the work.
        key: String,
        /// The question, for a person.
        question: String,
        /// The command that answers it.
        answer_with: String,
    },
    /// A person answered.
    Answered {
        /// The feature that is blocked; none when the whole run waits.
        feature: Option<String>,
        /// The person's words. For parked work, the driver has already stored them where the work reads them.
        answer: String,
    },
    /// The time that [`crate::Park::until_ms`] asked for has come.
    Woke,
    /// The operator wants no new work to start. Work under way may end or be cancelled by the driver.
    PauseRequested,
    /// The operator resumes the run: after a pause, before the end of a wait, or after it ended incomplete.
    Resume {
        /// Failing features may be retried, [`HarnessLimits::feature_attempts_max`] times.
        retry_failing: bool,
        /// New caps, if they changed.
        limits: Option<HarnessLimits>,
    },
    /// The operator adds a feature.
    FeatureAdded {
        /// The feature; its id must be new.
        spec: FeatureSpec,
    },
    /// The operator replaces a feature's spec. The feature is then built, and judged, again.
    FeatureEdited {
        /// The feature, by its id.
        spec: FeatureSpec,
    },
    /// The operator takes a feature off the list.
    FeatureDropped {
        /// The id of the feature.
        feature: String,
    },
    /// The operator had the goal read again.
    GoalReread {
        /// The present goal.
        goal: String,
        /// Features that it adds or changes.
        steps: Vec<PlanStep>,
        /// Features that it no longer has.
        dropped: Vec<String>,
    },
    /// The driver went back to an earlier commit on the operator's order; the run was not working.
    Reverted {
        /// Features whose pass depends on the abandoned commits.
        features: Vec<String>,
        /// The abandoned commits, newest first.
        left: Vec<String>,
        /// The commit that the branch and the tree are at now.
        to: String,
        /// The ref that keeps the branch's former tip; none when it did not move.
        kept_as: Option<String>,
    },
    /// The operator had the pinned checks of passing features run again; the run was not working.
    Regressed {
        /// The features that no longer pass, each with the reason.
        features: Vec<(String, String)>,
    },
    /// A person corrects the current work. The driver passes the correction to the agent at its next step.
    Steered {
        /// The feature, or task; none: all current work, or the planner while it is asked.
        feature: Option<String>,
        /// The person's words.
        text: String,
    },
    /// A person stops the work on one feature, or task. A resume continues it.
    TaskCancelled {
        /// The id of the feature.
        feature: String,
    },
    /// The driver measured that the run reached its wall time, see [`HarnessLimits::wall_ms_max`].
    WallUsedUp {
        /// The time that it worked, in milliseconds.
        spent_ms: u64,
    },
    /// The operator abandons the run. The tree stays as it is.
    Abandon {
        /// The reason, for people.
        reason: String,
    },
}

/// The answer that parked work needs from a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonRequest {
    /// A report that an effect happened or did not; the value is the command that sends it.
    Effect(String),
    /// A text, or that a fault is corrected.
    Words,
    /// An answer to the approval of this id.
    Approval(String),
}

/// The operator's configuration, as far as the harness needs it.
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
    /// The checks whose pass rests on an exit code alone.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub exit_checks: BTreeSet<String>,
    /// The evidence of other checks without counterexamples. Runs of earlier versions have none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub weak_checks: BTreeMap<String, Evidence>,
    /// The strategy, which decides what follows a failed step.
    pub strategy: Strategy,
    /// The agent that adds missing criteria and checks before the work on a feature begins; none: features keep their
    /// planned rubric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract_by: Option<String>,
    /// The plan to follow; none: the planner makes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Plan>>,
    /// The operator's descriptions of agents, by their names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub described: BTreeMap<String, String>,
    /// Agents whose own confidence is ignored.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub confidence_ignored: BTreeSet<String>,
    /// The agent of an ask for tasks with an unknown agent; none: the first of `agents`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_agent: Option<String>,
    /// The dispatch of an ask.
    #[serde(skip_serializing_if = "Dispatch::is_auto")]
    pub dispatch: Dispatch,
    /// The evaluator, by its name, when it judges by checks alone: a criterion without a check could not pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks_only: Option<String>,
    /// Features that pass in the previous run on this branch, by their ids, each with the digest of its spec.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub passed_before: BTreeMap<String, Digest>,
}

/// The dispatch of an ask: its choice of the agent that answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dispatch {
    /// One agent if there is only one; of several, a model decides whether the goal is simple, for one of them, or
    /// complex, for a plan.
    #[default]
    Auto,
    /// The agent of this name.
    Agent(String),
    /// One agent; of several, a model chooses.
    Route,
    /// Several agents, as a planner plans.
    Plan,
}

impl Dispatch {
    fn is_auto(&self) -> bool {
        *self == Self::Auto
    }
}

/// The strategy for working through a plan. All use the same graph of sessions; they differ in the meaning of a
/// session, and in what happens when no step is left that can be worked on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// The run ends, and failing features stay so until a person retries them. The default.
    #[default]
    Session,
    /// The planner is asked again for the failed steps, up to `replans_max` times, then a person; once every step
    /// passes it synthesises the results.
    Pipeline,
    /// Tasks that give answers: there is no tree, nothing is judged and nothing committed. One agent answers, or the
    /// planner's tasks do as a pipeline's steps, and the planner synthesises their answers.
    // `longhaul ask` begins one; `longhaul.toml` cannot name it.
    #[schemars(skip)]
    Ask,
}

/// The trial of a check before the work begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// The id of the feature.
    pub feature: String,
    /// The name of the check.
    pub check: String,
    /// The outcome of the check.
    pub outcome: TrialOutcome,
}

/// The outcome of a check on the tree before any work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialOutcome {
    /// The check fails, as it should.
    Fails,
    /// The check passes, so that its pass would prove nothing.
    Passes,
    /// The check could not be loaded, for this reason.
    CannotLoad(String),
}

/// The result of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkReport {
    /// The result of [`crate::WorkKind::Choose`], in the model's words.
    Chosen(String),
    /// The result of [`crate::WorkKind::Plan`] or [`crate::WorkKind::Replan`].
    Planned(Plan),
    /// The result of [`crate::WorkKind::Synthesize`].
    Synthesized(Synthesis),
    /// The result of [`crate::WorkKind::Propose`].
    Proposed {
        /// JSON, as the agent wrote it: see [`crate::contract`].
        output: String,
    },
    /// [`crate::WorkKind::TryChecks`] is done.
    Tried(Vec<Trial>),
    /// [`crate::WorkKind::Prepare`] is done.
    Prepared {
        /// The commit of the tree.
        base: String,
        /// Checks that passed there, before the work began.
        vacuous: Vec<String>,
        /// The orientation of the session, an object.
        orientation: serde_json::Value,
    },
    /// The result of [`crate::WorkKind::Generate`]. Its output stays with the driver.
    Generated(Outcome),
    /// The result of [`crate::WorkKind::Generate`] when the tree is unchanged.
    Unchanged(Outcome),
    /// The result of [`crate::WorkKind::Judge`].
    Judged(Verdict),
    /// [`crate::WorkKind::Judge`] or [`crate::WorkKind::Commit`] was not done: no commit could hold the tree's changes,
    /// or a person refused it.
    Unfit {
        /// The fault of each file and its remedy, a sentence each.
        files: Vec<String>,
    },
    /// [`crate::WorkKind::Merge`] is done: the tree holds both.
    Merged {
        /// The new base commit.
        base: String,
    },
    /// [`crate::WorkKind::Merge`] cannot be done: the branch changed the same lines.
    Conflicted {
        /// The files with conflicts.
        files: Vec<String>,
    },
    /// [`crate::WorkKind::Commit`] was not done: the branch has moved since the tree started.
    Moved,
    /// [`crate::WorkKind::Commit`] is done.
    Committed {
        /// The id of the commit. None: there were no changes.
        commit: Option<String>,
        /// The files that changed.
        files: Vec<String>,
        /// The protected ones of those files.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        protected: Vec<String>,
    },
    /// [`crate::WorkKind::Discard`] is done.
    Discarded,
    /// Work of any kind failed.
    Failed(WorkFailure),
}

/// The reason why work failed: the errors of all roles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkFailure {
    /// The task cannot be done as written.
    Impossible(String),
    /// A question for a person; from a planner, that the goal is unclear.
    Blocked(String),
    /// The operator does not allow it.
    Denied(Denial),
    /// A cap of the invocation was reached.
    Limit(LimitHit),
    /// The plugin reports that a service is unavailable. The invocation has ended.
    Unavailable(Outage),
    /// A service that the host needed for the invocation is unavailable. The invocation has not ended: the same work
    /// continues from its journal.
    Suspended(Outage),
    /// A cap of the run, or of its project's day, leaves no budget for the next effect. The invocation has not ended:
    /// the same work continues from its journal.
    Budget(LimitHit),
    /// A provider refuses a request until a person corrects something. The invocation has not ended: the same work
    /// continues from its journal.
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
