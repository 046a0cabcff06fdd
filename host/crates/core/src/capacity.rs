//! Free capacity of the machine for work that is about to begin. The monitor of the machine implements this; nothing
//! here does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The needs of new work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Need {
    /// The needed memory, in MB.
    pub memory_mb: f64,
    /// The needed memory of one graphics card, in MB. 0: none.
    pub gpu_memory_mb: f64,
}

/// The verdict about new work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdmissionVerdict {
    /// The work may begin.
    Admit,
    /// The work waits, for this reason.
    Wait(String),
}

/// Decides whether work may begin, by the machine's free resources. It must return at once.
pub trait Capacity: Send + Sync {
    /// Decides if there is capacity for the work `who`, whose needs are reserved once it begins. Work that was admitted
    /// before and continues does not begin.
    fn admit(&self, who: &str, begins: bool, need: Need) -> AdmissionVerdict;

    /// The most runs that work at once in this process. The others wait in a queue.
    fn runs_max(&self) -> u32;

    /// The number of runs of a project that other servers work on, as far as this one gave them away.
    fn runs_elsewhere(&self, _project: &str) -> u32 {
        0
    }
}
