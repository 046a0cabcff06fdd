//! Ends a tree of processes: asks first, and kills those that do not end.
//!
//! Each process is held by a descriptor from the kernel, and its start is compared once the descriptor exists; so a
//! process with a reused number is never hit. Refuses to signal anything without such a descriptor, and to count a slow
//! process as ended.

use crate::error::ResourceError;
use crate::process::{Process, ProcessTable, Stat, start_of};
use std::time::Duration;

/// Most time for a tree to end by itself after the request.
pub const GRACE: Duration = Duration::from_secs(5);

/// Most time for killed processes to end, before the search for processes that they started meanwhile.
const KILLED: Duration = Duration::from_millis(200);

/// Most passes of that search. A tree that starts processes as fast as it can is done after two or three.
const PASSES: usize = 25;

/// The result of ending a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeEnd {
    /// Processes that ended on request.
    pub asked: usize,
    /// Processes that had to be killed.
    pub killed: usize,
}

/// Ends a process, all below it, and its group. Blocks for at most `grace` and some seconds.
///
/// `is_keeper` names those that are not asked, since they end with their own children: asked first, they would end
/// those before they could tidy up.
///
/// # Errors
/// [`ResourceError::Absent`] without any process to end, [`ResourceError::NotOurs`], [`ResourceError::StillThere`].
pub fn end_tree(root: Process, grace: Duration, is_keeper: &dyn Fn(&Stat) -> bool) -> Result<TreeEnd, ResourceError> {
    let absent = || ResourceError::Absent { pid: root.pid };
    let table = ProcessTable::read()?;
    let tree = table.tree(root);
    let held = hold(&tree);
    if held.is_empty() {
        return Err(absent());
    }
    let kept = |held: &ProcessHandle| tree.iter().any(|stat| stat.process == held.process && is_keeper(stat));
    let asked: Vec<&ProcessHandle> = held.iter().filter(|held| !kept(held)).collect();
    let asked = if asked.is_empty() { held.iter().collect() } else { asked };
    let refused = asked.iter().filter(|held| held.ask() == Heard::NotOurs).count();
    if refused == held.len() {
        return Err(ResourceError::NotOurs { pid: root.pid });
    }
    let left = wait(held, grace);
    let gone = tree.len() - left.len();
    kill(root, left).map(|killed| TreeEnd { asked: gone, killed })
}

/// Kills the remaining processes, and those that they started meanwhile, until none is left.
fn kill(root: Process, mut left: Vec<ProcessHandle>) -> Result<usize, ResourceError> {
    let mut killed = 0;
    for _ in 0..PASSES {
        // Also those that the last search missed, and that left the family since.
        let table = ProcessTable::read()?;
        let known: Vec<Process> = left.iter().map(|held| held.process).collect();
        let mut found = table.tree(root);
        for process in &known {
            found.extend(table.tree(*process));
        }
        found.sort_by_key(|stat| stat.process);
        found.dedup_by_key(|stat| stat.process);
        found.retain(|stat| !known.contains(&stat.process));
        left.extend(hold(&found));
        if left.is_empty() {
            return Ok(killed);
        }
        let refused = left.iter().filter(|held| held.kill() == Heard::NotOurs).count();
        if refused == left.len() {
            return Err(ResourceError::NotOurs { pid: root.pid });
        }
        let before = left.len();
        left = wait(left, KILLED);
        killed += before - left.len();
    }
    Err(ResourceError::StillThere { pid: root.pid, left: left.len() })
}

/// The processes of the tree that still exist and are the same ones.
fn hold(tree: &[&Stat]) -> Vec<ProcessHandle> {
    tree.iter().filter_map(|stat| ProcessHandle::of(stat.process)).collect()
}

/// The outcome of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heard {
    Sent,
    Gone,
    NotOurs,
}

#[cfg(target_os = "linux")]
use linux::{ProcessHandle, wait};

#[cfg(target_os = "linux")]
mod linux {
    use super::{Heard, Process, start_of};
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::Errno;
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    use std::os::fd::OwnedFd;
    use std::time::{Duration, Instant};

    /// A process that cannot be confused with another.
    pub(super) struct ProcessHandle {
        pub(super) process: Process,
        fd: OwnedFd,
    }

    impl ProcessHandle {
        /// A handle of the process; none: it has ended, or its number belongs to another one.
        pub(super) fn of(process: Process) -> Option<Self> {
            let pid = Pid::from_raw(i32::try_from(process.pid).ok()?)?;
            let fd = pidfd_open(pid, PidfdFlags::empty()).ok()?;
            // In this order: the descriptor stays with its process, whose start is compared then.
            (start_of(process.pid) == Some(process.start_ticks)).then_some(Self { process, fd })
        }

        pub(super) fn ask(&self) -> Heard {
            self.signal(Signal::TERM)
        }

        pub(super) fn kill(&self) -> Heard {
            self.signal(Signal::KILL)
        }

        fn signal(&self, signal: Signal) -> Heard {
            match pidfd_send_signal(&self.fd, signal) {
                Ok(()) => Heard::Sent,
                Err(Errno::PERM) => Heard::NotOurs,
                Err(_) => Heard::Gone,
            }
        }
    }

    /// Waits until all have ended, or until the timeout; returns those that have not.
    pub(super) fn wait(mut held: Vec<ProcessHandle>, most: Duration) -> Vec<ProcessHandle> {
        let since = Instant::now();
        loop {
            held.retain(|held| !has_ended(held));
            let left = most.saturating_sub(since.elapsed());
            if held.is_empty() || left.is_zero() {
                return held;
            }
            let mut polled: Vec<PollFd> = held.iter().map(|held| PollFd::new(&held.fd, PollFlags::IN)).collect();
            let seconds = i64::try_from(left.as_secs()).unwrap_or(i64::MAX);
            let timeout = Timespec { tv_sec: seconds, tv_nsec: left.subsec_nanos().into() };
            // An interruption only causes one more turn.
            let _ = poll(&mut polled, Some(&timeout));
        }
    }

    fn has_ended(held: &ProcessHandle) -> bool {
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut [PollFd::new(&held.fd, PollFlags::IN)], Some(&at_once)), Ok(1..))
    }
}

#[cfg(not(target_os = "linux"))]
use elsewhere::{ProcessHandle, wait};

/// Without process descriptors no process is held, so none is signalled.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::{Heard, Process};
    use std::time::Duration;

    pub(super) struct ProcessHandle {
        pub(super) process: Process,
    }

    impl ProcessHandle {
        pub(super) fn of(_process: Process) -> Option<Self> {
            None
        }

        pub(super) fn ask(&self) -> Heard {
            Heard::Gone
        }

        pub(super) fn kill(&self) -> Heard {
            Heard::Gone
        }
    }

    pub(super) fn wait(held: Vec<ProcessHandle>, _most: Duration) -> Vec<ProcessHandle> {
        held
    }
}
