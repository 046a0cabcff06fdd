//! Requests and responses about trajectories: the inputs, calls and outputs of an agent in one invocation. This module
//! reads no journal.

use crate::runs::RunRef;
use longhaul_core::model::Usage;
use longhaul_core::{Digest, InvocationId, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// List trajectories, without the messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListTrajectories {
    /// A run of the project.
    pub run: RunRef,
    /// The filter.
    pub wanted: TrajectoryFilter,
}

/// Show a trajectory with its messages.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowTrajectory {
    /// The run.
    pub run: RunRef,
    /// The id of the invocation, with or without that of the run.
    pub invocation: String,
}

/// Rate or correct a trajectory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AnnotateTrajectory {
    /// The run.
    pub run: RunRef,
    /// The id of the invocation, with or without that of the run.
    pub invocation: String,
    /// The rating, from 1 (bad) to 5 (good). None: it stays.
    pub rating: Option<u8>,
    /// The answer that would have been right. None: it stays.
    pub correction: Option<String>,
}

/// A person's annotation of a trajectory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Annotation {
    /// The rating, from 1 (bad) to 5 (good). None: not rated.
    pub rating: Option<u8>,
    /// The answer that would have been right. None: not corrected.
    pub correction: Option<String>,
    /// The time of the last change, in milliseconds since 1970-01-01 UTC.
    pub at_ms: u64,
}

/// The way in which an invocation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
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

impl InvocationEnding {
    /// The word of the ending in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Returned => "returned",
            Self::Refused => "refused",
            Self::Limited => "limited",
            Self::Trapped => "trapped",
            Self::Unfinished => "unfinished",
        }
    }
}

/// One step: a request of the agent beside calls of its model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TrajectoryStep {
    /// Number of the journal entry.
    pub entry: u32,
    /// The capability and verb, for example `tools.call`.
    pub name: String,
    /// The request, in short.
    pub summary: String,
    /// True when a tool answered with an error.
    pub failed: bool,
}

/// The record of an agent's work on one task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Trajectory {
    /// The id of the invocation.
    pub id: InvocationId,
    /// The id of its run.
    pub run: RunId,
    /// The name of its project.
    pub project: String,
    /// The table of `longhaul.toml`, for example `agents.code`.
    pub agent: String,
    /// The name of the plugin.
    pub plugin: String,
    /// The digest of the plugin's component.
    pub component: Digest,
    /// The id of the feature or step.
    pub task: String,
    /// The instruction that the agent was given.
    pub instruction: String,
    /// The ending of the invocation.
    pub ending: InvocationEnding,
    /// The agent's output, as JSON text. None: it returned none.
    pub answer: Option<String>,
    /// The agent's summary, or the reason for which there is no answer.
    pub summary: String,
    /// The agent's own estimate that the task is done, from 0 to 1. None: it gave no estimate.
    pub confidence: Option<f64>,
    /// Its calls other than requests to models, in order.
    pub steps: Vec<TrajectoryStep>,
    /// The number of replies of models.
    pub model_calls: u32,
    /// The tokens and the cost of its own requests.
    pub usage: Usage,
    /// The number of times that a conversation was cut back.
    pub summarizations: u32,
    /// The time of its start, in milliseconds since 1970-01-01 UTC.
    pub from_ms: u64,
    /// The time of its end, in milliseconds since 1970-01-01 UTC. None: it has not ended.
    pub until_ms: Option<u64>,
    /// A person's annotation.
    pub annotation: Annotation,
    /// The messages of each conversation, in the form of chat endpoints. Empty in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversations: Vec<Vec<Value>>,
    /// The reason for which `conversations` may be incomplete. None: it is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// A filter of trajectories. A field that is none filters nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TrajectoryFilter {
    /// True when trajectories of all runs of the project match. Default false: those of this run.
    pub all_runs: bool,
    /// The name of the agent under `[agents]`.
    pub agent: Option<String>,
    /// True: with a rating or a correction. False: with neither.
    pub annotated: Option<bool>,
    /// The lowest rating. Trajectories without one do not match.
    pub rating_min: Option<u8>,
    /// The highest rating. Trajectories without one do not match.
    pub rating_max: Option<u8>,
    /// The ending of the invocation.
    pub ending: Option<InvocationEnding>,
}

impl TrajectoryFilter {
    /// True when a trajectory matches.
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
