//! All processes, and the trees that they form.
//!
//! A process is its number and its start, in ticks since the machine's start: the number alone is reused. Refuses
//! zombies, which hold no resources and receive no signals.

use crate::error::ResourceError;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A process, identified by number and start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Process {
    /// Number of the process.
    pub pid: u32,
    /// Start of the process, in ticks since the machine started.
    pub start_ticks: u64,
}

/// The system's figures of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The process.
    pub process: Process,
    /// Number of its parent, by birth or adoption.
    pub parent: u32,
    /// Number of its process group.
    pub group: u32,
    /// The name of its program, cut by the kernel.
    pub name: String,
    /// Resident memory, in bytes. Shared memory counts for each process.
    pub rss_bytes: u64,
    /// Its processor time, in milliseconds.
    pub cpu_ms: u64,
    /// Processor time of its children that have ended and were waited for, in milliseconds.
    pub children_cpu_ms: u64,
    /// Number of its threads.
    pub threads: u64,
}

/// All processes at one moment.
#[derive(Clone, Debug, Default)]
pub struct ProcessTable {
    /// Time since the machine started, in milliseconds.
    pub uptime_ms: u64,
    /// Ticks of the system in a second.
    pub ticks_per_second: u64,
    stats: BTreeMap<u32, Stat>,
}

impl ProcessTable {
    /// A table of these processes.
    pub fn of(uptime_ms: u64, ticks_per_second: u64, stats: impl IntoIterator<Item = Stat>) -> Self {
        let stats = stats.into_iter().map(|stat| (stat.process.pid, stat)).collect();
        Self { uptime_ms, ticks_per_second: ticks_per_second.max(1), stats }
    }

    /// Reads the processes of the system. Takes about 10 us a process.
    ///
    /// # Errors
    /// [`ResourceError::Untold`].
    pub fn read() -> Result<Self, ResourceError> {
        read::table()
    }

    /// The process with this number now.
    #[must_use]
    pub fn named(&self, pid: u32) -> Option<&Stat> {
        self.stats.get(&pid)
    }

    /// This same process, if it exists.
    #[must_use]
    pub fn get(&self, process: Process) -> Option<&Stat> {
        self.named(process.pid).filter(|stat| stat.process == process)
    }

    /// The process, all below it, and all in the group that it leads, even when it has ended itself; the root first.
    ///
    /// A process that leaves group and family, as a daemon does, is not found. A sandbox with a process namespace of
    /// its own ends those too, and so does a control group.
    #[must_use]
    pub fn tree(&self, root: Process) -> Vec<&Stat> {
        match self.named(root.pid) {
            Some(found) if found.process != root => return Vec::new(),
            _ => {}
        }
        let mut below: BTreeMap<u32, Vec<&Stat>> = BTreeMap::new();
        for stat in self.stats.values() {
            below.entry(stat.parent).or_default().push(stat);
        }
        // While a group has a member, the kernel does not reuse its number.
        let in_group = |stat: &&Stat| stat.group == root.pid && stat.process.start_ticks >= root.start_ticks;
        let mut found: Vec<&Stat> = self.get(root).into_iter().collect();
        let mut seen: BTreeSet<u32> = found.iter().map(|stat| stat.process.pid).collect();
        found.extend(self.stats.values().filter(in_group).filter(|stat| seen.insert(stat.process.pid)));
        let mut next = 0;
        while let Some(stat) = found.get(next).copied() {
            let children = below.get(&stat.process.pid).into_iter().flatten().copied();
            found.extend(children.filter(|child| seen.insert(child.process.pid)));
            next += 1;
        }
        found
    }
}

/// Start of the process with this number; none: there is no such process.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    read::start_of(pid)
}

#[cfg(target_os = "linux")]
mod read {
    use super::{Process, ProcessTable, Stat};
    use crate::error::ResourceError;
    use procfs::process::Stat as Told;
    use procfs::{Current as _, Uptime};

    pub(super) fn table() -> Result<ProcessTable, ResourceError> {
        let untold = |error: procfs::ProcError| ResourceError::Untold { why: error.to_string() };
        let all = procfs::process::all_processes().map_err(untold)?;
        // A process that ends during the read is skipped.
        let stats = all.filter_map(|process| stat(process.ok()?.stat().ok()?));
        let stats: Vec<Stat> = stats.collect();
        // Read after the processes, so that none is older than the machine.
        let uptime = Uptime::current().map_err(untold)?.uptime_duration();
        let uptime_ms = u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX);
        Ok(ProcessTable::of(uptime_ms, procfs::ticks_per_second(), stats))
    }

    pub(super) fn start_of(pid: u32) -> Option<u64> {
        let told = procfs::process::Process::new(i32::try_from(pid).ok()?).ok()?.stat().ok()?;
        stat(told).map(|stat| stat.process.start_ticks)
    }

    fn stat(told: Told) -> Option<Stat> {
        if matches!(told.state, 'Z' | 'X' | 'x') {
            return None;
        }
        let number = |number: i32| u32::try_from(number).unwrap_or(0);
        let waited = |ticks: i64| u64::try_from(ticks).unwrap_or(0);
        let ms = |ticks: u64| ticks.saturating_mul(1_000) / procfs::ticks_per_second().max(1);
        Some(Stat {
            process: Process { pid: u32::try_from(told.pid).ok()?, start_ticks: told.starttime },
            parent: number(told.ppid),
            group: number(told.pgrp),
            name: told.comm,
            rss_bytes: told.rss.saturating_mul(procfs::page_size()),
            cpu_ms: ms(told.utime.saturating_add(told.stime)),
            children_cpu_ms: ms(waited(told.cutime).saturating_add(waited(told.cstime))),
            threads: u64::try_from(told.num_threads).unwrap_or(0),
        })
    }
}

#[cfg(not(target_os = "linux"))]
mod read {
    use super::ProcessTable;
    use crate::error::ResourceError;

    pub(super) fn table() -> Result<ProcessTable, ResourceError> {
        Err(ResourceError::Untold { why: "it has no /proc".to_owned() })
    }

    pub(super) fn start_of(_pid: u32) -> Option<u64> {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn stat(pid: u32, parent: u32, group: u32, start_ticks: u64) -> Stat {
        let process = Process { pid, start_ticks };
        let name = format!("p{pid}");
        Stat { process, parent, group, name, rss_bytes: 1 << 20, cpu_ms: 0, children_cpu_ms: 0, threads: 1 }
    }

    #[track_caller]
    fn check(root: (u32, u64), expected: &[u32]) {
        let stats = [
            stat(1, 0, 1, 0),
            stat(10, 1, 10, 100),
            stat(11, 10, 10, 110),
            stat(12, 11, 12, 120),
            // Taken over by process 1 when its parent ended, still in the group of 10.
            stat(13, 1, 10, 130),
            // A process of another tree.
            stat(20, 1, 20, 100),
            // In a group whose leader has ended.
            stat(31, 1, 30, 210),
            // Older than the leader, so of an earlier group with this number.
            stat(32, 1, 40, 90),
        ];
        let table = ProcessTable::of(10_000, 100, stats);
        let found = table.tree(Process { pid: root.0, start_ticks: root.1 });
        assert_eq!(found.iter().map(|stat| stat.process.pid).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_tree_is_all_below_and_all_in_the_group_and_nobody_else() {
        check((10, 100), &[10, 11, 13, 12]);
        check((12, 120), &[12]);
        check((30, 200), &[31]);
        check((40, 100), &[]);
    }

    #[test]
    fn a_number_that_was_given_away_again_is_another_process() {
        check((10, 99), &[]);
        check((10, 101), &[]);
        check((999, 1), &[]);
    }

    #[test]
    fn this_process_is_seen_with_its_memory_and_its_threads() {
        let table = ProcessTable::read().unwrap();
        let own = table.named(std::process::id()).expect("we are there");
        assert!(own.rss_bytes > 100 << 10 && own.threads >= 1, "{own:?}");
        assert_eq!(start_of(own.process.pid), Some(own.process.start_ticks));
        assert!(own.process.start_ticks * 1_000 / table.ticks_per_second <= table.uptime_ms + 10);
    }
}
