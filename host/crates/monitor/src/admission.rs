//! Admission of agents' tasks by the machine's free capacity. Asks and runs are admitted where their own work begins,
//! so that they can report themselves what they wait for.

use longhaul_agents::{Admission, AdmissionDecision, AdmissionRequest};
use longhaul_core::capacity::{AdmissionVerdict, Capacity, Need};
use longhaul_resources::mb;
use std::sync::Arc;

/// Wait before a task that waits for capacity is checked again, in milliseconds.
const AGAIN_MS: u64 = 2_000;

/// Admits tasks by the machine's free capacity.
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
