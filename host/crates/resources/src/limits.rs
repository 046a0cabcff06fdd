//! Limits of a process tree, and whether it exceeds them.
//!
//! Memory and processes end a tree at the first check that is over; processor time only when it was over for a while,
//! since every program is busy for a moment. Refuses to end anything itself.

use crate::process::Process;
use crate::usage::ProcessUsage;
use longhaul_core::LimitHit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Limits of a tree. A value exceeds a limit when it is strictly greater.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResourceLimits {
    /// Memory of the whole tree, in MB. Default 256.
    pub max_memory_mb: f64,
    /// Processor time, where 100 is one processor all the time. Default 80.
    pub max_cpu_percent: f64,
    /// Processes besides the root. Default 5.
    pub max_processes: u64,
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self { max_memory_mb: 256.0, max_cpu_percent: 80.0, max_processes: 5 }
    }
}

impl ResourceLimits {
    /// True when any limit is exceeded.
    #[must_use]
    pub fn exceeds(&self, usage: &ProcessUsage) -> bool {
        self.exceeded(usage).is_some()
    }

    /// The limit that is exceeded: memory before processes before processor time.
    #[must_use]
    pub fn exceeded(&self, usage: &ProcessUsage) -> Option<LimitHit> {
        PartialLimits::from(*self).exceeded(usage)
    }
}

/// Limits of which some may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PartialLimits {
    /// Memory of the whole tree, in MB.
    pub max_memory_mb: Option<f64>,
    /// Processor time, where 100 is one processor all the time; ended only after `busy_s_max` seconds above it.
    pub max_cpu_percent: Option<f64>,
    /// Processes besides the root.
    pub max_processes: Option<u64>,
}

impl From<ResourceLimits> for PartialLimits {
    fn from(limits: ResourceLimits) -> Self {
        let ResourceLimits { max_memory_mb, max_cpu_percent, max_processes } = limits;
        Self {
            max_memory_mb: Some(max_memory_mb),
            max_cpu_percent: Some(max_cpu_percent),
            max_processes: Some(max_processes),
        }
    }
}

impl PartialLimits {
    /// The lower one of each limit.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let lower = |one: Option<f64>, two: Option<f64>| match (one, two) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Self {
            max_memory_mb: lower(self.max_memory_mb, other.max_memory_mb),
            max_cpu_percent: lower(self.max_cpu_percent, other.max_cpu_percent),
            max_processes: self.max_processes.into_iter().chain(other.max_processes).min(),
        }
    }

    /// The limit that is exceeded: memory before processes before processor time.
    #[must_use]
    pub fn exceeded(&self, usage: &ProcessUsage) -> Option<LimitHit> {
        self.exceeded_at_once(usage).or_else(|| self.busy(usage))
    }

    fn exceeded_at_once(&self, usage: &ProcessUsage) -> Option<LimitHit> {
        let memory = self.max_memory_mb.and_then(|max| over("max_memory_mb", usage.memory_mb, max));
        memory.or_else(|| {
            let max = self.max_processes?;
            (usage.num_children > max).then(|| LimitHit::new("max_processes", usage.num_children, max))
        })
    }

    fn busy(&self, usage: &ProcessUsage) -> Option<LimitHit> {
        self.max_cpu_percent.and_then(|max| over("max_cpu_percent", usage.cpu_percent, max))
    }
}

fn over(name: &str, used: f64, max: f64) -> Option<LimitHit> {
    (used > max).then(|| LimitHit { name: name.to_owned(), used, max })
}

/// Reports trees that are over their limits, check after check.
#[derive(Debug, Default)]
pub struct Watchdog {
    busy_since_ms: BTreeMap<Process, u64>,
}

impl Watchdog {
    /// The limit for which a tree has to end now, if there is one. `busy_ms_max` is the time for which it may have more
    /// of the processors than its share.
    pub fn look(
        &mut self,
        root: Process,
        usage: &ProcessUsage,
        rule: &PartialLimits,
        now_ms: u64,
        busy_ms_max: u64,
    ) -> Option<LimitHit> {
        if let Some(hit) = rule.exceeded_at_once(usage) {
            return Some(hit);
        }
        let Some(hit) = rule.busy(usage) else {
            self.busy_since_ms.remove(&root);
            return None;
        };
        let since_ms = *self.busy_since_ms.entry(root).or_insert(now_ms);
        (now_ms.saturating_sub(since_ms) >= busy_ms_max).then_some(hit)
    }

    /// Forgets all other trees.
    pub fn keep(&mut self, roots: &[Process]) {
        self.busy_since_ms.retain(|root, _| roots.contains(root));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_at_its_limit_is_over_it() {
        let limits = ResourceLimits::default();
        let edge = ProcessUsage { memory_mb: 256.0, cpu_percent: 80.0, num_threads: 900, num_children: 5 };
        assert!(!limits.exceeds(&edge));
        assert!(limits.exceeds(&ProcessUsage { memory_mb: 256.1, ..edge }));
        assert!(limits.exceeds(&ProcessUsage { cpu_percent: 80.1, ..edge }));
        assert!(limits.exceeds(&ProcessUsage { num_children: 6, ..edge }));
    }

    #[test]
    fn a_program_may_be_busy_for_a_while_and_hold_too_much_for_no_while() {
        let (mut dog, root) = (Watchdog::default(), Process { pid: 1, start_ticks: 1 });
        let rule = PartialLimits::from(ResourceLimits::default());
        let busy = ProcessUsage { cpu_percent: 100.0, ..ProcessUsage::default() };
        let mut look = |usage: &ProcessUsage, now_ms| dog.look(root, usage, &rule, now_ms, 10_000).map(|hit| hit.name);
        assert_eq!(look(&busy, 0), None);
        assert_eq!(look(&busy, 9_999), None);
        assert_eq!(look(&ProcessUsage::default(), 9_999), None, "it rested");
        assert_eq!(look(&busy, 10_000), None);
        assert_eq!(look(&busy, 20_000).as_deref(), Some("max_cpu_percent"));
        assert_eq!(look(&ProcessUsage { memory_mb: 257.0, ..busy }, 0).as_deref(), Some("max_memory_mb"));
    }

    #[test]
    fn of_two_rules_the_lower_limits_hold() {
        let one = PartialLimits { max_memory_mb: Some(10.0), max_cpu_percent: None, max_processes: Some(9) };
        let two = PartialLimits { max_memory_mb: Some(20.0), max_cpu_percent: Some(50.0), max_processes: Some(3) };
        let both = PartialLimits { max_memory_mb: Some(10.0), max_cpu_percent: Some(50.0), max_processes: Some(3) };
        assert_eq!((one.and(two), two.and(one)), (both, both));
        assert_eq!(
            PartialLimits::default().exceeded(&ProcessUsage { memory_mb: 1e9, ..ProcessUsage::default() }),
            None
        );
    }
}
