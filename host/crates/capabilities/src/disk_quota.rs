//! The quota of bytes that a guest writes into the directories that it was granted: `disk_bytes_max` of an invocation.
//!
//! It counts, and refuses bytes over the limit. It writes nothing itself, and knows no file.

use longhaul_core::LimitHit;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The name of the limit.
pub const DISK_BYTES_MAX: &str = "disk_bytes_max";

/// The bytes that one invocation wrote, and its limit.
#[derive(Debug)]
pub(crate) struct DiskQuota {
    max: u64,
    used: AtomicU64,
    refused: Mutex<Option<LimitHit>>,
}

impl DiskQuota {
    pub(crate) fn new(max: u64) -> Arc<Self> {
        Arc::new(Self { max, used: AtomicU64::new(0), refused: Mutex::default() })
    }

    /// The first write that was refused.
    pub(crate) fn refused(&self) -> Option<LimitHit> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Charges bytes before they are written. False: they are over the limit, and nothing was charged.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.max);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        if let Err(used) = taken {
            let hit = || LimitHit::new(DISK_BYTES_MAX, used.saturating_add(bytes), self.max);
            self.refused.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(hit);
        }
        taken.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_may_be_written_and_one_byte_more_is_refused_by_its_name() {
        let disk = DiskQuota::new(100);
        assert!(disk.take(60) && !disk.take(41), "one over");
        assert!(disk.take(40), "a refusal charges nothing");
        assert!(!disk.take(u64::MAX) && !disk.take(1));
        assert_eq!(disk.refused(), Some(LimitHit::new(DISK_BYTES_MAX, 101, 100)), "the first one is named");
        assert_eq!(DiskQuota::new(0).refused(), None);
    }
}
