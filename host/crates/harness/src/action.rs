//! The actions for the driver.
//!
//! [`Action::Emit`], [`Action::Park`] and [`Action::Finish`] are part of the transaction that stores the state.
//! [`Action::Work`] starts after it, and only if no work of the same key is running: after a pause or a crash the same
//! work is requested again, and continues from its journal.

use longhaul_core::event::Event;
use longhaul_core::work::{CheckSpec, Criterion, Goal, Issue, Plan, Task};
use serde::{Deserialize, Serialize};

/// An action of the run.
#[allow(clippy::large_enum_variant, reason = "a handful live at once, and none is stored in a list")]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Carry out this work, and report [`crate::Input::Done`] or [`crate::Input::Parked`] with its key.
    Work(Work),
    /// The work of this key is no longer wanted: stop it. Its usage is still counted when it is reported.
    Cancel {
        /// The key of the [`Work`].
        key: String,
    },
    /// Number this event and store it.
    Emit(Event),
    /// A lane waits for a time or for a person; [`crate::RunState::wakes_at_ms`] is the first of the times.
    Park(Park),
    /// The run is over.
    Finish {
        /// The status with which the run ends.
        status: EndStatus,
        /// A summary, in one line.
        summary: String,
    },
}

/// The reason why a lane waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Park {
    /// The reason, in one line; a question if a person has to act.
    pub reason: String,
    /// Send [`crate::Input::Woke`] at this time, in milliseconds since 1970-01-01 UTC. None: a person has to act.
    pub until_ms: Option<u64>,
}

/// The end of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndStatus {
    /// Every feature passes or was dropped.
    Completed,
    /// Some features do not pass; the best effort is kept.
    Incomplete,
    /// The run ended while it was planning.
    Failed,
    /// The operator abandoned it.
    Abandoned,
}

impl EndStatus {
    /// As in [`Event::RunEnded`].
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
        }
    }
}

/// A piece of work, complete: stored work is requested again literally, so that a journal finds the arguments it was
/// begun with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// The key without the attempt.
    pub name: String,
    /// Counts from 1. An invocation that ended in an outage has ended; the next attempt is another one.
    pub attempt: u32,
    /// The kind of work, with its input.
    pub job: WorkKind,
}

impl Work {
    pub(crate) fn new(name: String, job: WorkKind) -> Self {
        Self { name, attempt: 1, job }
    }

    /// The same work again, under a key of its own.
    pub(crate) fn again(mut self) -> Self {
        self.attempt = self.attempt.saturating_add(1);
        self
    }

    /// Unique within the run and stable: invocation ids are derived from it. For example `plan`, `plan/try`,
    /// `replan/2`, `f-ID/prepare`, `f-ID/2/generate`, `f-ID/e1/2/judge` in the feature's second session,
    /// `f-ID/2/judge/m1` after it was brought to the branch's tip, `f-ID/commit/t2` at the second attempt. Letters,
    /// digits, `-`, `_` and `/`.
    #[must_use]
    pub fn key(&self) -> String {
        match self.attempt {
            1 => self.name.clone(),
            attempt => format!("{}/t{attempt}", self.name),
        }
    }

    /// The feature of the work.
    #[must_use]
    pub fn feature(&self) -> Option<&str> {
        match &self.job {
            WorkKind::Choose { .. }
            | WorkKind::Plan { .. }
            | WorkKind::Replan { .. }
            | WorkKind::TryChecks { .. }
            | WorkKind::Synthesize { .. } => None,
            WorkKind::Propose { feature, .. }
            | WorkKind::Prepare { feature, .. }
            | WorkKind::Agree { feature, .. }
            | WorkKind::Generate { feature, .. }
            | WorkKind::Judge { feature, .. }
            | WorkKind::Merge { feature }
            | WorkKind::Commit { feature, .. }
            | WorkKind::Discard { feature } => Some(feature),
        }
    }
}

/// The result of a step without its output, which the driver has under the key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepSummary {
    /// The step's id.
    pub step: String,
    /// True when all checks passed.
    pub passed: bool,
    /// The key of the work that made its last output, if there is one.
    pub generated: Option<String>,
    /// The issues that were found.
    pub issues: Vec<Issue>,
}

/// A choice that a model makes for an ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// The path of the goal: simple, for one agent, or complex, for a plan.
    Path,
    /// The agent that answers.
    Agent,
}

/// A kind of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "job", rename_all = "snake_case")]
pub enum WorkKind {
    /// Ask a model, without any plugin, for a choice. Ends in [`crate::WorkReport::Chosen`].
    Choose {
        /// The kind of the choice.
        choice: Choice,
        /// The system prompt.
        system: String,
        /// The user prompt.
        prompt: String,
        /// The words that it may answer with; empty: any.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        among: Vec<String>,
    },
    /// Ask the planner for features. Ends in [`crate::WorkReport::Planned`].
    Plan {
        /// The planner's input; the driver adds the settings.
        goal: Goal,
    },
    /// Ask the planner for the remaining steps, after steps of a pipeline failed. Ends in
    /// [`crate::WorkReport::Planned`].
    Replan {
        /// The planner's input; the driver adds the settings.
        goal: Goal,
        /// The present plan, passed steps included.
        plan: Plan,
        /// Every step that passed or failed.
        results: Vec<StepSummary>,
    },
    /// Run each proposed check once on the unchanged tree, before the plan is accepted. Ends in
    /// [`crate::WorkReport::Tried`].
    TryChecks {
        /// The plan, with checks that are not the operator's.
        plan: Plan,
        /// The names of these checks, each with its feature.
        proposed: Vec<(String, String)>,
        /// The work that made the plan.
        planned_by: Box<Work>,
    },
    /// Ask the planner to synthesise the results. Ends in [`crate::WorkReport::Synthesized`].
    Synthesize {
        /// The planner's input; the driver adds the settings.
        goal: Goal,
        /// Every step that passed.
        results: Vec<StepSummary>,
    },
    /// Ask an agent, before the work on a feature begins, for missing criteria and checks. Ends in
    /// [`crate::WorkReport::Proposed`].
    Propose {
        /// The id of the feature.
        feature: String,
        /// The agent's name in `longhaul.toml`.
        agent: String,
        /// The agent's input; the driver adds the settings.
        task: Task,
    },
    /// Bring the feature's tree to the branch's tip, pin its checks with their test files, run each once there, and
    /// gather the session's orientation. Ends in [`crate::WorkReport::Prepared`].
    #[serde(alias = "pin")]
    Prepare {
        /// The id of the feature.
        feature: String,
        /// The checks of the feature.
        checks: Vec<CheckSpec>,
    },
    /// Ask the evaluator, before the work on a feature begins, which of the offered criteria it can judge: by judging
    /// the unchanged tree. Ends in [`crate::WorkReport::Judged`].
    Agree {
        /// The id of the feature.
        feature: String,
        /// The instruction of the feature.
        instruction: String,
        /// The text that the evaluator reads in the place of an output.
        output: String,
        /// The offered criteria.
        criteria: Vec<Criterion>,
    },
    /// An agent works on the tree. Ends in [`crate::WorkReport::Generated`].
    Generate {
        /// The id of the feature.
        feature: String,
        /// The number of the round, from 1.
        round: u32,
        /// The agent's name in `longhaul.toml`.
        agent: String,
        /// The agent's input; the driver adds the settings.
        task: Task,
    },
    /// The evaluator judges the output. Ends in [`crate::WorkReport::Judged`].
    Judge {
        /// The id of the feature.
        feature: String,
        /// The number of the round, from 1.
        round: u32,
        /// The key of the [`WorkKind::Generate`] whose output is judged.
        generated: String,
        /// The instruction of the feature.
        instruction: String,
        /// The criteria of the feature.
        criteria: Vec<Criterion>,
    },
    /// Merge the branch's new commits into the feature's tree. Ends in [`crate::WorkReport::Merged`] or
    /// [`crate::WorkReport::Conflicted`].
    Merge {
        /// The id of the feature.
        feature: String,
    },
    /// Commit exactly the changed files, from the tree that was judged. Ends in [`crate::WorkReport::Committed`], or in
    /// [`crate::WorkReport::Moved`] when the branch has moved meanwhile.
    Commit {
        /// The id of the feature.
        feature: String,
        /// Subject, a blank line, the agent's summary, a blank line, the harness's trailers.
        message: String,
    },
    /// Keep the changes as a blob, then restore the tree to the last commit. Ends in [`crate::WorkReport::Discarded`].
    Discard {
        /// The id of the feature.
        feature: String,
    },
}

impl WorkKind {
    /// True when it asks models, so that a budget has to be checked first.
    #[must_use]
    pub fn asks_models(&self) -> bool {
        match self {
            Self::Choose { .. }
            | Self::Plan { .. }
            | Self::Replan { .. }
            | Self::Synthesize { .. }
            | Self::Propose { .. }
            | Self::Agree { .. }
            | Self::Generate { .. }
            | Self::Judge { .. } => true,
            Self::TryChecks { .. }
            | Self::Prepare { .. }
            | Self::Merge { .. }
            | Self::Commit { .. }
            | Self::Discard { .. } => false,
        }
    }

    /// A verb for messages.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Choose { choice: Choice::Path, .. } => "choose between an agent and a plan",
            Self::Choose { choice: Choice::Agent, .. } => "choose an agent",
            Self::Plan { .. } => "plan",
            Self::Replan { .. } => "replan",
            Self::TryChecks { .. } => "try the checks of the plan",
            Self::Synthesize { .. } => "synthesize",
            Self::Propose { .. } => "propose",
            Self::Prepare { .. } => "prepare",
            Self::Agree { .. } => "agree on",
            Self::Generate { .. } => "generate",
            Self::Judge { .. } => "judge",
            Self::Merge { .. } => "merge",
            Self::Commit { .. } => "commit",
            Self::Discard { .. } => "discard",
        }
    }
}
