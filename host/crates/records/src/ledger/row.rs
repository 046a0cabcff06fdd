//! Rows of a ledger as they are stored.

use longhaul_core::InvocationId;
use longhaul_core::model::Usage;
use longhaul_core::supervisor::InvocationUsage;
use serde::{Deserialize, Serialize};

/// A row of the ledger.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LedgerRow {
    /// The invocation.
    pub invocation: InvocationId,
    /// The usage of the invocation in all its attempts.
    pub spent: InvocationUsage,
    /// The part of the fuel that is its own, which each attempt uses again. None in a row from before tools were
    /// counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) own_fuel: Option<u64>,
    /// The number of its last model call with a known end, from 1.
    #[serde(default)]
    pub(super) settled: u64,
    /// Memory of the run's components at once, in bytes, when this was written.
    #[serde(default)]
    pub(super) at_once_bytes: u64,
}

/// A stored reservation of a model call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct HeldRow {
    pub(super) invocation: InvocationId,
    /// Counts up within the invocation.
    pub(super) number: u64,
    pub(super) most: Usage,
}
