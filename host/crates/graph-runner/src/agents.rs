//! Graphs that agents make in their invocations: their names, and the environment of their steps.

use longhaul_core::graph::{StepEnvironment, StepLimits};

/// Time limit of each step, in milliseconds.
const AGENT_STEP_MS_MAX: u64 = 60_000;

/// The separator between the invocation and the name that its agent gave to a graph.
pub(super) const OF_AGENT: char = '#';

/// The environment of agents' steps, which is empty.
pub(super) fn of_agent() -> StepEnvironment {
    let limits = StepLimits { timeout_ms: AGENT_STEP_MS_MAX, ..StepLimits::default() };
    StepEnvironment { limits, ..StepEnvironment::default() }
}
