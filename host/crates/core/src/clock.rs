//! Time, as a trait: tests move it, and nothing else reads the machine's clock.

/// A clock.
pub trait Clock: Send + Sync + 'static {
    /// The present time, in milliseconds since 1970-01-01 UTC.
    fn now_ms(&self) -> u64;
}
