//! Time on this machine: for the question how long a lease lasts, and for pauses.

use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// The time since the machine was started, in milliseconds. It runs on while the machine sleeps, as a lease does.
pub(crate) fn uptime_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let (s, ns) = (u64::try_from(now.tv_sec).unwrap_or(0), u64::try_from(now.tv_nsec).unwrap_or(0));
    s * 1_000 + ns / 1_000_000
}

/// A random part of a time, so that many processes do not ask at once.
pub(crate) fn jitter(max: Duration) -> Duration {
    let part = getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX));
    max.mul_f64(part)
}
