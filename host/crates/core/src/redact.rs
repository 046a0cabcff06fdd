//! Taking secrets out of what passes, in the words of those who know no secret.

use std::fmt;

/// Makes streams that take out every secret that is known when one begins.
pub trait Redact: fmt::Debug + Send + Sync {
    /// One stream; none where nothing is secret.
    fn stream(&self) -> Option<Box<dyn RedactStream>>;
}

/// What bytes pass through, in pieces of which one may end inside a secret.
pub trait RedactStream: Send {
    /// The bytes that are certain so far.
    fn push(&mut self, piece: &[u8]) -> Vec<u8>;

    /// The bytes that were held back: nothing more comes.
    fn finish(&mut self) -> Vec<u8>;
}
