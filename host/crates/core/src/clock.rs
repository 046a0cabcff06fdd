//! Time, as a trait: tests move it, and nothing else reads the machine's clock.

/// Milliseconds since 1970-01-01 UTC.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now_ms(&self) -> u64;
}
