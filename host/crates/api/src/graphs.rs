//! What is asked of the graphs of a data directory. What is answered is the affair of `longhaul_core::graph`.

use longhaul_core::graph::{GraphOperation, StepEnvironment};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Sources that one patch tries, unless it is told another number.
pub const TRIES_MAX: u32 = 8;

/// The language of the steps of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// CPython, in WebAssembly.
    Python,
}

impl Language {
    /// Its word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
        }
    }
}

/// A model of a project that is asked, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChoice {
    /// The project.
    pub directory: PathBuf,
    /// Its name there; none: the first that there is, and none at all is well.
    pub model: Option<String>,
}

/// What is asked of the graphs of a data directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GraphRequest {
    /// Make one.
    New {
        /// Its name.
        name: String,
        /// Of its steps.
        language: Language,
        /// What its steps see.
        surroundings: StepEnvironment,
    },
    /// All of them.
    List,
    /// Remove one.
    Remove {
        /// Which.
        name: String,
    },
    /// What an agent can ask as well.
    One {
        /// Of which.
        name: String,
        /// What.
        ask: GraphOperation,
    },
    /// Add steps, all or none.
    AddMany {
        /// To which.
        name: String,
        /// Names and sources.
        steps: Vec<(String, String)>,
    },
    /// Run what is stale.
    Run {
        /// Of which.
        name: String,
        /// Also what needs a failed step.
        keep_going: bool,
        /// And this step, which acts and was cut off.
        again: Option<String>,
    },
    /// Say why a step failed.
    Diagnose {
        /// Of which.
        name: String,
        /// None: the first that failed.
        step: Option<String>,
        /// Who is asked too.
        model: Option<ModelChoice>,
    },
    /// Find a source with which a failure is gone.
    Patch {
        /// Of which.
        name: String,
        /// None: the first that failed.
        step: Option<String>,
        /// Who is asked too.
        model: Option<ModelChoice>,
        /// At most so many sources are tried.
        tries_max: u32,
    },
    /// The steps as lines for a terminal.
    Draw {
        /// Of which.
        name: String,
        /// Columns of a line at most.
        width: u32,
    },
    /// What was changed.
    History {
        /// In which.
        name: String,
    },
}
