//! Usage of runs, and the caps on it.

use longhaul_core::event::WorkUsage as InnerUsed;
use longhaul_core::model::Usage as InnerUsage;
use longhaul_core::supervisor::InvocationUsage as InnerSpent;
use longhaul_records::ledger::{LedgerRow, LedgerView, RunCaps as InnerCaps};
use serde::Serialize;

/// Tokens and money.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Usage))]
pub struct UsageView {
    /// Tokens that models read, the cached ones included.
    pub input_tokens: u32,
    /// Of these, the ones that they had read before.
    pub cached_tokens: u32,
    /// Of these, the ones that they put aside for next time, where that costs extra.
    pub cache_written_tokens: u32,
    /// Tokens that they wrote.
    pub output_tokens: u32,
    /// Of these, the ones that they thought with.
    pub reasoning_tokens: u32,
    /// In millionths of a US dollar; null where the price of a part is not known.
    pub cost_microdollars: Option<f64>,
    /// What is known of the cost, in millionths of a US dollar. All of it, unless the other is null.
    pub cost_microdollars_min: f64,
}

impl From<InnerUsage> for UsageView {
    fn from(inner: InnerUsage) -> Self {
        Self {
            input_tokens: inner.input_tokens,
            cached_tokens: inner.cached_tokens,
            cache_written_tokens: inner.cache_written_tokens,
            output_tokens: inner.output_tokens,
            reasoning_tokens: inner.reasoning_tokens,
            cost_microdollars: inner.cost(),
            cost_microdollars_min: inner.cost_microdollars,
        }
    }
}

/// What work used.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Used))]
pub struct WorkUsageView {
    /// Instructions, in wasmtime's fuel.
    pub fuel: u64,
    /// The highest sum of memories, in bytes.
    pub memory_bytes_peak: u64,
    /// Calls of imports.
    pub host_calls: u64,
    /// Calls of models.
    pub model_calls: u32,
    /// Calls of models that were in flight at a kill and were sent again.
    pub possibly_paid_twice: u32,
    /// Conversations that began anew with a hand-off.
    pub context_resets: u32,
    /// Conversations whose older turns became summaries or references.
    pub context_compactions: u32,
    /// Tokens and money.
    pub usage: UsageView,
}

impl From<InnerUsed> for WorkUsageView {
    fn from(inner: InnerUsed) -> Self {
        Self {
            fuel: inner.fuel,
            memory_bytes_peak: inner.memory_bytes_peak,
            host_calls: inner.host_calls,
            model_calls: inner.model_calls,
            possibly_paid_twice: inner.possibly_paid_twice,
            context_resets: inner.context_resets,
            context_compactions: inner.context_compactions,
            usage: inner.usage.into(),
        }
    }
}

/// What was spent, in all attempts.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Spent))]
pub struct InvocationUsageView {
    /// Tokens and money.
    pub usage: UsageView,
    /// Answers of models.
    pub model_calls: u32,
    /// Calls of tools.
    pub tool_calls: u32,
    /// Instructions, in wasmtime's fuel, those of tools included.
    pub fuel: u64,
    /// The highest sum of memories, in bytes.
    pub memory_bytes_peak: u64,
    /// Bytes of requests that left.
    pub egress_bytes: u64,
    /// Bytes of answers that were stored.
    pub stored_bytes: u64,
    /// Calls of models that were cut off, of which nobody knows whether they were paid.
    pub possibly_paid_twice: u32,
    /// The most that those may have cost.
    pub cut_off: UsageView,
}

impl From<InnerSpent> for InvocationUsageView {
    fn from(inner: InnerSpent) -> Self {
        Self {
            usage: inner.usage.into(),
            model_calls: inner.model_calls,
            tool_calls: inner.tool_calls,
            fuel: inner.fuel,
            memory_bytes_peak: inner.memory_bytes_peak,
            egress_bytes: inner.egress_bytes,
            stored_bytes: inner.stored_bytes,
            possibly_paid_twice: inner.possibly_paid_twice,
            cut_off: inner.cut_off.into(),
        }
    }
}

/// The caps of a whole run; null: no cap.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Caps))]
pub struct RunCapsView {
    /// Tokens, read and written.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub tokens_max: Option<u64>,
    /// Money, in millionths of a US dollar.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub cost_microdollars_max: Option<u64>,
    /// Answers of models.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub model_calls_max: Option<u64>,
    /// Calls of tools.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub tool_calls_max: Option<u64>,
    /// Instructions, in wasmtime's fuel.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub fuel_max: Option<u64>,
    /// Memory of components at once, in bytes.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub memory_bytes_max: Option<u64>,
    /// Bytes that leave.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub egress_bytes_max: Option<u64>,
    /// Bytes of answers that are stored.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub stored_bytes_max: Option<u64>,
}

impl From<InnerCaps> for RunCapsView {
    fn from(inner: InnerCaps) -> Self {
        Self {
            tokens_max: inner.tokens_max,
            cost_microdollars_max: inner.cost_microdollars_max,
            model_calls_max: inner.model_calls_max,
            tool_calls_max: inner.tool_calls_max,
            fuel_max: inner.fuel_max,
            memory_bytes_max: inner.memory_bytes_max,
            egress_bytes_max: inner.egress_bytes_max,
            stored_bytes_max: inner.stored_bytes_max,
        }
    }
}

/// What one invocation spent.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Row))]
pub struct LedgerRowView {
    /// Which.
    pub invocation: String,
    /// What.
    pub spent: InvocationUsageView,
}

/// What a run spent, and what it still may.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Ledger))]
pub struct LedgerDetails {
    /// All rows together.
    pub total: InvocationUsageView,
    /// What calls of models that are under way may cost at most.
    pub held: UsageView,
    /// How long the run worked, in milliseconds.
    pub wall_ms: u64,
    /// Of `wall_ms`, the most; null: no cap.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub wall_ms_max: Option<u64>,
    /// How often its planner planned again.
    pub replans: u32,
    /// The most memory that its components had at once, in bytes.
    pub memory_bytes_at_once_peak: u64,
    /// The other caps.
    pub caps: RunCapsView,
    /// One for each invocation that spent anything.
    pub rows: Vec<LedgerRowView>,
}

impl From<LedgerView> for LedgerDetails {
    fn from(inner: LedgerView) -> Self {
        let row = |LedgerRow { invocation, spent, .. }: LedgerRow| LedgerRowView {
            invocation: invocation.as_str().to_owned(),
            spent: spent.into(),
        };
        Self {
            total: inner.total.into(),
            held: inner.held.into(),
            wall_ms: inner.wall_ms,
            wall_ms_max: inner.wall_ms_max,
            replans: inner.replans,
            memory_bytes_at_once_peak: inner.memory_bytes_at_once_peak,
            caps: inner.caps.into(),
            rows: inner.rows.into_iter().map(row).collect(),
        }
    }
}
