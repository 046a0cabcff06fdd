//! Decisions and memory of a project; proposals and trajectories of its agents.

use super::features::FeatureSpecView;
use super::spent::UsageView;
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
    /// What came of a decision.
    Outcome of longhaul_core::decision::DecisionOutcome as InnerOutcome {
        /// Nobody knows yet.
        Open,
        /// It was right.
        Success,
        /// In part.
        Partial,
        /// It was wrong.
        Failure,
        /// It was taken back.
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
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// The run in which it was taken.
    pub run: String,
    /// The feature that it was taken for.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub feature: Option<String>,
    /// Who took it.
    pub by: String,
    /// What it was about.
    pub context: String,
    /// What was decided.
    pub decision: String,
    /// Why.
    pub reasoning: String,
    /// To find it by.
    pub tags: Vec<String>,
    /// What came of it.
    pub outcome: Outcome,
    /// How good it was, from -1 to 1; null where nobody said.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub score: Option<f64>,
    /// What is to be learnt from it.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub lesson: Option<String>,
    /// How well it fits the question, above 0; 0 where nothing was asked.
    pub relevance: f64,
    /// Why it was chosen, in one line.
    pub why: String,
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
            why,
        }
    }
}

/// Decisions.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Decisions {
    /// The best first where something was asked, else the newest.
    pub items: Vec<DecisionView>,
}

impl From<Vec<DecisionHit>> for Decisions {
    fn from(inner: Vec<DecisionHit>) -> Self {
        Self { items: inner.into_iter().map(Into::into).collect() }
    }
}

/// Something that is remembered.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Memory))]
pub struct MemoryView {
    /// Where.
    pub shelf: MemoryScope,
    /// Its key.
    pub key: String,
    /// What, any JSON.
    #[cfg_attr(feature = "schema", schema(value_type = Value))]
    pub value: Value,
    /// Who remembered it.
    pub by: String,
    /// In which run.
    pub run: String,
    /// Whose words it is.
    pub trust: String,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// When it is over; null: never.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub expires_at_ms: Option<f64>,
    /// How well it fits the question, above 0; null where nothing was asked.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub score: Option<f64>,
}

impl From<InnerMemory> for MemoryView {
    fn from(inner: InnerMemory) -> Self {
        let InnerMemory { shelf, key, note, expires_at_ms, score } = inner;
        let trust = serde_json::to_value(note.trust).ok();
        Self {
            shelf,
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

/// What is remembered.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Memories {
    /// In the order that was asked for.
    pub items: Vec<MemoryView>,
}

impl From<Vec<InnerMemory>> for Memories {
    fn from(inner: Vec<InnerMemory>) -> Self {
        Self { items: inner.into_iter().map(Into::into).collect() }
    }
}

/// What is proposed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "change", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schema(as = Change))]
pub enum ProposedChangeView {
    /// One more feature.
    AddFeature {
        /// The feature.
        feature: FeatureSpecView,
    },
    /// A feature off the list.
    DropFeature {
        /// Its id.
        feature: String,
    },
    /// A feature that was dropped, on the list again.
    RestoreFeature {
        /// Its id.
        feature: String,
    },
    /// A project of its own.
    NewProject {
        /// What it would be called.
        name: String,
        /// Its goal.
        goal: String,
    },
}

/// What became of a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", schema(as = ProposalStanding))]
pub enum ProposalStatusView {
    /// Nobody has decided.
    Open,
    /// A person took it.
    Accepted,
    /// A person did not.
    Rejected,
}

/// Something that an agent would have changed.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Proposal))]
pub struct ProposalView {
    /// Its id.
    pub id: String,
    /// When, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
    /// Who, an invocation.
    pub by: String,
    /// What.
    pub change: ProposedChangeView,
    /// The same in one line.
    pub line: String,
    /// Why.
    pub reason: String,
    /// What became of it.
    pub standing: ProposalStatusView,
    /// When that was decided.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub decided_ms: Option<u64>,
    /// Why it was rejected.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub why: Option<String>,
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
        let (standing, decided_ms, why) = match inner.standing {
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
            standing,
            decided_ms,
            why,
        }
    }
}

/// What an agent was told, said and did in one invocation.
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
    /// What was to be done.
    pub instruction: String,
    /// How it ended.
    pub ending: InvocationEnding,
    /// What the agent handed back: JSON as text.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub answer: Option<String>,
    /// Its summary, or why there is no answer.
    pub summary: String,
    /// Between 0 and 1, in the agent's own opinion.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub confidence: Option<f64>,
    /// What it did beside asking its model.
    pub steps: Vec<TrajectoryStep>,
    /// Calls of models.
    pub model_calls: u32,
    /// Tokens and money of its own calls.
    pub usage: UsageView,
    /// How often its conversation was cut back.
    pub summarizations: u32,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub from_ms: u64,
    /// When it ended.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub until_ms: Option<u64>,
    /// What a person said of it, from 1, bad, to 5, good.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub rating: Option<u8>,
    /// What the answer should have been, in a person's opinion.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub correction: Option<String>,
    /// One list for each conversation, in the form of chat endpoints. Empty in lists.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Vec<Object>>))]
    pub conversations: Vec<Vec<Value>>,
    /// Why `conversations` may not be whole.
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
