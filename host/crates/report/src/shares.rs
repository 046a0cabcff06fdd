//! The usage of a run by table of its agents, planner and evaluators, each without the usage of those that it asked.

use super::published::published;
use longhaul_api::runs::CarriedInvocation;
use longhaul_api::wire::usage::WorkUsageView;
use longhaul_core::InvocationId;
use longhaul_core::event::{Event, RunEvent, WorkUsage};
use longhaul_core::model::Usage;
use longhaul_records::ledger::LedgerView;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The usage of the calls of one table.
#[derive(Debug, Serialize)]
pub(super) struct Share {
    /// The table, for example `agents.code`; the plugin, where nothing is known of the table.
    pub agent: String,
    /// The plugin.
    pub plugin: String,
    /// Invocations that ended.
    pub calls: u32,
    /// Of these, the ones that did not return what they should.
    pub failed: u32,
    /// From their begin to their end, waits included, in milliseconds.
    pub worked_ms: u64,
    /// By themselves.
    #[serde(serialize_with = "published::<WorkUsage, WorkUsageView, _>")]
    pub resource_usage: WorkUsage,
}

/// The usage by table; the one with the most tokens comes first.
pub(super) fn of(events: &[RunEvent], parts: &[CarriedInvocation], ledger: &LedgerView) -> Vec<Share> {
    let parts: BTreeMap<&InvocationId, &CarriedInvocation> =
        parts.iter().map(|part| (&part.invocation, part)).collect();
    let mut plugins = BTreeMap::new();
    let mut of_children: BTreeMap<String, WorkUsage> = BTreeMap::new();
    let mut shares: BTreeMap<String, Share> = BTreeMap::new();
    let mut of_agents: BTreeMap<String, BTreeSet<&InvocationId>> = BTreeMap::new();
    for event in events {
        let (invocation, ok, used) = match &event.event {
            Event::InvocationStarted { invocation, plugin, .. } => {
                plugins.insert(invocation, plugin.as_str());
                continue;
            }
            Event::InvocationEnded { invocation, ok, used, .. } => (invocation, *ok, *used),
            _ => continue,
        };
        // Those that were asked end before the one that asked.
        let own = without(used, of_children.remove(invocation.as_str()).unwrap_or_default());
        if let Some((caller, _)) = invocation.as_str().rsplit_once('#') {
            let sum = of_children.entry(caller.to_owned()).or_default();
            *sum = sum.plus(used);
        }
        let part = parts.get(invocation);
        let plugin = part.map(|part| part.plugin.as_str()).or_else(|| plugins.get(invocation).copied());
        let plugin = plugin.unwrap_or("unknown").to_owned();
        let agent = part.map_or_else(|| plugin.clone(), |part| part.table.clone());
        let share = shares.entry(agent.clone()).or_insert_with(|| Share {
            agent,
            plugin,
            calls: 0,
            failed: 0,
            worked_ms: 0,
            resource_usage: WorkUsage::default(),
        });
        share.calls += 1;
        share.failed += u32::from(!ok);
        share.worked_ms += part.map_or(0, |part| part.until_ms.unwrap_or(part.from_ms).saturating_sub(part.from_ms));
        share.resource_usage = share.resource_usage.plus(own);
        // In the ledger each invocation has a row of its own, without those that it asked.
        let of_agent = of_agents.entry(share.agent.clone()).or_default();
        of_agent.insert(invocation);
    }
    for share in shares.values_mut() {
        let meant = of_agents.get(&share.agent);
        let paid = ledger.possibly_paid_twice(|one| meant.is_some_and(|meant| meant.contains(one)));
        share.resource_usage.possibly_paid_twice = paid.calls;
    }
    let mut shares: Vec<Share> = shares.into_values().collect();
    shares.sort_by_key(|share| std::cmp::Reverse((share.resource_usage.usage.tokens(), share.resource_usage.fuel)));
    shares
}

/// The rest of a usage without that of others. A peak is not a sum, so it stays.
fn without(used: WorkUsage, others: WorkUsage) -> WorkUsage {
    let (all, less) = (used.usage, others.usage);
    WorkUsage {
        fuel: used.fuel.saturating_sub(others.fuel),
        memory_bytes_peak: used.memory_bytes_peak,
        host_calls: used.host_calls.saturating_sub(others.host_calls),
        model_calls: used.model_calls.saturating_sub(others.model_calls),
        // The ledger has it.
        possibly_paid_twice: 0,
        context_resets: used.context_resets.saturating_sub(others.context_resets),
        context_compactions: used.context_compactions.saturating_sub(others.context_compactions),
        usage: Usage {
            input_tokens: all.input_tokens.saturating_sub(less.input_tokens),
            cached_tokens: all.cached_tokens.saturating_sub(less.cached_tokens),
            cache_written_tokens: all.cache_written_tokens.saturating_sub(less.cache_written_tokens),
            reasoning_tokens: all.reasoning_tokens.saturating_sub(less.reasoning_tokens),
            output_tokens: all.output_tokens.saturating_sub(less.output_tokens),
            cost_microdollars: (all.cost_microdollars - less.cost_microdollars).max(0.0),
            // It is unknown here which of them has the part without a price.
            cost_unknown: all.cost_unknown,
        },
    }
}
