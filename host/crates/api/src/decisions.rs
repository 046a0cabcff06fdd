//! The decisions of a project, as they are asked for. What a decision is, `longhaul_core::decision` says.

use crate::runs::RunRef;
use longhaul_core::decision::DecisionOutcome;
use serde::{Deserialize, Serialize};

/// List decisions.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListDecisions {
    /// A run of the project.
    pub run: RunRef,
    /// Those that bear on this question, the best first; none: all, the newest first.
    pub question: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// Show a decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ShowDecision {
    /// A run of the project.
    pub run: RunRef,
    /// Its id, or the beginning of it.
    pub id: String,
}

/// Record what came of a decision. What is none stays as it was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct JudgeDecision {
    /// A run of the project.
    pub run: RunRef,
    /// Its id, or the beginning of it.
    pub id: String,
    /// What came of it.
    pub outcome: Option<DecisionOutcome>,
    /// How good it was, from -1 to 1; what is beyond is cut.
    pub score: Option<f64>,
    /// What is to be learnt.
    pub lesson: Option<String>,
}
