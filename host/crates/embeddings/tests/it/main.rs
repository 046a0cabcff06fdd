//! Ranking by words and by meaning, and the real model.

#[cfg(feature = "inference")]
mod minilm;
mod ranking;
