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
    /// Tokens that models read, cached ones included.
    pub input_tokens: u32,
    /// Tokens among these that came from a cache.
    pub cached_tokens: u32,
    /// Tokens among these that were written to a cache, where that costs extra.
    pub cache_written_tokens: u32,
    /// Tokens that models wrote.
    pub output_tokens: u32,
    /// Tokens among these that were reasoning.
    pub reasoning_tokens: u32,
    /// The cost, in millionths of a US dollar; null if the price of a part is not known.
    pub cost_microdollars: Option<f64>,
    /// The known part of the cost, in millionths of a US dollar. It is the whole cost unless `cost_microdollars` is
    /// null.
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

/// The usage of work.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = WorkUsage))]
pub struct WorkUsageView {
    /// Fuel of components.
    pub fuel: u64,
    /// The highest sum of memories, in bytes.
    pub memory_bytes_peak: u64,
    /// Calls of imports.
    pub host_calls: u64,
    /// Calls of models.
    pub model_calls: u32,
    /// Calls of models that were interrupted, and may have been paid although their answers were lost: of a run, a
    /// feature or an agent by the ledger; in an event those that the attempt sent again.
    pub possibly_paid_twice: u32,
    /// Conversations that began anew with a summary.
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

/// The usage in all attempts.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = InvocationUsage))]
pub struct InvocationUsageView {
    /// Tokens and money.
    pub usage: UsageView,
    /// Replies of models.
    pub model_calls: u32,
    /// Calls of tools.
    pub tool_calls: u32,
    /// Fuel of components, tools included.
    pub fuel: u64,
    /// The highest sum of memories, in bytes.
    pub memory_bytes_peak: u64,
    /// Bytes of requests to other hosts.
    pub egress_bytes: u64,
    /// Bytes of answers that were stored.
    pub stored_bytes: u64,
    /// Calls of models that were interrupted, and may have been paid although their answers were lost.
    pub possibly_paid_twice: u32,
    /// The most that these may have cost.
    pub interrupted_usage_max: UsageView,
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
            interrupted_usage_max: inner.cut_off.into(),
        }
    }
}

/// The caps of a run; null: no cap.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = RunCaps))]
pub struct RunCapsView {
    /// Tokens, read and written.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub tokens_max: Option<u64>,
    /// Money, in millionths of a US dollar.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub cost_microdollars_max: Option<u64>,
    /// Replies of models.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub model_calls_max: Option<u64>,
    /// Calls of tools.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub tool_calls_max: Option<u64>,
    /// Fuel of components.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub fuel_max: Option<u64>,
    /// Memory of components at once, in bytes.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub memory_bytes_max: Option<u64>,
    /// Bytes of requests to other hosts.
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

/// The usage of one invocation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = LedgerRow))]
pub struct LedgerRowView {
    /// Name of the invocation.
    pub invocation: String,
    /// Its usage.
    pub resource_usage: InvocationUsageView,
}

/// The usage of a run, and its caps.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = Ledger))]
pub struct LedgerDetails {
    /// The sum of all rows.
    pub total: InvocationUsageView,
    /// The most that calls of models under way may cost.
    pub in_flight_usage_max: UsageView,
    /// Working time of the run, in milliseconds.
    pub wall_ms: u64,
    /// Longest working time, in milliseconds; null: no cap.
    #[cfg_attr(feature = "schema", schema(required = true))]
    pub wall_ms_max: Option<u64>,
    /// Number of new plans after the first one.
    pub replans: u32,
    /// Peak memory of all its components at once, in bytes.
    pub memory_bytes_at_once_peak: u64,
    /// The other caps.
    pub caps: RunCapsView,
    /// One row for each invocation with usage.
    pub rows: Vec<LedgerRowView>,
}

impl From<LedgerView> for LedgerDetails {
    fn from(inner: LedgerView) -> Self {
        let row = |LedgerRow { invocation, spent, .. }: LedgerRow| LedgerRowView {
            invocation: invocation.as_str().to_owned(),
            resource_usage: spent.into(),
        };
        Self {
            total: inner.total.into(),
            in_flight_usage_max: inner.held.into(),
            wall_ms: inner.wall_ms,
            wall_ms_max: inner.wall_ms_max,
            replans: inner.replans,
            memory_bytes_at_once_peak: inner.memory_bytes_at_once_peak,
            caps: inner.caps.into(),
            rows: inner.rows.into_iter().map(row).collect(),
        }
    }
}
