//! Errors between a file and an answer. Each text has the remedy.

use crate::protocol::{ChildFailure, ErrorKind};

/// Errors that keep a model from loading or from making a completion.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LlamaError {
    /// The file or the pipe cannot be read or written.
    #[error("cannot read or write `{what}`: {source}")]
    Io {
        /// The file or the pipe.
        what: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a GGUF file, or is truncated, or contradicts itself.
    #[error("the model file is damaged or not GGUF: {reason}; fetch it again and compare its digest")]
    BadFile {
        /// The part that does not fit.
        reason: String,
    },
    /// The file is sound, but of a kind that this crate does not run.
    #[error("the model file needs {what}; use a GGUF of a plain Llama with a `smollm` or `gpt-2` tokenizer")]
    Unsupported {
        /// The missing support.
        what: String,
    },
    /// Weights and the smallest useful context do not fit.
    #[error(
        "the model needs {bytes_needed} bytes for its weights and {context_tokens_min} tokens of context, but may use {bytes_max}; raise `memory_bytes_max` or take a smaller model"
    )]
    OutOfMemory {
        /// Bytes needed at least.
        bytes_needed: u64,
        /// Bytes that the model may use.
        bytes_max: u64,
        /// Tokens of context without which loading makes no sense.
        context_tokens_min: usize,
    },
    /// The request contradicts itself.
    #[error("the request cannot be served: {reason}")]
    BadRequest {
        /// The fault, with the remedy.
        reason: String,
    },
    /// The prompt fills the context.
    #[error(
        "the prompt has {prompt_tokens} tokens, and the context holds {context_tokens_max} with the answer; shorten the conversation or give the model more memory"
    )]
    PromptTooLong {
        /// Tokens of the prompt.
        prompt_tokens: usize,
        /// Tokens of prompt and answer together.
        context_tokens_max: usize,
    },
    /// The schema cannot be turned into a grammar, or the grammar cannot go on.
    #[error("the schema cannot be used: {reason}; simplify it, and refer only to `#/...`")]
    BadSchema {
        /// The error of the grammar's compiler.
        reason: String,
    },
    /// The model computed something that is not a number, or the tensor library refused.
    #[error("the model failed to compute: {reason}; the file may be damaged")]
    Compute {
        /// The cause.
        reason: String,
    },
}

impl LlamaError {
    /// The case that a caller can act on.
    pub fn kind(&self) -> ErrorKind {
        match self {
            LlamaError::Io { .. } | LlamaError::Compute { .. } => ErrorKind::Internal,
            LlamaError::BadFile { .. } | LlamaError::Unsupported { .. } => ErrorKind::BadModel,
            LlamaError::OutOfMemory { .. } => ErrorKind::OutOfMemory,
            LlamaError::BadRequest { .. } => ErrorKind::BadRequest,
            LlamaError::PromptTooLong { .. } => ErrorKind::PromptTooLong,
            LlamaError::BadSchema { .. } => ErrorKind::BadSchema,
        }
    }

    /// This error as the child reports it.
    pub fn to_failure(&self) -> ChildFailure {
        ChildFailure { kind: self.kind(), message: self.to_string() }
    }

    pub(crate) fn bad_file(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        LlamaError::BadFile { reason }
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        let what = what.into();
        LlamaError::Unsupported { what }
    }
}

impl From<candle_core::Error> for LlamaError {
    fn from(error: candle_core::Error) -> Self {
        let reason = error.to_string();
        LlamaError::Compute { reason }
    }
}
