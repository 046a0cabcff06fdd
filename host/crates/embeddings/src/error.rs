//! Errors of the sentence model. Each text has the remedy.

use std::path::PathBuf;

/// Errors that keep a model from loading or from giving a vector.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddingsError {
    /// A file cannot be read.
    #[error("cannot read `{path}`: {source}; fetch the model with `longhaul models pull minilm`")]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A file is not the tested one.
    #[error("`{path}` has the digest {found} and not {expected}; remove it and pull the model again")]
    Other {
        /// The file.
        path: PathBuf,
        /// Digest of the file.
        found: String,
        /// Digest that the file must have.
        expected: String,
    },
    /// The vocabulary is invalid.
    #[error("the vocabulary is none: {reason}; pull the model again")]
    Vocabulary {
        /// The part that does not fit.
        reason: String,
    },
    /// The tensor library refused.
    #[error("the sentence model failed to compute: {reason}")]
    Compute {
        /// The model's message.
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
