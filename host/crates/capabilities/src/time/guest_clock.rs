//! The clock of one guest: it follows the journal in a pure world, and the machine in acting worlds.

use longhaul_core::Clock;
use longhaul_core::journal::Journal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The time of one guest, in microseconds since 1970-01-01 UTC.
pub(crate) struct GuestClock {
    journal: Option<Arc<dyn Journal>>,
    real: Arc<dyn Clock>,
    last_us: AtomicU64,
}

impl GuestClock {
    pub(crate) fn new(journal: Option<Arc<dyn Journal>>, real: Arc<dyn Clock>) -> Self {
        let clock = Self { journal, real, last_us: AtomicU64::new(0) };
        clock.entry_was_answered();
        clock
    }

    /// The time, one microsecond later at each read of a pure guest.
    pub(crate) fn read_us(&self) -> u64 {
        match &self.journal {
            Some(_) => self.last_us.fetch_add(1, Ordering::Relaxed) + 1,
            None => self.real.now_ms().saturating_mul(1_000),
        }
    }

    /// Moves a pure guest's clock to the moment that it waited for; never back.
    pub(crate) fn move_to(&self, us: u64) {
        if self.journal.is_some() {
            self.last_us.fetch_max(us, Ordering::Relaxed);
        }
    }

    /// Moves a pure guest's clock to the time of the entry that it just saw; never back.
    pub(crate) fn entry_was_answered(&self) {
        if let Some(journal) = &self.journal {
            self.move_to(journal.time_ms().saturating_mul(1_000));
        }
    }
}
