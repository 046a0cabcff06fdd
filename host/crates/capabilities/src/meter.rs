//! The resources of an instance: memories, tables and instances, each summed over the whole component.

use longhaul_core::process_registry::GuestRecord;
use longhaul_core::{LimitHit, Limits};
use std::sync::Arc;
use wasmtime::ResourceLimiter;

/// Counts the resources of the instance and refuses growth beyond the caps.
///
/// A guest that requests too much memory sees `memory.grow` fail, as the specification defines. The cap is remembered,
/// since most guests trap next without a reason.
#[derive(Debug)]
pub struct Meter {
    memory_bytes: u64,
    memory_bytes_max: u64,
    table_elements: u64,
    table_elements_max: u64,
    instances_max: usize,
    /// The highest sum of all memories, in bytes.
    pub memory_bytes_peak: u64,
    /// The last cap that refused growth.
    pub refused: Option<LimitHit>,
    /// The instance's entry in the registry.
    pub guest: Arc<GuestRecord>,
}

/// Memories and tables that a component may have. Only the host's own bound: every one that grows is also summed.
const MEMORIES_MAX: usize = 100;

impl Meter {
    pub(crate) fn new(limits: &Limits, guest: Arc<GuestRecord>) -> Self {
        Self {
            memory_bytes: 0,
            memory_bytes_max: limits.memory_bytes_max,
            table_elements: 0,
            table_elements_max: limits.table_elements_max,
            instances_max: limits.instances_max as usize,
            memory_bytes_peak: 0,
            refused: None,
            guest,
        }
    }
}

/// The new sum when one part grows from `current` to `desired`, or the cap that forbids it.
fn grown(sum: u64, current: usize, desired: usize, name: &str, max: u64) -> Result<u64, LimitHit> {
    // `desired` is guest-controlled: saturate, so that no wrap-around passes the cap.
    let added = desired.saturating_sub(current) as u64;
    let wanted = sum.saturating_add(added);
    if wanted > max { Err(LimitHit::new(name, wanted, max)) } else { Ok(wanted) }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        // wasmtime applies the module's own maximum later without a call of this, so it is checked here.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        match grown(self.memory_bytes, current, desired, "memory_bytes_max", self.memory_bytes_max) {
            Ok(sum) => {
                self.memory_bytes = sum;
                self.memory_bytes_peak = self.memory_bytes_peak.max(sum);
                self.guest.holds(sum);
                Ok(true)
            }
            Err(hit) => {
                self.refused = Some(hit);
                Ok(false)
            }
        }
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        match grown(self.table_elements, current, desired, "table_elements_max", self.table_elements_max) {
            Ok(sum) => {
                self.table_elements = sum;
                Ok(true)
            }
            Err(hit) => {
                self.refused = Some(hit);
                Ok(false)
            }
        }
    }

    fn instances(&self) -> usize {
        self.instances_max
    }

    fn tables(&self) -> usize {
        MEMORIES_MAX
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longhaul_core::InvocationId;

    #[test]
    fn memories_are_summed_and_the_cap_itself_is_allowed() {
        let guest = GuestRecord::new(InvocationId::from_text("i"), "p".into(), "tools.t".into(), 100, 1);
        let mut meter = Meter::new(&Limits { memory_bytes_max: 100, ..Limits::default() }, Arc::new(guest));
        assert!(meter.memory_growing(0, 60, None).unwrap());
        assert!(!meter.memory_growing(0, 41, None).unwrap(), "one over, in a second memory");
        assert_eq!(meter.refused, Some(LimitHit::new("memory_bytes_max", 101, 100)));
        assert!(meter.memory_growing(0, 40, None).unwrap(), "the edge");
        assert!(!meter.memory_growing(40, usize::MAX, None).unwrap());
        assert_eq!((meter.memory_bytes_peak, meter.guest.memory_bytes()), (100, 100));
    }
}
