//! Whether the machine has room for a task of an agent. Asks and runs are asked about where their own work begins, so
//! that they say themselves for what they wait.

use longhaul_agents::{Admission, AdmissionDecision, AdmissionRequest};
use longhaul_core::capacity::{AdmissionVerdict, Capacity, Need};
use longhaul_resources::mb;
use std::sync::Arc;

/// When a task that waits for room is asked about again, in milliseconds.
const AGAIN_MS: u64 = 2_000;

/// Lets tasks in by what the machine has free.
pub struct AdmissionController(pub Arc<dyn Capacity>);

impl Admission for AdmissionController {
    fn admit(&self, wanted: &AdmissionRequest) -> AdmissionDecision {
        if matches!(wanted.kind, "ask" | "run") {
            return AdmissionDecision::Now;
        }
        let need = Need { memory_mb: mb(wanted.memory_bytes_max), gpu_memory_mb: 0.0 };
        match self.0.admit(&wanted.task, true, need) {
            AdmissionVerdict::Admit => AdmissionDecision::Now,
            AdmissionVerdict::Wait(why) => {
                AdmissionDecision::Wait { reason: format!("room on this machine: {why}"), for_ms: AGAIN_MS }
            }
        }
    }
}
