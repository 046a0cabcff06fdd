//! What the journal of an invocation holds by name: its end, the choices that the host itself asks for, and the entries
//! that checkpoints stand before.

use longhaul_core::LimitHit;
use longhaul_core::work::RoleError;
use serde::{Deserialize, Serialize};

/// What an invocation is called that is a choice of a model for the host, where others name an export.
pub const CHOICE: &str = "model.choose";

/// The import that is one step of an agent.
pub const STEP: &str = "conversation.complete";

/// The entry that stands before a call that a person is asked about.
pub const APPROVAL: &str = longhaul_core::approval::ENTRY;

/// What a finished invocation left in its journal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JournaledResult<T> {
    /// What the export returned.
    Returned(T),
    /// The error that it returned.
    Refused(RoleError),
    /// The limit that ended it.
    Limited(LimitHit),
    /// The trap that ended it, or how what it returned breaks the contract.
    Trapped(String),
}
