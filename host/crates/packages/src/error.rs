//! The reason why packages are not there, in one line.

use longhaul_build::BuildError;

/// The reason why packages are not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackagesError {
    /// The index, the resolver or a wheel is at fault, or what was asked for.
    #[error("{0}")]
    Refused(String),
    /// Python does not start, or its script ended without an answer.
    #[error("packages need `python3` with pip, or uv: {0}; on Debian: apt install python3 python3-pip")]
    NoPython(String),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] BuildError),
}
