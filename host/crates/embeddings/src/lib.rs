//! What sentences mean, as vectors: a small sentence model on the CPU, without a line of C++.
//!
//! | file | holds |
//! |---|---|
//! | `pieces.rs` | a text as the pieces of words that the model knows |
//! | `bert.rs` | the model, behind the feature `inference` |
//! | `sentences.rs` | the model as an [`Embedder`](longhaul_core::memory::Embedder), behind the same |
//!
//! It runs within the process of who asks. Its two files have to have the digests that they are named with, and that
//! is looked at over the very bytes that are read then: so it is always the one model that was tried, and never one
//! that somebody made to harm. What it is given is anybody's text, of which it reads a bounded beginning. It opens no
//! socket, downloads nothing, and reads no other file.

#[cfg(feature = "inference")]
mod bert;
mod error;
mod pieces;
#[cfg(feature = "inference")]
mod sentences;

pub use error::EmbeddingsError;
pub use pieces::Pieces;
#[cfg(feature = "inference")]
pub use sentences::{Files, Pinned, Sentences};
