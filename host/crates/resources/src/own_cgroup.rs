//! The control group of Linux that this process is in, of version 2 or 1, and its memory.
//!
//! Reads only: it makes, changes and removes no group.

use std::path::PathBuf;

/// The group of version 2 that this process is in.
pub(crate) fn own_group() -> Option<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(mount_of(&mounts, "cgroup2", None)?.join(own))
}

/// The limit and the usage of our own group, in bytes; none: no visible limit.
pub(crate) fn own_memory() -> Option<(u64, u64)> {
    let number = |path: PathBuf| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let second = || {
        let own = own_group()?;
        let max = own.ancestors().filter_map(|group| Some((number(group.join("memory.max"))?, group)));
        let (max, group) = max.min_by_key(|(max, _)| *max)?;
        Some((max, number(group.join("memory.current"))?))
    };
    let first = || {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = own.lines().find_map(|line| line.split_once(":memory:/").map(|(_, path)| path))?;
        let group = mount_of(&mounts, "cgroup", Some("memory"))?.join(own);
        Some((number(group.join("memory.limit_in_bytes"))?, number(group.join("memory.usage_in_bytes"))?))
    };
    second().or_else(first)
}

/// The mount point of a file system of this kind, with this option.
fn mount_of(mountinfo: &str, kind: &str, option: Option<&str>) -> Option<PathBuf> {
    mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let is_it = after.next() == Some(kind)
            && option.is_none_or(|option| after.nth(1).is_some_and(|all| all.split(',').any(|one| one == option)));
        is_it.then(|| before.split(' ').nth(4).map(PathBuf::from))?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_found_by_kind_and_option() {
        let text = "25 1 0:22 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n\
                    26 1 0:23 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n";
        let found = |kind, option| mount_of(text, kind, option).map(|path| path.display().to_string());
        assert_eq!(found("cgroup2", None).as_deref(), Some("/sys/fs/cgroup/unified"));
        assert_eq!(found("cgroup", Some("memory")).as_deref(), Some("/sys/fs/cgroup/memory"));
        assert_eq!(found("cgroup", Some("pids")), None);
    }
}
