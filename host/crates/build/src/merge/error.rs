//! The error of merging: one line that names the unknown part of the component. It is not a
//! [`BuildError`](crate::BuildError) yet, since it does not know the plugin's name.

/// The reason why libraries cannot be merged.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct MergeError(String);

impl MergeError {
    pub(super) fn new(why: impl std::fmt::Display) -> Self {
        Self(why.to_string())
    }
}

impl From<wasmparser::BinaryReaderError> for MergeError {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        Self::new(error)
    }
}

impl From<wasm_encoder::reencode::Error> for MergeError {
    fn from(error: wasm_encoder::reencode::Error) -> Self {
        Self::new(error)
    }
}

pub(super) type Result<T> = std::result::Result<T, MergeError>;
