//! The reason why a job was not run. Errors of the code itself are in its report.

use crate::job::{CONTEXT_NESTING_MAX, SOURCE_BYTES_MAX};
use longhaul_core::LimitHit;
use longhaul_engine::LoadError;

/// The reason why a job was not run. Errors of the code are in its [`JobReport`](crate::JobReport).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The language's interpreter is not installed.
    #[error("there is no `{name}.wasm` in {searched}; fetch it with: longhaul runtimes pull {name}")]
    NoRuntime {
        /// `python` or `javascript`.
        name: &'static str,
        /// The searched directories.
        searched: String,
    },
    /// The source is too long.
    #[error(
        "the source has {bytes} bytes, and at most {SOURCE_BYTES_MAX} are run; hand data over as a file or as context"
    )]
    SourceTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The context is not an object.
    #[error("the context is {found}, and must be a JSON object, such as {{\"name\": 1}}")]
    ContextNotObject {
        /// The type that was found.
        found: String,
    },
    /// The context nests too deep.
    #[error("the context nests deeper than {CONTEXT_NESTING_MAX} levels; hand it over flatter, or as text")]
    ContextTooDeep,
    /// Compiling it needs more than [`ExecutorPaths::compile_limits`](crate::ExecutorPaths::compile_limits) allow.
    #[error("the {name} takes too much to compile: {hit}; make it smaller, or raise the limit where it is embedded")]
    CompileLimit {
        /// `program`, or the interpreter.
        name: String,
        /// The limit.
        hit: LimitHit,
    },
    /// The interpreter, or the program, cannot be loaded.
    #[error(transparent)]
    Load(LoadError),
    /// A fault of the host.
    #[error("{0}")]
    Host(String),
}

impl From<LoadError> for ExecError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Limit { name, hit } => Self::CompileLimit { name, hit },
            error @ LoadError::Host { .. } => Self::Host(error.to_string()),
            other => Self::Load(other),
        }
    }
}
