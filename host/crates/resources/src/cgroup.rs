//! Control groups of Linux, version 2, if the system lets us make some below our own.
//!
//! systemd allows it for a unit with `Delegate=yes`, and marks its group. We move into a leaf of it, since a group with
//! processes of its own can have none with limits below, and each child gets a group beside it. Refuses to change a
//! group that was not delegated to us, and to report an unwritten limit as set.

use crate::limits::PartialLimits;
use crate::own_cgroup::own_group;
use std::io;
use std::path::{Path, PathBuf};

/// The attribute by which systemd marks a delegated group.
const MARKS: [&str; 2] = ["user.delegate", "trusted.delegate"];

/// Controllers that limits need.
const CONTROLLERS: [&str; 3] = ["memory", "pids", "cpu"];

/// The period of the processor share, in microseconds; the kernel's default.
const PERIOD_US: u64 = 100_000;

/// The control group in which groups for children can be made.
#[derive(Clone, Debug)]
pub struct CgroupParent {
    top: PathBuf,
}

/// The group of one child, removed when it is dropped; its remaining processes are killed.
#[derive(Debug)]
pub struct ChildCgroup {
    path: PathBuf,
}

impl CgroupParent {
    /// The group that could be taken over, without doing so.
    ///
    /// # Errors
    /// The reason why there is none, as text.
    pub fn look() -> Result<PathBuf, String> {
        let own = own_group().ok_or("this system has no control groups of version 2, or we are in none")?;
        let is_ours = MARKS.iter().any(|mark| {
            let mut value = [0; 8];
            rustix::fs::getxattr(&own, *mark, &mut value).is_ok_and(|length| value[..length].starts_with(b"1"))
        });
        if !is_ours {
            return Err(format!(
                "`{}` was not handed over to us; run as a systemd unit with Delegate=yes",
                own.display()
            ));
        }
        has_controllers(&own).map_err(|error| format!("`{}`: {error}", own.display()))?;
        Ok(own)
    }

    /// Takes over our own group.
    ///
    /// # Errors
    /// The reason why there is none, as text.
    pub fn take() -> Result<Self, String> {
        let own = Self::look()?;
        Self::at(&own, std::process::id()).map_err(|error| format!("`{}`: {error}", own.display()))
    }

    /// Prepares a group for others below it, by moving our process into a leaf of it.
    fn at(top: &Path, own: u32) -> io::Result<Self> {
        has_controllers(top)?;
        let leaf = top.join("host");
        make(&leaf)?;
        write(&leaf, "cgroup.procs", &own.to_string())?;
        write(top, "cgroup.subtree_control", "+memory +pids +cpu")?;
        Ok(Self { top: top.to_owned() })
    }

    /// A group for a child, with its limits.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn make(&self, name: &str, rule: &PartialLimits) -> io::Result<ChildCgroup> {
        let path = self.top.join(name);
        make(&path)?;
        let group = ChildCgroup { path };
        group.limit(rule)?;
        Ok(group)
    }
}

impl ChildCgroup {
    fn limit(&self, rule: &PartialLimits) -> io::Result<()> {
        if let Some(mb) = rule.max_memory_mb {
            write(&self.path, "memory.max", &whole(mb * 1_048_576.0).to_string())?;
            // All processes, and not only the largest one: half a program is useless.
            write(&self.path, "memory.oom.group", "1")?;
        }
        if let Some(processes) = rule.max_processes {
            // The root counts here. Threads do too, so a process counts as eight.
            write(&self.path, "pids.max", &processes.saturating_add(1).saturating_mul(8).to_string())?;
        }
        if let Some(percent) = rule.max_cpu_percent {
            let quota = whole(percent.max(1.0) * 0.01 * 100_000.0);
            write(&self.path, "cpu.max", &format!("{quota} {PERIOD_US}"))?;
        }
        Ok(())
    }

    /// Adds a process. Its later children are in the group too.
    ///
    /// # Errors
    /// When the system refuses; for example, the process is gone.
    pub fn add(&self, pid: u32) -> io::Result<()> {
        write(&self.path, "cgroup.procs", &pid.to_string())
    }
}

impl Drop for ChildCgroup {
    fn drop(&mut self) {
        // It is empty by now, or else its remaining processes are killed.
        let _ = write(&self.path, "cgroup.kill", "1");
        let _ = std::fs::remove_dir(&self.path);
    }
}

fn has_controllers(group: &Path) -> io::Result<()> {
    let there = std::fs::read_to_string(group.join("cgroup.controllers"))?;
    let missing = CONTROLLERS.iter().find(|wanted| !there.split_whitespace().any(|found| found == **wanted));
    match missing {
        Some(missing) => Err(io::Error::other(format!("it has no controller `{missing}`"))),
        None => Ok(()),
    }
}

/// A limit as a whole number: never negative, and far below 2^53.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn whole(number: f64) -> u64 {
    number.clamp(0.0, 9e15) as u64
}

fn make(path: &Path) -> io::Result<()> {
    match std::fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

fn write(group: &Path, file: &str, value: &str) -> io::Result<()> {
    let told = |error: io::Error| io::Error::new(error.kind(), format!("{file}: {error}"));
    std::fs::OpenOptions::new()
        .write(true)
        .open(group.join(file))
        .and_then(|mut file| io::Write::write_all(&mut file, value.as_bytes()))
        .map_err(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory that looks like a delegated group.
    fn handed_over(controllers: &str) -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        std::fs::write(top.path().join("cgroup.controllers"), controllers).unwrap();
        std::fs::write(top.path().join("cgroup.subtree_control"), "").unwrap();
        for group in ["host", "child-7"] {
            std::fs::create_dir(top.path().join(group)).unwrap();
            for file in ["cgroup.procs", "memory.max", "memory.oom.group", "pids.max", "cpu.max"] {
                std::fs::write(top.path().join(group).join(file), "").unwrap();
            }
        }
        top
    }

    #[test]
    fn limits_are_written_as_the_kernel_reads_them() {
        let top = handed_over("cpuset cpu io memory pids\n");
        let groups = CgroupParent::at(top.path(), 42).unwrap();
        let rule = PartialLimits { max_memory_mb: Some(256.0), max_cpu_percent: Some(80.0), max_processes: Some(5) };
        let group = groups.make("child-7", &rule).unwrap();
        group.add(7).unwrap();
        let read = |file: &str| std::fs::read_to_string(top.path().join(file)).unwrap();
        assert_eq!(read("host/cgroup.procs"), "42", "we leave the group first");
        assert_eq!(read("cgroup.subtree_control"), "+memory +pids +cpu");
        assert_eq!(read("child-7/memory.max"), "268435456");
        assert_eq!(read("child-7/pids.max"), "48");
        assert_eq!(read("child-7/cpu.max"), "80000 100000");
        assert_eq!(read("child-7/cgroup.procs"), "7");
    }

    #[test]
    fn a_group_without_what_limits_need_is_refused_by_name() {
        let top = handed_over("cpu pids\n");
        let refused = CgroupParent::at(top.path(), 42).unwrap_err().to_string();
        assert!(refused.contains("`memory`"), "{refused}");
        let read = std::fs::read_to_string(top.path().join("host/cgroup.procs")).unwrap();
        assert_eq!(read, "", "nobody was moved");
    }
}
