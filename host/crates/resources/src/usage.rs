//! Usage of a process tree and of the machine.
//!
//! Processor time is a share of an interval by the machine's own clock: between two measurements, or, at the first one,
//! the whole life of the process. Refuses to sample for a moment and to call that a share.

use crate::error::ResourceError;
use crate::gpu::GpuUsage;
use crate::numbers::mb;
use crate::process::{Process, ProcessTable, Stat};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Usage of a process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProcessUsage {
    /// Resident memory of all processes together, in MB. Shared memory counts for each.
    pub memory_mb: f64,
    /// Processor time since the last measurement, where 100 is one processor all the time.
    pub cpu_percent: f64,
    /// Threads of all processes.
    pub num_threads: u64,
    /// Processes besides the root.
    pub num_children: u64,
}

/// Resources of the machine, and their usage.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemUsage {
    /// Memory of the machine, or of our container, in MB.
    pub memory_total_mb: f64,
    /// Memory that is available without swapping, in MB.
    pub memory_available_mb: f64,
    /// Used memory, in percent.
    pub memory_percent: f64,
    /// Number of processors.
    pub cpu_count: u64,
    /// Load of all processors since the last measurement, in percent from 0 to 100.
    pub cpu_percent: f64,
    /// Graphics cards with readable memory; it may be empty.
    pub gpus: Vec<GpuUsage>,
}

/// Stores the figures of the last measurement.
#[derive(Debug, Default)]
pub struct Sampler {
    trees: BTreeMap<Process, Seen>,
    machine: Option<Busy>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    at_ms: u64,
    cpu_ms: u64,
    percent: f64,
}

/// Time of all processors since the machine started, in ticks.
#[derive(Clone, Copy, Debug)]
struct Busy {
    busy: u64,
    all: u64,
    percent: f64,
}

impl Sampler {
    /// Usage of a tree; none: it does not exist any more.
    pub fn tree(&mut self, table: &ProcessTable, root: Process) -> Option<ProcessUsage> {
        let tree = table.tree(root);
        if tree.is_empty() {
            self.trees.remove(&root);
            return None;
        }
        // An ended process adds its time to that of its waiting parent, so the sum continues.
        let cpu_ms = sum(&tree, |stat| stat.cpu_ms.saturating_add(stat.children_cpu_ms));
        Some(self.used(table, root, &tree, cpu_ms))
    }

    /// Usage of one process, without its children.
    pub fn alone(&mut self, table: &ProcessTable, process: Process) -> Option<ProcessUsage> {
        let stat = table.get(process)?;
        Some(self.used(table, process, &[stat], stat.cpu_ms))
    }

    fn used(&mut self, table: &ProcessTable, root: Process, all: &[&Stat], cpu_ms: u64) -> ProcessUsage {
        let born_ms = root.start_ticks.saturating_mul(1_000) / table.ticks_per_second;
        let before = self.trees.get(&root).copied().unwrap_or(Seen { at_ms: born_ms, cpu_ms: 0, percent: 0.0 });
        let seen = before.then(table.uptime_ms, cpu_ms);
        self.trees.insert(root, seen);
        ProcessUsage {
            memory_mb: mb(sum(all, |stat| stat.rss_bytes)),
            cpu_percent: seen.percent,
            num_threads: sum(all, |stat| stat.threads),
            num_children: all.iter().filter(|stat| stat.process != root).count() as u64,
        }
    }

    /// Forgets unneeded processes.
    pub fn keep(&mut self, is_wanted: impl Fn(Process) -> bool) {
        self.trees.retain(|root, _| is_wanted(*root));
    }

    /// Usage of the machine. The caller adds its graphics cards, since reading them may take long.
    ///
    /// # Errors
    /// [`ResourceError::Untold`].
    pub fn machine(&mut self) -> Result<SystemUsage, ResourceError> {
        let (memory, busy) = read::machine()?;
        let (total, available) = memory;
        let percent = percent_of(total.saturating_sub(available), total);
        Ok(SystemUsage {
            memory_total_mb: mb(total),
            memory_available_mb: mb(available),
            memory_percent: percent,
            cpu_count: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
            cpu_percent: self.busy(busy),
            gpus: Vec::new(),
        })
    }

    fn busy(&mut self, (busy, all): (u64, u64)) -> f64 {
        let before = self.machine.unwrap_or(Busy { busy: 0, all: 0, percent: 0.0 });
        let passed = all.saturating_sub(before.all);
        // Two measurements within a tick have no new information.
        let percent =
            if passed == 0 { before.percent } else { percent_of(busy.saturating_sub(before.busy), passed).min(100.0) };
        self.machine = Some(Busy { busy, all, percent });
        percent
    }
}

fn sum(all: &[&Stat], of: fn(&Stat) -> u64) -> u64 {
    all.iter().map(|stat| of(stat)).fold(0, u64::saturating_add)
}

/// The shortest interval for a share, in milliseconds: ticks of the kernel are 10.
const INTERVAL_MS_MIN: u64 = 100;

impl Seen {
    fn then(self, at_ms: u64, cpu_ms: u64) -> Self {
        let passed = at_ms.saturating_sub(self.at_ms);
        if passed < INTERVAL_MS_MIN {
            return self;
        }
        // The time of an ended process without a waiting parent is lost: a negative difference counts as 0.
        Self { at_ms, cpu_ms, percent: percent_of(cpu_ms.saturating_sub(self.cpu_ms), passed) }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share, shown with one digit")]
fn percent_of(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

#[cfg(target_os = "linux")]
mod read {
    use crate::error::ResourceError;
    use crate::own_cgroup::own_memory;
    use procfs::{Current as _, CurrentSI as _, KernelStats, Meminfo};

    type Pair = (u64, u64);

    /// Memory: all and available, in bytes. Time of processors: busy and all, in ticks.
    pub(super) fn machine() -> Result<(Pair, Pair), ResourceError> {
        let untold = |error: procfs::ProcError| ResourceError::Untold { why: error.to_string() };
        let memory = Meminfo::current().map_err(untold)?;
        let available = memory.mem_available.unwrap_or(memory.mem_free);
        let memory = match own_memory() {
            // A container may have less than the machine.
            Some((max, used)) if max < memory.mem_total => (max, max.saturating_sub(used).min(available)),
            _ => (memory.mem_total, available),
        };
        let time = KernelStats::current().map_err(untold)?.total;
        let idle = time.idle.saturating_add(time.iowait.unwrap_or(0));
        let busy = [Some(time.user), Some(time.nice), Some(time.system), time.irq, time.softirq, time.steal];
        let busy = busy.into_iter().flatten().fold(0, u64::saturating_add);
        Ok((memory, (busy, busy.saturating_add(idle))))
    }
}

#[cfg(not(target_os = "linux"))]
mod read {
    use crate::error::ResourceError;

    pub(super) fn machine() -> Result<((u64, u64), (u64, u64)), ResourceError> {
        Err(ResourceError::Untold { why: "it has no /proc".to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::stat;

    fn at(uptime_ms: u64, cpu_ms: [u64; 2]) -> ProcessTable {
        let [root, child] = cpu_ms;
        let stats = [Stat { cpu_ms: root, ..stat(10, 1, 10, 100) }, Stat { cpu_ms: child, ..stat(11, 10, 10, 100) }];
        ProcessTable::of(uptime_ms, 100, stats)
    }

    #[test]
    fn a_tree_is_summed_and_its_processor_time_is_a_share_of_what_passed() {
        let (mut sampler, root) = (Sampler::default(), Process { pid: 10, start_ticks: 100 });
        // Started at second 1; at second 3 it has had one second.
        let first = sampler.tree(&at(3_000, [500, 500]), root).unwrap();
        assert_eq!(first, ProcessUsage { memory_mb: 2.0, cpu_percent: 50.0, num_threads: 2, num_children: 1 });
        // Two processors for half a second.
        assert_eq!(sampler.tree(&at(3_500, [1_000, 1_000]), root).map(|usage| usage.cpu_percent), Some(200.0));
        // Too soon: the last figure.
        assert_eq!(sampler.tree(&at(3_550, [1_050, 1_000]), root).map(|usage| usage.cpu_percent), Some(200.0));
        // Lost time of an ended process does not return.
        assert_eq!(sampler.tree(&at(4_500, [100, 0]), root).map(|usage| usage.cpu_percent), Some(0.0));
        assert_eq!(sampler.tree(&at(5_000, [0, 0]), Process { pid: 10, start_ticks: 5 }), None);
    }

    #[test]
    fn the_machine_has_memory_and_processors() {
        let mut sampler = Sampler::default();
        let machine = sampler.machine().unwrap();
        assert!(machine.memory_total_mb > 100.0 && machine.memory_available_mb <= machine.memory_total_mb);
        assert!((0.0..=100.0).contains(&machine.memory_percent) && (0.0..=100.0).contains(&machine.cpu_percent));
        assert!(machine.cpu_count >= 1);
    }

    #[test]
    fn how_busy_the_machine_is_counts_from_the_last_look() {
        let mut sampler = Sampler::default();
        sampler.busy((100, 1_000));
        assert_eq!(
            [sampler.busy((175, 1_100)), sampler.busy((175, 1_100)), sampler.busy((175, 1_200))],
            [75.0, 75.0, 0.0]
        );
    }
}
