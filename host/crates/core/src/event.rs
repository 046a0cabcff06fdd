//! The events of a run, numbered and durable, for people and programs that watch.

use crate::context::{Anxiety, ContextPolicy};
use crate::model::{ReplyDetails, Route, Usage};
use crate::project::ProjectStatus;
use crate::work::{Evidence, FeatureStatus, Judgement};
use crate::{Digest, InvocationId, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// The id of the run.
    pub run: RunId,
    /// The number of the event: counts from 1 within the run, without gaps.
    pub number: u64,
    /// The time of the event, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The event itself. Its fields stand beside those above, and `type` has its tag.
    #[serde(flatten)]
    pub event: Event,
}

/// One criterion that a planner proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposedCriterion {
    /// The id of the feature.
    pub feature: String,
    /// The statement that must hold.
    pub text: String,
    /// The name of the check that decides it. None: the evaluator reads the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

/// The reason for a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointCause {
    /// The configured number of steps was made.
    Step,
    /// A person is, or was, asked about a call.
    Approval,
}

/// The content of an event. Texts are for people unless a field says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A project has its first run.
    ProjectCreated {
        /// The name of the project.
        project: String,
        /// The path of its directory.
        directory: String,
    },
    /// A project changed its status.
    ProjectStatus {
        /// The name of the project.
        project: String,
        /// The former status.
        from: ProjectStatus,
        /// The new status.
        to: ProjectStatus,
        /// The reason, in one line.
        why: String,
    },
    /// A run was accepted.
    RunStarted {
        /// The name of the project.
        project: String,
        /// The branch that the run commits to.
        branch: String,
    },
    /// A process continues the run.
    RunResumed,
    /// The run waits in the queue, since as many others work as may at once. It goes on by itself.
    RunQueued {
        /// The place of the run among those that wait, from 1.
        place: u32,
        /// The number of runs that may work at once.
        runs_max: u32,
    },
    /// A person moved the run to other bytes of a plugin.
    PluginMoved {
        /// The name of the plugin.
        plugin: String,
        /// The digest of the bytes that the run had.
        from: Digest,
        /// The digest of the bytes that it has now.
        to: Digest,
        /// Unfinished invocations that go on with the new bytes, each with the number of its journal's last entry: up
        /// to it the new bytes answered as the old ones had.
        proved: BTreeMap<String, u32>,
        /// Unfinished invocations that end on the bytes that they began with. All that begins later has the new ones.
        unmoved: Vec<String>,
    },
    /// The features of the run are known.
    Planned {
        /// The id and the title of each feature.
        features: Vec<(String, String)>,
        /// The notes of the planner. May be empty.
        notes: String,
        /// The criteria that the goal does not state and that the planner proposed.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        proposed: Vec<ProposedCriterion>,
    },
    /// A feature changed its status.
    Feature {
        /// The id of the feature.
        feature: String,
        /// The new status.
        status: FeatureStatus,
        /// The reason, in one line.
        why: String,
    },
    /// An attempt at a feature begins.
    SessionStarting {
        /// The id of the feature.
        feature: String,
        /// The number of the attempt, from 1.
        session: u32,
    },
    /// An attempt at a feature ended.
    SessionComplete {
        /// The id of the feature.
        feature: String,
        /// The number of the attempt, from 1.
        session: u32,
        /// The status of the feature after the attempt.
        outcome: FeatureStatus,
        /// The next action of the run, in one line.
        next_action: String,
    },
    /// Criteria or checks were added to a feature before the work on it began.
    Contract {
        /// The id of the feature.
        feature: String,
        /// The ids of the added criteria.
        criteria: Vec<String>,
        /// The names of the added checks.
        checks: Vec<String>,
    },
    /// The planner changed the remaining steps after steps had failed.
    Replanned {
        /// The number of plans that the planner made in place of another, since the run began or a person answered.
        replan: u32,
        /// The id and the title of each remaining step.
        features: Vec<(String, String)>,
        /// The ids of the steps that pass and are not run again.
        kept: Vec<String>,
        /// The notes of the planner. May be empty.
        notes: String,
    },
    /// The planner made an answer of the results.
    Answered {
        /// The answer, as JSON text.
        answer: String,
        /// The planner's own estimate that the answer is right, from 0 to 1. None: it gave no estimate.
        confidence: Option<f64>,
    },
    /// The run decided which agent, or which plan, answers an ask.
    Dispatched {
        /// `agent`: the ask named the agent. `route`: a route chose it. `plan`: a planner makes tasks of the ask.
        path: String,
        /// The name of the agent. None: a plan.
        agent: Option<String>,
        /// The reason, in one line.
        why: String,
    },
    /// A person gave guidance during the work. It reaches the agent at its next step.
    Steered {
        /// The id of the feature or task. None: the guidance is for the planner.
        feature: Option<String>,
        /// The guidance in the person's words.
        text: String,
    },
    /// An invocation of a plugin starts.
    InvocationStarted {
        /// The id of the invocation.
        invocation: InvocationId,
        /// The name of the plugin.
        plugin: String,
        /// The export, for example `agent.run`.
        export: String,
        /// The id of the feature. None: the invocation belongs to no single feature.
        feature: Option<String>,
        /// The number of the round, from 1.
        round: u32,
        /// The table of `longhaul.toml` that configures it, for example `agents.code`. Empty in the oldest events.
        #[serde(default)]
        agent: String,
    },
    /// An agent delegated a task to another agent.
    Delegated {
        /// The id of the other agent's invocation.
        invocation: InvocationId,
        /// The table of the other agent, for example `agents.research`.
        agent: String,
        /// The name of its plugin.
        plugin: String,
        /// The beginning of the instruction.
        instruction: String,
    },
    /// A model replied to an invocation.
    Thought {
        /// The id of the invocation.
        invocation: InvocationId,
        /// The table of `longhaul.toml` that configures it.
        agent: String,
        /// The number of the step: counts the thoughts, actions and observations of the invocation, from 1.
        step: u32,
        /// The reply, or the model's reasoning where the reply has no text: the first 2 000 bytes. The journal has all
        /// of it.
        text: String,
        /// The name in `longhaul.toml` of the model that replied.
        model: String,
        /// The name that the provider gives the model, for example `openai/gpt-5`.
        provider_model: String,
        /// The tokens and the cost of the reply.
        usage: Usage,
        /// The duration in milliseconds, waiting in queues included. None: the reply was found in the journal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u64>,
        /// The route of the reply: models that failed before, and the cache. None: the requested model replied.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        route: Option<Box<Route>>,
        /// The reason for the end of the reply, and the endpoint that gave it. None: in older events.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<Box<ReplyDetails>>,
    },
    /// An invocation calls a tool.
    Action {
        /// The id of the invocation.
        invocation: InvocationId,
        /// The table of `longhaul.toml` that configures it.
        agent: String,
        /// The number of the step within the invocation, from 1.
        step: u32,
        /// The name of the tool.
        tool: String,
        /// The name of its function.
        function: String,
        /// The arguments as JSON text: the first 500 bytes.
        arguments: String,
        /// The call in one line, for example `files.edit sum.py`. Empty in the oldest events.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        line: String,
    },
    /// The work passed a position from which it can be continued, also on another machine.
    Checkpoint {
        /// The id of the invocation.
        invocation: InvocationId,
        /// The table of `longhaul.toml` that configures it.
        agent: String,
        /// The number of replies of models before the position.
        step: u32,
        /// The number of journal entries before the position.
        entries: u32,
        /// The reason for the checkpoint.
        cause: CheckpointCause,
    },
    /// A call of a tool ended, or was refused.
    Observation {
        /// The id of the invocation.
        invocation: InvocationId,
        /// The table of `longhaul.toml` that configures it.
        agent: String,
        /// The number of the step within the invocation, from 1.
        step: u32,
        /// The step of the action.
        of: u32,
        /// The name of the tool.
        tool: String,
        /// The name of its function.
        function: String,
        /// True when the call succeeded.
        ok: bool,
        /// The output or the error: the first 500 bytes.
        output: String,
        /// The call and its result in one line, for example `files.edit sum.py +1 -0`. Empty in the oldest events.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        line: String,
        /// The duration in milliseconds. None: the result was found in the journal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u64>,
    },
    /// An invocation ended.
    InvocationEnded {
        /// The id of the invocation.
        invocation: InvocationId,
        /// The summary or the error, in one line.
        outcome: String,
        /// True when the export returned a result and no error.
        ok: bool,
        /// The resources that the invocation used.
        used: WorkUsage,
        /// The table of `longhaul.toml` that configures it. Empty in the oldest events.
        #[serde(default)]
        agent: String,
    },
    /// An evaluator judged a feature.
    Judged {
        /// The id of the feature.
        feature: String,
        /// The number of the round, from 1.
        round: u32,
        /// True when every criterion passed.
        passed: bool,
        /// The judgement of each criterion.
        judgements: Vec<Judgement>,
        /// The evidence for each criterion that passed, by the id of the criterion.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        evidence: BTreeMap<String, Evidence>,
    },
    /// A feature was committed.
    Committed {
        /// The id of the feature.
        feature: String,
        /// The id of the commit.
        commit: String,
        /// The paths of the changed files.
        files: Vec<String>,
        /// Those of them that are protected and whose change a person approved.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        protected: Vec<String>,
    },
    /// The branch went back to an earlier commit. The features that were committed later are undone.
    Reverted {
        /// The id of that commit.
        to: String,
        /// The ref that keeps the former head of the branch. None: the branch did not move.
        kept_as: Option<String>,
        /// The ids of the commits that the branch no longer has, the newest first.
        left: Vec<String>,
        /// The ids of the features that no longer pass, or whose work was discarded.
        features: Vec<String>,
    },
    /// The run waits for a person.
    Parked {
        /// The question.
        question: String,
        /// The command that answers it.
        answer_with: String,
    },
    /// A person paused the run. `longhaul resume` continues it.
    Paused,
    /// A limit was reached.
    Limit {
        /// The field of the limit, for example `tokens_max`.
        name: String,
        /// The limit and its effect, in one line.
        text: String,
    },
    /// A check passed before the work began, so that its pass proves nothing.
    VacuousCheck {
        /// The id of the feature.
        feature: String,
        /// The name of the check.
        check: String,
    },
    /// An agent proposed a change to the project. A person accepts or rejects it.
    Proposed {
        /// The id of the proposal.
        proposal: String,
        /// The proposed change, in one line.
        what: String,
    },
    /// A person was asked about a call of a tool, or an agent asked a question.
    ApprovalAsked {
        /// The id of the approval.
        approval: String,
        /// The id of the invocation that waits.
        invocation: InvocationId,
        /// The tool and its function, without the arguments.
        call: String,
    },
    /// An approval was decided. The event follows when the agent's work stops, not when the person answers.
    ApprovalAnswered {
        /// The id of the approval.
        approval: String,
        /// `allowed`, `denied`, `rejected`, `corrected`, `stopped`, `replied` or `withdrawn`.
        decision: String,
    },
    /// A person should know something that does not end the work.
    Warning {
        /// The warning, in one line.
        text: String,
    },
    /// The context of a conversation was compacted: summaries or references replaced older turns.
    ContextCompacted {
        /// The id of the invocation that holds the conversation.
        invocation: InvocationId,
        /// The details.
        #[serde(flatten)]
        cut: ContextCut,
    },
    /// The context of a conversation was reset: a hand-off summary replaced most of it.
    ContextReset {
        /// The id of the invocation that holds the conversation.
        invocation: InvocationId,
        /// The details.
        #[serde(flatten)]
        cut: ContextCut,
    },
    /// A model seems to hurry because its context fills.
    ContextAnxiety {
        /// The id of the invocation that holds the conversation.
        invocation: InvocationId,
        /// The sign of it.
        #[serde(flatten)]
        sign: Anxiety,
    },
    /// The run ended.
    RunEnded {
        /// `completed`, `incomplete`, `failed` or `abandoned`.
        status: String,
        /// The result, in one line.
        summary: String,
        /// The resources that the whole run used.
        used: WorkUsage,
    },
}

/// The change of a conversation that was too full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextCut {
    /// The configured policy.
    pub policy: ContextPolicy,
    /// Tokens of the conversation before, estimated where the provider did not count them.
    pub tokens_before: u64,
    /// Tokens of the conversation after, estimated.
    pub tokens_after: u64,
    /// The number of messages that a summary replaced.
    pub messages_replaced: u32,
    /// The number of texts that a reference replaced.
    pub texts_referred: u32,
    /// The digest of the replaced messages, which the store keeps as JSON. None: no summary was written.
    pub replaced: Option<Digest>,
    /// The reason for which the beginning of the text replaced it in place of a summary. None: a model wrote one.
    pub unsummarised: Option<String>,
}

/// The resources that an invocation or a run used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Used")]
pub struct WorkUsage {
    /// Fuel of the guest, in wasmtime's unit.
    pub fuel: u64,
    /// The highest sum of the guest's memories, in bytes.
    pub memory_bytes_peak: u64,
    /// The number of calls of imports.
    pub host_calls: u64,
    /// The number of replies of models.
    pub model_calls: u32,
    /// The number of requests to models that a crash cut off and that were sent again.
    pub possibly_paid_twice: u32,
    /// The number of times that the host reset a conversation.
    #[serde(default)]
    pub context_resets: u32,
    /// The number of times that the host compacted a conversation.
    #[serde(default)]
    pub context_compactions: u32,
    /// The tokens and the cost of the replies.
    pub usage: Usage,
}

impl WorkUsage {
    /// The sum of both; the peak is the higher one.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            fuel: self.fuel.saturating_add(other.fuel),
            memory_bytes_peak: self.memory_bytes_peak.max(other.memory_bytes_peak),
            host_calls: self.host_calls.saturating_add(other.host_calls),
            model_calls: self.model_calls.saturating_add(other.model_calls),
            possibly_paid_twice: self.possibly_paid_twice.saturating_add(other.possibly_paid_twice),
            context_resets: self.context_resets.saturating_add(other.context_resets),
            context_compactions: self.context_compactions.saturating_add(other.context_compactions),
            usage: self.usage.plus(other.usage),
        }
    }
}
