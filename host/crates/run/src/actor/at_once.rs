//! The cap of a project on its runs that work at once, as its file has it.
//!
//! The queue holds the cap. Refuses to read the file each time that a run asks: many may wait.

use longhaul_config::Config;
use longhaul_records::record::RunRecord;

/// The age from which the file is read again.
const READ_MS: u64 = 10_000;

/// The cap of a project on its runs that work at once; none: no cap.
pub(super) struct AtOnceCap {
    pub(super) runs_max: Option<u32>,
    read_ms: u64,
}

impl AtOnceCap {
    /// The cap in a configuration that was read now.
    pub(super) fn of(config: &Config, now_ms: u64) -> Self {
        Self { runs_max: config.project.runs_at_once_max, read_ms: now_ms }
    }

    /// Reads the cap again where it is old. A file that cannot be read changes nothing.
    pub(super) fn renew(&mut self, record: &RunRecord, now_ms: u64) {
        // A clock that was set back makes it old, too.
        if now_ms.abs_diff(self.read_ms) < READ_MS {
            return;
        }
        if let Ok(config) = record.config_now() {
            *self = Self::of(&config, now_ms);
        }
    }
}
