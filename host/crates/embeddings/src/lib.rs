//! Meanings of sentences as vectors: a small sentence model on the CPU, without a line of C++.
//!
//! | file | holds |
//! |---|---|
//! | `pieces.rs` | a text as the pieces of words that the model knows |
//! | `bert.rs` | the model, behind the feature `inference` |
//! | `sentences.rs` | the model as an [`Embedder`](longhaul_core::memory::Embedder), behind the same |
//!
//! The model runs within the caller's process. Its two files must have the digests that they are named with, and the
//! digest is computed from the same bytes that are then used: so the model is always the tested one, and never one that
//! was made to harm. Its input is untrusted text, of which it reads a bounded beginning. It opens no socket, downloads
//! nothing, and reads no other file.

#[cfg(feature = "inference")]
mod bert;
mod error;
mod pieces;
#[cfg(feature = "inference")]
mod sentences;

pub use error::EmbeddingsError;
pub use pieces::Pieces;
#[cfg(feature = "inference")]
pub use sentences::{ModelFiles, Pinned, Sentences};
