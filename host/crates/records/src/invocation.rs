//! Entries of an invocation's journal with a name: its end, the choices that the host itself asks for, and the entries
//! that have a checkpoint before them.

use longhaul_core::LimitHit;
use longhaul_core::work::RoleError;
use serde::{Deserialize, Serialize};

/// The export of an invocation in which the host asks a model for a choice; other invocations name an export of a
/// plugin.
pub const CHOICE: &str = "model.choose";

/// The import that is one step of an agent.
pub const STEP: &str = "conversation.complete";

/// The entry before a call that needs a person's approval.
pub const APPROVAL: &str = longhaul_core::approval::ENTRY;

/// The end of a finished invocation, from its journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournaledResult<T> {
    /// The value that the export returned.
    Returned(T),
    /// The error that it returned.
    Refused(RoleError),
    /// The limit that ended it.
    Limited(LimitHit),
    /// The trap that ended it, or why its return value breaks the contract.
    Trapped(String),
}
