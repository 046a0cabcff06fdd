//! Graphs that agents make in their invocations: how they are named, and what their steps see.

use longhaul_core::graph::{StepEnvironment, StepLimits};

/// Time of each step, in milliseconds.
const AGENT_STEP_MS_MAX: u64 = 60_000;

/// What stands between the invocation and the name that its agent gave to a graph.
pub(super) const OF_AGENT: char = '#';

/// What the steps of agents see: nothing.
pub(super) fn of_agent() -> StepEnvironment {
    let limits = StepLimits { timeout_ms: AGENT_STEP_MS_MAX, ..StepLimits::default() };
    StepEnvironment { limits, ..StepEnvironment::default() }
}
