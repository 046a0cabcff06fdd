//! A clock that stands still until it is moved.

use longhaul_core::Clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The time of a scene. It is moved by hand, and by a pure guest that sleeps: the sleep is over at once.
#[derive(Debug)]
pub struct HandClock {
    ms: AtomicU64,
    /// Time from which on the clock goes by itself.
    running: Option<Instant>,
}

impl HandClock {
    /// 2026-01-01T00:00:00Z, where a scene starts unless its script says otherwise.
    pub const START_MS: u64 = 1_767_225_600_000;

    /// A clock that stands at `ms` since 1970-01-01 UTC.
    #[must_use]
    pub fn at(ms: u64) -> Self {
        Self { ms: AtomicU64::new(ms), running: None }
    }

    /// A clock that starts at `ms` and goes on by itself.
    #[must_use]
    pub fn running_from(ms: u64) -> Self {
        Self { ms: AtomicU64::new(ms), running: Some(Instant::now()) }
    }

    /// Moves it on, at most to the end of time.
    pub fn advance_ms(&self, ms: u64) {
        let later = |now: u64| Some(now.saturating_add(ms));
        // The closure always gives a time, so there is no refusal to look at.
        let _ = self.ms.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }

    /// Moves it to `ms`, unless it is later already.
    pub(crate) fn move_to(&self, ms: u64) {
        let behind = ms.saturating_sub(self.now_ms());
        self.advance_ms(behind);
    }
}

impl Clock for HandClock {
    fn now_ms(&self) -> u64 {
        let gone = self.running.map_or(0, |start| u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX));
        self.ms.load(Ordering::SeqCst).saturating_add(gone)
    }
}
