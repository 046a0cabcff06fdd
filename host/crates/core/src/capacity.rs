//! Room on the machine for work that is about to begin. Whoever measures the machine implements this; nothing here does.

use serde::{Deserialize, Serialize};

/// The needs of a newcomer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Need {
    /// Memory, in MB.
    pub memory_mb: f64,
    /// Memory of one graphics card, in MB; 0: it needs none.
    pub gpu_memory_mb: f64,
}

/// The answer to a newcomer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdmissionVerdict {
    /// The newcomer may begin.
    Admit,
    /// The newcomer waits, for this reason.
    Wait(String),
}

/// Says whether work may begin, by what the machine has free. It must answer at once.
pub trait Capacity: Send + Sync {
    /// Whether there is room for somebody, who counts as having it from when it begins. Who was let in before and goes on
    /// does not begin.
    fn admit(&self, who: &str, begins: bool, need: Need) -> AdmissionVerdict;
}
