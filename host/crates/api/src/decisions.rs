//! Requests about the decisions of a project. `longhaul_core::decision` has the type of a decision.

use crate::runs::RunRef;
use longhaul_core::decision::DecisionOutcome;
use serde::{Deserialize, Serialize};

/// List decisions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListDecisions {
    /// A run of the project.
    pub run: RunRef,
    /// A query: decisions that share words with it are listed, the best first. None: all decisions, the newest first.
    pub question: Option<String>,
    /// The most decisions to list.
    pub limit: usize,
}

/// Show a decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowDecision {
    /// A run of the project.
    pub run: RunRef,
    /// The id of the decision, or a unique beginning of it.
    pub id: String,
}

/// Record the outcome of a decision. Fields that are none stay as they are.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JudgeDecision {
    /// A run of the project.
    pub run: RunRef,
    /// The id of the decision, or a unique beginning of it.
    pub id: String,
    /// The outcome.
    pub outcome: Option<DecisionOutcome>,
    /// The rating, from -1 to 1; other numbers are clamped.
    pub score: Option<f64>,
    /// The lesson.
    pub lesson: Option<String>,
}
