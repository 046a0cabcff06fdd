//! The space of the disk below a path. Reads figures alone, and holds nobody to them.

use std::path::Path;

/// Space of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Bytes that this user may still write.
    pub free_bytes: u64,
    /// Bytes of all of it.
    pub total_bytes: u64,
}

impl DiskSpace {
    /// The space of the disk that a path lies on; none where the system does not tell it.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let disk = rustix::fs::statvfs(path).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(disk.f_frsize);
        Some(Self { free_bytes: bytes(disk.f_bavail), total_bytes: bytes(disk.f_blocks) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_has_no_more_free_than_it_has() {
        let here = tempfile::tempdir().unwrap();
        let space = DiskSpace::of(here.path()).expect("the system tells it");
        assert!(space.total_bytes > 0 && space.free_bytes <= space.total_bytes, "{space:?}");
        assert_eq!(DiskSpace::of(&here.path().join("none")), None);
    }
}
