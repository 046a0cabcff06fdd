//! Decisions and memory of a project; proposals and trajectories of its agents.

use super::features::FeatureSpecView;
use super::usage::UsageView;
use super::words;
use crate::memory::{MemoryItem as InnerMemory, MemoryScope};
use crate::trajectories::{InvocationEnding, Trajectory as InnerTrajectory, TrajectoryStep};
use longhaul_core::decision::{Decision as InnerDecision, DecisionHit};
use longhaul_records::proposals::{
    Proposal as InnerProposal, ProposalStatus as InnerStanding, ProposedChange as InnerChange,
};
use serde::Serialize;
use serde_json::Value;

words! {
    /// The outcome of a decision.
    Outcome of longhaul_core::decision::DecisionOutcome as InnerOutcome {
        /// The outcome is open.
        Open,
        /// The decision was right.
        Success,
        /// The decision was right in part.
        Partial,
        /// The decision was wrong.
        Failure,
        /// The decision was reverted.
        Reverted,
    }
}

/// A decision.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Decision))]
pub struct DecisionView {
    /// Its id.
    pub id: String,
    /// Time of the decision, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The run in which it was taken.
    pub run: String,
    /// The feature that it was taken for.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub feature: Option<String>,
    /// The author of the decision.
    pub by: String,
    /// The subject of the decision.
    pub context: String,
    /// The decision.
    pub decision: String,
    /// The reasons.
    pub reasoning: String,
    /// Tags for the search.
    pub tags: Vec<String>,
    /// Its outcome.
    pub outcome: Outcome,
    /// Its score, from -1 to 1; null if it has none.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub score: Option<f64>,
    /// The lesson of it.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub lesson: Option<String>,
    /// Its relevance for the question, above 0; 0 without a question.
    pub relevance: f64,
    /// The reason why it is in the list, in one line.
    pub match_reason: String,
}

impl From<DecisionHit> for DecisionView {
    fn from(DecisionHit { decision, relevance, why }: DecisionHit) -> Self {
        let InnerDecision { id, at_ms, run, feature, by, context, decision, reasoning, tags, outcome, score, lesson } =
            decision;
        Self {
            id,
            at_ms,
            run,
            feature,
            by,
            context,
            decision,
            reasoning,
            tags,
            outcome: outcome.into(),
            score,
            lesson,
            relevance,
            match_reason: why,
        }
    }
}

/// Decisions.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Decisions {
    /// The most relevant first; without a question, the newest first.
    pub items: Vec<DecisionView>,
}

impl From<Vec<DecisionHit>> for Decisions {
    fn from(inner: Vec<DecisionHit>) -> Self {
        Self { items: inner.into_iter().map(Into::into).collect() }
    }
}

/// A memory entry.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = MemoryEntry))]
pub struct MemoryView {
    /// Its scope.
    pub scope: MemoryScope,
    /// Its key.
    pub key: String,
    /// Its value, any JSON.
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub value: Value,
    /// The author of the entry.
    pub by: String,
    /// The run that stored it.
    pub run: String,
    /// The origin of the words, for example `own-words` or `web`.
    pub trust: String,
    /// Time when it was stored, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Time when it expires, in milliseconds since 1970-01-01 UTC; null: never.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub expires_at_ms: Option<f64>,
    /// Its relevance for the question, above 0; null without a question.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub score: Option<f64>,
}

impl From<InnerMemory> for MemoryView {
    fn from(inner: InnerMemory) -> Self {
        let InnerMemory { shelf, key, note, expires_at_ms, score } = inner;
        let trust = serde_json::to_value(note.trust).ok();
        Self {
            scope: shelf,
            key,
            value: note.value,
            by: note.by,
            run: note.run,
            trust: trust.and_then(|trust| trust.as_str().map(str::to_owned)).unwrap_or_default(),
            at_ms: note.at_ms,
            expires_at_ms,
            score,
        }
    }
}

/// Memory entries.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = MemoryEntries))]
pub struct Memories {
    /// The entries, in the requested order.
    pub items: Vec<MemoryView>,
}

impl From<Vec<InnerMemory>> for Memories {
    fn from(inner: Vec<InnerMemory>) -> Self {
        Self { items: inner.into_iter().map(Into::into).collect() }
    }
}

/// A proposed change.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "change", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schema(as = ProposedChange))]
pub enum ProposedChangeView {
    /// Add a feature.
    AddFeature {
        /// The feature.
        feature: FeatureSpecView,
    },
    /// Drop a feature.
    DropFeature {
        /// Its id.
        feature: String,
    },
    /// Restore a feature that was dropped.
    RestoreFeature {
        /// Its id.
        feature: String,
    },
    /// Make a new project.
    NewProject {
        /// Its name.
        name: String,
        /// Its goal.
        goal: String,
    },
}

/// The status of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schema(as = ProposalStatus))]
pub enum ProposalStatusView {
    /// No person has decided yet.
    Open,
    /// A person accepted it.
    Accepted,
    /// A person rejected it.
    Rejected,
}

/// A proposal of an agent.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Proposal))]
pub struct ProposalView {
    /// Its id.
    pub id: String,
    /// Time of the proposal, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The invocation that proposed it.
    pub by: String,
    /// The proposed change.
    pub change: ProposedChangeView,
    /// The change in one line.
    pub line: String,
    /// The reason.
    pub reason: String,
    /// Its status.
    pub status: ProposalStatusView,
    /// Time of the decision, in milliseconds since 1970-01-01 UTC.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub decided_ms: Option<u64>,
    /// The reason of a rejection.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub rejection_reason: Option<String>,
}

impl From<InnerProposal> for ProposalView {
    fn from(inner: InnerProposal) -> Self {
        let line = inner.line();
        let change = match inner.change {
            InnerChange::AddFeature { spec } => ProposedChangeView::AddFeature { feature: spec.into() },
            InnerChange::DropFeature { feature } => ProposedChangeView::DropFeature { feature },
            InnerChange::RestoreFeature { feature } => ProposedChangeView::RestoreFeature { feature },
            InnerChange::NewProject { name, goal } => ProposedChangeView::NewProject { name, goal },
        };
        let (status, decided_ms, rejection_reason) = match inner.standing {
            InnerStanding::Open => (ProposalStatusView::Open, None, None),
            InnerStanding::Accepted { at_ms } => (ProposalStatusView::Accepted, Some(at_ms), None),
            InnerStanding::Rejected { at_ms, why } => (ProposalStatusView::Rejected, Some(at_ms), Some(why)),
        };
        Self {
            id: inner.id,
            at_ms: inner.at_ms,
            by: inner.by.as_str().to_owned(),
            change,
            line,
            reason: inner.reason,
            status,
            decided_ms,
            rejection_reason,
        }
    }
}

/// The messages and steps of an agent in one invocation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Trajectory))]
pub struct TrajectoryView {
    /// The invocation.
    pub id: String,
    /// Its run.
    pub run: String,
    /// Its project.
    pub project: String,
    /// The table of `longhaul.toml`, for example `agents.code`.
    pub agent: String,
    /// The plugin.
    pub plugin: String,
    /// The digest of its bytes.
    pub component: String,
    /// The feature or step.
    pub task: String,
    /// The instruction.
    pub instruction: String,
    /// The way in which it ended.
    pub ending: InvocationEnding,
    /// The answer of the agent: JSON as text.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub answer: Option<String>,
    /// The agent's summary, or the reason why there is no answer.
    pub summary: String,
    /// The agent's confidence, from 0 to 1.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub confidence: Option<f64>,
    /// Its steps beside calls of its model.
    pub steps: Vec<TrajectoryStep>,
    /// Calls of models.
    pub model_calls: u32,
    /// Tokens and money of its own calls.
    pub usage: UsageView,
    /// Number of times that its conversation was shortened.
    pub summarizations: u32,
    /// Time when it began, in milliseconds since 1970-01-01 UTC.
    pub from_ms: u64,
    /// Time when it ended, in milliseconds since 1970-01-01 UTC.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub until_ms: Option<u64>,
    /// A person's rating from 1, bad, to 5, good.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub rating: Option<u8>,
    /// A person's correction of the answer.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub correction: Option<String>,
    /// One list for each conversation, in the form of chat endpoints. Empty in lists.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Vec<Object>>))]
    pub conversations: Vec<Vec<Value>>,
    /// The reason why `conversations` may be incomplete.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub incomplete: Option<String>,
}

impl From<InnerTrajectory> for TrajectoryView {
    fn from(inner: InnerTrajectory) -> Self {
        Self {
            id: inner.id.as_str().to_owned(),
            run: inner.run.to_string(),
            project: inner.project,
            agent: inner.agent,
            plugin: inner.plugin,
            component: inner.component.to_string(),
            task: inner.task,
            instruction: inner.instruction,
            ending: inner.ending,
            answer: inner.answer,
            summary: inner.summary,
            confidence: inner.confidence,
            steps: inner.steps,
            model_calls: inner.model_calls,
            usage: inner.usage.into(),
            summarizations: inner.summarizations,
            from_ms: inner.from_ms,
            until_ms: inner.until_ms,
            rating: inner.annotation.rating,
            correction: inner.annotation.correction,
            conversations: inner.conversations,
            incomplete: inner.incomplete,
        }
    }
}

/// The conversations of an agent in one invocation, which are its working memory.
#[derive(Clone, Debug, Serialize)]
pub struct ConversationsView {
    /// The invocation.
    pub invocation: String,
    /// One list of messages for each conversation, in the form of chat endpoints.
    pub conversations: Vec<Vec<Value>>,
    /// The reason why `conversations` may be incomplete; null: it is complete.
    pub incomplete: Option<String>,
}

impl From<InnerTrajectory> for ConversationsView {
    fn from(inner: InnerTrajectory) -> Self {
        let InnerTrajectory { id, conversations, incomplete, .. } = inner;
        Self { invocation: id.as_str().to_owned(), conversations, incomplete }
    }
}
