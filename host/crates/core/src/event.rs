//! The events of a run, numbered and durable, for people and programs that watch.

use crate::context::{Anxiety, ContextPolicy};
use crate::model::{Route, Usage};
use crate::project::ProjectStatus;
use crate::work::{Evidence, FeatureStatus, Judgement};
use crate::{Digest, InvocationId, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEvent {
    /// The run.
    pub run: RunId,
    /// Counts from 1 within the run, without gaps.
    pub number: u64,
    /// Milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// One criterion that a planner proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProposedCriterion {
    /// The feature.
    pub feature: String,
    /// What must hold.
    pub text: String,
    /// The check that decides it; none: the evaluator reads the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<String>,
}

/// Why there is a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckpointCause {
    /// So many steps were made.
    Step,
    /// A person is, or was, asked about a call.
    Approval,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A project has its first run.
    ProjectCreated {
        /// Its name.
        project: String,
        /// Where it is.
        directory: String,
    },
    /// A project changed its status; see [`crate::project`].
    ProjectStatus {
        /// Its name.
        project: String,
        /// What it was.
        from: ProjectStatus,
        /// What it is now.
        to: ProjectStatus,
        /// Why, in one line.
        why: String,
    },
    /// A run was accepted.
    RunStarted {
        /// Its project.
        project: String,
        /// The branch that it commits to.
        branch: String,
    },
    /// A process took the run up again.
    RunResumed,
    /// The features are known.
    Planned {
        /// Their ids and titles.
        features: Vec<(String, String)>,
        /// The planner's words.
        notes: String,
        /// What the features are judged by where the goal does not say it: the planner proposed it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        proposed: Vec<ProposedCriterion>,
    },
    /// A feature changed its status.
    Feature {
        /// Its id.
        feature: String,
        /// Where it is now.
        status: FeatureStatus,
        /// Why, in one line.
        why: String,
    },
    /// An attempt at a feature begins.
    SessionStarting {
        /// The feature.
        feature: String,
        /// Which attempt, from 1.
        session: u32,
    },
    /// An attempt at a feature is over.
    SessionComplete {
        /// The feature.
        feature: String,
        /// Which attempt, from 1.
        session: u32,
        /// Where it left the feature.
        outcome: FeatureStatus,
        /// What comes next, in one line.
        next_action: String,
    },
    /// What a feature is judged by was added to before the work on it began.
    Contract {
        /// The feature.
        feature: String,
        /// The ids of the criteria that were added.
        criteria: Vec<String>,
        /// The names of the checks that were added.
        checks: Vec<String>,
    },
    /// The planner changed the rest of the way, after steps failed.
    Replanned {
        /// How often by now, since the run began or a person answered.
        replan: u32,
        /// The ids and titles of the steps from here.
        features: Vec<(String, String)>,
        /// The steps that pass and are not run again.
        kept: Vec<String>,
        /// The planner's words.
        notes: String,
    },
    /// The planner said what the results come to.
    Answered {
        /// JSON.
        answer: String,
        /// Between 0 and 1, in the planner's own opinion. None: it gave no estimate.
        confidence: Option<f64>,
    },
    /// It is decided who answers an ask.
    Dispatched {
        /// `agent`, `route` or `plan`.
        path: String,
        /// The agent; none for a plan.
        agent: Option<String>,
        /// Why, in one line.
        why: String,
    },
    /// A person corrected what is worked on; it reaches the agent at its next step.
    Steered {
        /// The feature, or task; none: the planner.
        feature: Option<String>,
        /// In their words.
        text: String,
    },
    /// A component starts to work.
    InvocationStarted {
        /// Which.
        invocation: InvocationId,
        /// The plugin.
        plugin: String,
        /// The export, for example `agent.run`.
        export: String,
        /// The feature.
        feature: Option<String>,
        /// The round, from 1.
        round: u32,
        /// The table of `longhaul.toml` that it plays in, for example `agents.code`. Empty in events from
        /// before they had it.
        #[serde(default)]
        agent: String,
    },
    /// An agent asked another one.
    Delegated {
        /// The invocation of the one that was asked.
        invocation: InvocationId,
        /// Its table, for example `agents.research`.
        agent: String,
        /// Its plugin.
        plugin: String,
        /// What it was asked, cut short.
        instruction: String,
    },
    /// A model replied to a component at work.
    Thought {
        /// Whose work.
        invocation: InvocationId,
        /// Its table.
        agent: String,
        /// Counts what the invocation thought, did and saw, from 1.
        step: u32,
        /// The reply, or what the model thought before it where it said nothing, cut short. The journal has it
        /// whole.
        text: String,
        /// The model that replied, by its name in `longhaul.toml`.
        model: String,
        /// The provider's own name of it, for example `openai/gpt-5`.
        provider_model: String,
        /// What it cost.
        usage: Usage,
        /// How long it took, its waiting for a turn included, in milliseconds. None where the reply was found
        /// in the journal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u64>,
        /// The way of the reply, where it was not the plain one: models that failed before, the cache.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        route: Option<Box<Route>>,
    },
    /// A component calls a tool.
    Action {
        /// Whose work.
        invocation: InvocationId,
        /// Its table.
        agent: String,
        /// See [`Event::Thought`].
        step: u32,
        /// The tool.
        tool: String,
        /// Its function.
        function: String,
        /// JSON, cut short.
        arguments: String,
        /// What is called in one line, for people, for example `files.edit sum.py`. Empty in events from before they
        /// had it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        line: String,
    },
    /// Work passed a position that can be gone on from, also on another machine; see `longhaul checkpoint`.
    Checkpoint {
        /// Whose work.
        invocation: InvocationId,
        /// Its table.
        agent: String,
        /// Steps that it had made before it: replies of models.
        step: u32,
        /// Entries of its journal before it.
        entries: u32,
        /// Why it is one.
        cause: CheckpointCause,
    },
    /// What came of it, or why it was not done.
    Observation {
        /// Whose work.
        invocation: InvocationId,
        /// Its table.
        agent: String,
        /// See [`Event::Thought`].
        step: u32,
        /// The step of its [`Event::Action`].
        of: u32,
        /// The tool.
        tool: String,
        /// Its function.
        function: String,
        /// Whether the tool did it.
        ok: bool,
        /// What it answered, or the error, cut short.
        output: String,
        /// The call and what came of it in one line, for people, for example `files.edit sum.py +1 -0`. Empty in
        /// events from before they had it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        line: String,
        /// How long it took, in milliseconds. None where the answer was found in the journal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        took_ms: Option<u64>,
    },
    /// It ended.
    InvocationEnded {
        /// Which.
        invocation: InvocationId,
        /// One line: the summary or the error.
        outcome: String,
        /// Whether it returned what it should.
        ok: bool,
        /// What it used.
        used: WorkUsage,
        /// Its table, as in [`Event::InvocationStarted`].
        #[serde(default)]
        agent: String,
    },
    /// A feature was judged.
    Judged {
        /// Which.
        feature: String,
        /// The round.
        round: u32,
        /// Whether it passes.
        passed: bool,
        /// One line each.
        judgements: Vec<Judgement>,
        /// What the PASS of a criterion rests on, by its id.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        evidence: BTreeMap<String, Evidence>,
    },
    /// A feature was committed.
    Committed {
        /// Which.
        feature: String,
        /// The commit.
        commit: String,
        /// The files that changed.
        files: Vec<String>,
        /// Those of them that are protected, which a person approved of.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        protected: Vec<String>,
    },
    /// The branch went back to an earlier commit, and with it the features that came after.
    Reverted {
        /// The commit.
        to: String,
        /// The ref that keeps where the branch was; none when it did not move.
        kept_as: Option<String>,
        /// The commits that were left behind, newest first.
        left: Vec<String>,
        /// Those that no longer pass, or are no longer worked on.
        features: Vec<String>,
    },
    /// The run waits for a person.
    Parked {
        /// What is asked.
        question: String,
        /// The command that answers it.
        answer_with: String,
    },
    /// The run was paused; `longhaul resume` goes on.
    Paused,
    /// A limit ended something.
    Limit {
        /// The limit's field.
        name: String,
        /// In one line.
        text: String,
    },
    /// A check passed before the work began.
    VacuousCheck {
        /// The feature.
        feature: String,
        /// The check.
        check: String,
    },
    /// An agent proposed something; a person accepts or rejects it.
    Proposed {
        /// Its id.
        proposal: String,
        /// What it would change, in one line.
        what: String,
    },
    /// A person was asked about a call of a tool, or an agent asked a question.
    ApprovalAsked {
        /// The approval's id.
        approval: String,
        /// Who would make the call.
        invocation: InvocationId,
        /// The tool and its function, without the arguments.
        call: String,
    },
    /// What became of it. Told when the agent's work comes to rest, and not when the person answers.
    ApprovalAnswered {
        /// The approval's id.
        approval: String,
        /// `allowed`, `denied`, `rejected`, `corrected`, `stopped`, `replied` or `withdrawn`.
        decision: String,
    },
    /// Something that a person should know and that ends nothing.
    Warning {
        /// In one line.
        text: String,
    },
    /// A conversation was cut back: older turns became summaries or references.
    ContextCompacted {
        /// Whose conversation.
        invocation: InvocationId,
        /// What was done to it.
        #[serde(flatten)]
        cut: ContextCut,
    },
    /// A conversation began anew, with a hand-off.
    ContextReset {
        /// Whose conversation.
        invocation: InvocationId,
        /// What was done to it.
        #[serde(flatten)]
        cut: ContextCut,
    },
    /// A model seems to hurry because its context fills.
    ContextAnxiety {
        /// Whose conversation.
        invocation: InvocationId,
        /// The sign of it.
        #[serde(flatten)]
        sign: Anxiety,
    },
    /// The run ended.
    RunEnded {
        /// `completed`, `incomplete`, `failed`, `abandoned`.
        status: String,
        /// In one line.
        summary: String,
        /// Of the whole run.
        used: WorkUsage,
    },
}

/// What was done to a conversation that was full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContextCut {
    /// The policy that was configured.
    pub policy: ContextPolicy,
    /// Tokens before, as far as they are known.
    pub tokens_before: u64,
    /// Tokens after.
    pub tokens_after: u64,
    /// Messages that a summary took the place of.
    pub messages_replaced: u32,
    /// Texts that a reference took the place of.
    pub texts_referred: u32,
    /// What the summary replaced, as JSON in the store's content. None: there was no need of one.
    pub replaced: Option<Digest>,
    /// Why the beginning of the text stands where a model was to write a summary. None: it did.
    pub unsummarised: Option<String>,
}

/// What something used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Used")]
pub struct WorkUsage {
    /// Instructions, in wasmtime's fuel.
    pub fuel: u64,
    /// The highest sum of its memories, in bytes.
    pub memory_bytes_peak: u64,
    /// Calls of imports.
    pub host_calls: u64,
    /// Calls of models.
    pub model_calls: u32,
    /// Calls of models that were in flight at a kill and were sent again.
    pub possibly_paid_twice: u32,
    /// Conversations that began anew with a hand-off.
    #[serde(default)]
    pub context_resets: u32,
    /// Conversations whose older turns became summaries or references.
    #[serde(default)]
    pub context_compactions: u32,
    /// Tokens and money.
    pub usage: Usage,
}

impl WorkUsage {
    /// Both together; the peak is the higher one.
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
