//! Trajectories, as they are asked for and shown: what an agent was told, said and did in one of its invocations. Reads
//! no journal.

use crate::runs::RunRef;
use longhaul_core::model::Usage;
use longhaul_core::{Digest, InvocationId, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// List trajectories, without the messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListTrajectories {
    /// The run.
    pub run: RunRef,
    /// The filter.
    pub wanted: TrajectoryFilter,
}

/// Show a trajectory with its messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowTrajectory {
    /// The run.
    pub run: RunRef,
    /// The invocation, with or without the run's name.
    pub invocation: String,
}

/// Rate or correct a trajectory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnnotateTrajectory {
    /// The run.
    pub run: RunRef,
    /// The invocation, with or without the run's name.
    pub invocation: String,
    /// From 1, bad, to 5, good; none: as it was.
    pub rating: Option<u8>,
    /// What the answer should have been; none: as it was.
    pub correction: Option<String>,
}

/// What a person said of a trajectory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// From 1, bad, to 5, good.
    pub rating: Option<u8>,
    /// What the answer should have been.
    pub correction: Option<String>,
    /// When it was last changed, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// The way in which an invocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Ending))]
#[serde(rename_all = "snake_case")]
pub enum InvocationEnding {
    /// It returned an outcome.
    Returned,
    /// The agent returned an error.
    Refused,
    /// A limit stopped it.
    Limited,
    /// It trapped.
    Trapped,
    /// It has not ended.
    Unfinished,
}

/// One step: a request of the agent beside calls of its model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Step))]
pub struct TrajectoryStep {
    /// Number of the journal entry.
    pub entry: u32,
    /// The capability and verb, for example `tools.call`.
    pub name: String,
    /// The request, in short.
    pub summary: String,
    /// Whether a tool answered with an error.
    pub failed: bool,
}

/// A trajectory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trajectory {
    /// The invocation.
    pub id: InvocationId,
    /// Its run.
    pub run: RunId,
    /// Its project.
    pub project: String,
    /// The table of `longhaul.toml`, for example `agents.code`.
    pub agent: String,
    /// The plugin.
    pub plugin: String,
    /// The digest of its bytes.
    pub component: Digest,
    /// The feature or step.
    pub task: String,
    /// What was to be done.
    pub instruction: String,
    /// How it ended.
    pub ending: InvocationEnding,
    /// What the agent handed back, JSON as text.
    pub answer: Option<String>,
    /// Its summary, or why there is no answer.
    pub summary: String,
    /// Between 0 and 1, in the agent's own opinion.
    pub confidence: Option<f64>,
    /// What it did beside asking its model.
    pub steps: Vec<TrajectoryStep>,
    /// Calls of models.
    pub model_calls: u32,
    /// Tokens and money of its own calls.
    pub usage: Usage,
    /// How often its conversation was cut back.
    pub summarizations: u32,
    /// When it began, in milliseconds since 1970-01-01 UTC.
    pub from_ms: u64,
    /// When it ended.
    pub until_ms: Option<u64>,
    /// What a person said of it.
    pub annotation: Annotation,
    /// One list for each conversation, in the form of chat endpoints. Empty in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<Vec<Value>>,
    /// Why `conversations` may not be whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// Which trajectories are wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrajectoryFilter {
    /// Of every run of the project, not only of this one.
    pub all_runs: bool,
    /// Only of this agent, by its name under `[agents]`.
    pub agent: Option<String>,
    /// Only with a rating or a correction, or only without.
    pub annotated: Option<bool>,
    /// Only rated so or better.
    pub rating_min: Option<u8>,
    /// Only rated so or worse.
    pub rating_max: Option<u8>,
    /// Only those that ended so.
    pub ending: Option<InvocationEnding>,
}

impl TrajectoryFilter {
    /// Whether it is among those that are wanted.
    #[must_use]
    pub fn takes(&self, one: &Trajectory) -> bool {
        let Annotation { rating, correction, .. } = &one.annotation;
        let is_annotated = rating.is_some() || correction.is_some();
        let agent = |name: &String| one.agent.strip_prefix("agents.") == Some(name);
        self.agent.as_ref().is_none_or(agent)
            && self.annotated.is_none_or(|wanted| wanted == is_annotated)
            && self.rating_min.is_none_or(|min| rating.is_some_and(|rating| rating >= min))
            && self.rating_max.is_none_or(|max| rating.is_some_and(|rating| rating <= max))
            && self.ending.is_none_or(|ending| ending == one.ending)
    }
}
