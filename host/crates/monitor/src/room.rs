//! Whether the machine has room for a task of an agent. Asks and runs are asked about where their own work begins, so
//! that they say themselves for what they wait.

use longhaul_agents::{Admission, Admitted, Wanted};
use longhaul_core::capacity::{Capacity, Need, Verdict};
use longhaul_resources::mb;
use std::sync::Arc;

/// When a task that waits for room is asked about again, in milliseconds.
const AGAIN_MS: u64 = 2_000;

/// Lets tasks in by what the machine has free.
pub struct Doorkeeper(pub Arc<dyn Capacity>);

impl Admission for Doorkeeper {
    fn admit(&self, wanted: &Wanted) -> Admitted {
        if matches!(wanted.kind, "ask" | "run") {
            return Admitted::Now;
        }
        let need = Need { memory_mb: mb(wanted.memory_bytes_max), gpu_memory_mb: 0.0 };
        match self.0.admit(&wanted.task, true, need) {
            Verdict::Admit => Admitted::Now,
            Verdict::Wait(why) => Admitted::Wait { reason: format!("room on this machine: {why}"), for_ms: AGAIN_MS },
        }
    }
}
