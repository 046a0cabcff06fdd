//! Redaction of secrets, as a trait for code that knows no secret.

use std::fmt;

/// Makes streams that redact every secret known at their beginning.
pub trait Redact: fmt::Debug + Send + Sync {
    /// A stream; none if there is no secret.
    fn stream(&self) -> Option<Box<dyn RedactStream>>;
}

/// Redacts a stream of bytes, of which a piece may end inside a secret.
pub trait RedactStream: Send {
    /// The certain bytes so far.
    fn push(&mut self, piece: &[u8]) -> Vec<u8>;

    /// The held-back bytes: nothing more follows.
    fn finish(&mut self) -> Vec<u8>;
}
