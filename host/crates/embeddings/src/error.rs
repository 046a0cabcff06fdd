//! Why there is no vector. The texts carry the remedy.

use std::path::PathBuf;

/// Why a model cannot be loaded, or gives no vector.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingsError {
    /// A file cannot be read.
    #[error("cannot read `{path}`: {source}; fetch the model with `longhaul models pull minilm`")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file is not the one that was tried.
    #[error("`{path}` has the digest {found} and not {expected}; remove it and pull the model again")]
    Other {
        /// The file.
        path: PathBuf,
        /// What it has.
        found: String,
        /// What it must have.
        expected: String,
    },
    /// The vocabulary is none.
    #[error("the vocabulary is none: {reason}; pull the model again")]
    Vocabulary {
        /// What does not fit.
        reason: String,
    },
    /// The tensor library refused.
    #[error("the sentence model failed to compute: {reason}")]
    Compute {
        /// What it said.
        reason: String,
    },
}

impl EmbeddingsError {
    /// True when the same call may succeed later without anyone changing a file.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Io { .. } | Self::Other { .. } | Self::Vocabulary { .. } => false,
            Self::Compute { .. } => true,
        }
    }
}

#[cfg(feature = "inference")]
impl From<candle_core::Error> for EmbeddingsError {
    fn from(error: candle_core::Error) -> Self {
        Self::Compute { reason: error.to_string() }
    }
}
