//! Identities and checks of projects, and the outcome of a prompt that may become a project.

use super::prompts::DetectedView;
use crate::checks::{Finding, Overview};
use crate::projects::ProjectCheck;
use serde::{Deserialize, Serialize};

/// The identity of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProjectIdView {
    /// The id of the project, which secrets, memory and decisions belong to.
    pub id: String,
}

/// A fault of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct FindingView {
    /// The file, relative to the project; null: the finding is about no single file.
    pub file: Option<String>,
    /// The line of the file, from 1; null: it is not known.
    pub line: Option<usize>,
    /// The fault and its remedy, in one line.
    pub text: String,
}

impl From<Finding> for FindingView {
    fn from(inner: Finding) -> Self {
        let Finding { file, line, text } = inner;
        Self { file, line, text }
    }
}

/// The run that a valid project would have, or its asks if it has no goal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OverviewView {
    /// The name of the project.
    pub project: String,
    /// The parts, one line each: the table, the plugin, and its grants.
    pub parts: Vec<String>,
    /// The models that may be asked, one line each.
    pub models: Vec<String>,
    /// The checks, one line each.
    pub checks: Vec<String>,
    /// The conditions of its turn that differ from the usual ones, one line each: labels of servers, and a priority.
    pub turn: Vec<String>,
    /// The features that the file of the goal lists, one line each; null: a planner asks a model for them.
    pub features: Option<Vec<String>>,
    /// The further needs of a run, one line each, of a project without a goal, which was checked for asks; null: the
    /// project was checked for a run.
    pub run_needs: Option<Vec<String>>,
}

impl From<Overview> for OverviewView {
    fn from(inner: Overview) -> Self {
        let Overview { project, parts, models, checks, turn, features, run_needs } = inner;
        Self { project, parts, models, checks, turn, features, run_needs }
    }
}

/// The result of a check of a project.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProjectCheckView {
    /// True when there is no finding.
    pub ok: bool,
    /// The faults.
    pub findings: Vec<FindingView>,
    /// The run that the project would have.
    pub overview: OverviewView,
}

impl From<ProjectCheck> for ProjectCheckView {
    fn from(inner: ProjectCheck) -> Self {
        let ProjectCheck { findings, overview } = inner;
        let ok = findings.is_empty();
        Self { ok, findings: findings.into_iter().map(Into::into).collect(), overview: overview.into() }
    }
}

/// The outcome of a prompt.
#[derive(Clone, Debug, Serialize)]
pub struct PromptDetection {
    /// The guess about the prompt.
    pub detected: DetectedView,
    /// The path of the project that was made; null: none was.
    pub project: Option<String>,
    /// The reason why no project was made. Missing: one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The way to a project by hand. Missing: one was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otherwise: Option<String>,
}
