//! The skill for coding agents that was installed, and the demo that `onboard` ran.

use serde::{Deserialize, Serialize};

/// The installed skill.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SkillInstalled {
    /// The path of its file.
    pub path: String,
    /// True when the file was written. False: it was there, and the same.
    pub written: bool,
}

/// The demo that was made and run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DemoReport {
    /// The directory of the project.
    pub directory: String,
    /// The provider of its model, as `--provider` names it.
    pub provider: String,
    /// The id of its run.
    pub run: String,
    /// True when the run was killed and resumed.
    pub killed: bool,
    /// The progress when it was killed; null: it was not.
    pub before: Option<DemoProgress>,
    /// The progress at its end.
    pub after: DemoProgress,
    /// The invocations that had finished before the kill and were executed again, which are none.
    pub repeated: Vec<String>,
    /// The subjects of its commits, the newest first.
    pub commits: Vec<String>,
}

/// The progress of the demo, as journals and ledger tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DemoProgress {
    /// Invocations that finished.
    pub invocations: usize,
    /// Replies of models.
    pub model_calls: u32,
}
