//! The caps of a run, and the comparison of numbers with them.

use longhaul_core::LimitHit;
use longhaul_core::model::Usage;
use longhaul_harness::HarnessLimits;
use serde::{Deserialize, Serialize};

/// The caps of a whole run that the ledger enforces; none: no cap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunCaps {
    /// Input and output tokens.
    pub tokens_max: Option<u64>,
    /// Money, in millionths of a US dollar.
    pub cost_microdollars_max: Option<u64>,
    /// Steps: model replies.
    pub model_calls_max: Option<u64>,
    /// The most tool calls.
    pub tool_calls_max: Option<u64>,
    /// Fuel, in wasmtime's unit.
    pub fuel_max: Option<u64>,
    /// Memory of all components together.
    pub memory_bytes_max: Option<u64>,
    /// Bytes that are sent.
    pub egress_bytes_max: Option<u64>,
    /// Bytes of answers that are stored.
    pub stored_bytes_max: Option<u64>,
}

impl RunCaps {
    /// The caps in the run's limits.
    pub fn of(limits: &HarnessLimits) -> Self {
        Self {
            tokens_max: limits.tokens_max,
            cost_microdollars_max: limits.cost_microdollars_max,
            model_calls_max: limits.model_calls_max,
            tool_calls_max: limits.tool_calls_max,
            fuel_max: limits.fuel_max,
            memory_bytes_max: limits.memory_bytes_max,
            egress_bytes_max: limits.egress_bytes_max,
            stored_bytes_max: limits.stored_bytes_max,
        }
    }

    /// The cap that this usage and this number of model replies pass.
    pub(super) fn over(&self, usage: Usage, model_calls: u64) -> Option<LimitHit> {
        over("tokens_max", usage.tokens(), self.tokens_max)
            .or_else(|| {
                over("cost_microdollars_max", microdollars(usage.cost_microdollars), self.cost_microdollars_max)
            })
            .or_else(|| over("model_calls_max", model_calls, self.model_calls_max))
    }
}

pub(super) fn over(name: &str, used: u64, max: Option<u64>) -> Option<LimitHit> {
    max.filter(|max| used > *max).map(|max| LimitHit::new(name, used, max))
}

/// As [`over`], and also when nothing is left.
pub(super) fn full(name: &str, used: u64, max: Option<u64>) -> Option<LimitHit> {
    max.filter(|max| used >= *max).map(|max| LimitHit::new(name, used, max))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates, as a cap wants it")]
pub(super) fn microdollars(cost: f64) -> u64 {
    cost.ceil() as u64
}
